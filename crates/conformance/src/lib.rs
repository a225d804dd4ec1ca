//! Conformance: what a server of this kind must do, as data.
//!
//! A [`Pack`] has requirements and cases; a case is a few [`Step`]s with what must come back. [`run`]
//! walks through them with a [`Peer`], which is whatever stands between us and the server: it sends
//! requests, and does what only a neighbour of the server can (start it again, sign as a person, look
//! into its files). A [`Report`] tells what held, as JSON, JUnit or a badge.
//!
//! It opens no connection and reads no file; the peer does.
#![forbid(unsafe_code)]

mod badge;
mod case;
mod chain;
mod expect;
mod junit;
mod pack;
mod peer;
mod report;
mod run;
mod step;
mod template;

pub use case::Case;
pub use expect::Mismatch;
pub use pack::{BUILT_IN, Pack, PackError};
pub use peer::{Answer, Deed, Door, Peer, Request, Trouble};
pub use report::{Outcome, PackReport, Report, Tested};
pub use run::run;
pub use step::{Act, Step};
