//! Rewriting: new arguments in the place of the old ones, and not one other byte.

use countersign_canon::Json;

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
    fn absent_arguments_are_added_behind_the_name() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name": "t" ,"_meta":{}}}"#,
            r#"{"a":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name": "t","arguments":{"a":1} ,"_meta":{}}}"#,
        );
    }
}
