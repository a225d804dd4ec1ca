//! `countersign token`

use clap::Subcommand;

use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Format;

mod create;
mod list;
mod revoke;

/// Tokens of the HTTP API.
#[derive(Subcommand)]
pub(crate) enum Token {
    /// Make a token; it is printed once
    Create(create::Create),
    /// List tokens, whatever became of them
    List(list::List),
    /// Take a token back
    Revoke(revoke::Revoke),
}

impl Token {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::Create(create) => create.run(format),
            Self::List(list) => list.run(format),
            Self::Revoke(revoke) => revoke.run(format),
        }
    }
}
