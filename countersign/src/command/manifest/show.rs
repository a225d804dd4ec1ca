//! `countersign manifest show`

use clap::Args;

use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
What is shown means the same as what was read: it can be used as a manifest itself.

Examples:
  countersign manifest show manifest.yaml
  countersign manifest show manifest.yaml --format json")]
pub(crate) struct Show {
    /// The manifest, or - for standard input
    #[arg(value_name = "FILE")]
    file: String,
}

impl Show {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let manifest = super::read(&self.file)?.to_json();
        match format {
            Format::Text => output::text(&visible(&super::yaml(&manifest)))?,
            Format::Json => output::json(&manifest)?,
        }
        Ok(Exit::Done)
    }
}
