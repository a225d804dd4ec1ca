//! Keys of text that was made safe.

use std::collections::BTreeMap;

use countersign_canon::Json;

use crate::Name;
use crate::form::{Form, Malformed, Members, ObjectText, read_list, write_list};

/// The newest keys that were registered.
///
/// FAIL-CLOSED: beyond [`SanitizedKeys::MAX`] the oldest key is forgotten, so that a call which
/// relies on it is treated as if its text had never been made safe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SanitizedKeys {
    /// Each key with the event that registered it last.
    keys: BTreeMap<Name, u64>,
}

impl SanitizedKeys {
    pub(crate) const MAX: usize = 256;

    /// Registers a key; tells whether it is a new one.
    pub(crate) fn register(&mut self, key: Name, seq: u64) -> bool {
        let is_new = self.keys.insert(key, seq).is_none();
        if self.keys.len() > Self::MAX {
            let oldest = self.keys.iter().min_by_key(|(_, seq)| **seq);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.keys.remove(&oldest);
            }
        }
        is_new
    }

    pub(crate) fn contains(&self, key: &str) -> bool {
        self.keys.contains_key(&Name::of(key))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Name> {
        self.keys.keys()
    }
}

impl Form for SanitizedKeys {
    fn write(&self, out: &mut Vec<u8>) {
        write_list(self.keys.iter(), out, |(key, seq), out| {
            ObjectText::begin(out)
                .member("key", key)
                .member("seq", seq)
                .end();
        });
    }

    fn read(json: &Json) -> Result<Self, Malformed> {
        let registered = |json: &Json| {
            let members = Members::of(json)?;
            Ok((members.read("key")?, members.read("seq")?))
        };
        Ok(Self {
            keys: read_list(json, Self::MAX, registered)?,
        })
    }
}
