//! `countersign approver list`

use clap::Args;
use countersign_canon::Json;
use countersign_engine::{Approver, Approvers};

use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, Table};

#[derive(Args)]
#[command(after_help = "\
Examples:
  countersign approver list
  countersign approver list --format json")]
pub(crate) struct List {
    #[command(flatten)]
    data: DataFolder,
}

impl List {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let approvers = Approvers::load(self.data.folder()?.path())
            .map_err(|error| Failure::new(Code::Approvers, error.to_string()))?;
        if approvers.keys().is_empty() {
            // People may be registered before there is a log; where nobody is, one has to be there.
            drop(self.data.reader()?);
        }
        match format {
            Format::Text => output::text(&text(&approvers))?,
            Format::Json => output::json(&json(&approvers))?,
        }
        Ok(Exit::Done)
    }
}

/// `1 of 2 must agree; one denial is enough`
pub(super) fn agreement(approvers: &Approvers) -> String {
    let required = approvers.required();
    match approvers.quorum() {
        Some(quorum) => {
            let people = quorum.roster().len();
            let deny = match quorum.deny() {
                countersign_approval::DenyRule::Veto => "one denial is enough",
                countersign_approval::DenyRule::Outvoted => "denials can be outvoted",
            };
            format!("{required} of {people} must agree; {deny}")
        }
        None => format!("{required} must agree, and too few could: what needs approval stays held"),
    }
}

fn text(approvers: &Approvers) -> String {
    let mut table = Table::new(&["PERSON", "STATUS", "KEY"]);
    for key in approvers.keys() {
        table.row([
            key.person.to_string(),
            key.status.to_string(),
            key.key_id.to_string(),
        ]);
    }
    format!("{}\n\n{}", table.text(), agreement(approvers))
}

fn json(approvers: &Approvers) -> Json {
    let key = |key: &Approver| {
        Json::object([
            ("key_id", Json::from(key.key_id.to_string())),
            ("person", Json::from(key.person.to_string())),
            ("status", Json::from(key.status.as_str())),
        ])
    };
    Json::object([
        ("deny", Json::from(approvers.deny().as_str())),
        (
            "keys",
            Json::Array(approvers.keys().iter().map(key).collect()),
        ),
        ("required", Json::from(approvers.required() as u64)),
        ("reachable", Json::from(approvers.quorum().is_some())),
    ])
}
