//! `countersign acs`

use clap::Subcommand;
use countersign_acs::{Limits, Manifest, Options, Policies, load};
use countersign_callout::Disk;
use countersign_canon::Hash;

use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::Format;

mod eval;
mod explain;
mod question;
mod test;
mod validate;

/// Agent Control manifests.
#[derive(Subcommand)]
pub(crate) enum Acs {
    /// List every problem of Agent Control manifests and of the policies they name
    Validate(validate::Validate),
    /// Ask what a manifest decides at a point
    Eval(eval::Eval),
    /// Ask, and show what the policy saw and what spoke
    Explain(explain::Explain),
    /// Run cases of the form of the specification's own
    Test(test::Test),
}

impl Acs {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::Validate(validate) => validate.run(format),
            Self::Eval(eval) => eval.run(format),
            Self::Explain(explain) => explain.run(format),
            Self::Test(test) => test.run(format),
        }
    }
}

/// Loads a manifest with what it extends.
fn manifest(from: &str, digest: Option<Hash>) -> Result<Manifest, Failure> {
    load(from, digest, &Disk, &Options::default())
        .map_err(|error| Failure::new(Code::AgentControl, error.to_string()))
}

/// Reads and compiles the policies of a manifest.
fn policies(manifest: &Manifest) -> Result<Policies, Failure> {
    Policies::activate_within(manifest, &Disk, &Limits::default())
        .map_err(|error| Failure::new(Code::AgentControlPolicy, error.to_string()))
}
