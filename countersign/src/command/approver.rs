//! `countersign approver`: who may decide.

use clap::Subcommand;

use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Format;

mod add;
mod init;
pub(crate) mod key;
mod list;
mod require;
mod revoke;
mod rotate;

pub(crate) use init::user;

#[derive(Subcommand)]
pub(crate) enum Approver {
    /// Make your key, and register it
    Init(init::Init),
    /// Register a key that is kept elsewhere
    Add(add::Add),
    /// Show who may decide, and how many must agree
    List(list::List),
    /// Replace your key
    Rotate(rotate::Rotate),
    /// End the use of a key that somebody else may have
    Revoke(revoke::Revoke),
    /// Say how many must agree
    Require(require::Require),
}

impl Approver {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::Init(init) => init.run(format),
            Self::Add(add) => add.run(format),
            Self::List(list) => list.run(format),
            Self::Rotate(rotate) => rotate.run(format),
            Self::Revoke(revoke) => revoke.run(format),
            Self::Require(require) => require.run(format),
        }
    }
}
