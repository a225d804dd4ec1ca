//! `countersign lease revoke`

use clap::Args;
use countersign_canon::Json;

use super::find::find;
use super::terms::refused;
use crate::cli::DataFolder;
use crate::command::approver::key::KeyOption;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
The next call is not covered any more; neither is any lease that is a part of this one. A call that
has begun goes on.

Examples:
  countersign lease revoke lse_03c4")]
pub(crate) struct Revoke {
    /// The lease; the beginning of its id is enough
    #[arg(value_name = "LEASE")]
    id: String,
    #[command(flatten)]
    key: KeyOption,
    #[command(flatten)]
    data: DataFolder,
}

impl Revoke {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let file = self.key.file(self.data.folder()?.path())?;
        let desk = self.data.desk()?;
        let key = file.open(&desk.approvers()?)?;
        let id = find(&self.id, &desk)?.lease.id();
        if !desk.revoke_lease(id, &key.person)? {
            let problem = "it was taken back before, or its session has ended";
            return Err(refused(format!("`{id}` does not stand: {problem}")));
        }
        let printed = match format {
            Format::Text => output::text(&visible(&format!("REVOKED ✗  {id}, by {}", key.person))),
            Format::Json => output::json(&Json::object([
                ("lease_id", Json::from(id.to_string())),
                ("revoked_by", Json::from(key.person.to_string())),
            ])),
        };
        // It is taken back, whether anybody reads so or not.
        printed?;
        Ok(Exit::Done)
    }
}
