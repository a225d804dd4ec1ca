use super::*;

fn path(text: &str) -> Result<Path, PathError> {
    text.parse()
}

fn member(name: &str) -> Segment {
    Segment::Member(name.to_owned())
}

#[test]
fn roots_and_their_short_forms() {
    for (text, root) in [
        ("$snap", Root::Snapshot),
        ("$", Root::Snapshot),
        ("$.a", Root::Snapshot),
        ("$pi", Root::Input),
        ("$policy_target[0]", Root::Target),
        ("$tool.name", Root::Tool),
    ] {
        assert_eq!(path(text).unwrap().root(), root, "{text}");
    }
    for text in [
        "",
        "snap",
        "$x",
        "$snapshot",
        "$[0]",
        "$[\"a\"]",
        " $",
        "$pi$",
        "$policy_targets",
    ] {
        assert_eq!(path(text), Err(PathError::Root), "{text}");
    }
}

#[test]
fn names_may_hold_nearly_anything() {
    let found = path("$.a b-ü.c[\"x.]\\u0041\\\"\"][01]").unwrap();
    let expect = [
        member("a b-ü"),
        member("c"),
        member("x.]A\""),
        Segment::Element(1),
    ];
    assert_eq!(found.segments(), expect);
    assert_eq!(found.to_string(), "$.a b-ü.c[\"x.]\\u0041\\\"\"][01]");
}

#[test]
fn what_is_no_step_names_its_place() {
    for (text, at) in [
        ("$.", 1),
        ("$..a", 1),
        ("$.a.", 3),
        ("$.a]", 1),
        ("$.a[", 3),
        ("$.a[]", 3),
        ("$.a[-1]", 3),
        ("$.a[+1]", 3),
        ("$.a[*]", 3),
        ("$.a[1", 3),
        ("$.a[1]b", 6),
        ("$.a['b']", 3),
        ("$.a[\"b]", 3),
        ("$.a[\"b\"", 3),
        ("$.a[\"\\x\"]", 3),
        ("$.a[\"\\ud800\"]", 3),
        ("$.a[99999999999999999999999]", 3),
    ] {
        assert_eq!(path(text), Err(PathError::Malformed(at)), "{text}");
    }
}

#[test]
fn missing_and_mistyped_places_are_told_apart() {
    let root = Json::admit(br#"{"a":[1,{"b":null}]}"#, &Limits::plan()).unwrap();
    let look = |text: &str| path(text).unwrap().resolve(&root).cloned();
    assert_eq!(look("$.a[1].b"), Ok(Json::Null));
    assert_eq!(look("$.x"), Err(Lost::Missing));
    assert_eq!(look("$.a[2]"), Err(Lost::Missing));
    for text in [
        "$.a.b",
        "$[\"a\"][0]",
        "$.a[1][0]",
        "$.a[0].b",
        "$.a[1].b.c",
    ] {
        if let Ok(path) = path(text) {
            assert_eq!(path.resolve(&root), Err(Lost::Type), "{text}");
        }
    }
}
