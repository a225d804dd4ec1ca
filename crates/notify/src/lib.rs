//! Web-hooks that tell people of new and decided approvals.
//!
//! A [`Notice`] names an approval; it carries no arguments, no people and nothing that would let
//! anybody decide. Its body is signed with a shared secret ([`Secret::sign`]); a [`Receiver`] refuses
//! what is not signed, too old or seen before. A [`Sender`] delivers on a thread of its own, from a
//! queue with an end: whoever decides never waits for the network, and a notice that cannot be
//! delivered is lost and counted, not an error of the decision.
#![forbid(unsafe_code)]

mod notice;
mod receiver;
mod secret;
mod sender;

pub use notice::Notice;
pub use receiver::{Receiver, Rejected};
pub use secret::{ID, SIGNATURE, Secret, SecretError, TIMESTAMP};
pub use sender::{Counts, Hook, HookError, Sender};
