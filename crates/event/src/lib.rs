//! The durable formats of the log: envelope, event types, typed payloads, sealed members, hash
//! chain and the order that events of one call must follow.
//!
//! Everything here is pure. The crate reads no clock, file, network or randomness, encrypts nothing
//! and stores nothing; it says which bytes an event has, which hash covers them, and whether an
//! event may follow the ones before it. The writer and the offline verifier share this crate and
//! nothing else.
#![forbid(unsafe_code)]

mod body;
mod chain;
mod commitment;
mod envelope;
mod fetch;
mod id;
mod line;
mod order;
pub mod payload;
#[cfg(test)]
#[path = "../tests/suite/random.rs"]
mod random;
mod trace;

pub use body::{Body, Refs, Seal};
pub use chain::{Head, LinkError};
pub use commitment::{Opening, Salt};
pub use envelope::{EnvelopeError, MAX_EXACT, Sealed};
pub use fetch::{FETCHING, fetching};
pub use id::{IdError, Scope, SessionId, TenantId};
pub use line::{Line, LineError, SealText};
pub use order::{Order, OrderError};
pub use payload::{EventType, Payload, PayloadError, UnknownEventType};
pub use trace::{TraceError, TraceParent};
