//! `countersign mcp`

use clap::{Args, Subcommand};

use crate::errors::Failure;
use crate::exit::Exit;

mod config;
mod follow;
mod guard;
mod host;
mod identity;
mod observed;
mod reload;
mod rules;
mod serve;
mod wrap;

pub(crate) use guard::{McpGuard, command as guard_command};

#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = wrap::HELP
)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    way: Option<Way>,
    #[command(flatten)]
    wrap: wrap::Wrap,
}

#[derive(Subcommand)]
enum Way {
    /// Stand between HTTP clients and servers
    Serve(serve::Serve),
}

impl Mcp {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self.way {
            None => self.wrap.run(),
            Some(Way::Serve(serve)) => serve.run(),
        }
    }
}
