//! A checkpoint that somebody kept.

use countersign_tlog::{Checkpoint, Key, Kind, Note, Statement};
use countersign_verify::{Kept, Report};

use crate::command::trust::Trust;
use crate::errors::{Code, Failure};
use crate::input;

/// What it says, and whose word it is.
pub(super) struct KeptCheckpoint {
    pub(super) expected: Kept,
    /// The names of the keys that signed it.
    signed_by: Option<Vec<String>>,
}

impl KeptCheckpoint {
    /// Reads the file. With trusted keys, one of them must have signed it.
    pub(super) fn read(path: &str, trust: Option<&Trust>) -> Result<Self, Failure> {
        let refuse = |why: &dyn std::fmt::Display| {
            Failure::new(Code::Checkpoint, format!("`{path}`: {why}"))
        };
        let note = Note::read(&input::file(path, MAX_NOTE)?).map_err(|error| refuse(&error))?;
        let checkpoint = Checkpoint::read(note.text()).map_err(|error| refuse(&error))?;
        let signed_by = trust
            .map(|trust| signers(&note, &checkpoint.origin, trust))
            .transpose();
        let signed_by = signed_by.map_err(|why| {
            Failure::new(Code::Unverified, format!("the checkpoint `{path}`: {why}"))
        })?;
        let sessions = Statement::of(&checkpoint).map(|it| (it.sessions.count, it.sessions.hash));
        Ok(Self {
            expected: Kept {
                size: checkpoint.size,
                root: checkpoint.root,
                sessions,
            },
            signed_by,
        })
    }

    /// Adds whose word the checkpoint is.
    pub(super) fn tell(&self, report: &mut Report) {
        match &self.signed_by {
            Some(names) => report.checked.push(format!(
                "the signature(s) under the checkpoint, by {}",
                names.join(" and ")
            )),
            None => report
                .not_checked
                .push("who signed the checkpoint: give --trust with the key of the log".to_owned()),
        }
    }
}

/// Who signed: the log of this name, and witnesses.
fn signers(note: &Note, origin: &str, trust: &Trust) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let is_meant = |key: &&Key| key.kind() == Kind::Cosignature || key.name() == origin;
    for key in trust.keys.iter().filter(is_meant) {
        match note.verify(key) {
            Ok(_) => names.push(key.name().to_owned()),
            Err(countersign_tlog::Refused::Unsigned) => {}
            Err(wrong) => return Err(wrong.to_string()),
        }
    }
    match names.is_empty() {
        true => Err("no trusted key has signed it".to_owned()),
        false => Ok(names),
    }
}

const MAX_NOTE: usize = 1 << 20;
