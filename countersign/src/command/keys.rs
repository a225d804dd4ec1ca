//! `countersign keys`

use clap::{Args, Subcommand};
use countersign_canon::Json;
use countersign_vault::Keyring;

use crate::cli::DataFolder;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format};

/// The master key wraps the key of every session.
#[derive(Subcommand)]
pub(crate) enum Keys {
    /// Show which master key is in use
    Show(Show),
    /// Replace the master key and wrap every session key with the new one
    Rotate(Rotate),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  countersign keys show")]
pub(crate) struct Show {
    #[command(flatten)]
    data: DataFolder,
}

#[derive(Args)]
#[command(after_help = "\
A rotation that was interrupted is finished by the next one. Backups that were made before hold the
old key and can still be read.

Examples:
  countersign keys rotate")]
pub(crate) struct Rotate {
    #[command(flatten)]
    data: DataFolder,
}

impl Keys {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::Show(show) => show.run(format),
            Self::Rotate(rotate) => rotate.run(format),
        }
    }
}

impl Show {
    fn run(self, format: Format) -> Result<Exit, Failure> {
        let folder = self.data.folder()?;
        // A folder without a log has no key that matters.
        self.data.reader()?;
        let keyring = Keyring::open(&folder.master_key())?;
        let ids: Vec<String> = keyring.ids().map(ToString::to_string).collect();
        let current = ids.last().cloned().unwrap_or_default();
        match format {
            Format::Text => {
                let mut text = format!(
                    "master key  {current}\nfile        {}",
                    folder.master_key().display()
                );
                if ids.len() > 1 {
                    text.push_str("\nA rotation was interrupted: run `countersign keys rotate`.");
                }
                output::text(&output::visible(&text))?;
            }
            Format::Json => output::json(&Json::object([
                ("current", Json::from(current)),
                (
                    "file",
                    Json::from(folder.master_key().display().to_string()),
                ),
                ("rotation_unfinished", Json::from(ids.len() > 1)),
            ]))?,
        }
        Ok(Exit::Done)
    }
}

impl Rotate {
    fn run(self, format: Format) -> Result<Exit, Failure> {
        // Do not make a new log only to rotate its key.
        self.data.reader()?;
        let rotation = self.data.store()?.rotate_master_key()?;
        match format {
            Format::Text => output::text(&format!(
                "new master key {}; {} session key(s) wrapped with it",
                rotation.current, rotation.rewrapped
            ))?,
            Format::Json => output::json(&Json::object([
                ("current", Json::from(rotation.current.to_string())),
                ("rewrapped", Json::from(rotation.rewrapped)),
            ]))?,
        }
        Ok(Exit::Done)
    }
}
