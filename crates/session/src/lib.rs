//! The session snapshot: budgets, taint, trust and loops as a pure fold over the events of one
//! session.
//!
//! [`Snapshot::apply`] takes one event after the other. The snapshot depends on the events alone:
//! no clock, no thresholds, no manifest. What a manifest says ([`LoopRules`], the tools whose output
//! it trusts) comes in when a question is asked, so the same events give the same bytes and the same
//! [`Snapshot::hash`] whatever the policy, and a snapshot that was saved and read back goes on as if
//! it had never been away.
//!
//! ```
//! use countersign_canon::{Json, Limits};
//! use countersign_event::{EventType, Payload};
//! use countersign_session::{Fact, Snapshot};
//!
//! let mut snapshot = Snapshot::default();
//! let result = Json::admit(br#"{"call_id":"c1","content":"hello"}"#, &Limits::event())?;
//! let event_type = EventType::ToolResult;
//! let payload = Payload::admit(event_type, result)?;
//! snapshot.apply(&Fact { seq: 0, ts_unix_ms: 1_760_000_000_000, event_type, payload: &payload })?;
//! assert!(snapshot.is_tainted());
//! assert_eq!(Snapshot::from_bytes(&snapshot.to_bytes())?, snapshot);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A snapshot has a bounded size, however long its session is: lists have a cap, and long text is
//! held by its digest ([`Name`]). It holds public members and digests, never the content of
//! arguments or results; the digests are not salted, so a stored snapshot deserves the same care as
//! a sealed payload.
//!
//! The crate does *not* decide anything, check the order of events (`countersign_event::Order`
//! does), or store anything.

#![forbid(unsafe_code)]

mod calls;
mod counters;
mod fact;
mod form;
mod labels;
mod last;
mod loops;
mod name;
mod progress;
mod sanitized;
mod snapshot;
mod taint;
mod trust;
mod view;

pub use calls::Call;
pub use counters::Counters;
pub use fact::{Fact, FactError};
pub use form::{Malformed, SnapshotError};
pub use last::LastOutcomes;
pub use loops::{LoopKind, LoopRules, LoopViolation};
pub use name::Name;
pub use snapshot::Snapshot;
pub use taint::{Label, Source, Taint};
pub use trust::{Handoff, Trust};
pub use view::{Next, Terms, View};
