//! What Agent Control needs from outside: files and pinned addresses ([`Disk`]), annotators and policy
//! engines that are asked over HTTP ([`Remote`]).
//!
//! Every call has an end: a time limit for the whole of it, a limit for its answer, no redirects that
//! nobody looked at, no proxies of the environment. Whatever fails is an error, and the runtime turns
//! errors into denials. Credentials come from environment variables that a manifest names, and go to
//! `https` addresses or to this machine only.
//!
//! The crate decides nothing, and keeps nothing.
#![forbid(unsafe_code)]

mod client;
mod disk;
mod guarded;
mod remote;
mod voice;

pub use disk::Disk;
pub use remote::Remote;
pub use voice::{VoiceFileError, voice};
