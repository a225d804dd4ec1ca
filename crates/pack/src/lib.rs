//! Evidence packs: one file with events, proofs, openings and keys, and a signed statement of what is in
//! it.
//!
//! The container is a plain tar file of regular files: everybody can open it, nothing is compressed, so
//! nothing can explode, and there is exactly one sequence of bytes for the same members ([`archive`]).
//! The first member is the statement, an in-toto statement in a DSSE envelope ([`dsse`], [`Statement`]),
//! with the digest of every other member. What the members hold is described in [`member`].
//!
//! The crate is pure: it makes bytes and reads them. It does *not* check what a pack claims; that is the
//! verifier's job, which shares these formats and nothing else.

#![forbid(unsafe_code)]

pub mod archive;
pub mod dsse;
pub mod member;
mod opening;
mod policies;
mod statement;

pub use opening::{DisclosedOpening, OpeningError};
pub use policies::{PolicyDocument, PolicyError};
pub use statement::{Listed, PREDICATE_TYPE, Selected, Statement, StatementError};
