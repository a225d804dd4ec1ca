//! `countersign checkpoint publish`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use countersign_store::{Published, Store};

use super::write::Folder;
use super::{json, public, text};
use crate::cli::DataFolder;
use crate::clock::parse_duration;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format};

#[derive(Args)]
#[command(after_help = "\
Every event becomes a leaf of one Merkle tree; the checkpoint is its signed root. The folder of --out
has the layout that transparency logs share (checkpoint, tile/…), so any web server can offer it. It
holds hashes of events, and nothing of what they say.

Examples:
  countersign checkpoint publish
  countersign checkpoint publish --name example.com/agents --out /srv/log
  countersign checkpoint publish --every 10s --out /srv/log")]
pub(crate) struct Publish {
    /// Write the checkpoint and the tiles to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The name of the log, such as an address without scheme; given once, with the first checkpoint
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Go on, and publish whenever this time is over and something is new
    #[arg(long, value_name = "TIME")]
    every: Option<String>,
    #[command(flatten)]
    data: DataFolder,
}

impl Publish {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let every = self.every.as_deref().map(parse_duration).transpose()?;
        // Do not make a new log only to publish nothing.
        self.data.reader()?;
        let store = self.data.store()?;
        let Some(every) = every else {
            print(&self.publish(&store)?, &store, format)?;
            return Ok(Exit::Done);
        };
        let mut last = None;
        loop {
            let next = match self.publish(&store) {
                // There may be an event the next time.
                Err(failure) if last.is_none() && failure.code() == Code::Unpublished => None,
                published => Some(published?),
            };
            if let Some(next) = next.filter(|next| last.as_ref() != Some(next)) {
                print(&next, &store, format)?;
                last = Some(next);
            }
            std::thread::sleep(every.max(LEAST));
        }
    }

    fn publish(&self, store: &Store) -> Result<Published, Failure> {
        let published = store.publish(self.name.as_deref())?;
        if let Some(out) = &self.out {
            Folder::new(out).write(&published, store.reader())?;
        }
        Ok(published)
    }
}

fn print(published: &Published, store: &Store, format: Format) -> Result<(), Failure> {
    let key = public(&store.reader().log_signer()?);
    match format {
        Format::Text => output::text(&text(published))?,
        Format::Json => output::json(&json(published, &key))?,
    }
    Ok(())
}

/// Faster than this nobody can look.
const LEAST: Duration = Duration::from_millis(100);
