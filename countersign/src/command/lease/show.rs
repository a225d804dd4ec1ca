//! `countersign lease show`

use clap::Args;

use super::find::find;
use super::view;
use crate::cli::DataFolder;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format};

#[derive(Args)]
#[command(after_help = "\
Examples:
  countersign lease show lse_03c4")]
pub(crate) struct Show {
    /// The lease; the beginning of its id is enough
    #[arg(value_name = "LEASE")]
    id: String,
    #[command(flatten)]
    data: DataFolder,
}

impl Show {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let desk = self.data.desk()?;
        let standing = find(&self.id, &desk)?;
        let now = desk.now()?;
        let mut lines = view::lines(&standing.lease, now);
        let state = view::word(standing.condition(now));
        let usage = standing.usage;
        lines.insert(
            1,
            format!(
                "state       {state}, {} uses, {} spent",
                usage.uses, usage.spent
            ),
        );
        match format {
            Format::Text => output::text(&lines.join("\n"))?,
            Format::Json => view::print(&view::json(&standing))?,
        }
        Ok(Exit::Done)
    }
}
