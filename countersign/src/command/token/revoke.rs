//! `countersign token revoke`

use clap::Args;
use countersign_canon::Json;

use crate::cli::DataFolder;
use crate::clock;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format};

#[derive(Args)]
#[command(after_help = "\
A daemon that runs hears of it within a second.

Examples:
  countersign token revoke 0f3c9a1be2d47856")]
pub(crate) struct Revoke {
    /// The id of the token, as `countersign token list` shows it
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    data: DataFolder,
}

impl Revoke {
    pub(super) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let now = clock::now_unix_ms()?;
        if !self.data.store()?.revoke_token(&self.id, now)? {
            let text = format!("no token `{}` that is not revoked", self.id);
            return Err(Failure::new(Code::NoToken, text));
        }
        match format {
            Format::Text => output::text(&format!("revoked {}", self.id))?,
            Format::Json => output::json(&Json::object([("revoked", Json::from(self.id))]))?,
        }
        Ok(Exit::Done)
    }
}
