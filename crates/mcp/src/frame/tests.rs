use super::*;

fn read(text: impl AsRef<[u8]>) -> Result<Frame, FrameError> {
    Frame::read(text.as_ref().to_vec(), &FrameLimits::default())
}

fn refused(text: impl AsRef<[u8]>) -> (Fault, Option<String>) {
    let error = match read(&text) {
        Ok(_) => panic!("accepted: {}", String::from_utf8_lossy(text.as_ref())),
        Err(error) => error,
    };
    (error.fault().clone(), error.id().map(ToString::to_string))
}

#[test]
fn the_parts_of_a_call_are_found_and_nothing_is_copied() {
    let text = br#" {"params":{"_meta":{"progressToken":1},"name":"re\u0061d","arguments":{"a":[1]},"x":2},"jsonrpc":"2.0","method":"tools\/call","id":"\u0061"} "#;
    let frame = read(text).unwrap();
    assert_eq!(frame.bytes(), text);
    let Kind::Request {
        id, method, params, ..
    } = frame.kind()
    else {
        panic!("{:?}", frame.kind());
    };
    assert_eq!((id.as_str(), *method), ("\"a\"", Method::ToolsCall));
    assert_eq!(frame.text(params.name).as_deref(), Some("read"));
    assert_eq!(frame.part(params.arguments.unwrap()), br#"{"a":[1]}"#);
    let meta = frame.member(params.meta, "progressToken").unwrap();
    assert_eq!(frame.part(meta), b"1");
    assert_eq!(frame.text(params.meta), None);
    assert_eq!(frame.clone().into_bytes(), text);
}

#[test]
fn the_four_kinds() {
    let kind = |text: &str| match read(text).unwrap().kind() {
        Kind::Request { id, .. } => format!("request {id}"),
        Kind::Notification { method, .. } => format!("notification {method}"),
        Kind::Response { id, .. } => format!("response {id}"),
        Kind::Error { id, .. } => format!("error {id:?}"),
    };
    let check = |text: &str, expect: &str| assert_eq!(kind(text), expect, "{text}");
    check(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#, "request 0");
    check(
        r#"{"jsonrpc":"2.0","id":-7,"method":"x","params":{}}"#,
        "request -7",
    );
    check(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        "notification notifications/cancelled",
    );
    check(
        r#"{"result":null,"jsonrpc":"2.0","id":"1"}"#,
        "response \"1\"",
    );
    check(r#"{"jsonrpc":"2.0","id":1,"error":{}}"#, "error Some(1)");
    check(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, "error None");
    check(r#"{"jsonrpc":"2.0","error":{}}"#, "error None");
}

#[test]
fn what_is_not_one_message_is_refused() {
    let check = |text: &str, fault: Fault| assert_eq!(refused(text).0, fault, "{text}");
    check(r#"[]"#, Fault::Batch);
    check(
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        Fault::Batch,
    );
    for text in ["null", "1", "\"tools/call\"", "true"] {
        check(text, Fault::NotAnObject);
    }
    check("{}", Fault::Version);
    check(r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, Fault::Version);
    check(
        r#"{"jsonrpc":"2.00","id":1,"method":"ping"}"#,
        Fault::Version,
    );
    check(r#"{"jsonrpc":"2.0"}"#, Fault::Shape);
    check(r#"{"jsonrpc":"2.0","id":1}"#, Fault::Shape);
    check(r#"{"jsonrpc":"2.0","result":1}"#, Fault::Shape);
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"x","result":1}"#,
        Fault::Shape,
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":1,"error":1}"#,
        Fault::Shape,
    );
    check(r#"{"jsonrpc":"2.0","id":1,"method":null}"#, Fault::Method);
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":["tools/call"]}"#,
        Fault::Method,
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#,
        Fault::Params,
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":null}"#,
        Fault::Params,
    );
    for id in ["null", "1.0", "1e0", "-0", "true", "[]", "{}", "1.5"] {
        check(
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#),
            Fault::Id,
        );
    }
    let long = "x".repeat(600);
    check(
        &format!(r#"{{"jsonrpc":"2.0","id":"{long}","method":"x"}}"#),
        Fault::IdTooLong,
    );
}

#[test]
fn keys_that_a_careless_reader_takes_for_others_are_refused() {
    let check = |text: &str, known: &str| match refused(text).0 {
        Fault::LookAlike { known: found, .. } => assert_eq!(found, known),
        other => panic!("{text}: {other}"),
    };
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}"#,
        "method",
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call"}"#,
        "method",
    );
    check(r#"{"jsonrpc":"2.0","ID":1,"method":"tools/call"}"#, "id");
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"x","paramſ":{}}"#,
        "params",
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"name":"a","Name":"b"}}"#,
        "name",
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"taſ\u212aId":"b"}}"#,
        "taskId",
    );
    assert!(read(r#"{"jsonrpc":"2.0","id":1,"method":"x","meth":1,"params":{"names":1}}"#).is_ok());
}

#[test]
fn a_refusal_keeps_the_id_where_it_can_be_told() {
    let id = |text: &[u8]| refused(text).1;
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        id(br#"{"jsonrpc":"2.0","id":5,"method":"x","method":"y"}"#),
        some("5")
    );
    assert_eq!(
        id(br#"{"params":{"id":9,"a":1,"a":2},"method":"x","jsonrpc":"2.0","id":"q"}"#),
        some("\"q\"")
    );
    assert_eq!(id(b"{\"id\":5,\"x\":\"\xff\"}"), some("5"));
    assert_eq!(id(br#"{"id":5,"x":"unfinished"#), some("5"));
    assert_eq!(id(br#"{"id":5,"id":6}"#), None);
    assert_eq!(id(br#"{"id":{"id":5}}"#), None);
    assert_eq!(id(br#"{"x":"\"id\":5"}"#), None);
    assert_eq!(id(b"garbage"), None);
    assert_eq!(id(br#"[{"id":1}]"#), None);
    // What is told must be JSON itself.
    assert_eq!(id(br#"{"jsonrpc":"2.0","id":01,"method":"x"}"#), None);
    assert_eq!(
        id(b"{\"jsonrpc\":\"2.0\",\"id\":\"a\x01b\",\"method\":\"x\"}"),
        None
    );
    let answer = read(br#"{"jsonrpc":"2.0","id":5,"result":{"a":1,"a":2}}"#).unwrap_err();
    assert!(answer.is_answer());
    let question = read(br#"{"jsonrpc":"2.0","id":5,"method":"x","result":1}"#).unwrap_err();
    assert!(!question.is_answer());
}

#[test]
fn depth_and_size_are_bounded() {
    let nested = |levels: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{}1{}}}}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        )
    };
    assert!(read(nested(62)).is_ok());
    assert!(matches!(refused(nested(63)).0, Fault::Json(_)));
    assert!(matches!(refused(nested(1_000_000)).0, Fault::Json(_)));
    let limits = FrameLimits {
        max_bytes: 50,
        ..FrameLimits::default()
    };
    let text = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert!(Frame::read(text.to_vec(), &limits).is_ok());
    let padded = [&text[..], &[b' '; 20]].concat();
    let error = Frame::read(padded, &limits).unwrap_err();
    assert_eq!((error.code(), error.id().unwrap().as_str()), (-32700, "1"));
}

#[test]
fn a_cancellation_names_a_request() {
    let cancelled = |params: &str| {
        read(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#
        ))
        .unwrap()
        .cancelled()
        .map(|id| id.to_string())
    };
    assert_eq!(cancelled(r#"{"requestId":"a"}"#).as_deref(), Some("\"a\""));
    assert_eq!(
        cancelled(r#"{"requestId":7,"reason":"x"}"#).as_deref(),
        Some("7")
    );
    assert_eq!(cancelled(r#"{"requestId":null}"#), None);
    assert_eq!(cancelled("{}"), None);
}
