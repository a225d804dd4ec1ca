//! What held, and what did not.

use std::collections::{BTreeMap, BTreeSet};

use countersign_canon::Json;

use crate::{badge, junit};

/// What all packs found.
#[derive(Debug, Clone)]
#[must_use]
pub struct Report {
    /// What was asked.
    pub target: String,
    /// When, in RFC 3339.
    pub run_at: String,
    /// Pack by pack.
    pub packs: Vec<PackReport>,
}

/// What one pack found.
#[derive(Debug, Clone)]
pub struct PackReport {
    /// The pack.
    pub name: String,
    /// What it is about.
    pub description: String,
    /// Its requirements.
    pub requirements: BTreeMap<String, String>,
    /// Its cases.
    pub tested: Vec<Tested>,
}

/// How a case went.
#[derive(Debug, Clone)]
pub struct Tested {
    /// The case.
    pub id: String,
    /// Its requirement.
    pub req_id: String,
    /// What it shows.
    pub description: String,
    /// How it went.
    pub outcome: Outcome,
    /// The step that it ended with, counted from 1; 0 is the preparation of the pack.
    pub step: Option<usize>,
    /// What was seen.
    pub detail: String,
    /// Why it is known to fail.
    pub reason: Option<String>,
}

/// How a case went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything came back as it must.
    Passed,
    /// Something did not.
    Failed,
    /// It failed, as it is known to, for the reason that is given.
    ExpectedFailure,
    /// It could not be tried from here.
    Skipped,
}

impl Outcome {
    /// Its name in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "PASS",
            Self::Failed => "FAIL",
            Self::ExpectedFailure => "XFAIL",
            Self::Skipped => "SKIP",
        }
    }
}

impl Report {
    /// Whether nothing failed that was not expected to, and something was tried.
    pub fn is_compliant(&self) -> bool {
        self.count(Outcome::Failed) == 0 && self.count(Outcome::Passed) > 0
    }

    /// How many cases went so.
    pub fn count(&self, outcome: Outcome) -> usize {
        let tested = self.packs.iter().flat_map(|pack| &pack.tested);
        tested.filter(|tested| tested.outcome == outcome).count()
    }

    /// How many cases there are.
    pub fn total(&self) -> usize {
        self.packs.iter().map(|pack| pack.tested.len()).sum()
    }

    /// The requirements that do not hold.
    pub fn violated(&self) -> BTreeSet<&str> {
        self.packs.iter().flat_map(PackReport::violated).collect()
    }

    /// The report as a document.
    pub fn to_json(&self) -> Json {
        let violated = self.violated().into_iter().map(Json::from);
        Json::object([
            ("target", Json::from(self.target.as_str())),
            ("run_at", Json::from(self.run_at.as_str())),
            ("total_tests", Json::from(self.total() as u64)),
            ("passed", self.number(Outcome::Passed)),
            ("failed", self.number(Outcome::Failed)),
            ("expected_failures", self.number(Outcome::ExpectedFailure)),
            ("skipped", self.number(Outcome::Skipped)),
            ("compliant", Json::from(self.is_compliant())),
            ("violated_reqs", Json::Array(violated.collect())),
            ("badge", self.shield()),
            (
                "packs",
                Json::Array(self.packs.iter().map(PackReport::to_json).collect()),
            ),
        ])
    }

    /// The report as JUnit's XML.
    pub fn to_junit(&self) -> String {
        junit::write(self)
    }

    /// A badge, as an SVG image.
    pub fn to_svg(&self) -> String {
        let (message, color) = self.summary();
        badge::svg(&message, color)
    }

    /// A badge, as shields.io reads it from an endpoint.
    pub fn shield(&self) -> Json {
        let (message, color) = self.summary();
        badge::shield(&message, color)
    }

    fn summary(&self) -> (String, badge::Color) {
        let tried = self.total() - self.count(Outcome::Skipped);
        let held = tried - self.count(Outcome::Failed);
        let color = match (self.is_compliant(), self.count(Outcome::Skipped)) {
            (false, _) => badge::Color::Red,
            (true, 0) => badge::Color::Green,
            (true, _) => badge::Color::Yellow,
        };
        (format!("{held}/{tried}"), color)
    }

    fn number(&self, outcome: Outcome) -> Json {
        Json::from(self.count(outcome) as u64)
    }
}

impl PackReport {
    fn violated(&self) -> impl Iterator<Item = &str> {
        let failed = self.tested.iter();
        failed
            .filter(|tested| tested.outcome == Outcome::Failed)
            .map(|tested| tested.req_id.as_str())
    }

    fn to_json(&self) -> Json {
        let requirements = self.requirements.iter().map(|(id, words)| {
            let about = self.tested.iter().filter(|tested| tested.req_id == *id);
            let about: Vec<Outcome> = about.map(|tested| tested.outcome).collect();
            let state = match about.as_slice() {
                all if all.contains(&Outcome::Failed) => "violated",
                all if all.contains(&Outcome::ExpectedFailure) => "known not to hold",
                all if all.contains(&Outcome::Passed) => "holds",
                _ => "not tried",
            };
            Json::object([
                ("req_id", Json::from(id.as_str())),
                ("requirement", Json::from(words.as_str())),
                ("state", Json::from(state)),
            ])
        });
        Json::object([
            ("pack", Json::from(self.name.as_str())),
            ("description", Json::from(self.description.as_str())),
            ("requirements", Json::Array(requirements.collect())),
            (
                "results",
                Json::Array(self.tested.iter().map(Tested::to_json).collect()),
            ),
        ])
    }
}

impl Tested {
    fn to_json(&self) -> Json {
        let mut members = vec![
            ("id", Json::from(self.id.as_str())),
            ("req_id", Json::from(self.req_id.as_str())),
            ("description", Json::from(self.description.as_str())),
            ("status", Json::from(self.outcome.as_str())),
        ];
        if let Some(step) = self.step {
            members.push(("step", Json::from(step as u64)));
        }
        if !self.detail.is_empty() {
            members.push(("detail", Json::from(self.detail.as_str())));
        }
        if let Some(reason) = &self.reason {
            members.push(("expected_failure", Json::from(reason.as_str())));
        }
        Json::object(members)
    }
}
