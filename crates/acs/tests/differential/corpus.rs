//! Our cases (`corpus/acs`), asked of the published core: it agrees, or the list says why not.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use agent_control_specification_core as core;
use serde_json::Value;

/// Where the core says something else than the case, and which of its choices that is.
const DIFFERENT: &[(&str, &str)] = &[
    ("spec-02-manifest.case-34", "of two keys, the last counts"),
    ("spec-02-manifest.case-35", "of two keys, the last counts"),
    ("spec-02-manifest.case-36", "metadata may be anything"),
    ("spec-02-manifest-text.case-06", "versions are trimmed"),
    (
        "spec-14-transforms.case-13",
        "`$` is no root of a transform",
    ),
    (
        "spec-14-transforms.case-14",
        "`$` is no root of a transform",
    ),
];

#[test]
fn the_core_agrees_with_our_cases_outside_the_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/acs");
    let read =
        |path: &Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let mut cases = Vec::new();
    for file in std::fs::read_dir(folder.join("spec")).unwrap() {
        cases.push(read(&file.unwrap().path()));
    }
    for file in ["more.json", "text.json"] {
        cases.extend(read(&folder.join(file)).as_array().unwrap().clone());
    }
    let mut found = BTreeSet::new();
    let mut unlisted = Vec::new();
    for case in &cases {
        // Who asks people is the host's part, and the core has none.
        if case["operation"] == "approval_action_mismatch" {
            continue;
        }
        let (expected, said) = (&case["expected"], answer(case));
        let same = said["decision"] == expected["decision"]
            && expected
                .get("reason")
                .is_none_or(|reason| said["reason"] == *reason)
            && expected
                .get("transformed_policy_target")
                .is_none_or(|target| said["transformed"] == *target)
            && expected
                .get("policy_target")
                .is_none_or(|target| said["input"]["policy_target"]["value"] == *target)
            && expected
                .get("annotations")
                .is_none_or(|all| said["input"]["annotations"] == *all)
            && expected
                .get("action_identity")
                .is_none_or(|identity| (identity == "present") == said["identity"].is_string());
        if !same {
            let id = case["id"].as_str().unwrap();
            if !DIFFERENT.iter().any(|(known, _)| *known == id) {
                let (decision, reason) = (&said["decision"], &said["reason"]);
                unlisted.push(format!("{id} {}: {decision} {reason}", case["title"]));
            }
            found.insert(id.to_owned());
        }
    }
    assert!(unlisted.is_empty(), "{}", unlisted.join("\n"));
    for (id, reason) in DIFFERENT {
        assert!(found.contains(*id), "{id}: the core agrees ({reason})");
    }
}

fn answer(case: &Value) -> Value {
    let manifest = core::Manifest::from_yaml_str(case["manifest_yaml"].as_str().unwrap());
    let host = Arc::new(Host(case.clone()));
    let runtime = manifest.and_then(|manifest| {
        core::Runtime::with_limits(manifest, host.clone(), host, limits(&case["limits"]))
    });
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return serde_json::json!({"decision": "deny", "reason": error.reason()}),
    };
    let found = runtime.evaluate_intervention_point(core::InterventionPointRequest {
        intervention_point: case["intervention_point"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap(),
        snapshot: case["snapshot"].clone(),
        mode: match case["mode"].as_str() {
            Some("evaluate_only") => core::EnforcementMode::EvaluateOnly,
            _ => core::EnforcementMode::Enforce,
        },
    });
    serde_json::json!({
        "decision": found.verdict.decision.as_str(),
        "reason": found.verdict.reason,
        "transformed": found.transformed_policy_target,
        "input": found.policy_input,
        "identity": found.action_identity,
    })
}

fn limits(given: &Value) -> core::Limits {
    let mut limits = core::Limits::default();
    for (name, value) in given.as_object().into_iter().flatten() {
        let value = usize::try_from(value.as_u64().unwrap()).unwrap();
        match name.as_str() {
            "max_snapshot_bytes" => limits.max_snapshot_bytes = value,
            "max_policy_input_depth" => limits.max_policy_input_depth = value,
            "max_annotators_per_point" => limits.max_annotators_per_point = value,
            "max_annotator_output_bytes" => limits.max_annotator_output_bytes = value,
            "max_policy_output_bytes" => limits.max_policy_output_bytes = value,
            other => panic!("{other}"),
        }
    }
    limits
}

/// Answers as a case says.
struct Host(Value);

impl core::PolicyDispatcher for Host {
    fn evaluate(&self, _: &core::PreparedPolicyInvocation) -> Result<Value, core::RuntimeError> {
        match self.0["policy_behavior"].as_str() {
            Some(_) => Err(core::RuntimeError::PolicyInvocationFailed(String::new())),
            None => Ok(self.0["policy_response"].clone()),
        }
    }
}

impl core::AnnotatorDispatcher for Host {
    fn dispatch(
        &self,
        name: &str,
        _: &core::AnnotatorInvocation,
        _: &Value,
    ) -> Result<Value, core::RuntimeError> {
        match self.0["annotator_behavior"].as_str() {
            Some("timeout") => Err(core::RuntimeError::AnnotationTimeout(String::new())),
            Some(_) => Err(core::RuntimeError::AnnotationFailed(String::new())),
            None => Ok(self.0["annotator_outputs"][name].clone()),
        }
    }
}
