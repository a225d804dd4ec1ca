//! The cases that come with the published core, read from where cargo has put its source.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use countersign_acs::{
    Annotate, AnnotationError, AnnotatorCall, Dispatch, DispatchError, Manifest, Mode, PolicyCall,
    Runtime,
};
use countersign_canon::Json;
use serde_json::Value;

use crate::{to_json, to_value};

#[test]
fn every_case_of_the_core_holds() {
    let folder = source().join("tests/fixtures/cases");
    let files = std::fs::read_dir(&folder).unwrap();
    let mut cases: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() >= 14, "{}", cases.len());
    let mut evaluations = 0;
    for file in cases {
        let case: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let name = file.display().to_string();
        let manifest = Manifest::read(case["manifest_yaml"].as_str().unwrap().as_bytes());
        if case["case_kind"] == "manifest" {
            assert_eq!(manifest.is_ok(), case["expect_valid"] == true, "{name}");
            if let (Err(error), Some(reason)) = (&manifest, case["expected_error_reason"].as_str())
            {
                assert_eq!(error.reserved().as_str(), reason, "{name}");
            }
            continue;
        }
        // An annotator that nobody declares is no manifest of the specification.
        let Ok(manifest) = manifest else {
            panic!("{name}: {:?}", manifest.err());
        };
        for evaluation in case["evaluations"].as_array().unwrap() {
            evaluations += 1;
            check(manifest.clone(), &case, evaluation, &name);
        }
    }
    assert!(evaluations > 20, "{evaluations}");
}

fn check(manifest: Manifest, case: &Value, evaluation: &Value, file: &str) {
    let name = format!("{file}: {}", evaluation["name"]);
    let host = Host {
        annotations: case["annotation_responses"].clone(),
        policy: evaluation["policy_response"].clone(),
        seen: Arc::default(),
    };
    let seen = Arc::clone(&host.seen);
    let runtime = Runtime::new(manifest, host.clone()).with_annotators(host);
    let point = evaluation["intervention_point"].as_str().unwrap();
    let mode = match evaluation["mode"].as_str() {
        Some("evaluate_only") => Mode::EvaluateOnly,
        _ => Mode::Enforce,
    };
    let snapshot = to_json(&evaluation["snapshot"]);
    let found = runtime.evaluate(point.parse().unwrap(), &snapshot, mode);
    let expected = &evaluation["expected"];
    let said = to_value(&found.to_json());
    assert_eq!(said["verdict"], expected["verdict"], "{name}");
    assert_eq!(said["policy_input"], expected["policy_input"], "{name}");
    assert_eq!(
        found.transformed().map(to_value).unwrap_or_default(),
        expected["transformed_policy_target"],
        "{name}"
    );
    let seen = seen.lock().unwrap();
    assert_eq!(seen.policy, expected["policy_invoked"] == true, "{name}");
    let calls = expected["annotation_calls"].as_array();
    let calls: Vec<(String, Value)> = calls
        .into_iter()
        .flatten()
        .map(|call| {
            let annotator = call["annotator_name"].as_str().unwrap().to_owned();
            (annotator, call["preliminary_policy_input"].clone())
        })
        .collect();
    assert_eq!(seen.annotators, calls, "{name}");
}

/// Answers as a case says, and remembers what it was asked.
#[derive(Clone)]
struct Host {
    annotations: Value,
    policy: Value,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    policy: bool,
    annotators: Vec<(String, Value)>,
}

impl Dispatch for Host {
    fn dispatch(&self, _: &PolicyCall<'_>) -> Result<Json, DispatchError> {
        self.seen.lock().unwrap().policy = true;
        match self.policy.get("ok") {
            Some(answer) => Ok(to_json(answer)),
            None => Err(DispatchError::Failed("as told".to_owned())),
        }
    }
}

impl Annotate for Host {
    fn annotate(&self, call: &AnnotatorCall<'_>) -> Result<Json, AnnotationError> {
        let input = to_value(&call.input.to_json());
        let asked = (call.name.to_owned(), input);
        self.seen.lock().unwrap().annotators.push(asked);
        let answer = &self.annotations[call.name];
        match (answer.get("ok"), answer["error"].as_str()) {
            (Some(answer), _) => Ok(to_json(answer)),
            (None, Some("runtime_error:annotation_timeout")) => {
                Err(AnnotationError::TimedOut("as told".to_owned()))
            }
            _ => Err(AnnotationError::Failed("as told".to_owned())),
        }
    }
}

/// Where the published core lies.
fn source() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let core = packages
        .iter()
        .find(|package| package["name"] == "agent_control_specification_core")
        .unwrap();
    let manifest = Path::new(core["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap().to_owned()
}
