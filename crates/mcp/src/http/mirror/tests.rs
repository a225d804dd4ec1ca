use super::*;
use crate::FrameLimits;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, value.parse().unwrap());
    }
    headers
}

fn checked(body: &str, pairs: &[(&str, &str)]) -> Result<(), Mismatch> {
    let frame = Frame::read(body.as_bytes().to_vec(), &FrameLimits::default()).unwrap();
    check(&frame, &headers(pairs))
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"réad",
  "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;

#[test]
fn headers_that_say_the_same_pass() {
    let coded = format!("=?base64?{}?=", Base64::encode_string("réad".as_bytes()));
    let same = [
        ("mcp-method", "tools/call"),
        ("mcp-name", &coded),
        ("mcp-protocol-version", "2026-07-28"),
    ];
    assert_eq!(checked(CALL, &same), Ok(()));
    assert_eq!(checked(CALL, &[]), Ok(()));
}

#[test]
fn a_header_that_says_something_else_does_not_pass() {
    for pair in [
        ("mcp-method", "tools/list"),
        ("mcp-method", "TOOLS/CALL"),
        ("mcp-method", ""),
        ("mcp-name", "read"),
        ("mcp-name", "=?base64?cmVhZA==?="),
        ("mcp-name", "=?base64?*?="),
        ("mcp-protocol-version", "2025-11-25"),
    ] {
        assert!(checked(CALL, &[pair]).is_err(), "{pair:?}");
    }
    let twice = [("mcp-method", "tools/call"), ("mcp-method", "tools/call")];
    assert_eq!(checked(CALL, &twice), Err(Mismatch(METHOD)));
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert!(checked(answer, &[("mcp-method", "tools/call")]).is_err());
}

#[test]
fn arguments_in_headers_are_compared_and_rewritten() {
    let definition = Definition::read(
        br#"{"name":"t","inputSchema":{"properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"x-mcp-header":"N"},"free":{}}}}"#,
    )
    .unwrap();
    let args =
        |text: &str| Json::admit(text.as_bytes(), &countersign_canon::Limits::event()).unwrap();
    let said = headers(&[
        ("Mcp-Param-Region", "eu"),
        ("Mcp-Param-N", "7"),
        ("Mcp-Param-Other", "x"),
    ]);
    let check = |text: &str| check_arguments(&definition, &args(text), &said);
    assert_eq!(check(r#"{"region":"eu","n":7}"#), Ok(()));
    assert!(check(r#"{"region":"us","n":7}"#).is_err());
    assert!(check(r#"{"n":7}"#).is_err());
    assert!(check(r#"{"region":"eu","n":8}"#).is_err());
    let mut changed = said.clone();
    rewrite_arguments(&definition, &args(r#"{"region":"ü"}"#), &mut changed);
    assert_eq!(changed["mcp-param-region"], "=?base64?w7w=?=");
    assert!(!changed.contains_key("mcp-param-n") && changed.contains_key("mcp-param-other"));
}

#[test]
fn arguments_at_any_depth_are_compared() {
    let definition = Definition::read(
        br#"{"name":"t","inputSchema":{"properties":{"o":{"properties":{"deep":{"x-mcp-header":"Deep"}}}}}}"#,
    )
    .unwrap();
    let said = headers(&[("Mcp-Param-Deep", "eu")]);
    for (args, holds) in [
        (r#"{"o":{"deep":"eu"}}"#, true),
        (r#"{"o":{"deep":"us"}}"#, false),
        (r#"{"deep":"eu"}"#, false),
        (r#"{"o":"deep"}"#, false),
    ] {
        let args = Json::admit(args.as_bytes(), &countersign_canon::Limits::event()).unwrap();
        let checked = check_arguments(&definition, &args, &said);
        assert_eq!(checked.is_ok(), holds, "{args:?}");
    }
}

#[test]
fn base64_has_one_text_for_each_value() {
    for text in ["", "f", "fo", "foo", "foob", "fooba", "foobar"] {
        let coded = Base64::encode_string(text.as_bytes());
        assert_eq!(from_base64(&coded).as_deref(), Some(text.as_bytes()));
    }
    assert_eq!(Base64::encode_string(b"fooba"), "Zm9vYmE=");
    for wrong in ["Z", "Zg=", "Zh==", "Zg", "====", "Zm9v====", "Zg==Zg=="] {
        assert_eq!(from_base64(wrong), None, "{wrong}");
    }
}
