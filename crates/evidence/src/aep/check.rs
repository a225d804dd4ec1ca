//! Checking the records of one file on all axes.

use countersign_canon::{Json, Limits};

use super::authenticity::{self, Authenticity, Keys};
use super::chain::{self, Chain, Continuity};
use super::finding::{Code, Finding, Judged};
use super::semantics::{self, Runs};
use super::structure;
use super::version::Version;
use crate::word::Word as _;

/// A record as it was given, read if it can be.
#[derive(Clone, Debug)]
pub struct Record {
    json: Result<Json, Finding>,
}

impl Record {
    /// Reads the text of a record, and repairs nothing.
    pub fn read(text: &[u8]) -> Self {
        let json = Json::admit(text, &LIMITS).map_err(|error| {
            let pointer = error.pointer().to_owned();
            Finding::new(Code::Json, pointer, error.to_string())
        });
        Self::of(json)
    }

    /// Takes a value that was read already.
    pub fn from_json(json: Json) -> Self {
        Self::of(Ok(json))
    }

    fn of(json: Result<Json, Finding>) -> Self {
        let json = json.and_then(|json| match json {
            Json::Object(_) => Ok(json),
            _ => Err(Finding::new(Code::NotAnObject, "", "a record is an object")),
        });
        Self { json }
    }

    /// The record, with all its members.
    pub fn json(&self) -> Option<&Json> {
        self.json.as_ref().ok()
    }
}

/// What was found about one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its version, if it is known.
    pub version: Option<Version>,
    /// Its run, if it says.
    pub run_id: Option<String>,
    /// Whether it is well formed.
    pub structure: Judged,
    /// Whether its members agree; `None` where it could not be read.
    pub semantics: Option<Judged>,
    /// Who signed; `None` where it could not be read.
    pub authenticity: Option<Authenticity>,
    /// What is allowed, and worth knowing.
    pub notes: Vec<Finding>,
}

/// What was found about the records of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Checked {
    /// Each record.
    pub records: Vec<Report>,
    /// Their links.
    pub chain: Chain,
    /// Whether keys were given: then a record that nobody of them signed is a failure.
    keyed: bool,
}

/// Checks the records of one file, in their order.
pub fn check(records: &[Record], keys: &Keys) -> Checked {
    let objects: Vec<_> = records
        .iter()
        .map(|record| record.json().and_then(Json::as_object))
        .collect();
    let chain = chain::check(&objects);
    let runs = Runs::of(&objects, &chain);
    let reports = records.iter().enumerate().map(|(index, record)| {
        let object = match &record.json {
            Ok(Json::Object(object)) => object,
            Ok(_) => {
                return unreadable(&Finding::new(
                    Code::NotAnObject,
                    "",
                    "a record is an object",
                ));
            }
            Err(finding) => return unreadable(finding),
        };
        let mut notes = Vec::new();
        let (version, structure) = structure::check(object, &mut notes);
        let authenticity = authenticity::check(object, version, keys, &mut notes);
        Report {
            version,
            run_id: object
                .get("run_id")
                .and_then(Json::as_str)
                .map(str::to_owned),
            structure,
            semantics: Some(semantics::check(index, object, version, &runs, &mut notes)),
            authenticity: Some(authenticity),
            notes,
        }
    });
    Checked {
        records: reports.collect(),
        chain,
        keyed: !keys.is_empty(),
    }
}

fn unreadable(finding: &Finding) -> Report {
    Report {
        version: None,
        run_id: None,
        structure: Judged {
            against: vec![finding.clone()],
        },
        semantics: None,
        authenticity: None,
        notes: Vec::new(),
    }
}

impl Checked {
    /// Whether something is against the file: a record that is malformed, contradicts itself or is
    /// signed wrongly, or a broken link. With keys, a record that none of them signed is one as well.
    pub fn fails(&self) -> bool {
        self.chain.continuity == Some(Continuity::Broken)
            || self.records.is_empty()
            || self.records.iter().any(|record| self.fails_in(record))
    }

    /// The first record that no known key has signed, and why it counts as such.
    pub fn first_not_signed(&self) -> Option<(usize, String)> {
        let mut records = self.records.iter().enumerate();
        records.find_map(|(index, record)| match &record.authenticity {
            Some(Authenticity::Valid(_)) => None,
            Some(other) => {
                let first = other.findings().first().map(|found| found.message.clone());
                Some((
                    index,
                    first.unwrap_or_else(|| "nobody signed it".to_owned()),
                ))
            }
            None => Some((index, "it cannot be read".to_owned())),
        })
    }

    fn fails_in(&self, record: &Report) -> bool {
        !record.structure.holds()
            || !record.semantics.as_ref().is_some_and(Judged::holds)
            || match &record.authenticity {
                Some(Authenticity::Valid(_)) => false,
                // FAIL-CLOSED: taking a signature off must not make a record better.
                Some(Authenticity::Unsigned(_) | Authenticity::NotEvaluated(_)) => self.keyed,
                _ => true,
            }
    }

    /// The findings as a value, record by record; each with the axes of the published contract for
    /// results of verifiers.
    pub fn to_json(&self) -> Json {
        let records = self.records.iter().enumerate();
        let records = records.map(|(index, record)| self.record_json(index, record));
        Json::object([
            ("chain", self.chain_json(None)),
            ("records", Json::Array(records.collect())),
        ])
    }

    fn record_json(&self, index: usize, record: &Report) -> Json {
        let chain = self.chain_json(Some(index));
        Json::object([
            ("index", Json::from(index as u64)),
            (
                "schema_version",
                Json::from(record.version.map(|version| version.text())),
            ),
            ("run_id", Json::from(record.run_id.clone())),
            ("fails", Json::from(self.fails_in(record))),
            ("structural", judged(Some(&record.structure))),
            ("semantic", judged(record.semantics.as_ref())),
            (
                "authenticity",
                authenticity_json(record.authenticity.as_ref()),
            ),
            ("chain", chain),
            // Nothing inside records can show that none was left out.
            ("capture", Json::object([("evaluated", Json::Bool(false))])),
            ("notes", list(&record.notes)),
        ])
    }

    fn chain_json(&self, of: Option<usize>) -> Json {
        let findings = self.chain.findings.iter();
        let findings = findings.filter(|(index, _)| of.is_none_or(|of| of == *index));
        let findings: Vec<Json> = findings
            .map(|(index, finding)| {
                let mut json = finding.to_json();
                if let Some(members) = json.as_object_mut() {
                    members.insert("index".to_owned(), Json::from(*index as u64));
                }
                json
            })
            .collect();
        axis(
            self.chain.continuity.map(Continuity::as_str),
            Json::Array(findings),
            Vec::new(),
        )
    }
}

fn judged(judged: Option<&Judged>) -> Json {
    let status = judged.map(|judged| match judged.holds() {
        true => "pass",
        false => "fail",
    });
    let against = judged.map_or(&[][..], |judged| &judged.against);
    axis(status, list(against), Vec::new())
}

fn authenticity_json(authenticity: Option<&Authenticity>) -> Json {
    let mut more = Vec::new();
    if let Some(Authenticity::Valid(signed)) = authenticity {
        more.push(("key_id", Json::from(signed.key_id.as_str())));
        more.push(("profile", Json::from(signed.profile.as_str())));
        more.push(("canonical", Json::from(signed.order.as_str())));
        if let Some(binding) = signed.binding {
            more.push(("binding", Json::from(binding.as_str())));
        }
    }
    let status = authenticity.and_then(Authenticity::status);
    let findings = authenticity.map_or(&[][..], Authenticity::findings);
    axis(status, list(findings), more)
}

/// An axis that was not evaluated has no status.
fn axis(status: Option<&'static str>, reasons: Json, more: Vec<(&'static str, Json)>) -> Json {
    let mut members = vec![
        ("evaluated", Json::Bool(status.is_some())),
        ("reasons", reasons),
    ];
    members.extend(status.map(|status| ("status", Json::from(status))));
    members.extend(more);
    Json::object(members)
}

fn list(findings: &[Finding]) -> Json {
    Json::Array(findings.iter().map(Finding::to_json).collect())
}

const LIMITS: Limits = Limits {
    max_bytes: 64 << 20,
    ..Limits::event()
};
