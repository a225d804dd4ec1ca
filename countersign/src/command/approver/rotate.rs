//! `countersign approver rotate`

use clap::Args;
use countersign_approval::{KeyId, KeyStatus, SigningKey};
use countersign_canon::Json;
use countersign_engine::Desk;

use super::key::{ApproverKey, KeyFile, KeyOption};
use crate::cli::DataFolder;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
The list of approvers changes in one step: before it the old key decides, after it the new one.
Whatever stops the command in between, the next one uses the key that is on the list. Votes of
the old key on what is still open no longer count: decide those again. If the key is on the list
of another data folder too, run `countersign approver init` there afterwards, and revoke the old
key.

Examples:
  countersign approver rotate
  countersign approver rotate --key dana.key")]
pub(crate) struct Rotate {
    #[command(flatten)]
    key: KeyOption,
    #[command(flatten)]
    data: DataFolder,
}

impl Rotate {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let file = self.key.file(self.data.folder()?.path())?;
        // A folder without a log has no key to replace.
        drop(self.data.reader()?);
        let desk = self.data.desk()?;
        let old = file.open(&desk.approvers()?)?;
        let new = file.prepare()?;
        let id = register(&desk, &old, &new)?;
        file.install()?;
        match format {
            Format::Text => output::text(&visible(&text(&old, id, &file)))?,
            Format::Json => output::json(&Json::object([
                ("person", Json::from(old.person.to_string())),
                ("key_id", Json::from(id.to_string())),
                ("retired_key_id", Json::from(old.id.to_string())),
                ("file", Json::from(file.path().display().to_string())),
            ]))?,
        }
        Ok(Exit::Done)
    }
}

/// INVARIANT: one change of the list, so that there is no moment with two keys or none.
pub(super) fn register(desk: &Desk, old: &ApproverKey, new: &SigningKey) -> Result<KeyId, Failure> {
    let changed = desk.change_approvers(Some(&old.person), |list| {
        let id = list.add(old.person.clone(), &new.verifying_key())?;
        list.end(old.id, KeyStatus::Retired)?;
        Ok(id)
    });
    Ok(changed?)
}

fn text(old: &ApproverKey, id: KeyId, file: &KeyFile) -> String {
    format!(
        "rotated the key of {}\nkey      {id}\nretired  {}\nfile     {}",
        old.person,
        old.id,
        file.path().display()
    )
}
