//! `countersign approver require`

use clap::{Args, ValueEnum};
use countersign_approval::DenyRule;
use countersign_canon::Json;

use super::list::agreement;
use crate::cli::DataFolder;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format};

#[derive(Args)]
#[command(after_help = "\
Requests that are open already were made for another agreement: they can no longer be approved,
and have to be made again.

Examples:
  countersign approver require 2
  countersign approver require 2 --deny outvoted")]
pub(crate) struct Require {
    /// How many people must approve
    #[arg(value_name = "M")]
    required: usize,
    /// What one denial does
    #[arg(long, value_enum, default_value = "veto")]
    deny: Deny,
    #[command(flatten)]
    data: DataFolder,
}

#[derive(Clone, Copy, ValueEnum)]
enum Deny {
    /// It is enough
    Veto,
    /// It counts against, and enough others may still approve
    Outvoted,
}

impl Require {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let desk = self.data.desk()?;
        let deny = match self.deny {
            Deny::Veto => DenyRule::Veto,
            Deny::Outvoted => DenyRule::Outvoted,
        };
        desk.change_approvers(None, |list| list.require(self.required, deny))?;
        match format {
            Format::Text => output::text(&agreement(&desk.approvers()?))?,
            Format::Json => output::json(&Json::object([
                ("required", Json::from(self.required as u64)),
                ("deny", Json::from(deny.as_str())),
            ]))?,
        }
        Ok(Exit::Done)
    }
}
