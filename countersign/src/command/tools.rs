//! `countersign tools`

use clap::Subcommand;
use countersign_mcp::tools::{Book, Definition};

use crate::books::Books;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::Format;

mod accept;
mod accept_command;
mod diff;
mod list;

/// Tools of MCP servers.
#[derive(Subcommand)]
pub(crate) enum Tools {
    /// List the tools that were seen, and which of them are accepted
    List(list::List),
    /// Show what differs between the accepted definition of a tool and the one that waits
    Diff(diff::Diff),
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
            Self::Accept(accept) => accept.run(format),
            Self::AcceptCommand(accept) => accept.run(format),
        }
    }
}

/// The book of a server, and the definition of a tool that waits in it.
fn waiting(books: &Books, server: &str, tool: &str) -> Result<(Book, Definition), Failure> {
    let (book, _) = books.of(server)?;
    match book.proposed().get(tool).cloned() {
        Some(definition) => Ok((book, definition)),
        None => Err(Failure::new(
            Code::NoTool,
            format!("nothing waits for `{tool}` of `{server}`"),
        )),
    }
}
