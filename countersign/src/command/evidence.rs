//! `countersign evidence`

use clap::Subcommand;

use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Format;

mod aep;
mod check;
mod session;

/// Evidence.
#[derive(Subcommand)]
pub(crate) enum Evidence {
    /// Print what a session did as records of the Agent Evidence Protocol
    Aep(aep::Aep),
    /// Check records of the Agent Evidence Protocol, ours or anybody's
    Check(check::Check),
}

impl Evidence {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::Aep(aep) => aep.run(),
            Self::Check(check) => check.run(format),
        }
    }
}
