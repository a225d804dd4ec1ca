use super::*;

fn check(text: &str, expect: &str) {
    let read = admit(text.as_bytes(), &Limits::event());
    let expect = Json::admit(expect.as_bytes(), &Limits::event()).unwrap();
    assert_eq!(read, Ok(expect), "{text}");
}

fn check_refused(text: &str, expect: &str) {
    let error = admit(text.as_bytes(), &Limits::event()).unwrap_err();
    assert_eq!(error.to_string(), expect, "{text:?}");
}

#[test]
fn values() {
    check(
        "a: 1\nb: [x, 'y', \"z\"]\nc:\n  - d\n  - e: f\n",
        r#"{"a":1,"b":["x","y","z"],"c":["d",{"e":"f"}]}"#,
    );
    check("---\na: b\n...\n", r#"{"a":"b"}"#);
    check("# a comment\n\na: b # another\n", r#"{"a":"b"}"#);
    check("", "null");
    check("a:\n", r#"{"a":null}"#);
    check(
        "a: |\n  one\n  two\nb: >-\n  one\n  two\n",
        r#"{"a":"one\ntwo\n","b":"one two"}"#,
    );
    check("{a: b, c: [d]}", r#"{"a":"b","c":["d"]}"#);
    check("- 1\n- - 2\n", "[1,[2]]");
    check("é: \"\\u00e9\"", r#"{"é":"é"}"#);
    check("a: {}\nb: []\n", r#"{"a":{},"b":[]}"#);
}

#[test]
fn plain_scalars_follow_the_core_schema() {
    for (text, expect) in [
        ("null", "null"),
        ("~", "null"),
        ("NULL", "null"),
        ("nULL", "\"nULL\""),
        ("true", "true"),
        ("False", "false"),
        ("tRUE", "\"tRUE\""),
        ("yes", "\"yes\""),
        ("no", "\"no\""),
        ("on", "\"on\""),
        ("off", "\"off\""),
        ("y", "\"y\""),
        ("0", "0"),
        ("-0", "0"),
        ("12", "12"),
        ("-12", "-12"),
        ("+12", "12"),
        ("0o17", "15"),
        ("0x1F", "31"),
        ("0b1", "\"0b1\""),
        ("1_000", "\"1_000\""),
        ("12:30", "\"12:30\""),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("5.", "5.0"),
        ("1e3", "1e3"),
        ("1.0e-2", "1.0e-2"),
        ("1.2.3", "\"1.2.3\""),
        (".", "\".\""),
        ("-", "[null]"),
        ("+", "\"+\""),
        ("e5", "\"e5\""),
        ("1e", "\"1e\""),
        ("0x", "\"0x\""),
        ("0o8", "\"0o8\""),
        ("2001-01-01", "\"2001-01-01\""),
        ("'1'", "\"1\""),
        ("\"true\"", "\"true\""),
        (".Nan", "\".Nan\""),
        ("-.nan", "\"-.nan\""),
    ] {
        check(text, expect);
    }
    for text in [
        "010",
        "00",
        "-01",
        "00.5",
        ".inf",
        "-.INF",
        "+.inf",
        ".nan",
        "1e999",
        "9007199254740993",
        "0xFFFFFFFFFFFFFFFFF",
    ] {
        let fault = format!(
            "`{text}` is not an unambiguous number, quote it if it is text at line 1, column 1"
        );
        check_refused(text, &fault);
    }
}

#[test]
fn what_two_readers_could_understand_differently() {
    check_refused(
        "a: 1\nb: 2\na: 3\n",
        "duplicate key `a` at line 3, column 1",
    );
    check_refused(
        "x:\n  - {a: 1, \"a\": 2}\n",
        "duplicate key `a` at line 2, column 12",
    );
    check_refused(
        "a: &x 1\n",
        "anchors and aliases are not allowed at line 1, column 4",
    );
    check_refused(
        "a: &x [1]\nb: *x\n",
        "anchors and aliases are not allowed at line 1, column 4",
    );
    check_refused(
        "a: *x\n",
        "while parsing node, found unknown anchor at line 1, column 4",
    );
    check_refused("a: !!str 1\n", "tags are not allowed at line 1, column 4");
    check_refused("a: ! 1\n", "tags are not allowed at line 1, column 4");
    check_refused("a: !x {}\n", "tags are not allowed at line 1, column 4");
    check_refused("1: a\n", "a key must be text at line 1, column 1");
    check_refused("true: a\n", "a key must be text at line 1, column 1");
    check_refused("~: a\n", "a key must be text at line 1, column 1");
    check_refused("? [a]\n: b\n", "a key must be text at line 1, column 3");
    check_refused("{a: b}: c\n", "a key must be text at line 1, column 1");
    check_refused(
        "<<: {a: b}\n",
        "merge keys are not allowed at line 1, column 1",
    );
    check_refused(
        "a: 1\n---\nb: 2\n",
        "more than one document at line 2, column 1",
    );
    check_refused(
        "%YAML 1.1\n---\na: b\n",
        "directives are not allowed at line 1, column 1",
    );
    check_refused(
        "# x\n\n%TAG ! x\n---\na: b\n",
        "directives are not allowed at line 3, column 1",
    );
    check_refused("\ta: b\n", "tab in the indentation at line 1, column 1");
    check_refused(
        "a:\n  \tb: c\n",
        "tab in the indentation at line 2, column 1",
    );
    check_refused(
        "\u{feff}a: b\n",
        "control character or byte order mark at line 1, column 1",
    );
    check_refused(
        "a: b\nc: \u{7}\n",
        "control character or byte order mark at line 2, column 4",
    );
}

#[test]
fn text_that_is_not_yaml() {
    for text in ["a: [1\n", "a: 'b\n", "a: b: c\n", "{", "@a", "a: `b`"] {
        assert!(
            admit(text.as_bytes(), &Limits::event()).is_err(),
            "{text:?}"
        );
    }
    let error = admit(b"a: b\nc: \xff\n", &Limits::event()).unwrap_err();
    assert_eq!(error.to_string(), "invalid UTF-8 at line 2, column 4");
    assert_eq!((error.line(), error.column()), (2, 4));
}

#[test]
fn limits() {
    let limits = Limits {
        max_depth: 3,
        max_bytes: 20,
        ..Limits::event()
    };
    assert!(admit(b"[[[1]]]", &limits).is_ok());
    let deep = admit(b"[[[[1]]]]", &limits).unwrap_err();
    assert_eq!(deep.to_string(), "nested deeper than 3 at line 1, column 4");
    let large = admit(&[b'a'; 21], &limits).unwrap_err();
    assert_eq!(
        large.to_string(),
        "larger than 20 bytes at line 1, column 1"
    );
    for open in ["[", "{a: ", "- ", "? ", "a:\n "] {
        assert!(
            admit(open.repeat(10_000).as_bytes(), &Limits::event()).is_err(),
            "{open}"
        );
    }
}
