//! `countersign action`: a door for shell scripts.

use clap::Subcommand;

use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Format;

mod group;
mod invocation;
mod run;
mod supervise;
mod told;

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Run a command if policies or people allow it, with the arguments that they allowed
    Run(run::Run),
}

impl Action {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::Run(run) => run.run(format),
        }
    }
}
