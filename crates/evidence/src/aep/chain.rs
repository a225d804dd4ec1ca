//! Whether the records of one file follow each other.

use countersign_canon::{Hash, Json, Object};

use super::canonical::{self, UNLINKED};
use super::finding::{Code, Finding};
use crate::word::words;

words! {
    /// How the records of a file are linked.
    Continuity {
        /// Each record names the one before it, from a first one on.
        Intact = "intact",
        /// No record names another one: nothing can be concluded.
        NotPresent = "not-present",
        /// Some records name the one before them, some do not.
        Partial = "partial",
        /// The first record names one that was not given.
        Orphaned = "orphaned",
        /// A record names another one than the one before it.
        Broken = "broken",
    }
}

/// The links of the records of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Chain {
    /// How they are linked as a whole; `None` when a record could not be read.
    pub continuity: Option<Continuity>,
    /// What was found, by the index of its record.
    pub findings: Vec<(usize, Finding)>,
}

impl Chain {
    /// Whether the record of this index names one that does not stand before it.
    pub(super) fn is_loose(&self, index: usize) -> bool {
        self.findings.iter().any(|(place, finding)| {
            *place == index && matches!(finding.code, Code::LinkBroken | Code::PredecessorMissing)
        })
    }
}

/// Looks at the links of records in the order in which they stand.
pub(super) fn check(records: &[Option<&Object>]) -> Chain {
    let mut walk = Walk::default();
    let mut before: Option<&Object> = None;
    for (index, record) in records.iter().enumerate() {
        let Some(record) = record else {
            // FAIL-CLOSED: what cannot be read cannot be linked to.
            walk.unreadable = true;
            before = None;
            continue;
        };
        walk.link(index, record, before);
        before = Some(record);
    }
    walk.turned(records);
    walk.finish()
}

#[derive(Default)]
struct Walk {
    linked: usize,
    missing: usize,
    orphaned: bool,
    broken: bool,
    unreadable: bool,
    findings: Vec<(usize, Finding)>,
}

impl Walk {
    fn link(&mut self, index: usize, record: &Object, before: Option<&Object>) {
        let stated = record
            .get("prev_record_hash")
            .filter(|link| !link.is_null());
        match (stated, before) {
            (None, None) if index == 0 => {}
            (None, _) => {
                self.missing += 1;
                self.find(
                    index,
                    Code::LinkMissing,
                    "does not name the record before it",
                );
            }
            (Some(_), None) if index == 0 => {
                self.orphaned = true;
                let message = "names a record that was not given";
                self.find(index, Code::PredecessorMissing, message);
            }
            (Some(stated), before) => {
                if before.is_some_and(|before| names(stated, before)) {
                    self.linked += 1;
                } else {
                    self.broken = true;
                    let message = "names another record than the one before it";
                    self.find(index, Code::LinkBroken, message);
                }
            }
        }
    }

    /// A first record that names one of those after it was not the first: their order was changed.
    fn turned(&mut self, records: &[Option<&Object>]) {
        let mut records = records.iter().copied().flatten();
        let link = records
            .next()
            .filter(|_| self.orphaned)
            .and_then(|first| first.get("prev_record_hash"));
        let Some(link) = link else { return };
        if records.any(|later| names(link, later)) {
            self.broken = true;
            // It is not missing, so that is not told.
            self.findings.retain(|(index, _)| *index > 0);
            self.find(0, Code::LinkBroken, "names a record that stands after it");
            self.findings.sort_by_key(|(index, _)| *index);
        }
    }

    fn find(&mut self, index: usize, code: Code, message: &str) {
        let finding = Finding::new(code, "/prev_record_hash", message);
        self.findings.push((index, finding));
    }

    fn finish(self) -> Chain {
        let continuity = if self.broken {
            Some(Continuity::Broken)
        } else if self.unreadable {
            None
        } else if self.orphaned {
            Some(Continuity::Orphaned)
        } else if self.linked == 0 {
            Some(Continuity::NotPresent)
        } else if self.missing > 0 {
            Some(Continuity::Partial)
        } else {
            Some(Continuity::Intact)
        };
        Chain {
            continuity,
            findings: self.findings,
        }
    }
}

fn names(stated: &Json, before: &Object) -> bool {
    let Some(stated) = stated.as_str() else {
        return false;
    };
    let texts = canonical::texts(before, UNLINKED).unwrap_or_default();
    let mut hashes = texts.iter().map(|(_, text)| Hash::of(text).to_string());
    hashes.any(|hash| hash == stated)
}
