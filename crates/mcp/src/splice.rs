//! Rewriting: new arguments in the place of the old ones, and not one other byte.

use countersign_canon::scan::Scan;
use countersign_canon::{Json, Limits, Numbers};

use crate::frame::{Frame, Kind, Span};

/// The bytes of a call with other arguments. `None` if the frame is no call, or if the arguments
/// have no canonical text.
pub fn with_arguments(frame: &Frame, arguments: &Json) -> Option<Vec<u8>> {
    let Kind::Request { params, .. } = frame.kind() else {
        return None;
    };
    let text = arguments.to_jcs().ok()?;
    match (params.arguments, params.name) {
        (Some(old), _) => replace(frame.bytes(), old, &[&text]),
        (None, Some(name)) => {
            let behind = Span {
                start: name.end,
                end: name.end,
            };
            replace(frame.bytes(), behind, &[b",\"arguments\":", &text])
        }
        (None, None) => None,
    }
}

/// The bytes of a request without these parameters; all others stay as they are. `None` if the frame
/// is no request with parameters.
pub(crate) fn without(frame: &Frame, keys: &[&str]) -> Option<Vec<u8>> {
    let Kind::Request { params, .. } = frame.kind() else {
        return None;
    };
    let whole = params.whole?;
    let text = frame.part(whole);
    let mut kept: Vec<u8> = Vec::with_capacity(text.len());
    let mut scan = Scan::new(text, &LIMITS).ok()?;
    scan.object(|scan, key| {
        let value = scan.value()?;
        if !keys.contains(&&*key) {
            kept.push(if kept.is_empty() { b'{' } else { b',' });
            kept.extend(Json::from(&*key).to_sorted_ascii());
            kept.push(b':');
            kept.extend_from_slice(text.get(value).unwrap_or_default());
        }
        Ok(())
    })
    .ok()?;
    if kept.is_empty() {
        kept.push(b'{');
    }
    kept.push(b'}');
    replace(frame.bytes(), whole, &[&kept])
}

/// The bytes of an answer with one more text in the `_meta` of its result. `None` if the result is not
/// an object.
pub(crate) fn with_meta(frame: &Frame, result: Span, key: &str, text: &str) -> Option<Vec<u8>> {
    let value = Json::from(text).to_sorted_ascii();
    let member = [b"\"", key.as_bytes(), b"\":", &value].concat();
    let meta = frame.member(Some(result), "_meta");
    // Whatever the server says under our name is not ours.
    if let Some(theirs) = frame.member(meta, key) {
        return replace(frame.bytes(), theirs, &[&value]);
    }
    let (object, member) = match meta.filter(|meta| frame.part(*meta).starts_with(b"{")) {
        Some(meta) => (meta, member),
        None if meta.is_some() => return None,
        None => (result, [b"\"_meta\":{", &member[..], b"}"].concat()),
    };
    let inside = frame.part(object).strip_prefix(b"{")?;
    let comma: &[u8] = match inside.trim_ascii_start().starts_with(b"}") {
        true => b"",
        false => b",",
    };
    let behind = Span {
        start: object.start + 1,
        end: object.start + 1,
    };
    replace(frame.bytes(), behind, &[&member, comma])
}

/// Bytes with one part replaced.
pub(crate) fn replace(bytes: &[u8], old: Span, new: &[&[u8]]) -> Option<Vec<u8>> {
    let before = bytes.get(..old.start)?;
    let after = bytes.get(old.end..)?;
    let added: usize = new.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(before.len() + added + after.len());
    out.extend_from_slice(before);
    for part in new {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(after);
    Some(out)
}

/// Bytes with several parts replaced. `None` if they overlap.
pub(crate) fn replace_all(bytes: &[u8], mut parts: Vec<(Span, Vec<u8>)>) -> Option<Vec<u8>> {
    parts.sort_by_key(|(old, _)| old.start);
    let mut out = Vec::with_capacity(bytes.len());
    let mut done = 0;
    for (old, new) in parts {
        out.extend_from_slice(bytes.get(done..old.start)?);
        out.extend(new);
        done = old.end;
    }
    out.extend_from_slice(bytes.get(done..)?);
    Some(out)
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
    use crate::frame::FrameLimits;

    fn check(call: &str, arguments: &str, expect: &str) {
        let frame = Frame::read(call.as_bytes().to_vec(), &FrameLimits::default()).unwrap();
        let arguments =
            Json::admit(arguments.as_bytes(), &countersign_canon::Limits::event()).unwrap();
        let bytes = with_arguments(&frame, &arguments).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), expect);
    }

    #[test]
    fn only_the_arguments_change() {
        check(
            r#"{ "id2":"x" , "jsonrpc":"2.0","id":  "\u0061","method":"tools\/call","params":{"x":1.0,"arguments" : { "a" : 1 } ,"name":"t"}}"#,
            r#"{"b":2,"a":[]}"#,
            r#"{ "id2":"x" , "jsonrpc":"2.0","id":  "\u0061","method":"tools\/call","params":{"x":1.0,"arguments" : {"a":[],"b":2} ,"name":"t"}}"#,
        );
    }

    #[test]
    fn parameters_are_taken_out_and_the_others_stay() {
        let check = |params: &str, expect: &str| {
            let call = |params: &str| {
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
            };
            let frame = Frame::read(call(params).into_bytes(), &FrameLimits::default()).unwrap();
            let bytes = without(&frame, &["x", "y"]).unwrap();
            assert_eq!(String::from_utf8(bytes).unwrap(), call(expect));
        };
        check(
            r#"{"x":1, "name" : "t" ,"y":{"x":2},"arguments":{ "x" : 1.0 }}"#,
            r#"{"name":"t","arguments":{ "x" : 1.0 }}"#,
        );
        check(r#"{"x":1}"#, "{}");
        check("{}", "{}");
    }

    #[test]
    fn a_text_is_added_to_what_goes_along_with_a_result() {
        let check = |result: &str, expect: Option<&str>| {
            let answer = |result: &str| format!(r#"{{"result":{result},"jsonrpc":"2.0","id":1}}"#);
            let frame = Frame::read(answer(result).into_bytes(), &FrameLimits::default()).unwrap();
            let Kind::Response { result, .. } = frame.kind() else {
                panic!("an answer");
            };
            let bytes = with_meta(&frame, *result, "k", "a\"b");
            let bytes = bytes.map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(bytes, expect.map(answer));
        };
        check("{}", Some(r#"{"_meta":{"k":"a\"b"}}"#));
        check(r#"{ "x":1.0}"#, Some(r#"{"_meta":{"k":"a\"b"}, "x":1.0}"#));
        check(r#"{"_meta":{ }}"#, Some(r#"{"_meta":{"k":"a\"b" }}"#));
        check(
            r#"{"_meta":{"x":[]}}"#,
            Some(r#"{"_meta":{"k":"a\"b","x":[]}}"#),
        );
        check(
            r#"{"_meta":{"x":1,"k":"theirs"}}"#,
            Some(r#"{"_meta":{"x":1,"k":"a\"b"}}"#),
        );
        check(r#"{"_meta":7}"#, None);
        check("[]", None);
    }

    #[test]
    fn absent_arguments_are_added_behind_the_name() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name": "t" ,"_meta":{}}}"#,
            r#"{"a":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name": "t","arguments":{"a":1} ,"_meta":{}}}"#,
        );
    }
}
