//! `countersign policy`

use clap::Subcommand;
use countersign_policy::rego::Source;

use crate::errors::Failure;
use crate::exit::Exit;
use crate::input;
use crate::output::Format;

mod call;
mod check;
mod decide;
mod eval;
mod explain;
mod promote;
mod selection;
mod test;

pub(crate) use test::tested;

/// Policies.
#[derive(Subcommand)]
pub(crate) enum Policy {
    /// Answer questions: {event, snapshot, manifest} in, one verdict a line out
    Decide(decide::Decide),
    /// Compile policies and the built-in rules
    Check(check::Check),
    /// Say what would be decided about one call
    Eval(eval::Eval),
    /// Say why: the rule, its line, what it saw, and what would change the verdict
    Explain(explain::Explain),
    /// Run the tests of policies
    Test(test::Test),
    /// Let the policies in the shadow decide, at a daemon; or undo it
    Promote(promote::Promote),
}

impl Policy {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::Decide(decide) => decide.run(),
            Self::Check(check) => check.run(format),
            Self::Eval(eval) => eval.run(format),
            Self::Explain(explain) => explain.run(format),
            Self::Test(test) => test.run(format),
            Self::Promote(promote) => promote.run(format),
        }
    }
}

/// A policy file, under the name that messages give it.
pub(super) fn source(path: &str) -> Result<Source, Failure> {
    let text = input::file(path, MAX_BYTES)?;
    Ok(Source {
        name: path.to_owned(),
        text: String::from_utf8_lossy(&text).into_owned(),
    })
}

/// Policies and cases are written by people; this is far beyond them.
const MAX_BYTES: usize = 1 << 26;
