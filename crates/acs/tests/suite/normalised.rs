//! What becomes of a policy's answer, one behaviour a test, by the names that the published core gives them.

use countersign_acs::{Mode, Point, Reserved};
use countersign_canon::Json;

use crate::scene::{json, saying};

/// The result on the wire, for a target `{"body": "b", "field": 1}`.
fn said(answer: &str) -> Json {
    let snapshot = json(r#"{"input":{"body":"b","field":1}}"#);
    let runtime = saying(answer);
    let found = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
    found.to_json()
}

fn verdict(answer: &str) -> Json {
    said(answer).get("verdict").unwrap().clone()
}

/// It is a deny with this reason, and nothing was changed.
fn fails_closed(answer: &str, reason: &str) {
    let result = said(answer);
    let verdict = result.get("verdict").unwrap();
    let word = |name: &str| verdict.get(name).and_then(Json::as_str);
    assert_eq!(word("decision"), Some("deny"), "{answer}");
    assert_eq!(word("reason"), Some(reason), "{answer}");
    assert!(result.get("transformed_policy_target").is_none());
    assert_eq!(result.get("enforced_identity"), Some(&Json::Null));
}

fn invalid(answer: &str) {
    fails_closed(answer, "runtime_error:policy_output_invalid");
}

#[test]
fn result_labels_default_to_empty_and_are_omitted_when_serialized() {
    assert_eq!(
        verdict(r#"{"decision":"allow"}"#),
        json(r#"{"decision":"allow"}"#)
    );
}

#[test]
fn result_labels_round_trip_when_policy_supplies_them() {
    let said = verdict(r#"{"decision":"allow","result_labels":["internal","confidential"]}"#);
    assert_eq!(
        said.get("result_labels"),
        Some(&json(r#"["internal","confidential"]"#))
    );
}

#[test]
fn null_result_labels_normalize_to_empty() {
    let said = verdict(r#"{"decision":"allow","result_labels":null}"#);
    assert_eq!(said.get("result_labels"), None);
}

#[test]
fn non_array_result_labels_fail_closed() {
    invalid(r#"{"decision":"allow","result_labels":"secret"}"#);
}

#[test]
fn non_string_result_label_entries_fail_closed() {
    invalid(r#"{"decision":"allow","result_labels":["ok",7]}"#);
}

#[test]
fn non_empty_effects_array_fails_closed_per_agt_d1() {
    let answer = r#"{"decision":"allow","effects":[{"type":"replace","path":"$policy_target.body","value":"x"}]}"#;
    invalid(answer);
    // Whoever wrote it is told what to write in its place.
    let (runtime, snapshot) = (saying(answer), json(r#"{"input":1}"#));
    let found = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
    assert!(found.detail().unwrap().contains("transform decision"));
}

#[test]
fn empty_effects_array_now_fails_closed_per_strict_agt_d1() {
    invalid(r#"{"decision":"allow","effects":[]}"#);
}

#[test]
fn null_effects_now_fails_closed_per_strict_agt_d1() {
    invalid(r#"{"decision":"allow","effects":null}"#);
}

#[test]
fn non_array_effects_still_reports_policy_output_invalid() {
    invalid(r#"{"decision":"allow","effects":"not-an-array"}"#);
}

#[test]
fn transform_decision_round_trips() {
    let answer = r#"{"decision":"transform","transform":{"path":"$policy_target.body","value":"[REDACTED]"}}"#;
    let result = said(answer);
    assert_eq!(result.get("verdict"), Some(&json(answer)));
    assert_eq!(
        result.get("transformed_policy_target"),
        Some(&json(r#"{"body":"[REDACTED]","field":1}"#))
    );
}

#[test]
fn transform_decision_without_body_fails_closed() {
    invalid(r#"{"decision":"transform"}"#);
}

#[test]
fn transform_path_outside_policy_target_fails_closed() {
    fails_closed(
        r#"{"decision":"transform","transform":{"path":"$snap.tool_call.args","value":"x"}}"#,
        "runtime_error:transform_target_forbidden",
    );
}

#[test]
fn transform_on_non_transform_decision_fails_closed() {
    invalid(r#"{"decision":"allow","transform":{"path":"$policy_target.x","value":1}}"#);
}

#[test]
fn transform_value_null_is_accepted() {
    let result = said(
        r#"{"decision":"transform","transform":{"path":"$policy_target.field","value":null}}"#,
    );
    assert_eq!(
        result.get("transformed_policy_target"),
        Some(&json(r#"{"body":"b","field":null}"#))
    );
    assert_eq!(
        result.get("transformed_policy_target_applied"),
        Some(&Json::from(true))
    );
}

#[test]
fn evidence_round_trips() {
    let answer = r#"{"decision":"allow","evidence":{"artefact":"sha256:abcd",
        "verification_pointers":{"issuer_pubkey":"https://x/keys","policy_registry":"https://x/policies/v1/"}}}"#;
    assert_eq!(verdict(answer), json(answer));
}

#[test]
fn evidence_missing_is_none() {
    assert_eq!(verdict(r#"{"decision":"allow"}"#).get("evidence"), None);
}

#[test]
fn evidence_non_object_fails_closed() {
    invalid(r#"{"decision":"allow","evidence":"sha256:bad"}"#);
}

#[test]
fn evidence_artefact_non_string_fails_closed() {
    invalid(r#"{"decision":"allow","evidence":{"artefact":42}}"#);
}

#[test]
fn evidence_pointer_value_must_be_string() {
    invalid(r#"{"decision":"allow","evidence":{"verification_pointers":{"issuer_pubkey":42}}}"#);
}

#[test]
fn evidence_over_4kib_fails_closed() {
    let huge = "x".repeat(5000);
    invalid(&format!(
        r#"{{"decision":"allow","evidence":{{"artefact":"{huge}"}}}}"#
    ));
}

#[test]
fn decision_permits_correctly() {
    let snapshot = json(r#"{"input":1}"#);
    let permits = |answer: &str| {
        let runtime = saying(answer);
        let found = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
        found.verdict().decision().permits()
    };
    assert!(permits(r#"{"decision":"allow"}"#));
    assert!(permits(r#"{"decision":"warn"}"#));
    assert!(permits(
        r#"{"decision":"transform","transform":{"path":"$policy_target","value":2}}"#
    ));
    assert!(!permits(r#"{"decision":"deny"}"#));
    assert!(!permits(r#"{"decision":"escalate"}"#));
}

#[test]
fn agt_reserved_reasons_exist() {
    let given = Reserved::ALL.map(Reserved::as_str);
    for reason in [
        "runtime_error:transform_target_forbidden",
        "runtime_error:transform_invalid",
        "runtime_error:approval_resolver_missing",
    ] {
        assert!(given.contains(&reason), "{reason}");
    }
    // Reserved words that nothing gives: what they name is an invalid manifest.
    for reason in [
        "runtime_error:resolution_path_traversal",
        "runtime_error:resolution_cycle",
        "runtime_error:resolution_invalid_governance",
        "runtime_error:resolution_merge_conflict",
        "runtime_error:effect_invalid",
        "runtime_error:effect_target_forbidden",
    ] {
        assert!(Reserved::UNUSED.contains(&reason), "{reason}");
        assert!(!given.contains(&reason), "{reason}");
        invalid(&format!(r#"{{"decision":"deny","reason":"{reason}"}}"#));
    }
}
