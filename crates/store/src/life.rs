//! The numbered steps in the life of an event, as far as the store knows them.

use std::sync::Arc;

/// How far an event has come. A process may die between any two of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Its payload was read strictly and has its declared types.
    Admitted,
    /// It has a sequence number and a hash.
    Sealed,
    /// It waits for the writer.
    Queued,
    /// It is in a transaction that is not yet committed.
    Written,
    /// The transaction was committed and fsynced; the caller does not know yet.
    Synced,
    /// It is in a batch of leaves that is not yet committed.
    Integrating,
    /// It is a leaf of the tree.
    Integrated,
    /// It is covered by a checkpoint that is signed and not yet committed.
    Signed,
    /// It is covered by a checkpoint.
    Published,
}

impl Step {
    /// Every step of an append, in order.
    pub const ALL: [Self; 5] = [
        Self::Admitted,
        Self::Sealed,
        Self::Queued,
        Self::Written,
        Self::Synced,
    ];

    /// Every step after it, in order.
    pub const LATER: [Self; 4] = [
        Self::Integrating,
        Self::Integrated,
        Self::Signed,
        Self::Published,
    ];
}

/// Is told of each step, on the thread that takes it. Meant for counters and crash tests.
pub type Observer = Arc<dyn Fn(Step) + Send + Sync>;
