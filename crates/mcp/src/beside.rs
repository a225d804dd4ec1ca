//! What stands beside the arguments of a call, and is part of it.
//!
//! A server may act on any member of `params`, and of the message. So whatever is not known to change nothing is
//! judged, shown, approved and recorded as an argument of its own, under a name that no tool has.

use countersign_canon::scan::Scan;
use countersign_canon::{Error, Json, Limits, Numbers, Object, Reason};

use crate::frame::{Frame, Params, Span, TOP};
use crate::session::APPROVAL;

/// The arguments, with what stands beside them.
pub(crate) fn join(args: Json, frame: &Frame, params: &Params) -> Result<Json, String> {
    if args.get(BESIDE).is_some() {
        return Err(format!("no argument can be called `{BESIDE}`"));
    }
    let part = |span: Option<Span>| span.map(|span| frame.part(span));
    let mut found = members(part(params.whole), is_known)?;
    if let Some(meta) = meta(part(params.meta))? {
        found.insert("_meta".to_owned(), meta);
    }
    around(frame, &mut found)?;
    if found.is_empty() {
        return Ok(args);
    }
    let mut all = match args {
        Json::Object(args) => args,
        _ => Object::new(),
    };
    all.insert(BESIDE.to_owned(), Json::Object(found));
    Ok(Json::Object(all))
}

/// What a request names that fetches something: all its parameters.
pub(crate) fn whole(frame: &Frame, params: &Params) -> Result<Json, String> {
    let part = |span: Option<Span>| span.map(|span| frame.part(span));
    let mut all = members(part(params.whole), |key, _| key == "_meta")?;
    if all.contains_key(BESIDE) {
        return Err(format!("no parameter can be called `{BESIDE}`"));
    }
    let mut found = Object::new();
    if let Some(meta) = meta(part(params.meta))? {
        found.insert("_meta".to_owned(), meta);
    }
    around(frame, &mut found)?;
    if !found.is_empty() {
        all.insert(BESIDE.to_owned(), Json::Object(found));
    }
    Ok(Json::Object(all))
}

/// What stands around the parameters, in the message itself.
fn around(frame: &Frame, found: &mut Object) -> Result<(), String> {
    if found.contains_key(MESSAGE) {
        return Err(format!("no parameter can be called `{MESSAGE}`"));
    }
    if frame.has_others() {
        let others = members(Some(frame.bytes()), |key, _| TOP.contains(&key))?;
        found.insert(MESSAGE.to_owned(), Json::Object(others));
    }
    Ok(())
}

/// What goes along with a message, as far as it is not known to change nothing.
fn meta(text: Option<&[u8]>) -> Result<Option<Json>, String> {
    match text {
        Some(b"null") => Ok(None),
        Some(text) if !text.starts_with(b"{") => Json::admit(text, &Limits::event())
            .map(Some)
            .map_err(|error| format!("`_meta`: {}", misread(&error))),
        meta => Ok(Some(members(meta, is_known_meta)?)
            .filter(|meta| !meta.is_empty())
            .map(Json::Object)),
    }
}

/// The arguments alone, if what stands beside them is as it is in the frame.
///
/// FAIL-CLOSED: what a policy has changed there is not sent.
pub(crate) fn split(all: &Json, frame: &Frame, params: &Params) -> Option<Json> {
    let Json::Object(members) = all else {
        return Some(all.clone());
    };
    let mut args = members.clone();
    let stored = args.remove(BESIDE);
    let found = join(Json::Object(Object::new()), frame, params).ok()?;
    match stored.as_ref() == found.get(BESIDE) {
        true => Some(Json::Object(args)),
        false => None,
    }
}

/// The parameters of a call, or of what fetches something, as they were before they were judged as one; what
/// stood in the message itself is left out.
pub fn apart(tool: &str, judged: &Json, fetches: bool) -> Json {
    let mut args = judged.clone();
    let beside = args.as_object_mut().and_then(|args| args.remove(BESIDE));
    let params = match fetches {
        true => args,
        false => Json::object([("name", Json::from(tool)), ("arguments", args)]),
    };
    let mut params = params.into_object().unwrap_or_default();
    let mut beside = beside.and_then(Json::into_object).unwrap_or_default();
    beside.remove(MESSAGE);
    for (name, value) in beside {
        params.insert(name, value);
    }
    Json::Object(params)
}

fn members(text: Option<&[u8]>, is_known: fn(&str, &[u8]) -> bool) -> Result<Object, String> {
    let mut found = Object::new();
    let Some(text) = text.filter(|text| text.starts_with(b"{")) else {
        return Ok(found);
    };
    let mut unread = None;
    let mut scan = Scan::new(text, &LIMITS).map_err(|error| error.to_string())?;
    let scanned = scan.object(|scan, key| {
        let value = scan.value()?;
        let value = text.get(value).unwrap_or_default();
        if is_known(&key, value) {
            return Ok(());
        }
        match Json::admit(value, &Limits::event()) {
            Ok(value) => {
                found.insert(key.into_owned(), value);
            }
            Err(error) => unread = Some(format!("`{key}`: {}", misread(&error))),
        }
        Ok(())
    });
    scanned.map_err(|error| error.to_string())?;
    match unread {
        Some(problem) => Err(problem),
        None => Ok(found),
    }
}

/// The parameters that are judged for themselves.
fn is_known(key: &str, _: &[u8]) -> bool {
    matches!(key, "name" | "arguments" | "_meta")
}

/// What the protocol says about a message and its sender, in the form that it has there, and what is meant
/// for us.
fn is_known_meta(key: &str, value: &[u8]) -> bool {
    let begins = value.first().copied().unwrap_or_default();
    let name = key.strip_prefix("io.modelcontextprotocol/");
    match (key, name) {
        (APPROVAL, _) => true,
        ("progressToken", _) => matches!(begins, b'"' | b'-' | b'0'..=b'9'),
        ("traceparent" | "tracestate" | "baggage", _) => begins == b'"',
        (_, Some("protocolVersion" | "logLevel" | "subscriptionId")) => begins == b'"',
        (_, Some("clientInfo" | "clientCapabilities" | "related-task")) => begins == b'{',
        _ => false,
    }
}

/// Under which name it stands among the arguments.
const BESIDE: &str = "countersign/beside";
/// And what is in the message, under which name it stands there.
const MESSAGE: &str = "countersign/message";
/// Why a part of a call was not read, and what its client can do about it.
pub(crate) fn misread(error: &Error) -> String {
    match error.reason() {
        Reason::InexactNumber | Reason::NumberOutOfRange => format!("{error}; send it as text"),
        _ => error.to_string(),
    }
}

/// The frame was read before, within narrower limits.
const LIMITS: Limits = Limits {
    max_bytes: usize::MAX,
    max_depth: 512,
    numbers: Numbers::Exact,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FrameLimits;
    use crate::frame::Kind;

    fn frame(params: &str) -> (Frame, Params) {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t"{params}}}}}"#
        );
        let frame = Frame::read(text.into_bytes(), &FrameLimits::default()).unwrap();
        let Kind::Request { params, .. } = frame.kind() else {
            panic!();
        };
        let params = *params;
        (frame, params)
    }

    fn joined(params: &str) -> String {
        let (frame, params) = frame(params);
        let all = join(Json::object([("a", Json::from(1u64))]), &frame, &params).unwrap();
        String::from_utf8(all.to_sorted_ascii()).unwrap()
    }

    #[test]
    fn what_the_protocol_says_of_a_message_is_no_argument_and_everything_else_is() {
        assert_eq!(
            joined(
                r#","_meta":{"progressToken":1,"io.modelcontextprotocol/clientInfo":{},"baggage":"b=1","countersign/approval":"a"}"#
            ),
            r#"{"a":1}"#
        );
        // Neither a name that the protocol might have, nor a form that it has not.
        for meta in [
            r#"{"io.modelcontextprotocol/amount":5}"#,
            r#"{"baggage":{"amount":5}}"#,
            r#"{"progressToken":{"amount":5}}"#,
            r#"["amount",5]"#,
            r#""amount 5""#,
        ] {
            assert_eq!(
                joined(&format!(r#","_meta":{meta}"#)),
                format!(r#"{{"a":1,"countersign/beside":{{"_meta":{meta}}}}}"#)
            );
        }
        assert_eq!(
            joined(r#","task":{"ttl":1},"_meta":{"shop/amount":5},"inputResponses":{"q":true}"#),
            r#"{"a":1,"countersign/beside":{"_meta":{"shop/amount":5},"inputResponses":{"q":true},"task":{"ttl":1}}}"#
        );
    }

    #[test]
    fn what_stands_in_the_message_itself_is_judged_too() {
        let read = |method: &str| {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"to":"mallory","method":"{method}","params":{{"name":"t"}}}}"#
            );
            Frame::read(text.into_bytes(), &FrameLimits::default()).unwrap()
        };
        let beside = r#""countersign/beside":{"countersign/message":{"to":"mallory"}}"#;
        let call = read("tools/call");
        let Kind::Request { params, .. } = call.kind() else {
            panic!();
        };
        let args = join(Json::object::<String>([]), &call, params).unwrap();
        assert_eq!(args, admit(&format!("{{{beside}}}")));
        assert_eq!(split(&args, &call, params), Some(admit("{}")));
        assert_eq!(
            apart("t", &args, false),
            admit(r#"{"name":"t","arguments":{}}"#)
        );
        let (bare, params) = frame("");
        assert_eq!(split(&args, &bare, &params), None);
        let fetch = read("prompts/get");
        let Kind::Request { params, .. } = fetch.kind() else {
            panic!();
        };
        let all = whole(&fetch, params).unwrap();
        assert_eq!(all, admit(&format!(r#"{{"name":"t",{beside}}}"#)));
        let (forged, params) = frame(r#","countersign/message":{"to":"bob"}"#);
        assert!(join(Json::object::<String>([]), &forged, &params).is_err());
    }

    #[test]
    fn what_stands_beside_is_sent_as_it_was_judged_or_not_at_all() {
        let (one, params) = frame(r#","task":{"ttl":1}"#);
        let all = join(Json::object([("a", Json::from(1u64))]), &one, &params).unwrap();
        let args = split(&all, &one, &params).unwrap();
        assert_eq!(args, Json::object([("a", Json::from(1u64))]));
        let (other, others) = frame(r#","task":{"ttl":2}"#);
        assert_eq!(split(&all, &other, &others), None);
        assert_eq!(split(&args, &one, &params), None);
    }

    #[test]
    fn what_fetches_is_judged_with_all_its_parameters() {
        let read = |params: &str| {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{params}}}"#
            );
            let frame = Frame::read(text.into_bytes(), &FrameLimits::default()).unwrap();
            let Kind::Request { params, .. } = frame.kind() else {
                panic!();
            };
            let all = whole(&frame, params);
            all.map(|all| String::from_utf8(all.to_sorted_ascii()).unwrap())
        };
        assert_eq!(
            read(r#"{"uri":"x:y","_meta":{"progressToken":1}}"#).unwrap(),
            r#"{"uri":"x:y"}"#
        );
        assert_eq!(
            read(r#"{"name":"p","arguments":{"a":1},"more":[],"_meta":{"shop/amount":5}}"#)
                .unwrap(),
            r#"{"arguments":{"a":1},"countersign/beside":{"_meta":{"shop/amount":5}},"more":[],"name":"p"}"#
        );
        assert_eq!(read("{}").unwrap(), "{}");
        for unfit in [
            r#"{"uri":"x:y","countersign/beside":{}}"#,
            r#"{"uri":9007199254740993}"#,
        ] {
            assert!(read(unfit).is_err(), "{unfit}");
        }
    }

    #[test]
    fn what_was_judged_as_one_can_be_taken_apart_again() {
        let params = r#"{"arguments":{"a":1},"more":[],"name":"t","_meta":{"shop/amount":5}}"#;
        for (method, fetches) in [("tools/call", false), ("prompts/get", true)] {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            let frame = Frame::read(text.into_bytes(), &FrameLimits::default()).unwrap();
            let Kind::Request { params: parts, .. } = frame.kind() else {
                panic!();
            };
            let judged = match fetches {
                true => whole(&frame, parts),
                false => join(admit(r#"{"a":1}"#), &frame, parts),
            };
            assert_eq!(apart("t", &judged.unwrap(), fetches), admit(params));
        }
        let bare = apart("t", &Json::Null, false);
        assert_eq!(bare, admit(r#"{"name":"t","arguments":null}"#));
    }

    fn admit(text: &str) -> Json {
        Json::admit(text.as_bytes(), &Limits::event()).unwrap()
    }

    #[test]
    fn an_argument_of_that_name_is_refused() {
        let (one, params) = frame("");
        let forged = Json::object([(BESIDE, Json::from(1u64))]);
        assert!(join(forged, &one, &params).is_err());
    }
}
