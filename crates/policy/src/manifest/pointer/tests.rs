use countersign_canon::Limits;

use super::*;

#[test]
fn pointers_lead_to_values() {
    let text = br#"{"a":[{"b/c":1,"~":2}],"":3}"#;
    let json = Json::admit(text, &Limits::event()).unwrap();
    let check = |pointer: &str, expect: Option<u64>| {
        let parsed = Pointer::parse(pointer).unwrap();
        assert_eq!(parsed.to_string(), pointer);
        assert_eq!(
            parsed.resolve(&json).and_then(Json::as_u64),
            expect,
            "{pointer}"
        );
    };
    check("/a/0/b~1c", Some(1));
    check("/a/0/~0", Some(2));
    check("/", Some(3));
    check("/a/1/x", None);
    check("/a/00/b~1c", None);
    check("/a/+0/b~1c", None);
    check("/a/-/b", None);
    check("/b", None);
    assert_eq!(Pointer::parse("").unwrap().resolve(&json), Some(&json));
    assert_eq!(Pointer::parse("a"), Err(PointerError::NoSlash));
    assert_eq!(Pointer::parse("/~"), Err(PointerError::Escape));
    assert_eq!(Pointer::parse("/~2"), Err(PointerError::Escape));
}
