//! The embedded store: one SQLite file that several processes may share.
//!
//! [`Store`] appends. One writer thread drains a bounded queue and commits many events per
//! transaction, so that they share the cost of one fsync; an append is answered with [`Recorded`]
//! only after that fsync. Every append is a compare-and-swap on the head of its session's chain, so
//! a conflict is an error and never a fork. [`Reader`] reads, on connections of its own.
//!
//! The store decides nothing and reads no clock: timestamps come with the events. It does not
//! verify history on request either; that is the job of the offline verifier, which shares no code
//! with this crate but the event format.
#![forbid(unsafe_code)]

mod approval;
mod audit;
mod backlog;
mod checkpoint;
mod cursor;
mod durability;
mod error;
mod evidence;
mod folder;
mod history;
mod identity;
mod keys;
mod lane;
mod lease;
mod life;
mod queue;
mod reader;
mod room;
mod schema;
mod session;
mod store;
mod tree;
mod writer;

pub use approval::{Approval, Change, ChangeRefused, Requested};
pub use checkpoint::{Published, SessionHead};
pub use cursor::{Cursor, CursorError};
pub use durability::Durability;
pub use error::{Conflict, Error};
pub use folder::Folder;
pub use history::Opened;
pub use identity::TokenRow;
pub use keys::Rotation;
pub use lease::{Grant, LeaseRow};
pub use life::{Observer, Step};
pub use reader::{Filter, Page, PageError, Reader, Stored};
pub use session::{Erasure, SessionFilter, SessionPage, SessionSummary};
pub use store::{At, Draft, Events, Options, Pending, Store};
pub use writer::{Haste, Recorded};
