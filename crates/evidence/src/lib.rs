//! Evidence in formats that others read: records of actions, digests of state and what may be
//! concluded from them.
//!
//! Everything here is pure: bytes and events in, reports and bytes out. The crate reads no clock, file,
//! network or randomness, and decides nothing about an action; it says what a record claims, which of
//! its claims hold, and which cannot be checked.
#![forbid(unsafe_code)]

mod account;
pub mod aep;
pub mod cloudevents;
pub mod envelope;
mod event;
pub mod state;
pub mod trust;
mod word;

pub use account::Account;
pub use event::Event;
