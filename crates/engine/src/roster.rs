//! Changing the list of approvers: what changes is in the audit before it counts.

use std::fs::{File, OpenOptions};
use std::path::Path;

use countersign_approval::audit::{Entry, Outcome};
use countersign_approval::{Human, KeyStatus, UnixMs};
use countersign_canon::Hash;
use countersign_event::EventType;
use countersign_event::payload::{CheckpointCreated, Payload};
use countersign_store::Change;

use crate::refusal::Fault;
use crate::{Approver, Approvers, ApproversError, Engine, reserved};

/// Why the list stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum NotChanged {
    /// The change makes no sense, or the list cannot be used.
    #[error(transparent)]
    List(#[from] ApproversError),
    /// It could not be recorded, so it does not count.
    #[error("{0}")]
    NotRecorded(String),
}

impl Engine {
    /// Changes the list of approvers. Several processes take turns; the audit tells of every key and
    /// of the quorum before the new list takes the place of the old one.
    pub fn change_approvers<T>(
        &self,
        by: Option<&Human>,
        change: impl FnOnce(&mut Approvers) -> Result<T, ApproversError>,
    ) -> Result<T, NotChanged> {
        let folder = self.store().folder().path();
        let _turn = turn(folder)?;
        let before = Approvers::load(folder)?;
        let mut after = before.clone();
        let result = change(&mut after)?;
        let now = self.now().map_err(not_recorded)?;
        let mut entries = differences(&before, &after, now);
        for entry in &mut entries {
            entry.actor = by.map(Human::to_string);
            // Whoever has the audit can tell whether a list is the one that was recorded.
            entry.detail = Some(format!("approvers sha256:{}", after.hash()));
        }
        for entry in entries {
            self.record_change(&after, entry, now)
                .map_err(not_recorded)?;
        }
        if after != before {
            after.save(folder)?;
        }
        Ok(result)
    }

    fn record_change(&self, after: &Approvers, entry: Entry, now: UnixMs) -> Result<(), Fault> {
        let checkpoint = CheckpointCreated {
            checkpoint_id: Some("approvers".to_owned()),
            snapshot_hash: Some(after.hash().to_string()),
            ..CheckpointCreated::default()
        };
        let event = (
            EventType::CheckpointCreated,
            Payload::CheckpointCreated(checkpoint),
        );
        self.record_apart(&event, &entry, now)
    }

    /// Adds to the audit what belongs to no agent's session; its event is in a session of its own.
    pub(crate) fn record_apart(
        &self,
        event: &(EventType, Payload),
        entry: &Entry,
        now: UnixMs,
    ) -> Result<(), Fault> {
        self.change_apart(event, &|| Change::note(entry.clone(), now), now)
    }

    /// The same for a change of what belongs to a session that takes no more events.
    pub(crate) fn change_apart(
        &self,
        event: &(EventType, Payload),
        change: &dyn Fn() -> Change,
        now: UnixMs,
    ) -> Result<(), Fault> {
        let scope = reserved::approvers().map_err(|error| Fault::History(error.to_string()))?;
        for _ in 0..ATTEMPTS {
            match self.record_events(&scope, now, vec![event.clone()], change()) {
                Err(Fault::Store(error)) if error.is_retryable() => {}
                result => return result.map(drop),
            }
        }
        Err(Fault::History(
            "other processes write this session too fast".to_owned(),
        ))
    }
}

impl Approvers {
    /// The hash of the file's text.
    pub fn hash(&self) -> Hash {
        Hash::of(&self.to_text())
    }
}

/// What the audit says about the way from one list to another.
fn differences(before: &Approvers, after: &Approvers, now: UnixMs) -> Vec<Entry> {
    let known = |key: &Approver| {
        let same = |old: &&Approver| old.key_id == key.key_id;
        before.keys().iter().find(same).map(|old| old.status)
    };
    let mut entries = Vec::new();
    for key in after.keys() {
        let outcome = match (known(key), key.status) {
            (None, KeyStatus::Active) => Outcome::KeyAdded,
            (Some(old), new) if old == new => continue,
            (_, KeyStatus::Active) => Outcome::KeyAdded,
            (_, KeyStatus::Retired) => Outcome::KeyRetired,
            (_, KeyStatus::Revoked) => Outcome::KeyRevoked,
        };
        let mut entry = Entry::new(now, outcome);
        entry.key = Some(key.key_id);
        entries.push(entry);
    }
    if (before.required(), before.deny()) != (after.required(), after.deny()) {
        entries.push(Entry::new(now, Outcome::ConfigurationChanged));
    }
    entries
}

/// Held while the list changes.
fn turn(folder: &Path) -> Result<File, ApproversError> {
    let path = folder.join("approvers.lock");
    let open = || {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let file = options.open(&path)?;
        file.lock()?;
        Ok(file)
    };
    open().map_err(|error| ApproversError::Io {
        path: path.clone(),
        error,
    })
}

fn not_recorded(fault: Fault) -> NotChanged {
    NotChanged::NotRecorded(fault.to_string())
}

const ATTEMPTS: usize = 1000;
