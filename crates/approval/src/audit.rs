//! The audit: one line for each thing that happened to an approval, each holding the hash of the
//! line before, and a signed head that says how many there are.

mod chain;
mod entry;
mod head;
mod outcome;

pub use chain::{Absent, AuditChain, Condition, Damage, Evidence, Finding, Report, Torn};
pub use entry::{About, Entry};
pub use head::{Anchor, HEAD_CONTEXT, Head, SignedHead};
pub use outcome::Outcome;
