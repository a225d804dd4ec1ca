//! The HTTP door: MCP's Streamable HTTP on both sides, with a [`Session`](crate::Session) between.
//!
//! Every message of a client is one POST and becomes one POST to the server. What comes back, a body
//! or a stream of events, is read message by message and goes out where it belongs: nothing is
//! buffered beyond the message that is looked at. The engine waits for the disk, so its jobs run on
//! threads of their own, a bounded number of them; a session is locked only while it thinks, never
//! while anybody waits.
//!
//! A server can also be a program that is started for each session ([`Program`]): then its lines are
//! what the streams carry.
//!
//! What is decided is decided on bodies. Headers that repeat the body are compared with it.

mod batch;
mod beside;
mod body;
mod early;
mod exchange;
mod farewell;
mod headers;
mod link;
mod lobby;
mod loss;
mod mailbox;
mod metadata;
mod mirror;
mod pages;
mod pipes;
mod places;
mod plain;
mod pump;
mod reply;
mod request;
mod route;
mod serve;
mod sse;
mod upstream;

pub use countersign_web::Access;
pub use link::{Opened, Reception};
pub use serve::{Door, Limits, Served};
pub use upstream::{Program, Remote, Upstream, UpstreamError};
