//! `countersign approval list`

use clap::Args;
use countersign_approval::{State, UnixMs};
use countersign_canon::Json;
use countersign_engine::{Desk, Standing};

use super::card::{duration, word};
use super::sweep::{readable, sweep};
use crate::cli::DataFolder;
use crate::errors::Failure;
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
        drop(self.data.reader()?);
        let desk = self.data.desk()?;
        sweep(&desk)?;
        let rows = match self.all {
            true => desk.reader().newest_approvals(MOST)?,
            false => desk.reader().approvals_in(State::Pending)?,
        };
        let standings = readable(rows, &desk);
        match format {
            Format::Text => output::text(&text(&standings, &desk)?)?,
            Format::Json => output::json(&Json::Array(standings.iter().map(json).collect()))?,
        }
        Ok(Exit::Done)
    }
}

fn text(standings: &[Standing], desk: &Desk) -> Result<String, Failure> {
    if standings.is_empty() {
        return Ok("nothing is held".to_owned());
    }
    let now = desk.now()?;
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
    Ok(table.text())
}

/// How long there still is to decide.
pub(super) fn left(standing: &Standing, now: UnixMs) -> String {
    match (standing.row.state, standing.row.decide_by) {
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
