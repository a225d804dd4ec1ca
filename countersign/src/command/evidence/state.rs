//! `countersign evidence state`: digests of state that others can work out again.

use clap::Subcommand;
use countersign_canon::Json;
use countersign_evidence::state::StateDigest;

use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output;

mod browser;
mod files;
mod git;
mod glob;
mod observed;
mod postgres;
mod rows;
mod values;
mod vendor;

pub(crate) use observed::{Observed, States};

/// Which kind of state.
#[derive(Subcommand)]
pub(crate) enum State {
    /// A folder as git would store it
    GitTree(git::GitTree),
    /// Files of a sandbox
    SandboxFs(files::SandboxFs),
    /// Rows of a table of SQLite or PostgreSQL
    DbRowset(rows::DbRowset),
    /// A part of a page, from its HTML
    BrowserDom(browser::BrowserDom),
    /// Values that an operator keeps, as JSON
    KvSnapshot(values::Values),
    /// Values that an agent keeps, as JSON
    MemoryBag(values::Values),
    /// A kind that a vendor describes, from an export
    Other(vendor::Other),
}

impl State {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        output::json(&json(&self.digest()?))?;
        Ok(Exit::Done)
    }

    fn digest(self) -> Result<StateDigest, Failure> {
        let state = match self {
            Self::GitTree(tree) => tree.digest()?,
            Self::SandboxFs(files) => files.digest()?,
            Self::DbRowset(rows) => rows.digest()?,
            Self::BrowserDom(page) => page.digest()?,
            Self::KvSnapshot(values) => values.digest(values::Keeper::Operator)?,
            Self::MemoryBag(values) => values.digest(values::Keeper::Agent)?,
            Self::Other(export) => export.digest()?,
        };
        checked(state)
    }
}

fn json(state: &StateDigest) -> Json {
    let coverage = state.coverage.as_ref();
    Json::object([
        ("digest", Json::from(state.digest.as_str())),
        (
            "state_digest_kind",
            Json::from(coverage.map(|coverage| coverage.kind().as_str())),
        ),
        (
            "state_digest_coverage",
            coverage.map_or(Json::Null, |coverage| coverage.to_json()),
        ),
    ])
}

/// Refuses a coverage that its own kind would refuse.
fn checked(state: StateDigest) -> Result<StateDigest, Failure> {
    let json = json(&state);
    let (_, problems) = StateDigest::read(
        &state.digest,
        json.get("state_digest_kind"),
        json.get("state_digest_coverage"),
    );
    match problems.first() {
        None => Ok(state),
        Some(problem) => Err(failed(problem.to_string())),
    }
}

fn failed(message: impl Into<String>) -> Failure {
    Failure::new(Code::State, message)
}
