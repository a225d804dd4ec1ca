//! The command line. Reads arguments, calls the crates that do the work, prints what they say and
//! turns their errors into messages and exit codes. Decides nothing by itself.
#![forbid(unsafe_code)]

mod acceptance;
mod books;
mod child;
mod cli;
mod clock;
mod command;
mod config;
mod errors;
mod exit;
mod folder;
mod input;
mod output;
mod person;

use std::process::ExitCode;

use exit::Exit;

fn main() -> ExitCode {
    let exit = match cli::parse() {
        Ok(cli) => cli.run().unwrap_or_else(|failure| failure.report()),
        Err(exit) => exit,
    };
    exit.into()
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
