//! What is asked of the origin of a manifest.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use countersign_policy::manifest::signature::{Publishers, TrustMode};

use crate::errors::{Code, Failure};
use crate::input;

#[derive(Args, Clone)]
pub(crate) struct Trust {
    /// How much is asked of the manifest's origin
    #[arg(long, value_name = "MODE", value_enum, default_value = "dev")]
    trust: Mode,
    /// The publishers that are accepted, one a line, as `countersign manifest sign` prints them
    #[arg(long, value_name = "FILE")]
    publishers: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// Any origin will do
    Dev,
    /// A publisher from the list must have signed
    Prod,
}

impl Trust {
    pub(crate) fn mode(&self) -> TrustMode {
        match self.trust {
            Mode::Dev => TrustMode::Dev,
            Mode::Prod => TrustMode::Prod,
        }
    }

    /// The file that lists the publishers.
    pub(crate) fn list(&self) -> Option<PathBuf> {
        self.publishers.clone()
    }

    pub(crate) fn publishers(&self) -> Result<Publishers, Failure> {
        let Some(path) = &self.publishers else {
            return Ok(Publishers::default());
        };
        let path = path.to_string_lossy();
        let text = input::file(&path, MAX_BYTES)?;
        String::from_utf8_lossy(&text)
            .parse()
            .map_err(|error| Failure::new(Code::Publishers, format!("`{path}`: {error}")))
    }
}

const MAX_BYTES: usize = 1 << 20;
