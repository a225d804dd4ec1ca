//! `countersign approval edit`

use clap::Args;
use countersign_approval::{Envelope, Reason};
use countersign_canon::Json;
use countersign_mcp::tools::{Change, diff};

use super::card::check_open;
use super::find::find;
use super::sweep::sweep;
use crate::cli::DataFolder;
use crate::command::approver::key::KeyOption;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
Makes a new request for the same call with other arguments, and takes the old one out of the way. The
edited call is judged by the policies that the old one was made under, and people decide it from the
start. It runs when the agent asks for exactly it, or with `countersign action run --approval`.

Examples:
  countersign approval edit apr_1f2e --args '{\"to\":\"staging\"}' --reason 'not on a Friday'
  countersign approval edit apr_1f2e --args @args.json")]
pub(crate) struct Edit {
    /// The approval; the beginning of its id is enough
    #[arg(value_name = "ID")]
    id: String,
    /// The arguments in the place of the old ones: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    args: String,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    key: KeyOption,
    #[command(flatten)]
    data: DataFolder,
}

impl Edit {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let args = input::json_argument(&self.args)?;
        let reason = self.reason.map(Reason::new).transpose();
        let reason = reason.map_err(|error| Failure::new(Code::Input, error.to_string()))?;
        let file = self.key.file(self.data.folder()?.path())?;
        let desk = self.data.desk()?;
        sweep(&desk)?;
        let key = file.open(&desk.approvers()?)?;
        let old = find(&self.id, &desk)?;
        if old.row.state != countersign_approval::State::Approved {
            check_open(&old)?;
        }
        let before = old.envelope.plan().calls().first();
        let before = before.map_or(Json::Null, |call| call.args.value().clone());
        let changes = diff(&before, &args);
        if changes.is_empty() {
            let text = "these are the arguments that it has";
            return Err(Failure::new(Code::Approval, text));
        }
        let new = desk.edit(old.row.id, args, &key.person, reason.as_ref())?;
        // It is there, whether anybody reads so or not.
        let printed = match format {
            Format::Text => output::text(&text(&changes, &new, &old.envelope, &self.data.option())),
            Format::Json => output::json(&json(&changes, &new, &old.envelope)),
        };
        printed?;
        Ok(Exit::Done)
    }
}

fn text(changes: &[Change], new: &Envelope, old: &Envelope, data: &str) -> String {
    let (id, code) = (new.id(), new.plan().hash().short());
    let mut lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
    lines.push(format!(
        "HOLD ⏸  {id} (code {code}) takes the place of {}",
        old.id()
    ));
    lines.push(format!("\nnext: countersign approval show{data} {id}"));
    visible(&lines.join("\n"))
}

fn json(changes: &[Change], new: &Envelope, old: &Envelope) -> Json {
    let hash = new.plan().hash();
    let changes = changes.iter().map(|change| Json::from(change.to_string()));
    Json::object([
        ("approval_id", Json::from(new.id().to_string())),
        ("supersedes", Json::from(old.id().to_string())),
        ("plan_hash", Json::from(hash.to_string())),
        ("short_code", Json::from(hash.short())),
        ("changes", Json::Array(changes.collect())),
    ])
}
