//! Information labels: what kinds of information the session has taken in.

use std::collections::BTreeSet;

use countersign_canon::Json;

use crate::Name;
use crate::form::{Form, Malformed, read_list, write_list};

/// The labels of every result so far.
///
/// FAIL-CLOSED: beyond [`Labels::MAX`] there is one more label, [`Labels::MORE`], which no clearance
/// covers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Labels(BTreeSet<Name>);

impl Labels {
    pub(crate) const MAX: usize = 64;
    const MORE: &str = "(more labels)";

    /// Adds labels; tells whether one of them is new.
    pub(crate) fn add(&mut self, labels: &[String]) -> bool {
        let before = self.0.len();
        for label in labels {
            let label = Name::of(label);
            let room = self.0.len() < Self::MAX || self.0.contains(&label);
            self.0
                .insert(if room { label } else { Name::of(Self::MORE) });
        }
        self.0.len() > before
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Name> {
        self.0.iter()
    }
}

impl Form for Labels {
    fn write(&self, out: &mut Vec<u8>) {
        write_list(self.0.iter(), out, Name::write);
    }

    fn read(json: &Json) -> Result<Self, Malformed> {
        read_list(json, Self::MAX + 1, <Name as Form>::read).map(Self)
    }
}
