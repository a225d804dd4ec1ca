//! Records of the Agent Evidence Protocol, versions 0.1 to 0.5: reading, checking, writing.
//!
//! [`check`] looks at the records of one file, which form a chain, on their raw bytes. It reports four
//! axes that do not imply one another: is each record well formed (structure), do its members agree
//! with each other and with the rules of the format (semantics), did somebody whose key is known sign
//! exactly this (authenticity), and do the records follow each other without a gap (chain). Members
//! that nobody knows are kept and signed like all others.
//!
//! That no record was left out cannot be concluded from records, so no axis claims it.

mod authenticity;
mod canonical;
mod chain;
mod check;
mod dsse;
mod finding;
mod project;
mod semantics;
mod structure;
mod version;
mod words;
mod write;

pub use authenticity::{Authenticity, Keys, KeysError, Profile, Signed};
pub use canonical::{Order, record_hash};
pub use chain::{Chain, Continuity};
pub use check::{Checked, Record, Report, check};
pub use dsse::Binding;
pub use finding::{Code, Finding, Judged};
pub use project::{Session, session};
pub use version::Version;
pub use words::{
    Backing, Decision, DenyReason, Gate, IdentitySource, Origin, RecordingMode, Resolution,
};
pub use write::{
    Action, Authority, Claim, Drift, Form, Outcome, Ran, Run, StateChange, Surroundings, Unsigned,
    WriteError,
};
