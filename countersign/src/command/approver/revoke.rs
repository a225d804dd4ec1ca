//! `countersign approver revoke`

use clap::Args;
use countersign_approval::{KeyId, KeyStatus};
use countersign_canon::Json;
use countersign_engine::Approvers;

use super::list::agreement;
use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
A revoked key decides nothing any more: its votes on what has not run yet no longer count. What
it decided before stays in the audit. A key does not come back.

Examples:
  countersign approver revoke 9c1d33b0")]
pub(crate) struct Revoke {
    /// The key, as `countersign approver list` shows it; its beginning is enough
    #[arg(value_name = "KEY_ID")]
    key: String,
    #[command(flatten)]
    data: DataFolder,
}

impl Revoke {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let desk = self.data.desk()?;
        let id = find(&self.key, &desk.approvers()?)?;
        desk.change_approvers(None, |list| list.end(id, KeyStatus::Revoked))?;
        let approvers = desk.approvers()?;
        match format {
            Format::Text => {
                let text = format!("revoked {id}\n{}", agreement(&approvers));
                output::text(&visible(&text))?;
            }
            Format::Json => output::json(&Json::object([
                ("key_id", Json::from(id.to_string())),
                ("reachable", Json::from(approvers.quorum().is_some())),
            ]))?,
        }
        Ok(Exit::Done)
    }
}

fn find(text: &str, approvers: &Approvers) -> Result<KeyId, Failure> {
    let begins = |key: &&countersign_engine::Approver| key.key_id.to_string().starts_with(text);
    let found: Vec<_> = approvers.keys().iter().filter(begins).collect();
    match found.as_slice() {
        [key] if !text.is_empty() => Ok(key.key_id),
        [] => Err(Failure::new(
            Code::Approvers,
            format!("there is no key `{text}`"),
        )),
        several => Err(Failure::new(
            Code::Approvers,
            format!("{} keys begin with `{text}`", several.len()),
        )),
    }
}
