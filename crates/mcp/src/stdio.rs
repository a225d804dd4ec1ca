//! The stdio door: a server as a child process, with a session between its pipes and ours.
//!
//! Threads read both sides, cut lines and hand them to one loop that owns the [`Session`](crate::Session); jobs run
//! on a few threads beside it, because they wait for the disk; two threads write. Nobody holds more
//! than a few frames: who reads waits while the other side does not take what is there.

mod child;
mod gauge;
mod guard;
mod pump;
mod run;
mod writer;

pub use child::Ending;
pub use guard::guard;
pub use run::{Door, Host};

pub(crate) use child::{Pipes, Server, wait_for_end};
pub(crate) use gauge::Gauge;
pub(crate) use guard::Guard;
pub(crate) use writer::Writer;
