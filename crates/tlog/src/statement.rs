//! What a checkpoint of this log says beside its root: one extension line each.
//!
//! The root proves that what was there stays there. These lines let a reader of a part know that the
//! part has no missing end: how many events each session has, and where the audit ends.

use std::fmt;

use countersign_canon::{Hash, jcs};

use crate::base64::{decimal, decode_hash, encode};
use crate::checkpoint::Checkpoint;

/// The extension lines of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement {
    /// What an acknowledgement was worth.
    pub durability: Durability,
    /// How many sessions there are, and the root of the tree of their heads.
    pub sessions: Counted,
    /// How many entries the audit has, and the hash of the last one.
    pub audit: Counted,
}

/// A number of things and the hash that stands for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// How many.
    pub count: u64,
    /// The hash of all of them, or of the last.
    pub hash: Hash,
}

/// When an event was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// After it was on the disk, always.
    Full,
    /// At some time before that, by at least one process: the last events before a power cut may be
    /// missing although somebody was told of them.
    #[default]
    Relaxed,
}

impl Statement {
    /// The lines, in their order.
    pub fn to_lines(&self) -> Vec<String> {
        vec![
            format!("{DURABILITY} {}", self.durability),
            format!("{SESSIONS} {}", self.sessions),
            format!("{AUDIT} {}", self.audit),
        ]
    }

    /// What a checkpoint says; `None` if it has other lines than these.
    pub fn of(checkpoint: &Checkpoint) -> Option<Self> {
        let durability = match checkpoint.extension(DURABILITY)? {
            "full" => Durability::Full,
            "relaxed" => Durability::Relaxed,
            _ => return None,
        };
        let statement = Self {
            durability,
            sessions: Counted::read(checkpoint.extension(SESSIONS)?)?,
            audit: Counted::read(checkpoint.extension(AUDIT)?)?,
        };
        (statement.to_lines() == checkpoint.extensions).then_some(statement)
    }
}

impl Counted {
    fn read(text: &str) -> Option<Self> {
        let (count, hash) = text.split_once(' ')?;
        Some(Self {
            count: decimal(count)?,
            hash: decode_hash(hash)?,
        })
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.count, encode(self.hash.as_bytes()))
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Relaxed => "relaxed",
        })
    }
}

/// The entry of a session in the tree of sessions: the RFC 8785 form of its name, its count and its
/// head. Sessions stand in the order of their tenants and then of their own ids, byte by byte.
pub fn session_entry(tenant: &str, session: &str, count: u64, head: &Hash) -> Vec<u8> {
    let mut text = format!("{{\"count\":{count},\"head\":\"{head}\",\"session_id\":").into_bytes();
    jcs::write_string(session, &mut text);
    text.extend_from_slice(b",\"tenant_id\":");
    jcs::write_string(tenant, &mut text);
    text.push(b'}');
    text
}

const DURABILITY: &str = "durability";
const SESSIONS: &str = "sessions";
const AUDIT: &str = "audit";
