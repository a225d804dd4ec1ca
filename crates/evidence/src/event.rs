//! An event of the log, as evidence is made from it.

use countersign_canon::{Hash, Json, Limits};
use countersign_event::{EventType, Line, payload};

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

    /// An event with its public members and those sealed values that were opened, by place. Values that
    /// fit no place stay closed.
    pub fn disclosed(line: &Line<'_>, opened: Vec<(String, Json)>) -> Self {
        let limits = Limits {
            max_bytes: usize::MAX,
            ..Limits::event()
        };
        // A line that was read has a payload that is strict JSON.
        let public = Json::admit(line.payload, &limits).unwrap_or(Json::Null);
        let mut public = public.into_object().unwrap_or_default();
        public.remove("sealed");
        let joined = match opened.is_empty() {
            true => None,
            false => payload::join(public.clone(), opened),
        };
        Self::new(line, joined.unwrap_or(Json::Object(public)))
    }

    pub(crate) fn text(&self, member: &str) -> Option<&str> {
        self.payload.get(member).and_then(Json::as_str)
    }
}
