//! `countersign conformance`

use clap::Subcommand;
use countersign_conformance::{BUILT_IN, Pack};

use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output::Format;

mod client;
mod house;
mod list;
mod live;
mod mcp;
mod run;
mod sign;
mod telling;

pub(crate) use mcp::{Mcp, McpError};

/// What a server of this kind must do, and whether it does.
#[derive(Subcommand)]
pub(crate) enum Conformance {
    /// Run packs against a server
    Run(Box<run::Run>),
    /// List the packs that come with this program, and their requirements
    List(list::List),
}

impl Conformance {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::Run(run) => run.run(format),
            Self::List(list) => list.run(format),
        }
    }
}

/// A pack by its name, or from a file.
fn pack(name: &str) -> Result<Pack, Failure> {
    let built_in = BUILT_IN.iter().find(|(known, _)| *known == name);
    let text = match built_in {
        Some((_, text)) => text.as_bytes().to_vec(),
        None => input::file(name, MAX_PACK)?,
    };
    let invalid = |error| Failure::new(Code::Pack, format!("`{name}`: {error}"));
    Pack::read(&text).map_err(invalid)
}

const MAX_PACK: usize = 4 << 20;
