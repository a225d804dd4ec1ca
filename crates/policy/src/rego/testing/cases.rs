//! Cases as data: a request, and what must be answered.

use countersign_canon::Json;

use crate::whatif::Answer;

/// One case.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// The `{event, snapshot, manifest}` object.
    pub request: Json,
    expect: Json,
}

/// Why cases cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaseError {
    /// The document is no list of cases.
    #[error("there is no array `cases`")]
    NoCases,
    /// A case lacks something.
    #[error("case {number}: `{member}` is missing or malformed")]
    Member {
        /// Which case, from 1.
        number: usize,
        /// What is missing.
        member: &'static str,
    },
    /// A case expects something that no answer has, so that it would always pass.
    #[error("case `{id}`: `expect` must name one or more of {}", EXPECTED.join(", "))]
    Expectation {
        /// Which case.
        id: String,
    },
}

/// Reads `{"cases": [{"id", "request", "expect"}]}`.
pub fn cases(document: &Json) -> Result<Vec<Case>, CaseError> {
    let cases = document.get("cases").and_then(Json::as_array);
    let cases = cases.ok_or(CaseError::NoCases)?;
    cases
        .iter()
        .zip(1..)
        .map(|(case, number)| read(case, number))
        .collect()
}

fn read(case: &Json, number: usize) -> Result<Case, CaseError> {
    let missing = |member| CaseError::Member { number, member };
    let id = case
        .get("id")
        .and_then(Json::as_str)
        .ok_or(missing("id"))?
        .to_owned();
    let request = case.get("request").ok_or(missing("request"))?.clone();
    let expect = case.get("expect").ok_or(missing("expect"))?.clone();
    let members = expect.as_object().ok_or(missing("expect"))?;
    match !members.is_empty() && members.iter().all(|(name, _)| EXPECTED.contains(&name)) {
        true => Ok(Case {
            id,
            request,
            expect,
        }),
        false => Err(CaseError::Expectation { id }),
    }
}

impl Case {
    /// What of the answer is not as expected.
    pub fn failure(&self, answer: &Answer) -> Option<String> {
        let answer = answer.to_json();
        let wrong: Vec<String> = self
            .expect
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, expected)| !fits(name, expected, &answer))
            .map(|(name, expected)| format!("expected {name} {}", text(expected)))
            .collect();
        (!wrong.is_empty()).then(|| format!("{}, found {}", wrong.join(" and "), text(&answer)))
    }
}

fn fits(name: &str, expected: &Json, answer: &Json) -> bool {
    match name {
        "outcome_not" => answer.get("outcome") != Some(expected),
        name => answer.get(name) == Some(expected),
    }
}

fn text(json: &Json) -> String {
    String::from_utf8(json.to_sorted_ascii()).unwrap_or_default()
}

const EXPECTED: [&str; 4] = ["outcome", "outcome_not", "reason", "constraints"];
