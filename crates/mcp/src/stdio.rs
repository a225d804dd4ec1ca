//! The stdio door: a server as a child process, with a session between its pipes and ours.
//!
//! One loop owns the [`Session`](crate::Session). It waits for both sides, reads what they have, and writes what
//! fits into their pipes at once; two threads write what does not. Jobs run on a few threads beside it,
//! because they wait for the disk. Nobody holds more than a few frames: one side is not read while the
//! other does not take what is there.

mod child;
mod gauge;
mod guard;
mod mailbox;
mod run;
mod source;
mod writer;

pub use child::Ending;
pub use guard::{Guard, guard};
pub use run::{Door, Host};

pub(crate) use child::{Pipes, Server, wait_for_end};
pub(crate) use gauge::Gauge;
pub(crate) use writer::Writer;
