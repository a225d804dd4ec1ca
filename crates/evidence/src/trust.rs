//! A score of how far a run can be trusted, in twelve dimensions.
//!
//! Three rules keep it honest. Evidence that nobody signed, that contradicts itself or that was cut is
//! not graded, however good it looks. A denial that held is what policies are for, so it costs nothing;
//! what ran against its decision does. And all records count, not the last one: what is not known is
//! listed as missing, and never counts as good.

use std::collections::BTreeMap;

use countersign_canon::{Json, Number};

use crate::aep::{Authenticity, Checked, Continuity, Decision, Judged, Record};
use crate::envelope::{ObservedResult, observed};
use crate::word::{Word, words};

words! {
    /// What is scored.
    Dimension {
        /// The task was done. Given.
        TaskSuccess = "task_success",
        /// What changed something left evidence.
        EvidenceCompleteness = "evidence_completeness",
        /// What ran was allowed, and what was denied did not run.
        PolicyCompliance = "policy_compliance",
        /// Budgets with a limit were kept.
        BudgetCompliance = "budget_compliance",
        /// Verifiers passed.
        VerifierAgreement = "verifier_agreement",
        /// The benchmark can be trusted. Given.
        BenchmarkTrust = "benchmark_trust",
        /// Tools came from where they should. Given.
        SupplyChainIntegrity = "supply_chain_integrity",
        /// A replay gives the same. Given.
        ReplayDeterminism = "replay_determinism",
        /// Training data did not leak. Given.
        ContaminationResistance = "contamination_resistance",
        /// Tools were not misused. Given.
        ToolMisuseResistance = "tool_misuse_resistance",
        /// Redaction removed what it should. Given.
        RedactionQuality = "redaction_quality",
        /// The runtime was isolated. Given.
        RuntimeIsolationLevel = "runtime_isolation_level",
    }
}

/// Values that no record holds, from 0 to 1.
#[derive(Clone, Debug, Default)]
pub struct Inputs(BTreeMap<Dimension, f64>);

/// Why an input was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// No such dimension.
    #[error("`{0}` is no dimension of trust")]
    Unknown(String),
    /// One that records tell.
    #[error("`{0}` is worked out from the records")]
    WorkedOut(&'static str),
    /// Out of range.
    #[error("`{0}` must be a number from 0 to 1")]
    Range(&'static str),
}

impl Inputs {
    /// Adds a value.
    pub fn add(&mut self, name: &str, value: f64) -> Result<(), InputError> {
        let dimension =
            Dimension::named(name).ok_or_else(|| InputError::Unknown(name.to_owned()))?;
        if WORKED_OUT.contains(&dimension) {
            return Err(InputError::WorkedOut(dimension.as_str()));
        }
        if !(0.0..=1.0).contains(&value) {
            return Err(InputError::Range(dimension.as_str()));
        }
        self.0.insert(dimension, value);
        Ok(())
    }
}

/// A score.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Each dimension; `None` where its input is missing.
    pub dimensions: Vec<(Dimension, Option<f64>)>,
    /// The geometric mean of what is known; `None` where the evidence cannot be graded.
    pub overall: Option<f64>,
    /// `A` to `F`, or `ungraded`.
    pub grade: &'static str,
    /// Why it is not graded.
    pub against: Vec<&'static str>,
}

/// Scores the records of one file, as they were checked.
pub fn score(records: &[Record], checked: &Checked, inputs: &Inputs) -> Score {
    let values: Vec<&Json> = records.iter().filter_map(Record::json).collect();
    let mut tally = Tally::default();
    for record in &values {
        tally.record(record);
    }
    let dimensions: Vec<_> = Dimension::ALL
        .iter()
        .map(|dimension| {
            let value = match dimension {
                Dimension::EvidenceCompleteness => tally.evidence.share(),
                Dimension::PolicyCompliance => tally.policy.share(),
                Dimension::BudgetCompliance => tally.budgets.share(),
                Dimension::VerifierAgreement => tally.verifiers.share(),
                given => inputs.0.get(given).copied(),
            };
            (*dimension, value)
        })
        .collect();
    let against = against(checked);
    let known: Vec<f64> = dimensions.iter().filter_map(|(_, value)| *value).collect();
    let overall = (against.is_empty() && !known.is_empty()).then(|| mean(&known));
    Score {
        grade: overall.map_or("ungraded", |overall| grade(overall, known.len())),
        dimensions,
        overall,
        against,
    }
}

impl Score {
    /// The score as a value.
    pub fn to_json(&self) -> Json {
        let dimensions = self.dimensions.iter();
        let missing = dimensions.clone().filter(|(_, value)| value.is_none());
        let missing = missing.map(|(dimension, _)| Json::from(dimension.as_str()));
        let against = self.against.iter().map(|reason| Json::from(*reason));
        Json::object([
            (
                "dimensions",
                Json::object(dimensions.map(|(name, value)| (name.as_str(), rounded(*value)))),
            ),
            ("overall", rounded(self.overall)),
            ("grade", Json::from(self.grade)),
            ("missing", Json::Array(missing.collect())),
            ("against", Json::Array(against.collect())),
        ])
    }
}

/// What makes evidence worthless, whatever it says.
fn against(checked: &Checked) -> Vec<&'static str> {
    let records = &checked.records;
    let mut against = Vec::new();
    if records.is_empty() {
        against.push("there is no record");
    }
    if records.iter().any(|record| {
        !record.structure.holds() || !record.semantics.as_ref().is_some_and(Judged::holds)
    }) {
        against.push("a record is malformed or contradicts itself");
    }
    let signed =
        |authenticity: &Option<Authenticity>| matches!(authenticity, Some(Authenticity::Valid(_)));
    if !records.iter().all(|record| signed(&record.authenticity)) {
        against.push("a record is not signed by a key that was given");
    }
    match checked.chain.continuity {
        Some(Continuity::Intact) => {}
        Some(Continuity::NotPresent) if records.len() < 2 => {}
        _ => against.push("the chain is not intact"),
    }
    against
}

/// How many of how many.
#[derive(Default)]
struct Ratio {
    good: u64,
    all: u64,
}

impl Ratio {
    fn count(&mut self, good: bool) {
        self.all += 1;
        self.good += u64::from(good);
    }

    fn share(&self) -> Option<f64> {
        (self.all > 0).then(|| self.good as f64 / self.all as f64)
    }
}

#[derive(Default)]
struct Tally {
    evidence: Ratio,
    policy: Ratio,
    budgets: Ratio,
    verifiers: Ratio,
}

impl Tally {
    fn record(&mut self, record: &Json) {
        for action in items(record, "actions") {
            self.action(action);
        }
        for result in items(record, "verifier_results") {
            self.verifiers
                .count(result.get("passed").and_then(Json::as_bool) == Some(true));
        }
        let budgets = record.get("budget_ledger").and_then(Json::as_object);
        for (_, budget) in budgets.into_iter().flat_map(|budgets| budgets.iter()) {
            let number = |names: [&str; 2]| {
                let number = names.iter().find_map(|name| budget.get(name));
                number.and_then(Json::as_number).and_then(Number::as_f64)
            };
            let (limit, spent) = (
                number(["limit", "limit_ms"]),
                number(["spent", "actual_ms"]),
            );
            if let (Some(limit), Some(spent)) = (limit, spent) {
                self.budgets.count(spent <= limit);
            }
        }
    }

    fn action(&mut self, action: &Json) {
        let result = observed(action);
        let ran = matches!(
            result,
            Some(ObservedResult::Success | ObservedResult::Failure)
        ) || action.get("result_digest").is_some();
        let decision = action.get("capability_decision");
        let decision = decision
            .and_then(|it| it.get("decision"))
            .and_then(Json::as_str);
        match decision.and_then(Decision::named) {
            // A denial that held is what policies are for.
            Some(Decision::Deny) => self.policy.count(action.get("result_digest").is_none()),
            Some(_) => self.policy.count(true),
            // It ran, and nothing says that it might.
            None if ran => self.policy.count(false),
            None => {}
        }
        let changes = action.get("state_changing").and_then(Json::as_bool) == Some(true);
        if ran && changes {
            let referred = !items(action, "evidence_refs").is_empty();
            self.evidence
                .count(referred || action.get("result_digest").is_some());
        }
    }
}

fn items<'a>(json: &'a Json, name: &str) -> &'a [Json] {
    json.get(name).and_then(Json::as_array).unwrap_or_default()
}

/// Geometric: one dimension that is nought cannot be made up for.
fn mean(known: &[f64]) -> f64 {
    let product: f64 = known.iter().product();
    product.powf(1.0 / known.len() as f64)
}

fn grade(overall: f64, known: usize) -> &'static str {
    match overall {
        overall if overall >= 0.9 && known >= 6 => "A",
        overall if overall >= 0.75 && known >= 4 => "B",
        overall if overall >= 0.6 => "C",
        overall if overall >= 0.4 => "D",
        _ => "F",
    }
}

fn rounded(value: Option<f64>) -> Json {
    let number = value.and_then(|value| Number::from_f64((value * 1e4).round() / 1e4));
    Json::from(number)
}

const WORKED_OUT: &[Dimension] = &[
    Dimension::EvidenceCompleteness,
    Dimension::PolicyCompliance,
    Dimension::BudgetCompliance,
    Dimension::VerifierAgreement,
];
