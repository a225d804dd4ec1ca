//! An event of the log, as evidence is made from it.

use countersign_canon::{Hash, Json};
use countersign_event::{EventType, Line};

/// An event with as much of its payload as could be opened.
#[derive(Clone)]
pub struct Event {
    /// Its place in the session.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
    /// When it happened.
    pub at_unix_ms: u64,
    /// Its type.
    pub event_type: EventType,
    /// Its payload.
    pub payload: Json,
}

impl Event {
    /// An event, and its payload as it was opened.
    pub fn new(line: &Line<'_>, payload: Json) -> Self {
        Self {
            seq: line.seq,
            hash: line.hash,
            at_unix_ms: line.ts_unix_ms,
            event_type: line.event_type,
            payload,
        }
    }

    pub(crate) fn text(&self, member: &str) -> Option<&str> {
        self.payload.get(member).and_then(Json::as_str)
    }
}
