//! The first events of a log as the leaves of a tree, held against a checkpoint that somebody kept.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use countersign_canon::Hash;
use countersign_tlog::{Range, hash};

use crate::report::Problem;

/// What a checkpoint said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// How many events the log had.
    pub size: u64,
    /// The root of its tree.
    pub root: Hash,
    /// How many sessions it had, and the root of the tree of their heads.
    pub sessions: Option<(u64, Hash)>,
}

/// Collects leaves in order; they are hashed elsewhere, in pieces.
pub(crate) struct Leaves {
    kept: Kept,
    seen: u64,
    piece: Vec<Hash>,
    done: Arc<Mutex<BTreeMap<u64, Range>>>,
    /// What the chains said when the last leaf of the checkpoint was seen.
    sessions: Option<(u64, Hash)>,
}

/// Hashing that needs nobody else.
pub(crate) type Later = Box<dyn FnOnce() + Send>;

impl Leaves {
    pub(crate) fn new(kept: Kept) -> Self {
        Self {
            kept,
            seen: 0,
            piece: Vec::new(),
            done: Arc::default(),
            sessions: None,
        }
    }

    /// The next event. `heads` is asked once, when the checkpoint was made.
    pub(crate) fn push(&mut self, event: Hash, heads: impl FnOnce() -> Option<(u64, Hash)>) {
        if self.seen < self.kept.size {
            self.seen += 1;
            self.piece.push(event);
            if self.seen == self.kept.size {
                self.sessions = heads();
            }
        }
    }

    /// The work that has come together, if it is enough for one go or the last of it.
    pub(crate) fn work(&mut self) -> Option<Later> {
        let is_last = self.seen == self.kept.size && !self.piece.is_empty();
        (self.piece.len() >= PIECE || is_last).then(|| self.flush())
    }

    fn flush(&mut self) -> Later {
        let piece = std::mem::take(&mut self.piece);
        let start = self.seen - piece.len() as u64;
        let done = Arc::clone(&self.done);
        Box::new(move || {
            let mut range = Range::starting_at(start);
            let leaves = piece.iter().map(hash::leaf_of_hash);
            leaves.for_each(|leaf| range.push(leaf));
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.insert(start, range);
        })
    }

    /// What does not fit, once everything was seen.
    pub(crate) fn check(&mut self) -> Option<Problem> {
        let size = self.kept.size;
        if self.seen < size {
            return Some(Problem::Shorter {
                expected: size,
                found: self.seen,
            });
        }
        if !self.piece.is_empty() {
            self.flush()();
        }
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tree = Range::default();
        // FAIL-CLOSED: a piece that is missing leaves a tree of another size.
        let whole = done.values().all(|part| tree.join(part)) && tree.end() == size;
        if !whole || tree.root() != self.kept.root {
            return Some(Problem::Rewritten { size });
        }
        match (self.kept.sessions, self.sessions) {
            (Some(kept), Some(found)) if kept != found => Some(Problem::Sessions { size }),
            _ => None,
        }
    }

    /// Whether the heads of the sessions could be compared.
    pub(crate) fn saw_sessions(&self) -> bool {
        self.kept.sessions.is_some() && self.sessions.is_some()
    }
}

/// Some events' worth of hashing.
const PIECE: usize = 1024;
