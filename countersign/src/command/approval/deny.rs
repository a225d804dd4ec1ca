//! `countersign approval deny`

use clap::Args;
use countersign_approval::{Decision, Reason};

use super::card::check_open;
use super::find::find;
use super::sign;
use super::sweep::sweep;
use crate::cli::DataFolder;
use crate::command::approver::key::KeyOption;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::Format;

#[derive(Args)]
#[command(after_help = "\
The agent is told the reason, so say what it should do instead.

Examples:
  countersign approval deny apr_1f2e --reason 'use the staging account'")]
pub(crate) struct Deny {
    /// The approval; the beginning of its id is enough
    #[arg(value_name = "ID")]
    id: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    key: KeyOption,
    #[command(flatten)]
    data: DataFolder,
}

impl Deny {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let file = self.key.file(self.data.folder()?.path())?;
        let desk = self.data.desk()?;
        sweep(&desk)?;
        let key = file.open(&desk.approvers()?)?;
        let standing = find(&self.id, &desk)?;
        check_open(&standing)?;
        let reason = self.reason.map(Reason::new).transpose();
        let reason = reason.map_err(|error| Failure::new(Code::Input, error.to_string()))?;
        let decision = Decision::Denied(reason);
        let voted = sign::decide(&decision, &standing, &key, &desk)?;
        sign::print(&decision, &voted, &key, format)?;
        Ok(Exit::Done)
    }
}
