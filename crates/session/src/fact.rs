//! One event, as the fold sees it.

use countersign_event::{EventType, Payload};

/// An event whose sealed members are open.
#[derive(Clone, Copy)]
pub struct Fact<'a> {
    /// The place in the session, from 0.
    pub seq: u64,
    /// When it happened, as the recorder's clock said.
    pub ts_unix_ms: u64,
    /// What happened.
    pub event_type: EventType,
    /// The payload, admitted as one of this event type.
    pub payload: &'a Payload,
}

/// Why an event was not taken. The snapshot stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactError {
    /// The session has ended.
    // SECURITY: were it otherwise, a TERMINATION in the middle would wash off the taint.
    #[error("{0} after TERMINATION: the session is closed")]
    Closed(EventType),
    /// It is not the next event: the state would be one that no log has.
    #[error("event {found} where {expected} was expected")]
    NotNext {
        /// The sequence number that comes next.
        expected: u64,
        /// The sequence number of the event.
        found: u64,
    },
    /// The timestamp or the sequence number is outside what JSON keeps exactly.
    #[error("event {seq} has a number over the largest exact whole number")]
    OutOfRange {
        /// The sequence number of the event.
        seq: u64,
    },
    /// The payload was admitted as one of another event type.
    #[error("the payload of event {seq} is not one of {event_type}")]
    Mismatch {
        /// The sequence number of the event.
        seq: u64,
        /// What the event says it is.
        event_type: EventType,
    },
    /// Arguments or content that have no canonical form, which an admitted event cannot have.
    #[error("the payload has no canonical form: {0}")]
    NotCanonical(#[from] countersign_canon::Error),
}
