//! `countersign approval`: what is held, and deciding it.

use clap::Subcommand;

use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Format;

mod approve;
mod audit;
mod card;
pub(crate) mod confirm;
mod deny;
mod edit;
mod find;
mod list;
mod notify;
mod show;
mod sign;
mod stats;
mod sweep;
mod watch;

pub(crate) use card::duration;
pub(crate) use confirm::check_code;
pub(crate) use find::{absent, find, find_id};

#[derive(Subcommand)]
pub(crate) enum Approval {
    /// Show what is held
    List(list::List),
    /// Show one request: what would run, who asks, until when
    Show(show::Show),
    /// Approve a request
    Approve(approve::Approve),
    /// Deny a request
    Deny(deny::Deny),
    /// Ask for the same call with other arguments
    Edit(edit::Edit),
    /// Decide in a terminal inbox
    Watch(watch::Watch),
    /// Tell a web-hook of new and decided requests
    Notify(notify::Notify),
    /// Show how often people are asked, and how fast they answer
    Stats(stats::Stats),
    /// Check the audit of approvals offline
    Audit(audit::Audit),
}

impl Approval {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::List(list) => list.run(format),
            Self::Show(show) => show.run(format),
            Self::Approve(approve) => approve.run(format),
            Self::Deny(deny) => deny.run(format),
            Self::Edit(edit) => edit.run(format),
            Self::Watch(watch) => watch.run(),
            Self::Notify(notify) => notify.run(),
            Self::Stats(stats) => stats.run(format),
            Self::Audit(audit) => audit.run(format),
        }
    }
}
