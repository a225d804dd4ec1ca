//! A state before and after something ran, over one coverage.

use clap::Parser;
use countersign_canon::{Json, Limits};
use countersign_engine::{Watch, Watched};
use countersign_evidence::state::{Comparability, Coverage, Sides, StateDigest, compare_with};

use super::{State, failed};
use crate::errors::Failure;
use crate::output;

/// A state as it was before.
pub(crate) struct Observed {
    words: Vec<String>,
    before: StateDigest,
}

/// Digests the states that a manifest names.
pub(crate) struct States;

impl Watch for States {
    fn before(&self, words: &[String]) -> Result<Box<dyn Watched>, String> {
        match Observed::named(words.to_vec()) {
            Ok(observed) => Ok(Box::new(observed)),
            Err(failure) => Err(failure.message().to_owned()),
        }
    }
}

impl Watched for Observed {
    fn after(self: Box<Self>) -> Json {
        Observed::after(*self)
    }
}

#[derive(Parser)]
#[command(name = "state", no_binary_name = true)]
struct Words {
    #[command(subcommand)]
    state: State,
}

impl Observed {
    /// Digests the state that these words name.
    pub(crate) fn before(words: &str) -> Result<Self, Failure> {
        Self::named(split(words)?)
    }

    fn named(words: Vec<String>) -> Result<Self, Failure> {
        let before = digest(&words)?;
        Ok(Self { words, before })
    }

    /// Digests it again: what records tell of it. What cannot be digested any more, or not so that it may
    /// be compared, is left out; that it was there before is still told.
    pub(crate) fn after(self) -> Json {
        let after = digest(&self.words).map_err(|failure| failure.message().to_owned());
        let after = after.and_then(|after| {
            let vendor = self.before.coverage.as_ref().and_then(vendor);
            let vendors = vendor.as_slice();
            match compare_with(&self.before, &after, Sides::BeforeAndAfter, vendors) {
                Comparability::NotComparable(_) => Err("it is not comparable".to_owned()),
                _ => Ok(after.digest),
            }
        });
        if let Err(why) = &after {
            output::stderr(&format!("countersign: no state after the call: {why}"));
        }
        let coverage = self.before.coverage.as_ref();
        let kind = coverage.map(|coverage| coverage.kind().as_str());
        let members = [
            ("state_digest_kind", Json::from(kind)),
            (
                "state_digest_coverage",
                coverage.map_or(Json::Null, Coverage::to_json),
            ),
            ("pre_state_digest", Json::from(self.before.digest.as_str())),
            ("post_state_digest", Json::from(after.ok())),
        ];
        Json::object(members.into_iter().filter(|(_, value)| !value.is_null()))
    }
}

/// Who asks for a state of a vendor's kind accepts what the vendor says about it.
fn vendor(coverage: &Coverage) -> Option<(&str, &str)> {
    let Coverage::Other(vendor) = coverage else {
        return None;
    };
    Some((
        &vendor.identity.other_kind,
        &vendor.selector.coverage_schema_version,
    ))
}

fn digest(words: &[String]) -> Result<StateDigest, Failure> {
    let parsed = Words::try_parse_from(words);
    let parsed = parsed.map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        failed(format!("state: {}", first.trim_start_matches("error: ")))
    })?;
    parsed.state.digest()
}

/// Words between white space, or a JSON list of them.
fn split(text: &str) -> Result<Vec<String>, Failure> {
    if !text.trim_start().starts_with('[') {
        return Ok(text.split_whitespace().map(str::to_owned).collect());
    }
    let list = Json::admit(text.as_bytes(), &Limits::event())?;
    let words = list.as_array().unwrap_or_default().iter();
    let words = words.map(|word| word.as_str().map(str::to_owned));
    let words: Option<Vec<String>> = words.collect();
    words.ok_or_else(|| failed("state: expected a list of words"))
}
