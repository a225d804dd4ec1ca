use super::*;
use crate::{Json, Numbers};

const LIMITS: Limits = Limits {
    max_bytes: 1 << 20,
    max_depth: 8,
    numbers: Numbers::Exact,
};

fn scan(text: &[u8]) -> Result<Range<usize>, Error> {
    let mut scan = Scan::new(text, &LIMITS)?;
    let span = scan.value()?;
    scan.finish()?;
    Ok(span)
}

/// What the strict reader says, apart from the meaning of numbers.
#[test]
fn agrees_with_the_strict_reader() {
    let texts: &[&[u8]] = &[
        b"null",
        b" [1, -0, 2.5e-3, true, false, \"\"] ",
        br#"{"a":{"b":[{}]},"c":"\u00e9\ud83d\ude00"}"#,
        br#"{"a":1,"a":2}"#,
        br#"{"a":1,"\u0061":2}"#,
        br#"{"x":[{"k":1},{"k":1,"k":1}]}"#,
        br#""\ud800""#,
        br#"{"\ud800":1}"#,
        b"[1,]",
        b"[1 2]",
        b"{\"a\" 1}",
        b"{\"a\":1,}",
        b"{,}",
        b"01",
        b"1.",
        b"+1",
        b"-",
        b"nul",
        b"NaN",
        b"\"a\nb\"",
        b"\"\\x\"",
        b"\"abc",
        b"",
        b"  ",
        b"1 1",
        b"{}}",
        b"[[[[[[[[1]]]]]]]]",
        b"[[[[[[[[[1]]]]]]]]]",
        b"\xff",
        b"{\"a\":\"\xc3\"}",
        "\u{feff}{}".as_bytes(),
        b"/* */ 1",
        b"'a'",
    ];
    for text in texts {
        let shown = String::from_utf8_lossy(text);
        let read = Json::admit(text, &LIMITS);
        let scanned = scan(text);
        assert_eq!(scanned.is_ok(), read.is_ok(), "{shown}: {scanned:?}");
        if let (Err(scanned), Err(read)) = (scanned, read)
            && *scanned.reason() != Reason::InvalidUtf8
            && *read.reason() != Reason::NotANumber
        {
            assert_eq!(scanned, read, "{shown}");
        }
    }
}

#[test]
fn duplicates_in_large_objects_are_found() {
    for count in [2, FEW - 1, FEW, FEW + 1, 500] {
        for (first, second) in [(0, count - 1), (count / 2, count - 1), (0, 1)] {
            if first == second {
                continue;
            }
            let members: Vec<String> = (0..count)
                .map(|index| format!("\"k{}\":1", if index == second { first } else { index }))
                .collect();
            let text = format!("[{{{}}}]", members.join(","));
            let error = scan(text.as_bytes()).unwrap_err();
            assert_eq!(
                Some(&error),
                Json::admit(text.as_bytes(), &LIMITS).as_ref().err(),
                "{count} {first} {second}"
            );
        }
        let members: Vec<String> = (0..count).map(|index| format!("\"k{index}\":1")).collect();
        assert!(scan(format!("{{{}}}", members.join(",")).as_bytes()).is_ok());
    }
}

#[test]
fn spans_are_exact_and_white_space_is_outside() {
    let text = br#" { "a" : [ 1 , "x" ] , "b" : -1.5 } "#;
    let mut found = Vec::new();
    let mut scan = Scan::new(text, &LIMITS).unwrap();
    scan.object(|scan, key| {
        found.push((key.into_owned(), scan.value()?));
        Ok(())
    })
    .unwrap();
    scan.finish().unwrap();
    let texts: Vec<_> = found
        .iter()
        .map(|(key, span)| (key.as_str(), &text[span.clone()]))
        .collect();
    assert_eq!(texts, [("a", &b"[ 1 , \"x\" ]"[..]), ("b", &b"-1.5"[..])]);
}

#[test]
fn another_kind_of_value_is_said_so() {
    let check = |text: &[u8], expect: &str| {
        let mut scan = Scan::new(text, &LIMITS).unwrap();
        let read = match expect {
            "expected an array" => scan.array(|_| Ok(())),
            "expected a string" => scan.string().map(drop),
            _ => scan.object(|_, _| Ok(())),
        };
        let message = read.unwrap_err().to_string();
        assert!(message.starts_with(expect), "{message}");
    };
    check(b"[]", "expected an object");
    check(b"{}", "expected an array");
    check(b"1", "expected a string");
    check(b"", "expected an object");
}
