use super::*;

fn refused(text: impl AsRef<[u8]>) -> Error {
    match Json::admit(text.as_ref(), &Limits::event()) {
        Err(error) => error,
        Ok(_) => panic!("admitted {}", String::from_utf8_lossy(text.as_ref())),
    }
}

fn check(text: impl AsRef<[u8]>, reason: Reason, pointer: &str, offset: usize) {
    let error = refused(&text);
    let found = (error.reason(), error.pointer(), error.offset());
    assert_eq!(
        found,
        (&reason, pointer, Some(offset)),
        "{}",
        String::from_utf8_lossy(text.as_ref())
    );
}

fn duplicate(key: &str) -> Reason {
    Reason::DuplicateKey(key.to_owned())
}

#[test]
fn duplicate_keys() {
    check(r#"{"a":1,"a":2}"#, duplicate("a"), "/a", 7);
    check(r#"{"a":1,"\u0061":2}"#, duplicate("a"), "/a", 7);
    check(
        r#"[{}, {"x":{"b":1,"a":2,"c":3,"b":4,"a":5}}]"#,
        duplicate("b"),
        "/1/x/b",
        29,
    );
    check(r#"{"a":0,"b":0,"b":0,"a":0}"#, duplicate("b"), "/b", 13);
    check(r#"{"":0,"":0}"#, duplicate(""), "/", 6);
    check(r#"{"~/":0, "~/":0}"#, duplicate("~/"), "/~0~1", 9);
    check(r#"{"😀":0,"\ud83d\uDE00":0}"#, duplicate("😀"), "/😀", 10);
}

#[test]
fn many_members_cost_no_quadratic_time() {
    let mut text = String::from("{");
    for index in (0..100_000).rev() {
        text += &format!("\"key{index}\":0,");
    }
    let whole = format!("{text}\"last\":0}}");
    assert!(Json::admit(whole.as_bytes(), &Limits::event()).is_ok());
    let error = refused(format!("{text}\"key500\":0}}"));
    assert_eq!(
        (error.reason(), error.pointer()),
        (&duplicate("key500"), "/key500")
    );
}

#[test]
fn numbers() {
    check(r#"{"x":NaN}"#, Reason::NotANumber, "/x", 5);
    check(r#"{"x":Infinity}"#, Reason::NotANumber, "/x", 5);
    check(r#"{"x":[1,-Infinity]}"#, Reason::NotANumber, "/x/1", 8);
    check(r#"{"x":1e400}"#, Reason::NumberOutOfRange, "/x", 5);
    check(
        r#"{"x":[9007199254740993]}"#,
        Reason::InexactNumber,
        "/x/0",
        6,
    );
    check("[01]", Reason::InvalidNumber, "/0", 1);
    check("[1.]", Reason::InvalidNumber, "/0", 1);
    check("[1.e3]", Reason::InvalidNumber, "/0", 1);
    check("[1e]", Reason::InvalidNumber, "/0", 1);
    check("-", Reason::InvalidNumber, "", 0);
    check("[+1]", Reason::UnexpectedByte(b'+'), "/0", 1);
    check("[.5]", Reason::UnexpectedByte(b'.'), "/0", 1);
    check("0x10", Reason::TrailingData, "", 1);
    check("[1_000]", Reason::UnexpectedByte(b'_'), "/0", 2);
}

#[test]
fn strings() {
    check(r#"{"x":"\ud800"}"#, Reason::LoneSurrogate, "/x", 6);
    check(r#"{"x":"a\ude00"}"#, Reason::LoneSurrogate, "/x", 7);
    check(r#"{"a":{"\ud800":1}}"#, Reason::LoneSurrogate, "/a", 7);
    check(r#"["\x41"]"#, Reason::InvalidEscape, "/0", 2);
    check(r#"["\u00g0"]"#, Reason::InvalidEscape, "/0", 2);
    check("[\"a\nb\"]", Reason::ControlCharacter(b'\n'), "/0", 3);
    check("[\"\0\"]", Reason::ControlCharacter(0), "/0", 2);
    check("{'a':1}", Reason::UnexpectedByte(b'\''), "", 1);
    check(r#"{"a":"b"#, Reason::UnexpectedEnd, "/a", 7);
    check(r#""\"#, Reason::UnexpectedEnd, "", 2);
}

#[test]
fn encodings() {
    check(b"[\"a\xff\"]", Reason::InvalidUtf8, "/0", 3);
    check(
        b"{\"a\":[0,\"\xed\xa0\x80\"]}",
        Reason::InvalidUtf8,
        "/a/1",
        9,
    );
    check(b"{\"a\xc0\xaf\":1}", Reason::InvalidUtf8, "", 3);
    check(b"{}\xff", Reason::InvalidUtf8, "", 2);
    check(b"\xff", Reason::InvalidUtf8, "", 0);
    check(b"[1,,\"\xff\"]", Reason::UnexpectedByte(b','), "/1", 3);
    check("\u{feff}{}", Reason::ByteOrderMark, "", 0);
    check("[\u{feff}]", Reason::UnexpectedByte(0xef), "/0", 1);
    check(b"\xff\xfe[\0]\0", Reason::InvalidUtf8, "", 0);
}

#[test]
fn structure() {
    check("", Reason::UnexpectedEnd, "", 0);
    check(" \n", Reason::UnexpectedEnd, "", 2);
    check("{\"a\":1}garbage", Reason::TrailingData, "", 7);
    check("{\"a\":1}//c", Reason::TrailingData, "", 7);
    check("1 2", Reason::TrailingData, "", 2);
    check("/**/1", Reason::UnexpectedByte(b'/'), "", 0);
    check("{\"a\":1,}", Reason::UnexpectedByte(b'}'), "", 7);
    check("[1,]", Reason::UnexpectedByte(b']'), "/1", 3);
    check("[,1]", Reason::UnexpectedByte(b','), "/0", 1);
    check("{,}", Reason::UnexpectedByte(b','), "", 1);
    check("{\"a\" 1}", Reason::UnexpectedByte(b'1'), "/a", 5);
    check("{\"a\":}", Reason::UnexpectedByte(b'}'), "/a", 5);
    check("{a:1}", Reason::UnexpectedByte(b'a'), "", 1);
    check("{1:1}", Reason::UnexpectedByte(b'1'), "", 1);
    check("[1}", Reason::UnexpectedByte(b'}'), "/0", 2);
    check("{\"a\":[1,2", Reason::UnexpectedEnd, "/a/1", 9);
    check("nul", Reason::UnexpectedByte(b'n'), "", 0);
    check("True", Reason::UnexpectedByte(b'T'), "", 0);
    check("[1]\u{a0}", Reason::TrailingData, "", 3);
    check("\u{c}1", Reason::UnexpectedByte(0x0c), "", 0);
}

#[test]
fn depth() {
    fn nested(open: &str, close: &str, depth: usize) -> String {
        format!("{}0{}", open.repeat(depth), close.repeat(depth))
    }
    for (open, close, step) in [("[", "]", "/0"), ("{\"a\":", "}", "/a")] {
        assert!(Json::admit(nested(open, close, 128).as_bytes(), &Limits::event()).is_ok());
        let offset = 128 * open.len();
        let reason = Reason::TooDeep { limit: 128 };
        check(nested(open, close, 129), reason, &step.repeat(128), offset);
    }
    check(
        "[".repeat(1_000_000),
        Reason::TooDeep { limit: 128 },
        &"/0".repeat(128),
        128,
    );
    let boundless = Limits {
        max_depth: usize::MAX,
        ..Limits::event()
    };
    let error = Json::admit("[".repeat(1_000_000).as_bytes(), &boundless).unwrap_err();
    assert_eq!(error.reason(), &Reason::TooDeep { limit: 512 });
}

#[test]
fn size() {
    let limits = Limits {
        max_bytes: 4,
        ..Limits::event()
    };
    assert!(Json::admit(b"[11]", &limits).is_ok());
    let error = Json::admit(b"[111]", &limits).unwrap_err();
    assert_eq!(
        error.to_string(),
        "larger than 4 bytes at the top level (byte 4)"
    );
}

#[test]
fn what_is_plain_json_is_admitted() {
    fn check(text: &str, expect: &str) {
        let value = Json::admit(text.as_bytes(), &Limits::plan()).unwrap();
        assert_eq!(String::from_utf8(value.to_sorted_ascii()).unwrap(), expect);
    }
    check(" \t\r\n[ ]\n", "[]");
    check("{ }", "{}");
    check(
        r#" { "b" : [ 1 , null ] , "a" : { } } "#,
        r#"{"a":{},"b":[1,null]}"#,
    );
    check(r#""\ufeff""#, r#""\ufeff""#);
    check("\"\u{7f}\"", r#""\u007f""#);
    check(
        r#"[true,false,null,-1.50,"\/"]"#,
        r#"[true,false,null,-1.5,"/"]"#,
    );
}
