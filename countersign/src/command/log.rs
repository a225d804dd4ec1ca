//! `countersign log`

use clap::Subcommand;

use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Format;

mod append;
mod export;
mod filter;
mod list;
mod remote;
mod show;
mod tail;
pub(crate) mod view;

pub(crate) use append::parse_hash;
pub(crate) use show::by_prefix;

/// The log.
#[derive(Subcommand)]
pub(crate) enum Log {
    /// Append an event and print its sequence number and hash
    Append(append::Append),
    /// List events, page by page
    List(list::List),
    /// Show one event
    Show(show::Show),
    /// Show the last events, and follow new ones
    Tail(tail::Tail),
    /// Write events as lines that anybody can verify
    Export(export::Export),
}

impl Log {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::Append(append) => append.run(format),
            Self::List(list) => list.run(format),
            Self::Show(show) => show.run(format),
            Self::Tail(tail) => tail.run(format),
            Self::Export(export) => export.run(),
        }
    }
}
