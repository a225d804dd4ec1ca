//! `countersign approval notify`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use countersign_approval::{ApprovalId, State, UnixMs};
use countersign_engine::{Desk, Standing};
use countersign_notify::{Hook, Notice, Secret, Sender};

use super::sweep::sweep;
use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output;

#[derive(Args)]
#[command(after_help = "\
Tells a web-hook of requests that are new and of those that are decided or over, until it is stopped. A
notice names the approval, its code, its tool and its clocks; it carries no arguments and lets nobody
decide. Each is signed: HMAC-SHA-256 over its id, its time and its body.

Examples:
  head -c 32 /dev/urandom | base64 > hook.secret
  countersign approval notify --url https://chat.example.com/hook --secret hook.secret")]
pub(crate) struct Notify {
    #[command(flatten)]
    data: DataFolder,
    /// Where notices go: https, or http on this machine
    #[arg(long, value_name = "URL")]
    url: String,
    /// A file with the shared secret, at least 32 bytes
    #[arg(long, value_name = "FILE")]
    secret: PathBuf,
    /// Tell what is new once, then end
    #[arg(long)]
    once: bool,
}

impl Notify {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let secret = input::file(&self.secret.to_string_lossy(), MOST_SECRET)?;
        let secret = Secret::new(secret.trim_ascii()).map_err(|error| refused(&error))?;
        let hook = Hook::new(&self.url, secret).map_err(|error| refused(&error))?;
        drop(self.data.reader()?);
        let desk = self.data.desk()?;
        let sender = Sender::start(hook).map_err(|error| refused(&error))?;
        let mut known = match self.once {
            true => BTreeMap::new(),
            false => states(&desk)?,
        };
        sweep(&desk)?;
        loop {
            // What cannot be ended was told of once.
            let _swept = desk.sweep()?;
            for (id, state) in states(&desk)? {
                if known.insert(id, state) != Some(state)
                    && is_news(state)
                    // One that cannot be read keeps nobody from the others.
                    && let Ok(Some(standing)) = desk.approval(id)
                {
                    sender.notify(notice(&standing));
                }
            }
            if self.once {
                break;
            }
            std::thread::sleep(LOOK);
        }
        // Waits a moment for what is on its way.
        drop(sender);
        output::stderr("countersign: told the web-hook");
        Ok(Exit::Done)
    }
}

fn states(desk: &Desk) -> Result<BTreeMap<ApprovalId, State>, Failure> {
    let newest = desk.reader().newest_approvals(MOST)?;
    Ok(newest.into_iter().map(|row| (row.id, row.state)).collect())
}

/// What people want to hear of; the steps of a run are not among it.
fn is_news(state: State) -> bool {
    !matches!(state, State::Consumed | State::Started)
}

fn notice(standing: &Standing) -> Notice {
    let plan = standing.envelope.plan();
    let row = &standing.row;
    let tool = plan.calls().first().map(|call| call.tool.name.clone());
    Notice {
        approval: row.id.to_string(),
        short_code: plan.hash().short(),
        tool: tool.unwrap_or_default(),
        state: row.state.to_string(),
        at_unix_ms: row.decided.unwrap_or(row.issued).get(),
        decide_by_unix_ms: row.decide_by.map(UnixMs::get),
        execute_by_unix_ms: row.ends.map(UnixMs::get),
    }
}

fn refused(error: &dyn ToString) -> Failure {
    Failure::new(Code::Hook, error.to_string())
}

const LOOK: Duration = Duration::from_millis(500);
const MOST: usize = 1000;
const MOST_SECRET: usize = 1 << 16;
