//! `countersign tools`

use clap::Subcommand;

use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Format;

mod accept;
mod accept_command;
mod diff;
mod list;
mod review;

pub(crate) use diff::before;

/// Tools of MCP servers.
#[derive(Subcommand)]
pub(crate) enum Tools {
    /// List the tools that were seen, and which of them are accepted
    List(list::List),
    /// Show what differs between the accepted definition of a tool and the one that waits
    Diff(diff::Diff),
    /// Go through the tools that nobody has looked at
    Review(review::Review),
    /// Accept a definition that somebody has looked at
    Accept(accept::Accept),
    /// Say that another command starts the same server
    AcceptCommand(accept_command::AcceptCommand),
}

impl Tools {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::List(list) => list.run(format),
            Self::Diff(diff) => diff.run(format),
            Self::Review(review) => review.run(format),
            Self::Accept(accept) => accept.run(format),
            Self::AcceptCommand(accept) => accept.run(format),
        }
    }
}

/// What whoever has accepted something should know.
const OPEN_SESSIONS: &str = "countersign: sessions that are open go by it in a second; by a definition that has changed, when their client lists the tools again";
