use super::*;
use crate::digest::Hash;
use crate::error::{Deviation, Kind};

fn jcs(text: &str) -> Result<String, Error> {
    let value = Json::admit(text.as_bytes(), &Limits::plan()).unwrap();
    Ok(String::from_utf8(value.to_jcs()?).unwrap())
}

#[test]
fn canonical_texts() {
    fn check_jcs(text: &str, expect: &str) {
        assert_eq!(jcs(text).as_deref(), Ok(expect));
        assert_eq!(check(expect.as_bytes(), &Limits::event()), Ok(()));
    }
    check_jcs(
        r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
            "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#,
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#,
    );
    check_jcs(
        r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh",
            "1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control",
            "\u00f6":"Latin Small Letter O With Diaeresis"}"#,
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
         \"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\
         \"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
    );
    check_jcs(
        r#""\u0000\u0008\u0009\u000a\u000b\u000c\u000d\u001f\u007f""#,
        "\"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\u{7f}\"",
    );
    check_jcs("[-0, -0.0, 1.0, 1e2]", "[0,0,1,100]");
    check_jcs(
        r#"{"\n":1,"\t":2," ":3,"\"":4,"\\":5,"!":6}"#,
        r#"{"\t":2,"\n":1," ":3,"!":6,"\"":4,"\\":5}"#,
    );
    check_jcs("[]", "[]");
    check_jcs("{}", "{}");
}

#[test]
fn an_inexact_integer_is_refused_with_its_place() {
    let error = jcs(r#"{"a/b":[0,{"n":9007199254740993}]}"#).unwrap_err();
    assert_eq!((error.pointer(), error.offset()), ("/a~1b/1/n", None));
    assert_eq!(error.reason(), &Reason::InexactNumber);
}

#[test]
fn texts_that_are_not_canonical() {
    fn refused(text: impl AsRef<[u8]>, reason: Reason, pointer: &str, offset: usize) {
        let error = check(text.as_ref(), &Limits::event()).unwrap_err();
        let found = (error.reason(), error.pointer(), error.offset());
        assert_eq!(
            found,
            (&reason, pointer, Some(offset)),
            "{}",
            String::from_utf8_lossy(text.as_ref())
        );
    }
    use Deviation::{Escape, KeyOrder, Number, WhiteSpace};
    use Reason::NotCanonical;

    refused(" 1", NotCanonical(WhiteSpace), "", 0);
    refused("[1, 2]", NotCanonical(WhiteSpace), "/1", 3);
    refused("{\"a\": 1}", NotCanonical(WhiteSpace), "/a", 5);
    refused("1\n", Reason::TrailingData, "", 1);
    refused(r#"{"a":{"c":1,"b":2}}"#, NotCanonical(KeyOrder), "/a", 12);
    refused("{\"\u{fb33}\":1,\"😀\":2}", NotCanonical(KeyOrder), "", 9);
    refused(r#"{" ":1,"\n":2}"#, NotCanonical(KeyOrder), "", 7);
    refused(
        r#"{"a":1,"a":2}"#,
        Reason::DuplicateKey("a".to_owned()),
        "/a",
        7,
    );
    refused(r#"["a\/"]"#, NotCanonical(Escape), "/0", 3);
    refused(r#"["\u0041"]"#, NotCanonical(Escape), "/0", 2);
    refused(r#"["\u000a"]"#, NotCanonical(Escape), "/0", 2);
    refused(r#"["\u000B"]"#, NotCanonical(Escape), "/0", 2);
    refused(r#"["\\\u001F"]"#, NotCanonical(Escape), "/0", 4);
    refused(r#"["\u0020"]"#, NotCanonical(Escape), "/0", 2);
    refused(r#"["\ud800"]"#, NotCanonical(Escape), "/0", 2);
    refused("[\"\u{1}\"]", Reason::ControlCharacter(1), "/0", 2);
    for number in [
        "-0",
        "1.0",
        "1e2",
        "1E21",
        "1e21",
        "0.10",
        "1e-6",
        "9007199254740993",
    ] {
        refused(format!("[{number}]"), NotCanonical(Number), "/0", 1);
    }
    for number in ["01", "1.", "-"] {
        refused(format!("[{number}]"), Reason::InvalidNumber, "/0", 1);
    }
    refused("1e400", Reason::NumberOutOfRange, "", 0);
    refused("[1,]", Reason::UnexpectedByte(b']'), "/1", 3);
    refused("{\"a\":1,}", Reason::UnexpectedByte(b'}'), "", 7);
    refused("{\"a\":1", Reason::UnexpectedEnd, "/a", 6);
    refused("", Reason::UnexpectedEnd, "", 0);
    refused(b"[\"\xff\"]", Reason::InvalidUtf8, "", 2);
    refused("\u{feff}1", Reason::UnexpectedByte(0xef), "", 0);
    refused(
        "[".repeat(200),
        Reason::TooDeep { limit: 128 },
        &"/0".repeat(128),
        128,
    );
}

#[test]
fn depth_and_size() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(check(nested(128).as_bytes(), &Limits::event()).is_ok());
    assert!(check(nested(129).as_bytes(), &Limits::event()).is_err());
    let limits = Limits {
        max_bytes: 4,
        ..Limits::event()
    };
    assert!(check(b"[11]", &limits).is_ok());
    assert!(check(b"[111]", &limits).is_err());
}

const EVENT: &[u8] = br#"{"a":"x\ny","b":-12,"c":{"d":null,"e":"f"},"g":true,"h":[1,{"i":2}]}"#;

fn cursor(text: &[u8]) -> Cursor<'_> {
    Cursor::new(text, 128).unwrap()
}

#[test]
fn a_cursor_reads_what_is_expected() -> Result<(), Error> {
    let mut cursor = cursor(EVENT);
    cursor.open_object()?;
    cursor.expect_key("a")?;
    assert_eq!(cursor.string()?, "x\ny");
    cursor.expect_key("b")?;
    assert_eq!(cursor.integer()?, -12);
    assert_eq!(cursor.next_key()?, Some("c"));
    cursor.open_object()?;
    cursor.expect_key("d")?;
    assert_eq!(cursor.optional_string()?, None);
    cursor.expect_key("e")?;
    assert_eq!(cursor.optional_string()?.as_deref(), Some("f"));
    assert_eq!(cursor.next_key()?, None);
    cursor.expect_key("g")?;
    assert!(cursor.bool()?);
    cursor.expect_key("h")?;
    assert_eq!(cursor.peek(), Some(b'['));
    assert_eq!(cursor.value()?, br#"[1,{"i":2}]"#);
    cursor.close_object()?;
    assert_eq!(cursor.offset(), EVENT.len());
    cursor.finish()
}

#[test]
fn a_cursor_refuses_what_is_not_expected() {
    type Step = fn(&mut Cursor<'_>) -> Result<(), Error>;
    fn refused(text: &str, step: Step, message: &str) {
        let mut cursor = cursor(text.as_bytes());
        let outcome = step(&mut cursor).and_then(|()| cursor.finish());
        assert_eq!(outcome.unwrap_err().to_string(), message, "{text}");
    }
    refused(
        "1",
        |c| c.open_object(),
        "expected an object at the top level (byte 0)",
    );
    refused(
        "1",
        |c| c.string().map(drop),
        "expected a string at the top level (byte 0)",
    );
    refused(
        "1",
        |c| c.optional_string().map(drop),
        "expected a string or null at the top level (byte 0)",
    );
    refused(
        "1",
        |c| c.bool().map(drop),
        "expected a boolean at the top level (byte 0)",
    );
    let integer = "expected an integer of at most 53 bits at the top level (byte 0)";
    for text in [
        "9007199254740992",
        "-9007199254740992",
        "1.5",
        "1e+21",
        "-0",
        "01",
        "\"1\"",
        "99999999999999999999999",
    ] {
        refused(text, |c| c.integer().map(drop), integer);
    }
    refused(
        "tru",
        |c| c.bool().map(drop),
        "unexpected `t` at the top level (byte 0)",
    );
    refused(
        "{}",
        |c| c.open_object().and_then(|()| c.expect_key("a")),
        "missing key `a` at the top level (byte 1)",
    );
    refused(
        r#"{"b":1}"#,
        |c| c.open_object().and_then(|()| c.expect_key("a")),
        "unexpected key `b` instead of `a` at the top level (byte 1)",
    );
    refused(
        r#"{"b":1}"#,
        |c| c.open_object().and_then(|()| c.close_object()),
        "unexpected key `b` at the top level (byte 1)",
    );
    refused(
        "{}",
        |c| c.open_object(),
        "unexpected `}` at the top level (byte 1)",
    );
    refused("{}", |_| Ok(()), "unexpected `{` at the top level (byte 0)");
    refused(
        "1",
        |c| c.next_key().map(drop),
        "expected an object at the top level (byte 0)",
    );
    refused(
        "{}{}",
        |c| c.value().map(drop),
        "trailing data at the top level (byte 2)",
    );
    refused(
        "11",
        |c| c.value().and_then(|_| c.value()).map(drop),
        "trailing data at the top level (byte 2)",
    );
    refused(
        r#"{"a":1,"b":2}"#,
        |c| {
            c.open_object()
                .and_then(|()| c.expect_key("a"))
                .and_then(|()| c.expect_key("b"))
        },
        "unexpected `1` at `/a` (byte 5)",
    );
    refused(
        r#"{"b":1,"a":2}"#,
        |c| {
            c.open_object()?;
            c.expect_key("b")?;
            c.integer()?;
            c.expect_key("a")
        },
        "not in canonical form: keys out of order at the top level (byte 7)",
    );
    let kind = cursor(b"[]").integer().unwrap_err();
    assert_eq!(kind.reason(), &Reason::Expected(Kind::Integer));
}

#[test]
fn a_cursor_steps_over_the_text_of_a_format() {
    let read = |text: &str| -> Result<(String, i64), Error> {
        let mut cursor = cursor(text.as_bytes());
        cursor.expect_text(r#"{"name":"#)?;
        let name = cursor.string()?.into_owned();
        cursor.expect_text(r#","seq":"#)?;
        let seq = cursor.integer()?;
        cursor.expect_text("}")?;
        cursor.finish()?;
        Ok((name, seq))
    };
    assert_eq!(read(r#"{"name":"a","seq":7}"#), Ok(("a".to_owned(), 7)));
    for (text, message) in [
        ("", "unexpected end at the top level (byte 0)"),
        ("[]", "unexpected `[` at the top level (byte 0)"),
        ("{}", "missing key `name` at the top level (byte 1)"),
        (
            r#"{"seq":7}"#,
            "unexpected key `seq` instead of `name` at the top level (byte 1)",
        ),
        (r#"{"name":"a"}"#, "missing key `seq` at `/name` (byte 11)"),
        (
            r#"{"name":"a","s":7}"#,
            "unexpected key `s` instead of `seq` at the top level (byte 12)",
        ),
        (
            r#"{"name":"a", "seq":7}"#,
            "not in canonical form: white space at the top level (byte 12)",
        ),
        (
            r#"{"name":"a","seq" :7}"#,
            "not in canonical form: white space at `/seq` (byte 17)",
        ),
        (
            r#"{"name":"a","\u0073eq":7}"#,
            "unexpected `\\` at the top level (byte 13)",
        ),
        (
            r#"{"name":"a","seq":7,"t":1}"#,
            "unexpected key `t` at the top level (byte 20)",
        ),
        (
            r#"{"name":"a","seq":7}}"#,
            "trailing data at the top level (byte 20)",
        ),
    ] {
        assert_eq!(read(text).unwrap_err().to_string(), message, "{text}");
    }
}

#[test]
fn a_cursor_reads_hashes_and_digests() {
    let hash = Hash::of(b"x");
    let digest = hash.to_digest();
    let quoted = |text: &dyn ToString| format!("\"{}\"", text.to_string());
    assert_eq!(cursor(quoted(&hash).as_bytes()).hash(), Some(hash));
    assert_eq!(cursor(quoted(&digest).as_bytes()).digest(), Some(digest));
    let upper = hash.to_string().to_uppercase();
    let others: [&dyn ToString; 6] = [&"", &upper, &format!("{hash}0"), &"0", &"\\", &"é"];
    for other in others {
        let text = quoted(other);
        let mut cursor = cursor(text.as_bytes());
        assert_eq!((cursor.hash(), cursor.digest()), (None, None), "{text}");
        assert_eq!(cursor.offset(), 0);
    }
    assert_eq!(cursor(quoted(&digest).as_bytes()).hash(), None);
    assert_eq!(cursor(quoted(&hash).as_bytes()).digest(), None);
}

#[test]
fn integers_at_the_edge() {
    for value in [0, 1, -1, (1 << 53) - 1, 1 - (1 << 53)] {
        assert_eq!(cursor(value.to_string().as_bytes()).integer(), Ok(value));
    }
}

#[test]
fn keys_with_escapes_are_expected_by_their_characters() -> Result<(), Error> {
    let mut cursor = cursor(br#"{"a\"b":1}"#);
    cursor.open_object()?;
    cursor.expect_key("a\"b")?;
    cursor.integer()?;
    cursor.close_object()
}

#[test]
fn each_open_object_keeps_its_own_order_at_any_depth() {
    let depth = 20;
    let text = format!(
        "{}0{}",
        r#"{"b":"#.repeat(depth),
        r#","c":0}"#.repeat(depth)
    );
    let wrong = format!(r#"{},"a":0}}"#, text.strip_suffix(r#","c":0}"#).unwrap());
    for (text, accepted) in [(text, true), (wrong, false)] {
        let mut cursor = cursor(text.as_bytes());
        let mut walk = || -> Result<(), Error> {
            for _ in 0..depth {
                cursor.open_object()?;
                cursor.expect_key("b")?;
            }
            cursor.integer()?;
            for _ in 0..depth {
                cursor.next_key()?;
                cursor.integer()?;
                cursor.close_object()?;
            }
            Ok(())
        };
        assert_eq!(walk().is_ok(), accepted, "{text}");
    }
}

/// Every text of up to four of these members, in any order, with and without usual keys.
#[test]
fn usual_keys_change_nothing_but_the_speed() {
    const KEYS: [&str; 6] = ["a", "bb", "c_long_one", "c_longer_than_sixteen", "d", r"\n"];
    fn read(text: &str, usual: &[&'static str]) -> Result<Vec<String>, Error> {
        let mut keys = Vec::new();
        let mut cursor = cursor(text.as_bytes());
        cursor.members(usual, |cursor, key| {
            keys.push(key.to_owned());
            cursor.value().map(drop)
        })?;
        cursor.finish()?;
        Ok(keys)
    }
    let usual = [
        r#""a":"#,
        r#""c_long_one":"#,
        r#""c_longer_than_sixteen":"#,
        r#""d":"#,
    ];
    let mut refused = 0;
    for number in 0..7usize.pow(4) {
        let places = (0..4).map(|place| number / 7usize.pow(place) % 7);
        let members: Vec<String> = places
            .filter_map(|key| KEYS.get(key))
            .map(|key| format!(r#""{key}":{number}"#))
            .collect();
        for text in [
            format!("{{{}}}", members.join(",")),
            format!("{{{}}}", members.join(";")),
            format!("{{{},}}", members.join(",")),
            format!("{{,{}}}", members.join(",")),
        ] {
            let expect = read(&text, &[]);
            refused += usize::from(expect.is_err());
            assert_eq!(
                expect.is_ok(),
                check(text.as_bytes(), &Limits::event()).is_ok()
            );
            assert_eq!(read(&text, &usual), expect, "{text}");
        }
    }
    assert!(refused > 5000 && refused < 4 * 7usize.pow(4));
}

#[test]
fn integers_of_every_length_end_where_their_digits_end() {
    for length in 0..=20 {
        let digits: String = (1..=length).map(|n| char::from(b'0' + n % 10)).collect();
        for sign in ["", "-"] {
            for end in ["", "}", ",", "/", ":", "\u{b0}", "           ", ",00000000"] {
                let text = format!("{sign}{digits}{end}");
                let mut cursor = cursor(text.as_bytes());
                let expect = format!("{sign}{digits}").parse::<i64>().ok();
                let expect = expect.filter(|value| value.abs() < 1 << 53);
                assert_eq!(cursor.integer().ok(), expect, "{text}");
                if expect.is_some() {
                    assert_eq!(cursor.offset(), sign.len() + digits.len(), "{text}");
                }
            }
        }
    }
}
