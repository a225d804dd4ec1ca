//! The MCP proxy: a door between a client and a server that lets pass what is permitted, byte by
//! byte as it came, and records what passed.
//!
//! The core does no I/O. [`Frame`] reads one message strictly and without copying; [`tools`] knows
//! what tools looked like when they were accepted.
#![forbid(unsafe_code)]

mod era;
pub mod frame;
mod lines;
mod method;
pub mod splice;
pub mod tools;

pub use era::Era;
pub use frame::{Fault, Frame, FrameError, FrameLimits, Id, Kind, Params, Span};
pub use lines::{Line, Lines};
pub use method::{Method, Route};
