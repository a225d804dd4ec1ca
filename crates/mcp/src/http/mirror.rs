//! Headers that repeat the body. Whoever stands between acts on them; the server acts on the body.
//! So they must say the same.

use std::borrow::Cow;

use base64ct::{Base64, Encoding as _};
use countersign_canon::Json;
use countersign_web::only;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use crate::frame::{Frame, Kind};
use crate::tools::Definition;
use crate::{Era, Method};

use super::headers::{METHOD, NAME, PARAM_PREFIX, VERSION};

/// A header that does not say what the body says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the header `{0}` does not say what the body says")]
pub(super) struct Mismatch(pub(super) HeaderName);

/// Compares the headers of a request with its body. A header that is not there says nothing.
pub(super) fn check(frame: &Frame, headers: &HeaderMap) -> Result<(), Mismatch> {
    let (name, method, params) = match frame.kind() {
        Kind::Request {
            name,
            method,
            params,
            ..
        }
        | Kind::Notification {
            name,
            method,
            params,
        } => (frame.text(Some(*name)), *method, *params),
        // An answer has no method to repeat.
        Kind::Response { .. } | Kind::Error { .. } => {
            return absent(headers, &METHOD).and_then(|()| absent(headers, &NAME));
        }
    };
    same(headers, &METHOD, name.as_deref())?;
    if let Some(version) = frame.text(frame.member(params.meta, Era::VERSION_KEY)) {
        same(headers, &VERSION, Some(&version))?;
    }
    let named = match method {
        Method::ToolsCall | Method::PromptsGet => frame.text(params.name),
        Method::ResourcesRead => frame.text(params.uri),
        Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => frame.text(params.task_id),
        // What other methods name is not known here; the server compares it.
        _ => return only(headers, &NAME).map(drop).map_err(|_| Mismatch(NAME)),
    };
    same(headers, &NAME, named.as_deref())
}

/// Compares the headers that repeat single arguments of a call. The tool's definition says which
/// they are; others are the server's to judge.
pub(super) fn check_arguments(
    definition: &Definition,
    args: &Json,
    headers: &HeaderMap,
) -> Result<(), Mismatch> {
    for (header, value) in arguments(definition, args) {
        same(headers, &header, value.as_deref())?;
    }
    Ok(())
}

/// The headers that repeat single arguments, as these arguments want them.
pub(super) fn rewrite_arguments(definition: &Definition, args: &Json, headers: &mut HeaderMap) {
    for (header, value) in arguments(definition, args) {
        if headers.remove(&header).is_some()
            && let Some(value) = value.and_then(|value| encode(&value))
        {
            headers.insert(header, value);
        }
    }
}

/// The headers of a call, in the place of those of the request that carries it.
pub(super) fn name_call(tool: &str, headers: &mut HeaderMap) {
    let all: Vec<HeaderName> = headers.keys().cloned().collect();
    let is_argument = |name: &&HeaderName| name.as_str().starts_with(PARAM_PREFIX);
    for header in all.iter().filter(is_argument) {
        headers.remove(header);
    }
    if headers.remove(&METHOD).is_some() {
        headers.insert(METHOD, HeaderValue::from_static(Method::ToolsCall.as_str()));
    }
    name(tool, headers);
}

/// Names something else, where the client has named something.
pub(super) fn name(what: &str, headers: &mut HeaderMap) {
    if headers.remove(&NAME).is_some()
        && let Some(name) = encode(what)
    {
        headers.insert(NAME, name);
    }
}

/// Adds the headers that repeat single arguments.
pub(super) fn repeat_arguments(definition: &Definition, args: &Json, headers: &mut HeaderMap) {
    for (header, value) in arguments(definition, args) {
        if let Some(value) = value.and_then(|value| encode(&value)) {
            headers.insert(header, value);
        }
    }
}

/// Whether a request repeats single arguments in headers.
pub(super) fn has_arguments(headers: &HeaderMap) -> bool {
    headers
        .keys()
        .any(|name| name.as_str().starts_with(PARAM_PREFIX))
}

fn arguments(definition: &Definition, args: &Json) -> Vec<(HeaderName, Option<String>)> {
    let mut found = Vec::new();
    if let Some(schema) = definition.value().get("inputSchema") {
        collect(schema, Some(args), &mut found);
    }
    found
}

/// Properties at any depth may name a header.
fn collect(schema: &Json, args: Option<&Json>, found: &mut Vec<(HeaderName, Option<String>)>) {
    let properties = schema.get("properties").and_then(Json::as_object);
    for (property, schema) in properties.into_iter().flat_map(|all| all.iter()) {
        let value = args.and_then(|args| args.get(property));
        let value = value.filter(|value| !value.is_null());
        let header = schema.get("x-mcp-header").and_then(Json::as_str);
        let header = header.map(|name| format!("{PARAM_PREFIX}{name}").to_ascii_lowercase());
        if let Some(Ok(header)) = header.map(HeaderName::try_from) {
            found.push((header, value.map(shown)));
        }
        collect(schema, value, found);
    }
}

fn shown(value: &Json) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => String::from_utf8_lossy(&value.to_sorted_ascii()).into_owned(),
    }
}

fn absent(headers: &HeaderMap, header: &HeaderName) -> Result<(), Mismatch> {
    match headers.contains_key(header) {
        true => Err(Mismatch(header.clone())),
        false => Ok(()),
    }
}

fn same(headers: &HeaderMap, header: &HeaderName, body: Option<&str>) -> Result<(), Mismatch> {
    let mismatch = || Mismatch(header.clone());
    let Some(said) = only(headers, header).map_err(|_| mismatch())? else {
        return Ok(());
    };
    let said = decode(said.trim_matches([' ', '\t'])).ok_or_else(mismatch)?;
    match body == Some(&*said) {
        true => Ok(()),
        false => Err(mismatch()),
    }
}

/// Text that is not plain ASCII stands as `=?base64?…?=`.
fn decode(value: &str) -> Option<Cow<'_, str>> {
    let coded = value
        .strip_prefix(OPEN)
        .and_then(|rest| rest.strip_suffix(CLOSE));
    match coded {
        None => Some(Cow::Borrowed(value)),
        Some(coded) => String::from_utf8(from_base64(coded)?).ok().map(Cow::Owned),
    }
}

fn encode(value: &str) -> Option<HeaderValue> {
    let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !value.starts_with(' ')
        && !value.ends_with(' ')
        && !value.starts_with(OPEN);
    let text = match is_plain {
        true => value.to_owned(),
        false => format!("{OPEN}{}{CLOSE}", Base64::encode_string(value.as_bytes())),
    };
    HeaderValue::try_from(text).ok()
}

/// SECURITY: two texts must not mean the same, so what is left over must be nothing.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    Base64::decode_vec(text).ok()
}

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

#[cfg(test)]
mod tests;
