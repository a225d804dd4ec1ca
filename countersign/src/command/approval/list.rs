//! `countersign approval list`

use clap::Args;
use countersign_approval::{State, UnixMs};
use countersign_canon::Json;
use countersign_engine::Standing;

use super::card::{duration, word};
use super::sweep::{readable, sweep};
use crate::cli::DataFolder;
use crate::clock;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, Table};

#[derive(Args)]
#[command(after_help = "\
Examples:
  countersign approval list
  countersign approval list --all --format json")]
pub(crate) struct List {
    /// Also what is decided, over or used: the newest thousand
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    data: DataFolder,
}

impl List {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let reader = self.data.reader()?;
        let now = self.sweep()?;
        let rows = match self.all {
            true => reader.newest_approvals(MOST)?,
            false => reader.approvals_in(State::Pending)?,
        };
        let standings = readable(rows, &reader);
        match format {
            Format::Text => output::text(&text(&standings, now))?,
            Format::Json => output::json(&Json::Array(standings.iter().map(json).collect()))?,
        }
        Ok(Exit::Done)
    }

    /// Ends what is over, and gives the time that it was judged by.
    fn sweep(&self) -> Result<UnixMs, Failure> {
        match self.data.desk() {
            Ok(desk) => {
                sweep(&desk)?;
                Ok(desk.now()?)
            }
            // Whoever may only look does that.
            Err(failure) if failure.code() == Code::ReadOnly => {
                output::stderr(
                    "warning: the log is read-only here: what is over stays on the list",
                );
                Ok(UnixMs::new(clock::now_unix_ms()?))
            }
            Err(failure) => Err(failure),
        }
    }
}

fn text(standings: &[Standing], now: UnixMs) -> String {
    if standings.is_empty() {
        return "nothing is held".to_owned();
    }
    let mut table = Table::new(&[
        "APPROVAL", "CODE", "STATE", "AGE", "LEFT", "RISK", "WHAT", "WHO",
    ]);
    for standing in standings {
        let (envelope, row) = (&standing.envelope, &standing.row);
        let id: String = envelope.id().to_string().chars().take(ID).collect();
        table.row([
            id,
            envelope.plan().hash().short(),
            word(row.state).to_owned(),
            duration(now.distance(row.issued)),
            left(standing, now),
            risk(standing).to_owned(),
            what(standing),
            envelope.lineage().requester().to_string(),
        ]);
    }
    table.text()
}

/// How long there still is to decide.
pub(super) fn left(standing: &Standing, now: UnixMs) -> String {
    match (standing.row.state, standing.row.decide_by) {
        (State::Pending, Some(end)) if !now.is_before(end) => "over".to_owned(),
        (State::Pending, Some(end)) => duration(now.distance(end)),
        (State::Pending, None) => "∞".to_owned(),
        _ => "–".to_owned(),
    }
}

pub(super) fn risk(standing: &Standing) -> &'static str {
    let plan = standing.envelope.plan();
    match plan.is_irreversible() {
        true => "irreversible",
        false => plan
            .calls()
            .iter()
            .map(|call| call.class.effect)
            .max()
            .map_or("none", |effect| effect.as_str()),
    }
}

pub(super) fn what(standing: &Standing) -> String {
    let names = standing.envelope.plan().calls().iter();
    let names: Vec<&str> = names.map(|call| call.tool.name.as_str()).collect();
    names.join(", ")
}

fn json(standing: &Standing) -> Json {
    let (envelope, row) = (&standing.envelope, &standing.row);
    let time = |time: Option<UnixMs>| time.map_or(Json::Null, |time| Json::from(time.get()));
    let plan = envelope.plan();
    Json::object([
        ("approval_id", Json::from(row.id.to_string())),
        ("state", Json::from(row.state.as_str())),
        ("plan_hash", Json::from(plan.hash().to_string())),
        ("short_code", Json::from(plan.hash().short())),
        ("irreversible", Json::from(plan.is_irreversible())),
        ("risk", Json::from(risk(standing))),
        ("tool", Json::from(what(standing))),
        (
            "requester",
            Json::from(envelope.lineage().requester().to_string()),
        ),
        ("tenant_id", Json::from(row.scope.tenant.as_str())),
        ("session_id", Json::from(row.scope.session.as_str())),
        ("issued_at_ms", Json::from(row.issued.get())),
        ("decide_by_ms", time(row.decide_by)),
        ("decided_at_ms", time(row.decided)),
        ("execute_by_ms", time(row.ends)),
    ])
}

/// So much of an id that two are hardly ever the same.
const ID: usize = 12;
const MOST: usize = 1000;

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use countersign_store::{Folder, Options, Store};

    use super::*;

    #[test]
    fn who_may_only_look_sees_the_list() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::new(temporary.path());
        drop(Store::open(&folder, Options::default()).unwrap());
        let set = |folder_mode, file_mode| {
            let file = Permissions::from_mode(file_mode);
            fs::set_permissions(folder.database(), file).unwrap();
            let folder_mode = Permissions::from_mode(folder_mode);
            fs::set_permissions(folder.path(), folder_mode).unwrap();
        };
        set(0o500, 0o400);
        let list = List {
            all: true,
            data: DataFolder::at(temporary.path()),
        };
        let listed = list.run(Format::Json);
        set(0o700, 0o600);
        assert_eq!(listed.unwrap(), Exit::Done);
    }
}
