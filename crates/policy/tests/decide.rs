//! The stateless question, case by case.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use countersign_canon::{Json, Limits};
use countersign_policy::whatif::decide;

const CASES: &str = include_str!("../../../corpus/policy/decide.json");

#[test]
fn every_case_of_the_corpus() {
    let corpus = Json::admit(CASES.as_bytes(), &Limits::plan()).unwrap();
    let cases = corpus.get("cases").unwrap().as_array().unwrap();
    assert!(cases.len() >= 39);
    let mut wrong = Vec::new();
    for case in cases {
        let answer = decide(case.get("request").unwrap());
        let expect = case.get("expect").unwrap();
        let text = |name: &str| expect.get(name).and_then(Json::as_str);
        let fits = text("outcome").is_none_or(|outcome| outcome == answer.outcome())
            && text("outcome_not").is_none_or(|outcome| outcome != answer.outcome())
            && text("reason").is_none_or(|reason| reason == answer.reason)
            && expect.get("constraints").is_none_or(|constraints| {
                answer.constraints.is_some_and(|found| {
                    constraints.get("max_output_bytes").and_then(Json::as_u64)
                        == Some(found.max_output_bytes)
                        && constraints.get("timeout_ms").and_then(Json::as_u64)
                            == Some(found.timeout_ms)
                })
            });
        if !fits {
            let id = case
                .get("id")
                .and_then(Json::as_str)
                .unwrap_or_default()
                .to_owned();
            wrong.push(format!("{id}: {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
