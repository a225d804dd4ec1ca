//! Beside the core that others wrote for the same specification: generated manifests, snapshots,
//! paths, policy outputs and annotators. They must agree on decision, reason, changed target, policy
//! input and identities; where they do not, the difference is in a list, with a reason.
//!
//! `COUNTERSIGN_ACS_CASES=1000000 cargo test --release -p countersign-acs --test differential`
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod corpus;
mod fixtures;
mod random;

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_control_specification_core as core;
use countersign_acs::{
    Annotate, AnnotationError, AnnotatorCall, Dispatch, DispatchError, Limits, Manifest, Mode,
    Point, PolicyCall, Runtime,
};
use countersign_canon::Json;
use random::{POINTS, Random};
use serde_json::{Value, json};

/// Where we differ on purpose, and why.
const DIFFERENCES: &[(&str, &str)] = &[
    (
        "transform_root",
        "a transform with a path that starts at the short form `$` or `$.x` leads out of the target: the \
         specification calls that transform_target_forbidden, the core policy_output_invalid",
    ),
    (
        "manifest_strict",
        "the schema is closed and names are unique: `metadata` is an object, optional members are absent \
         rather than null, maps name a key once, versions and references are not trimmed",
    ),
    (
        "transform_limits_in_both_modes",
        "evaluate_only gives the verdict that enforce gives: a change that does not fit into the snapshot \
         is refused in both, the core looks at it in enforce only",
    ),
    (
        "failed_input",
        "the policy input that was built comes with a failure of the final limits too",
    ),
];

#[test]
fn evaluations_agree_outside_the_list() {
    let mut random = Random(0x5eed);
    let mut decisions: BTreeMap<String, usize> = BTreeMap::new();
    let mut listed: BTreeMap<&str, usize> = BTreeMap::new();
    for number in 0..cases() {
        let case = Case::new(&mut random);
        match case.compare() {
            Ok(outcome) => *decisions.entry(outcome).or_default() += 1,
            Err(difference) => match case.listed() {
                Some(name) => *listed.entry(name).or_default() += 1,
                None => panic!("case {number}: {difference}\n{case:#?}"),
            },
        }
    }
    println!("{decisions:#?}\nlisted: {listed:#?}");
    // The generator has to reach everything, or agreeing means little.
    for expected in [
        "allow",
        "warn",
        "escalate",
        "transform",
        "deny",
        "runtime_error:intervention_point_unknown",
        "runtime_error:path_missing",
        "runtime_error:path_type_mismatch",
        "runtime_error:tool_unknown",
        "runtime_error:annotation_failed",
        "runtime_error:annotation_timeout",
        "runtime_error:policy_invocation_failed",
        "runtime_error:policy_output_invalid",
        "runtime_error:transform_invalid",
        "runtime_error:transform_target_forbidden",
        "runtime_error:resource_limit_exceeded",
        "runtime_error:manifest_invalid",
    ] {
        assert!(decisions.contains_key(expected), "never seen: {expected}");
    }
    assert!(listed.keys().all(|name| known(name)));
}

#[test]
fn every_entry_of_the_list_is_seen() {
    let plain = || Case {
        manifest: json!({
            "agent_control_specification_version": "0.3.1-beta",
            "policies": {"p": {"type": "test"}},
            "intervention_points": {"input": {"policy_target": "$.input", "policy": {"id": "p"}}},
            "annotators": {"a": {"type": "llm"}},
        }),
        point: "input",
        snapshot: json!({"input": "abc"}),
        evaluate_only: false,
        policy: Some(json!({"decision": "allow"})),
        annotations: Ok(Value::Null),
        limits: Limits::default(),
    };
    assert_eq!(plain().compare(), Ok("allow".to_owned()));
    let transform = |path: &str, value: Value| {
        Some(json!({"decision": "transform", "transform": {"path": path, "value": value}}))
    };
    let mut strict = plain();
    strict.manifest["metadata"] = json!("text");
    let root = Case {
        policy: transform("$.input", json!(1)),
        ..plain()
    };
    let both = Case {
        policy: transform("$policy_target", json!("abcdefgh")),
        evaluate_only: true,
        limits: Limits {
            max_snapshot_bytes: 15,
            ..Limits::default()
        },
        ..plain()
    };
    let mut input = Case {
        annotations: Ok(json!([[1]])),
        limits: Limits {
            max_policy_input_depth: 3,
            ..Limits::default()
        },
        ..plain()
    };
    input.manifest["intervention_points"]["input"]["annotations"] = json!({"a": {"from": "$"}});
    for (case, name) in [
        (root, "transform_root"),
        (strict, "manifest_strict"),
        (both, "transform_limits_in_both_modes"),
        (input, "failed_input"),
    ] {
        assert!(case.compare().is_err(), "{name}");
        assert_eq!(case.listed(), Some(name), "{case:?}");
    }
    assert_eq!(DIFFERENCES.len(), 4);
}

#[test]
fn paths_agree() {
    let mut random = Random(7);
    for _ in 0..cases() {
        let text = random.path_text();
        let ours = text.parse::<countersign_policy::path::Path>();
        let theirs = core::JsonPath::parse_with_snapshot_alias(&text);
        assert_eq!(
            ours.is_ok(),
            theirs.is_ok(),
            "{text:?}: {ours:?} {theirs:?}"
        );
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            assert_eq!(ours.segments().len(), theirs.segments().len(), "{text:?}");
        }
    }
}

#[test]
fn canonical_texts_agree() {
    let mut random = Random(11);
    for _ in 0..cases() {
        let value = random.value(4);
        let text = value.to_string();
        let ours = Json::admit(text.as_bytes(), &countersign_canon::Limits::plan()).unwrap();
        let ours = String::from_utf8(ours.to_sorted()).unwrap();
        assert_eq!(ours, core::canonical_json(&value).unwrap(), "{text}");
    }
}

fn cases() -> usize {
    let wanted = std::env::var("COUNTERSIGN_ACS_CASES").ok();
    wanted
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(20_000)
}

fn known(name: &str) -> bool {
    DIFFERENCES.iter().any(|(known, _)| *known == name)
}

#[derive(Debug)]
struct Case {
    manifest: Value,
    point: &'static str,
    snapshot: Value,
    evaluate_only: bool,
    policy: Option<Value>,
    annotations: Result<Value, bool>,
    limits: Limits,
}

/// What came out, in the words of both.
#[derive(Debug, PartialEq)]
struct Outcome {
    decision: String,
    reason: Option<String>,
    message: Option<String>,
    transformed: Option<Value>,
    input: Option<Value>,
    identities: Option<(String, String)>,
    labels: Vec<String>,
    evidence: Option<Value>,
}

impl Case {
    fn new(random: &mut Random) -> Self {
        let point = random.pick(&POINTS);
        Self {
            manifest: random.manifest(point),
            point: match random.one_in(12) {
                true => random.pick(&POINTS),
                false => point,
            },
            snapshot: random.snapshot(),
            evaluate_only: random.one_in(5),
            policy: (!random.one_in(15)).then(|| random.policy_output()),
            annotations: match random.below(8) {
                0 => Err(random.one_in(2)),
                1 => Ok(json!({"x": [{"reason": "runtime_error:x"}]})),
                _ => Ok(random.value(2)),
            },
            limits: random.limits(),
        }
    }

    /// The outcome that both agree on.
    fn compare(&self) -> Result<String, String> {
        let (ours, theirs) = (self.ours(), self.theirs());
        match ours == theirs {
            true => Ok(ours
                .reason
                .clone()
                .filter(|reason| reason.starts_with("runtime_error:"))
                .unwrap_or(ours.decision)),
            false => Err(format!("ours {ours:#?}\ntheirs {theirs:#?}")),
        }
    }

    fn ours(&self) -> Outcome {
        let text = self.manifest.to_string();
        let manifest = match Manifest::read(text.as_bytes()) {
            Ok(manifest) => manifest,
            Err(error) => return Outcome::refused(error.reserved().as_str()),
        };
        let runtime = Runtime::new(manifest, Ours(self.policy.as_ref().map(to_json)))
            .with_annotators(
                Ours(Some(to_json(
                    self.annotations.as_ref().unwrap_or(&Value::Null),
                )))
                .failing(self.annotations.as_ref().err().copied()),
            )
            .with_limits(self.limits);
        let snapshot = to_json(&self.snapshot);
        let mode = match self.evaluate_only {
            true => Mode::EvaluateOnly,
            false => Mode::Enforce,
        };
        let point: Point = self.point.parse().unwrap();
        let found = runtime.evaluate(point, &snapshot, mode);
        let verdict = found.verdict();
        let wire = found.to_json();
        Outcome {
            decision: verdict.decision().to_string(),
            reason: verdict.reason().map(str::to_owned),
            message: verdict.message().map(str::to_owned),
            transformed: found.transformed().map(to_value),
            input: found.input().map(|input| to_value(&input.to_json())),
            identities: found
                .identities()
                .map(|both| (both.input.to_string(), both.enforced.to_string())),
            labels: verdict.result_labels().to_vec(),
            evidence: wire.get("verdict").unwrap().get("evidence").map(to_value),
        }
    }

    fn theirs(&self) -> Outcome {
        let invalid = || Outcome::refused("runtime_error:manifest_invalid");
        let Ok(manifest) = core::Manifest::from_json_str(&self.manifest.to_string()) else {
            return invalid();
        };
        let runtime = core::Runtime::with_limits(
            manifest,
            Arc::new(Theirs(
                self.annotations.clone().ok(),
                self.annotations.clone().err(),
            )),
            Arc::new(Theirs(self.policy.clone(), None)),
            limits(&self.limits),
        );
        let Ok(runtime) = runtime else {
            return invalid();
        };
        let mode = match self.evaluate_only {
            true => core::EnforcementMode::EvaluateOnly,
            false => core::EnforcementMode::Enforce,
        };
        let found = runtime.evaluate_intervention_point(core::InterventionPointRequest {
            intervention_point: self.point.parse().unwrap(),
            snapshot: self.snapshot.clone(),
            mode,
        });
        let verdict = serde_json::to_value(&found.verdict).unwrap();
        Outcome {
            decision: found.verdict.decision.to_string(),
            // Their message of a failed annotation goes on with details of the host.
            message: match found.verdict.reason.as_deref() {
                Some("runtime_error:annotation_failed") => Some(BLOCKED.to_owned()),
                _ => found.verdict.message,
            },
            reason: found.verdict.reason,
            transformed: found.transformed_policy_target,
            input: found.policy_input,
            identities: found.input_identity.zip(found.enforced_identity),
            labels: found.verdict.result_labels,
            evidence: verdict.get("evidence").cloned(),
        }
    }

    /// The entry of the list that a difference falls under.
    fn listed(&self) -> Option<&'static str> {
        let (ours, theirs) = (self.ours(), self.theirs());
        let reason = |outcome: &Outcome| outcome.reason.clone().unwrap_or_default();
        let (our, their) = (reason(&ours), reason(&theirs));
        let transform = || {
            self.policy
                .as_ref()?
                .get("transform")?
                .get("path")?
                .as_str()
        };
        if our == "runtime_error:transform_target_forbidden"
            && their == "runtime_error:policy_output_invalid"
            && transform().is_some_and(|path| path == "$" || path.starts_with("$."))
        {
            return Some("transform_root");
        }
        if our == "runtime_error:manifest_invalid" {
            let is_odd =
                self.manifest["metadata"].is_string() || self.manifest.to_string().contains("null");
            return is_odd.then_some("manifest_strict");
        }
        if self.evaluate_only
            && our == "runtime_error:resource_limit_exceeded"
            && theirs.decision == "transform"
        {
            return Some("transform_limits_in_both_modes");
        }
        let same_but_input = Outcome {
            input: None,
            ..ours
        } == Outcome {
            input: None,
            ..theirs
        };
        if same_but_input && our == "runtime_error:resource_limit_exceeded" {
            return Some("failed_input");
        }
        None
    }
}

impl Outcome {
    fn refused(reason: &str) -> Self {
        Self {
            decision: "deny".to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(BLOCKED.to_owned()),
            transformed: None,
            input: None,
            identities: None,
            labels: Vec::new(),
            evidence: None,
        }
    }
}

struct Ours(Option<Json>);

impl Ours {
    fn failing(self, how: Option<bool>) -> Failing {
        Failing(self, how)
    }
}

impl Dispatch for Ours {
    fn dispatch(&self, _: &PolicyCall<'_>) -> Result<Json, DispatchError> {
        let answer = self.0.clone();
        answer.ok_or_else(|| DispatchError::Failed("as told".to_owned()))
    }
}

/// How an annotator fails: in time, or not.
struct Failing(Ours, Option<bool>);

impl Annotate for Failing {
    fn annotate(&self, _: &AnnotatorCall<'_>) -> Result<Json, AnnotationError> {
        match self.1 {
            Some(true) => Err(AnnotationError::TimedOut("as told".to_owned())),
            Some(false) => Err(AnnotationError::Failed("as told".to_owned())),
            None => Ok(self.0.0.clone().unwrap()),
        }
    }
}

struct Theirs(Option<Value>, Option<bool>);

impl core::PolicyDispatcher for Theirs {
    fn evaluate(&self, _: &core::PreparedPolicyInvocation) -> Result<Value, core::RuntimeError> {
        let answer = self.0.clone();
        answer.ok_or_else(|| core::RuntimeError::PolicyInvocationFailed("as told".to_owned()))
    }
}

impl core::AnnotatorDispatcher for Theirs {
    fn dispatch(
        &self,
        _: &str,
        _: &core::AnnotatorInvocation,
        _: &Value,
    ) -> Result<Value, core::RuntimeError> {
        match self.1 {
            Some(true) => Err(core::RuntimeError::AnnotationTimeout("as told".to_owned())),
            Some(false) => Err(core::RuntimeError::AnnotationFailed("as told".to_owned())),
            None => Ok(self.0.clone().unwrap()),
        }
    }
}

fn limits(ours: &Limits) -> core::Limits {
    core::Limits {
        max_snapshot_bytes: ours.max_snapshot_bytes,
        max_policy_input_depth: ours.max_policy_input_depth,
        max_annotators_per_point: ours.max_annotators_per_point,
        max_annotator_output_bytes: ours.max_annotator_output_bytes,
        max_policy_output_bytes: ours.max_policy_output_bytes,
        ..core::Limits::default()
    }
}

fn to_json(value: &Value) -> Json {
    let text = value.to_string();
    Json::admit(text.as_bytes(), &countersign_canon::Limits::plan()).unwrap()
}

fn to_value(json: &Json) -> Value {
    serde_json::from_slice(&json.to_sorted()).unwrap()
}

const BLOCKED: &str = "Request blocked by Agent Control Specification.";
