//! `countersign checkpoint rotate`

use clap::Args;
use countersign_canon::Json;

use crate::cli::DataFolder;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format};

#[derive(Args)]
#[command(after_help = "\
Signs a checkpoint of everything with the old key, adds the signature of a new one, and goes on with the
new one alone. Checkpoints that the old key signed stay good: keep its line in the files that you give
with --trust, and add the new one, which this prints. `checkpoint show --key` prints both.

Examples:
  countersign checkpoint rotate
  countersign checkpoint show --key > log.keys")]
pub(crate) struct Rotate {
    #[command(flatten)]
    data: DataFolder,
}

impl Rotate {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        // Do not make a new log only to give it a second key.
        self.data.reader()?;
        let (old, new) = self.data.store()?.rotate_log_key()?;
        match format {
            Format::Text => output::text(&new.to_string())?,
            Format::Json => output::json(&Json::object([
                ("key", Json::from(new.to_string())),
                ("earlier", Json::from(old.to_string())),
            ]))?,
        }
        Ok(Exit::Done)
    }
}
