//! `countersign checkpoint show`

use clap::Args;
use countersign_canon::Json;

use super::{json, public, text};
use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format};

#[derive(Args)]
#[command(after_help = "\
Keep what it prints elsewhere: `countersign verify --checkpoint FILE` later tells whether the log
still begins with exactly these events.

Examples:
  countersign checkpoint show > kept.checkpoint
  countersign checkpoint show --key > log.keys")]
pub(crate) struct Show {
    /// The checkpoint of this many events [default: the last one]
    #[arg(long, value_name = "N")]
    size: Option<u64>,
    /// Print the public key of the log instead, and those that it had before
    #[arg(long)]
    key: bool,
    #[command(flatten)]
    data: DataFolder,
}

impl Show {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let reader = self.data.reader()?;
        let published = match self.size {
            Some(size) => reader.checkpoint_at(size)?,
            None => reader.last_checkpoint()?,
        };
        let published = published.ok_or_else(|| {
            Failure::new(Code::Unpublished, "there is no such checkpoint of this log")
        })?;
        let key = public(&reader.log_signer()?);
        match format {
            Format::Text if self.key => {
                let keys = [key].into_iter().chain(reader.earlier_log_keys()?);
                let keys: Vec<String> = keys.map(|key| key.to_string()).collect();
                output::text(&keys.join("\n"))?;
            }
            Format::Text => output::text(&text(&published))?,
            Format::Json => {
                let mut shown = json(&published, &key);
                let earlier = reader.earlier_log_keys()?.into_iter();
                let earlier = earlier.map(|key| Json::from(key.to_string())).collect();
                if let Json::Object(members) = &mut shown {
                    members.insert("earlier_keys".to_owned(), Json::Array(earlier));
                }
                output::json(&shown)?;
            }
        }
        Ok(Exit::Done)
    }
}
