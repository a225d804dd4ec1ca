//! `countersign lease list`

use clap::Args;
use countersign_approval::UnixMs;
use countersign_canon::Json;
use countersign_engine::{LeaseCondition, StandingLease};

use super::view;
use crate::cli::DataFolder;
use crate::command::approval::duration;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, Table};

#[derive(Args)]
#[command(after_help = "\
Examples:
  countersign lease list
  countersign lease list --all --format json")]
pub(crate) struct List {
    /// Also those that are over, used up or taken back
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    data: DataFolder,
}

impl List {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let desk = self.data.desk()?;
        let now = desk.now()?;
        let mut leases = desk.all_leases()?;
        leases.retain(|it| self.all || it.condition(now) == LeaseCondition::Stands);
        match format {
            Format::Text => output::text(&text(&leases, now))?,
            Format::Json => {
                let leases = leases.iter().map(view::json);
                view::print(&Json::Array(leases.collect()))?;
            }
        }
        Ok(Exit::Done)
    }
}

fn text(leases: &[StandingLease], now: UnixMs) -> String {
    if leases.is_empty() {
        return "no lease stands".to_owned();
    }
    let mut table = Table::new(&[
        "LEASE", "STATE", "USES", "SPENT", "LEFT", "WHAT", "WHO", "BY",
    ]);
    for standing in leases {
        let (terms, usage) = (standing.lease.terms(), standing.usage);
        let spent = terms.budget.as_ref().map_or("–".to_owned(), |budget| {
            format!("{}/{}", usage.spent, budget.limit)
        });
        let condition = standing.condition(now);
        let left = match condition {
            LeaseCondition::Stands => duration(now.distance(terms.valid.expires_at)),
            _ => "–".to_owned(),
        };
        table.row([
            standing.lease.id().to_string().chars().take(ID).collect(),
            view::word(condition).to_owned(),
            format!("{}/{}", usage.uses, terms.max_uses),
            spent,
            left,
            terms.tool.name.clone(),
            terms.holder.lineage.requester().to_string(),
            terms.granted_by.to_string(),
        ]);
    }
    table.text()
}

/// So much of an id that two are hardly ever the same.
const ID: usize = 12;
