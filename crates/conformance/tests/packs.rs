//! The packs that come with the program, and packs that must not be accepted.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at once"
)]

use std::collections::BTreeSet;

use countersign_conformance::{BUILT_IN, Pack};

#[test]
fn every_built_in_pack_can_be_read_and_no_id_is_used_twice() {
    let (mut cases, mut requirements) = (BTreeSet::new(), BTreeSet::new());
    for (name, text) in BUILT_IN {
        let pack = Pack::read(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(pack.name, *name);
        for case in &pack.cases {
            assert!(cases.insert(case.id.clone()), "{} is there twice", case.id);
        }
        for id in pack.requirements.keys() {
            assert!(requirements.insert(id.clone()), "{id} is there twice");
        }
    }
}

#[test]
fn a_pack_that_would_show_nothing_is_refused() {
    let pack = |tests: &str| {
        format!(
            "schema: countersign/conformance/v1\nname: n\nversion: '1'\ndescription: d\nrequirements: {{R-1: r}}\ntests: {tests}\n"
        )
    };
    let good = "[{id: a, req_id: R-1, description: d, steps: [{get: /x, status: 200}]}]";
    assert!(Pack::read(pack(good).as_bytes()).is_ok());
    for (tests, problem) in [
        ("[]", "no test is about `R-1`"),
        (
            "[{id: a, req_id: R-1, description: d, steps: []}]",
            "does nothing",
        ),
        (
            "[{id: a, req_id: R-2, description: d, steps: [{get: /x}]}]",
            "which is not listed",
        ),
        (
            "[{id: a, req_id: R-1, description: d, steps: [{get: /x, sttaus: 200}]}]",
            "a step has no `sttaus`",
        ),
        (
            "[{id: a, req_id: R-1, description: d, steps: [{get: /x, json: {a: {$mtches: x}}}]}]",
            "there is no rule `$mtches`",
        ),
        (
            "[{id: a, req_id: R-1, description: d, steps: [{get: /x, post: /x}]}]",
            "exactly one",
        ),
        (
            "[{id: a, req_id: R-1, description: d, steps: [{get: /x}]}, {id: a, req_id: R-1, description: d, steps: [{get: /x}]}]",
            "there twice",
        ),
    ] {
        let error = Pack::read(pack(tests).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(problem), "{tests}: {error}");
    }
    assert!(Pack::read(b"schema: countersign/conformance/v9\nname: n\n").is_err());
    assert!(Pack::read(b"name: n\ntests: []\n").is_err());
}

#[test]
fn the_older_form_is_read_and_members_that_it_does_not_know_are_ignored() {
    let text = "name: old\nunheard: 1\ntests:\n  - id: T-1\n    pack: old\n    req_id: R\n    description: d\n    request: {event: {event_type: TOOL_CALL_PROPOSED}}\n    expect: {outcome: deny, reason: X}\n";
    let pack = Pack::read(text.as_bytes()).unwrap();
    assert_eq!((pack.name.as_str(), pack.cases.len()), ("old", 1));
}
