//! The cases of `corpus/canon/approvals.json`.

use countersign_canon::{Hash, Json, Limits, Reason};
use serde_json::Value;

const CASES: &str = include_str!("../../../../corpus/canon/approvals.json");

fn cases() -> Value {
    serde_json::from_str(CASES).unwrap()
}

fn text<'a>(case: &'a Value, member: &str) -> &'a str {
    case[member].as_str().unwrap()
}

fn list<'a>(cases: &'a Value, section: &str) -> &'a [Value] {
    let list = cases[section].as_array().unwrap();
    assert!(!list.is_empty());
    list
}

fn admit(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::plan()).expect(text)
}

/// `input` has the sorted ASCII form `canon`, whose hash is `hash`.
fn check(input: &str, canon: &str, hash: &str) {
    let found = admit(input).to_sorted_ascii();
    assert_eq!(String::from_utf8_lossy(&found), canon);
    assert_eq!(Hash::of(&found).to_string(), hash);
}

#[test]
fn sorted_ascii_texts() {
    for case in list(&cases(), "canonical_json_python_v1") {
        check(
            text(case, "input_json"),
            text(case, "canon"),
            text(case, "sha256"),
        );
    }
}

#[test]
fn b09_keys_are_sorted_by_code_point() {
    let value = admit("{\"\u{1f600}\":1,\"\u{e000}\":2,\"a\":3}");
    let text = r#"{"a":3,"\ue000":2,"\ud83d\ude00":1}"#;
    assert_eq!(value.to_sorted_ascii(), text.as_bytes());
}

#[test]
fn plans_and_audit_entries_are_canonical_already() {
    let cases = cases();
    for section in ["plan_hash_repo_v3", "plan_hash_repo_v3_two_calls"] {
        let case = &cases[section];
        check(
            text(case, "canon"),
            text(case, "canon"),
            text(case, "sha256"),
        );
    }
    let chain = &cases["audit_chain_seed_R4"];
    for entry in list(chain, "entries") {
        let canon = text(entry, "entry_canon");
        check(canon, canon, text(entry, "entry_sha256"));
    }
    let signed = text(&cases["ed25519_signed_object_repo_v3"], "payload");
    assert_eq!(admit(signed).to_sorted_ascii(), signed.as_bytes());
}

#[test]
fn audit_entries_are_chained() {
    let cases = cases();
    let chain = &cases["audit_chain_seed_R4"];
    let genesis = Hash::of(text(chain, "genesis_preimage").as_bytes()).to_string();
    assert_eq!(genesis, text(chain, "genesis_sha256"));
    let mut head = genesis;
    for entry in list(chain, "entries") {
        let canon = admit(text(entry, "entry_canon"));
        assert_eq!(
            canon.get("prev_hash").and_then(Json::as_str),
            Some(head.as_str())
        );
        head = Hash::of(&canon.to_sorted_ascii()).to_string();
    }
    assert_eq!(head, text(chain, "head"));
}

#[test]
fn what_others_accept_and_we_refuse() {
    let cases = cases();
    let reasons = [
        Reason::LoneSurrogate,
        Reason::DuplicateKey("a".to_owned()),
        Reason::NotANumber,
        Reason::NumberOutOfRange,
    ];
    let section = list(&cases, "reference_accepts_but_ours_should_reject");
    assert_eq!(section.len(), reasons.len());
    for (case, reason) in section.iter().zip(reasons) {
        for limits in [Limits::plan(), Limits::event()] {
            let refused = Json::admit(text(case, "input_json").as_bytes(), &limits).unwrap_err();
            assert_eq!(refused.reason(), &reason);
        }
    }
}

#[test]
fn what_everybody_refuses() {
    for case in list(&cases(), "must_reject_syntax") {
        let text = case.as_str().unwrap();
        assert!(
            Json::admit(text.as_bytes(), &Limits::plan()).is_err(),
            "{text}"
        );
    }
}
