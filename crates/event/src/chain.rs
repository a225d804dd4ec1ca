//! The head of a chain and the rule that links one event to the next.

use countersign_canon::Hash;

/// How far a session's chain has come: the number of events and the hash of the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    count: u64,
    hash: Option<Hash>,
}

/// Why an event is not the next one after a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The sequence number jumps ahead: events between are missing.
    #[error("sequence number {found} where {expected} was expected: events are missing")]
    Gap {
        /// The next number of the chain.
        expected: u64,
        /// The number of the event.
        found: u64,
    },
    /// The sequence number was used before.
    #[error("sequence number {found} was used before: a duplicate, a reordering or a fork")]
    Reused {
        /// The next number of the chain.
        expected: u64,
        /// The number of the event.
        found: u64,
    },
    /// The event names another predecessor.
    #[error("event {seq} names another predecessor than the event before it")]
    Broken {
        /// The number of the event.
        seq: u64,
        /// The hash of the event before it.
        expected: Option<Hash>,
        /// What the event names.
        found: Option<Hash>,
    },
}

impl Head {
    /// The head of a chain that has no event yet.
    pub const GENESIS: Self = Self {
        count: 0,
        hash: None,
    };

    /// The head after the event with this number and hash.
    pub fn after(seq: u64, hash: Hash) -> Self {
        Self {
            count: seq.saturating_add(1),
            hash: Some(hash),
        }
    }

    /// How many events the chain has; also the next sequence number.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The hash of the last event; `None` before the first.
    pub fn hash(&self) -> Option<Hash> {
        self.hash
    }

    /// Whether an event with this number and predecessor is the next one.
    pub fn accepts(&self, seq: u64, prev_hash: Option<&Hash>) -> Result<(), LinkError> {
        let expected = self.count;
        if seq > expected {
            return Err(LinkError::Gap {
                expected,
                found: seq,
            });
        }
        if seq < expected {
            return Err(LinkError::Reused {
                expected,
                found: seq,
            });
        }
        if prev_hash != self.hash.as_ref() {
            return Err(LinkError::Broken {
                seq,
                expected: self.hash,
                found: prev_hash.copied(),
            });
        }
        Ok(())
    }
}
