//! `countersign lease`: what people approve ahead of time.

use clap::Subcommand;

use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Format;

mod create;
mod find;
mod list;
mod preview;
mod revoke;
mod show;
mod terms;
mod view;

#[derive(Subcommand)]
pub(crate) enum Lease {
    /// Approve calls like one that people were asked about, so often, so much, so long
    Create(create::Create),
    /// Show the leases that stand, and how far they are used up
    List(list::List),
    /// Show one lease
    Show(show::Show),
    /// Take a lease back
    Revoke(revoke::Revoke),
    /// Show what a lease would cover, and which past requests it would have answered
    Preview(preview::Preview),
}

impl Lease {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::Create(create) => create.run(format),
            Self::List(list) => list.run(format),
            Self::Show(show) => show.run(format),
            Self::Revoke(revoke) => revoke.run(format),
            Self::Preview(preview) => preview.run(format),
        }
    }
}
