//! `countersign lease preview`

use clap::Args;
use countersign_approval::UnixMs;
use countersign_approval::lease::Lease;
use countersign_canon::Json;
use countersign_engine::{Desk, LeaseMatch};

use super::terms::NewLease;
use super::view;
use crate::cli::DataFolder;
use crate::command::approval;
use crate::command::approver::key::KeyOption;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, Table};

#[derive(Args)]
#[command(after_help = "\
Takes the options of `countersign lease create` and grants nothing. The requests of the session are
held against the lease, oldest first, as if it had stood then: its time does not matter, its uses
and its budget do.

Examples:
  countersign lease preview --like apr_1f2e --uses 5 --for 30m --argument amount=range:1..500")]
pub(crate) struct Preview {
    #[command(flatten)]
    new: NewLease,
    #[command(flatten)]
    key: KeyOption,
    #[command(flatten)]
    data: DataFolder,
}

impl Preview {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let desk = self.data.desk()?;
        let lease = self.lease(&desk)?;
        let matches = desk.preview_lease(&lease)?;
        match format {
            Format::Text => output::text(&text(&lease, &matches, desk.now()?))?,
            Format::Json => view::print(&json(&lease, &matches))?,
        }
        Ok(Exit::Done)
    }

    fn lease(&self, desk: &Desk) -> Result<Lease, Failure> {
        let file = self.key.file(self.data.folder()?.path())?;
        let key = file.open(&desk.approvers()?)?;
        let standing = approval::find(&self.new.like, desk)?;
        self.new.draw_up(&standing, &key.person, desk)
    }
}

fn text(lease: &Lease, matches: &[LeaseMatch], now: UnixMs) -> String {
    let covered = matches.iter().filter(|it| it.mismatch.is_none()).count();
    let mut lines = view::lines(lease, now);
    lines.push(format!(
        "\nit would have answered {covered} of {} past requests of the session:",
        matches.len()
    ));
    let mut table = Table::new(&["APPROVAL", "COVERED"]);
    for it in matches {
        let covered = it
            .mismatch
            .as_ref()
            .map_or("yes ✓".to_owned(), |why| format!("no ✗: {why}"));
        table.row([it.approval.to_string(), covered]);
    }
    lines.push(table.text());
    lines.join("\n")
}

fn json(lease: &Lease, matches: &[LeaseMatch]) -> Json {
    let past = matches.iter().map(|it| {
        let why = it.mismatch.as_ref();
        Json::object([
            ("approval_id", Json::from(it.approval.to_string())),
            ("covered", Json::from(why.is_none())),
            (
                "why_not",
                why.map_or(Json::Null, |why| Json::from(why.to_string())),
            ),
        ])
    });
    Json::object([
        ("lease", view::terms(lease)),
        ("past", Json::Array(past.collect())),
    ])
}
