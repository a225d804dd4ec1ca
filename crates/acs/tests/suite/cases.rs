//! The cases of `corpus/acs`: those of the specification, and ours of the same form.

use std::path::{Path, PathBuf};

use countersign_acs::{
    AnnotationError, ApprovalRequest, Evaluation, Limits, Manifest, Mode, Resolution, Resolve,
    ResolverError, Runtime,
};
use countersign_canon::{Digest, Json};

use crate::scene::{Annotators, Fails, Says, json};

#[test]
fn every_case_of_the_specification_holds() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(corpus().join("spec"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert_eq!(files.len(), 25, "cases are missing");
    for file in files {
        check(&json(&std::fs::read_to_string(file).unwrap()));
    }
}

#[test]
fn every_further_case_holds() {
    let mut seen = std::collections::BTreeSet::new();
    for (file, least) in [("more.json", 140), ("text.json", 130)] {
        let cases = json(&std::fs::read_to_string(corpus().join(file)).unwrap());
        let cases = cases.as_array().unwrap();
        assert!(cases.len() >= least, "{file}: {} cases", cases.len());
        for case in cases {
            let id = text(case, "id").unwrap().to_owned();
            assert!(seen.insert(id.clone()), "{id} is there twice");
            check(case);
        }
    }
}

#[test]
fn a_wrong_expectation_is_noticed() {
    let text = std::fs::read_to_string(corpus().join("spec/spec-14-effects.case-06.json")).unwrap();
    check(&json(&text));
    for (right, wrong) in [
        (
            r#""decision": "transform",
    "reason": "pii_redaction",
    "transformed"#,
            r#""decision": "allow",
    "reason": "pii_redaction",
    "transformed"#,
        ),
        (
            r#"[REDACTED] to support",
      "metadata""#,
            r#"1234 to support",
      "metadata""#,
        ),
        (
            r#""action_identity": "present""#,
            r#""action_identity": "absent""#,
        ),
    ] {
        let changed = text.replace(right, wrong);
        assert_ne!(changed, text, "{right}");
        let case = json(&changed);
        assert!(
            std::panic::catch_unwind(|| check(&case)).is_err(),
            "{wrong}"
        );
    }
}

fn check(case: &Json) {
    let id = text(case, "id").unwrap();
    let expected = case.get("expected").unwrap();
    let mut annotators = Annotators::default();
    if let Some(outputs) = case.get("annotator_outputs") {
        let outputs = outputs.as_object().unwrap().clone();
        annotators.outputs = outputs.into_iter().collect();
    }
    annotators.error = match text(case, "annotator_behavior") {
        None => None,
        Some("error") => Some(AnnotationError::Failed("as told".to_owned())),
        Some("timeout") => Some(AnnotationError::TimedOut("as told".to_owned())),
        Some(other) => panic!("{id}: {other}"),
    };
    let asked = annotators.asked.clone();
    let manifest = match Manifest::read(text(case, "manifest_yaml").unwrap().as_bytes()) {
        Ok(manifest) => manifest,
        Err(error) => {
            assert_eq!(text(expected, "decision"), Some("deny"), "{id}: {error}");
            let reason = error.reserved().as_str();
            assert_eq!(text(expected, "reason"), Some(reason), "{id}: {error}");
            return;
        }
    };
    let runtime = match text(case, "policy_behavior") {
        Some("error") => Runtime::new(manifest, Fails),
        _ => Runtime::new(manifest, Says(case.get("policy_response").unwrap().clone())),
    };
    let runtime = runtime
        .with_annotators(annotators)
        .with_limits(limits(case));
    let point = text(case, "intervention_point").unwrap().parse().unwrap();
    let mode = match text(case, "mode") {
        Some("evaluate_only") => Mode::EvaluateOnly,
        _ => Mode::Enforce,
    };
    let snapshot = case.get("snapshot").unwrap();
    let found = runtime.evaluate(point, snapshot, mode);
    let verdict = match text(case, "operation") {
        Some("approval_action_mismatch") => runtime.resolve(&found, &found, &Careless),
        _ => found.verdict().clone(),
    };
    let wrong = format!("{id}: {:?}", found.detail());
    let decision = text(expected, "decision");
    assert_eq!(Some(verdict.decision().as_str()), decision, "{wrong}");
    for (name, found) in [("reason", verdict.reason()), ("message", verdict.message())] {
        if let Some(expected) = expected.get(name) {
            assert_eq!(found, expected.as_str(), "{wrong}");
        }
    }
    compare(expected, &found, &wrong);
    if let Some(order) = expected.get("annotator_order") {
        let asked = asked.lock().unwrap();
        let asked: Vec<Json> = asked.iter().map(|name| name.as_str().into()).collect();
        assert_eq!(&Json::Array(asked), order, "{wrong}");
    }
}

fn compare(expected: &Json, found: &Evaluation<'_>, wrong: &str) {
    if let Some(target) = expected.get("transformed_policy_target") {
        assert_eq!(
            found.transformed().unwrap_or(&Json::Null),
            target,
            "{wrong}"
        );
    }
    let input = || found.input().unwrap_or_else(|| panic!("{wrong}"));
    if let Some(target) = expected.get("policy_target") {
        assert_eq!(input().target(), target, "{wrong}");
    }
    if let Some(tool) = expected.get("tool_name") {
        assert_eq!(input().tool().get("name"), Some(tool), "{wrong}");
    }
    if let Some(annotations) = expected.get("annotations") {
        assert_eq!(
            Some(input().annotations()),
            annotations.as_object(),
            "{wrong}"
        );
    }
    if let Some(identity) = text(expected, "action_identity") {
        assert_eq!(
            found.identities().is_some(),
            identity == "present",
            "{wrong}"
        );
    }
}

/// Somebody who approves something else.
struct Careless;

impl Resolve for Careless {
    fn knows(&self, _: Option<&str>) -> bool {
        true
    }

    fn resolve(&self, _: &ApprovalRequest<'_>) -> Result<Resolution, ResolverError> {
        Ok(Resolution::Allow {
            identity: Digest::of(b"something else"),
        })
    }
}

fn limits(case: &Json) -> Limits {
    let mut limits = Limits::default();
    for (name, value) in case
        .get("limits")
        .and_then(Json::as_object)
        .into_iter()
        .flatten()
    {
        let value = usize::try_from(value.as_u64().unwrap()).unwrap();
        match name {
            "max_snapshot_bytes" => limits.max_snapshot_bytes = value,
            "max_policy_input_depth" => limits.max_policy_input_depth = value,
            "max_annotators_per_point" => limits.max_annotators_per_point = value,
            "max_annotator_output_bytes" => limits.max_annotator_output_bytes = value,
            "max_policy_output_bytes" => limits.max_policy_output_bytes = value,
            "max_extends_depth" => limits.max_extends_depth = value,
            "max_merged_manifest_bytes" => limits.max_merged_manifest_bytes = value,
            other => panic!("{other}"),
        }
    }
    limits
}

fn text<'j>(json: &'j Json, name: &str) -> Option<&'j str> {
    json.get(name).and_then(Json::as_str)
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/acs")
}
