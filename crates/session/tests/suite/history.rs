//! Events for tests, and their fold.

use countersign_canon::{Json, Limits};
use countersign_event::{EventType, Payload};
use countersign_session::{Fact, FactError, Snapshot};

/// An event that has no place in a session yet.
#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) ts_unix_ms: u64,
    pub(crate) event_type: EventType,
    /// The payload as text.
    pub(crate) text: String,
    payload: Payload,
}

impl Event {
    pub(crate) fn new(ts_unix_ms: u64, event_type: EventType, text: &str) -> Self {
        let json = Json::admit(text.as_bytes(), &Limits::event()).unwrap();
        let payload = Payload::admit(event_type, json).unwrap();
        let text = text.to_owned();
        Self {
            ts_unix_ms,
            event_type,
            text,
            payload,
        }
    }
}

/// The snapshot after these events, each given by its type and payload, one second apart.
pub(crate) fn fold(events: &[(&str, &str)]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (seq, (event_type, payload)) in (0..).zip(events) {
        let event_type = event_type.parse().unwrap();
        apply(&mut snapshot, &Event::new(seq * 1000, event_type, payload)).unwrap();
    }
    snapshot
}

pub(crate) fn fold_events(events: &[Event]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for event in events {
        apply(&mut snapshot, event).unwrap();
    }
    snapshot
}

/// Applies the event as the next one.
pub(crate) fn apply(snapshot: &mut Snapshot, event: &Event) -> Result<(), FactError> {
    snapshot.apply(&Fact {
        seq: snapshot.counters().events,
        ts_unix_ms: event.ts_unix_ms,
        event_type: event.event_type,
        payload: &event.payload,
    })
}
