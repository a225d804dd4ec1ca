//! The process that ends a server when its wrapper was killed.

use std::process::Command;

use clap::Args;

use crate::errors::{Code, Failure};
use crate::exit::Exit;

#[derive(Args)]
pub(crate) struct McpGuard {
    /// The process group of the server
    group: u32,
}

impl McpGuard {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        countersign_mcp::stdio::guard(self.group, std::io::stdin());
        Ok(Exit::Done)
    }
}

/// This program, as a guard.
pub(crate) fn command() -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(
            Code::Server,
            format!("this program cannot be found: {error}"),
        )
    })?;
    let mut command = Command::new(program);
    command.arg("mcp-guard");
    Ok(command)
}
