use super::*;

#[test]
fn values_are_built_and_taken_apart() {
    let value = Json::object([
        ("z", Json::from(None::<bool>)),
        ("b", Json::from(true)),
        ("n", Json::from(7u32)),
        ("s", Json::from("x")),
        (
            "a",
            Json::from(vec![Json::from(-1i64), Json::from(u64::MAX)]),
        ),
        ("o", Json::from(Object::new())),
    ]);
    assert!(value.get("z").unwrap().is_null());
    assert_eq!(value.get("b").unwrap().as_bool(), Some(true));
    assert_eq!(value.get("n").unwrap().as_u64(), Some(7));
    assert_eq!(value.get("s").unwrap().as_str(), Some("x"));
    let elements = value.get("a").unwrap().as_array().unwrap();
    assert_eq!(
        (elements[0].as_i64(), elements[0].as_u64()),
        (Some(-1), None)
    );
    assert_eq!(
        (elements[1].as_i64(), elements[1].as_u64()),
        (None, Some(u64::MAX))
    );
    assert!(value.get("o").unwrap().as_object().unwrap().is_empty());
    assert!(value.get("absent").is_none());
    assert!(Json::Null.get("z").is_none());
    assert_eq!(value.into_object().unwrap().len(), 6);
}

#[test]
fn of_two_members_with_one_key_the_later_stays() {
    let value = Json::object([
        ("a", Json::from(1u32)),
        ("b", Json::Null),
        ("a", Json::from(2u32)),
    ]);
    assert_eq!(value.to_sorted_ascii(), br#"{"a":2,"b":null}"#);
}

#[test]
fn equality_follows_the_written_form() {
    let exact = Limits::plan();
    let read = |text: &str| Json::admit(text.as_bytes(), &exact).unwrap();
    assert_eq!(
        read(r#"{"a":1,"b":"é"}"#),
        read(r#" {"b":"\u00e9" , "a":1}"#)
    );
    assert_eq!(read("-0"), read("0"));
    assert_ne!(read("1"), read("1.0"));
    assert_ne!(read("0.0"), read("-0.0"));
}
