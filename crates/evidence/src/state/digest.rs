//! A digest of state as a record carries it.

use countersign_canon::{Json, Object};

use super::coverage::{Coverage, Kind};
use super::members::CoverageProblem;
use crate::word::Word as _;

/// A digest of state with what is known of its coverage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDigest {
    /// The digest, as it is written.
    pub digest: String,
    /// What it covers; `None` where the record does not say, or not in a way that can be read.
    pub coverage: Option<Coverage>,
    /// Members of the coverage that nobody knows.
    pub unknown: Object,
}

impl StateDigest {
    /// A digest whose coverage was made here.
    pub fn new(digest: impl Into<String>, coverage: Coverage) -> Self {
        Self {
            digest: digest.into(),
            coverage: Some(coverage),
            unknown: Object::default(),
        }
    }

    /// A digest as an action of a record carries it, and what is wrong with its coverage.
    pub fn read(
        digest: &str,
        kind: Option<&Json>,
        coverage: Option<&Json>,
    ) -> (Self, Vec<CoverageProblem>) {
        let mut state = Self {
            digest: digest.to_owned(),
            coverage: None,
            unknown: Object::default(),
        };
        let kind = kind.and_then(Json::as_str).and_then(Kind::named);
        let coverage = coverage.and_then(Json::as_object);
        let (Some(kind), Some(coverage)) = (kind, coverage) else {
            return (state, Vec::new());
        };
        match Coverage::read(kind, coverage) {
            Ok((coverage, unknown)) => {
                state.coverage = Some(coverage);
                state.unknown = unknown;
                (state, Vec::new())
            }
            Err(problems) => (state, problems),
        }
    }

    /// The algorithm that the text names, or how long its digits are, if it is only digits.
    pub(super) fn algorithm(&self) -> String {
        let prefix = self.digest.split_once([':', '-']);
        match prefix {
            Some((name, _)) => name.to_ascii_lowercase(),
            // Bare digits of this length are what `sha256:` stands before.
            None if self.digest.len() == 64 => "sha256".to_owned(),
            None => format!("{} digits", self.digest.len()),
        }
    }
}
