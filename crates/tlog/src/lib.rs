//! A transparency log: one Merkle tree over everything, checkpoints that somebody answers for, and
//! proofs that a reader checks alone.
//!
//! Hashes are those of RFC 9162 (and RFC 6962), texts those of the C2SP specifications: signed notes,
//! checkpoints, cosignatures of witnesses, tiles and `tlog-proof` files. So readers that others wrote
//! can check what is written here.
//!
//! ```
//! use countersign_tlog::{hash, inclusion, Range};
//!
//! let leaves: Vec<_> = (0..5u8).map(|n| hash::leaf(&[n])).collect();
//! let mut tree = Range::default();
//! leaves.iter().for_each(|leaf| tree.push(*leaf));
//!
//! let nodes = |level, index| Ok::<_, ()>(Range::of_node(level, index, &leaves));
//! let path = inclusion::prove(3, 5, nodes)?;
//! assert_eq!(inclusion::root(3, leaves[3], 5, &path), Some(tree.root()));
//! # Ok::<(), ()>(())
//! ```
//!
//! The crate is pure: no clock, file, network or randomness. It does *not* store tiles, choose what a
//! leaf is, or decide which keys to trust.

#![forbid(unsafe_code)]

mod base64;
pub mod batch;
mod checkpoint;
pub mod consistency;
mod edge;
pub mod hash;
pub mod inclusion;
mod key;
mod note;
mod proof_file;
mod range;
mod statement;
pub mod tile;

pub use checkpoint::{Checkpoint, CheckpointError};
pub use edge::Edge;
pub use key::{Key, KeyError, KeyHint, Kind, Signer};
pub use note::{Note, NoteError, NoteSignature, Refused};
pub use proof_file::{ProofFile, ProofFileError};
pub use range::Range;
pub use statement::{Counted, Durability, Statement, session_entry};
