//! The offline verifier: recomputes everything that a log claims about itself.
//!
//! It reads an exported stream ([`verify_stream`]), an evidence pack ([`pack::verify_pack`]) or, with the
//! feature `database`, a log database ([`database::verify_database`]). It depends on the formats of
//! events, approvals, packs and transparency logs and on nothing of the program that wrote the log: no
//! store, no private keys, no clock, no network. Every report says what was checked and what was not.
#![forbid(unsafe_code)]

mod chains;
#[cfg(feature = "database")]
pub mod database;
mod examine;
mod expectation;
pub mod pack;
mod pipeline;
mod report;
mod stream;
mod tree;

pub use examine::{Opener, Openings};
pub use expectation::{Expectation, Selection};
pub use report::{Finding, Place, Problem, Progress, Report, SessionReport};
pub use stream::{verify_stream, verify_text};
pub use tree::Kept;
