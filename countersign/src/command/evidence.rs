//! `countersign evidence`

use clap::Subcommand;

use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Format;

mod disclose;
mod export;
mod pack;

/// Evidence: files that show what happened, to somebody who has nothing but the file.
#[derive(Subcommand)]
pub(crate) enum Evidence {
    /// Write an evidence pack of a session, a time range or an approval
    Export(export::Export),
}

impl Evidence {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::Export(export) => export.run(format),
        }
    }
}
