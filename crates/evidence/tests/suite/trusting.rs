//! The score: what it punishes, what it does not, and what it admits not to know.

use countersign_canon::Json;
use countersign_evidence::aep::{Form, Keys, Record, check};
use countersign_evidence::trust::{Dimension, InputError, Inputs, Score, score};

use crate::corpus::{remove, set};
use crate::written::{keys, written};

fn scored(records: Vec<Json>, keys: &Keys, inputs: &[(&str, f64)]) -> Score {
    let records: Vec<Record> = records.into_iter().map(Record::from_json).collect();
    let mut given = Inputs::default();
    for (name, value) in inputs {
        given.add(name, *value).unwrap();
    }
    score(&records, &check(&records, keys), &given)
}

fn value(score: &Score, dimension: Dimension) -> Option<f64> {
    let mut dimensions = score.dimensions.iter();
    dimensions.find(|(it, _)| *it == dimension).unwrap().1
}

#[test]
fn denials_that_held_cost_nothing() {
    let score = scored(written(Form::Inline), &keys(), &[]);
    assert_eq!(value(&score, Dimension::PolicyCompliance), Some(1.0));
    assert_eq!(value(&score, Dimension::EvidenceCompleteness), Some(1.0));
    assert_eq!(score.overall, Some(1.0));
    // Two dimensions are too few for a good grade.
    assert_eq!(score.grade, "C");
}

#[test]
fn what_nobody_signed_is_not_graded() {
    let unsigned = scored(written(Form::Inline), &Keys::default(), &[]);
    assert_eq!((unsigned.overall, unsigned.grade), (None, "ungraded"));
    let mut records = written(Form::Inline);
    remove(&mut records[3], "/signature");
    assert_eq!(scored(records, &keys(), &[]).grade, "ungraded");
    let mut records = written(Form::Inline);
    records.remove(2);
    let cut = scored(records, &keys(), &[]);
    assert!(cut.against.contains(&"the chain is not intact"));
    assert_eq!(scored(Vec::new(), &keys(), &[]).grade, "ungraded");
}

#[test]
fn what_ran_against_its_decision_counts_against_it() {
    let mut records = written(Form::Inline);
    set(&mut records[7], "/actions/0/result_digest", Json::from("x"));
    let score = scored(records, &keys(), &[]);
    assert_eq!(value(&score, Dimension::PolicyCompliance), Some(8.0 / 9.0));
}

#[test]
fn every_record_counts_and_what_is_not_known_is_missing() {
    let mut records = written(Form::Inline);
    let verifier = |passed| {
        let result = Json::object([
            ("verifier_id", Json::from("v")),
            ("passed", Json::Bool(passed)),
        ]);
        Json::Array(vec![result])
    };
    set(&mut records[0], "/verifier_results", verifier(false));
    set(&mut records[1], "/verifier_results", verifier(true));
    let score = scored(records, &keys(), &[("task_success", 1.0)]);
    assert_eq!(value(&score, Dimension::VerifierAgreement), Some(0.5));
    assert_eq!(value(&score, Dimension::TaskSuccess), Some(1.0));
    let missing = score.to_json();
    let missing = missing.get("missing").and_then(Json::as_array).unwrap();
    assert_eq!(missing.len(), 8);
    assert!(missing.contains(&Json::from("budget_compliance")));
}

#[test]
fn inputs_are_known_given_and_in_range() {
    let mut inputs = Inputs::default();
    let unknown = InputError::Unknown("luck".to_owned());
    assert_eq!(inputs.add("luck", 1.0), Err(unknown));
    let told = InputError::WorkedOut("policy_compliance");
    assert_eq!(inputs.add("policy_compliance", 1.0), Err(told));
    let range = Err(InputError::Range("task_success"));
    assert_eq!(inputs.add("task_success", 1.1), range);
    assert_eq!(inputs.add("task_success", f64::NAN), range);
}
