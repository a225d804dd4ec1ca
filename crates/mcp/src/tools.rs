//! Tool identity: what a tool looked like when it was accepted, and what it looks like now.
//!
//! A [`Definition`] is everything that a server says about a tool, unknown members included; its
//! digest changes with any of it. A [`Book`] holds the definitions that were accepted, at first
//! sight or by a person. A [`Shelf`] holds what the server shows now and says by [`Standing`] how a
//! tool relates to the books. [`flags`] points a reviewer to text that looks like instructions.
//!
//! Nothing here reads files or talks to a server.

mod book;
mod definition;
mod diff;
mod flags;
mod listing;
mod shelf;

pub use book::{Book, BookError, Origin, Pin, Sighting, Waiting};
pub use definition::{Definition, DefinitionError};
pub use diff::{Change, diff};
pub use flags::{Flag, Suspicion, flags};
pub use listing::Listing;
pub use shelf::{Objection, Shelf, Standing};

#[cfg(test)]
mod tests;
