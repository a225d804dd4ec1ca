//! The MCP proxy: a door between a client and a server that lets pass what is permitted, byte by
//! byte as it came, and records what passed.
//!
//! The core does no I/O. [`Frame`] reads one message strictly and without copying. A [`Session`] is
//! told the frames of both sides and answers with [`Effect`]s. What must be decided or recorded it
//! hands to the [`Gate`], the only way to the engine. A call reaches the server as an [`Outbound`],
//! which holds either a frame that calls nothing or one that the engine has begun. [`tools`] knows
//! what tools looked like when they were accepted.
//!
//! [`stdio`] drives a session over the pipes of a child process, [`http`] drives many between HTTP
//! clients and a server that is reached by HTTP.
#![forbid(unsafe_code)]

mod beside;
mod era;
pub mod frame;
mod gate;
pub mod http;
mod kept;
mod lines;
mod method;
mod outbound;
mod record;
mod reply;
mod seal;
mod session;
pub mod splice;
pub mod stdio;
pub mod tools;

pub use beside::apart;
pub use era::Era;
pub use frame::{Fault, Frame, FrameError, FrameLimits, Id, Kind, Params, Span};
pub use gate::{Call, Delivery, Done, Gate, Job, Waits};
pub use lines::{Line, Lines};
pub use method::{Method, Route};
pub use outbound::{Begun, Outbound};
pub use record::Entry;
pub use reply::{DENIED, HELD, RefusalForm, Refused};
pub use seal::Seal;
pub use session::{Effect, List, Session, Settings, ToolNames, Unknown};
