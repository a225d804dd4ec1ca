//! The hashes that stand for a run of leaves.

use countersign_canon::Hash;

use crate::hash;

/// Leaves from `start` to `end`, as the roots of the largest whole subtrees between them. Two ranges
/// that meet are joined without their leaves, so parts of a tree can be hashed side by side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Range {
    start: u64,
    end: u64,
    hashes: Vec<Hash>,
}

impl Range {
    /// A range without leaves that begins at `start`.
    pub fn starting_at(start: u64) -> Self {
        Self {
            start,
            end: start,
            hashes: Vec::new(),
        }
    }

    /// The first leaf.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// One past the last leaf.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Adds the next leaf, given by its hash.
    pub fn push(&mut self, leaf: Hash) {
        self.append(0, leaf);
    }

    /// Adds the range that begins where this one ends. `false` if it begins elsewhere; then nothing
    /// changes.
    #[must_use]
    pub fn join(&mut self, next: &Self) -> bool {
        if next.start != self.end {
            return false;
        }
        let mut at = next.start;
        for found in &next.hashes {
            let level = largest(at, next.end);
            self.append(level, *found);
            at += 1 << level;
        }
        true
    }

    /// The root of the tree that these leaves are, if they begin at its first.
    ///
    /// A range that begins elsewhere is no tree; what comes back for it is no root of one.
    pub fn root(&self) -> Hash {
        let mut hashes = self.hashes.iter().rev();
        let Some(last) = hashes.next() else {
            return hash::empty();
        };
        hashes.fold(*last, |right, left| hash::node(left, &right))
    }

    /// The root of the whole subtree with this place, from the hashes of all leaves. For small trees.
    pub fn of_node(level: u32, index: u64, leaves: &[Hash]) -> Hash {
        let mut range = Self::starting_at(index << level);
        let from = usize::try_from(index << level).unwrap_or(usize::MAX);
        let leaves = leaves.iter().skip(from).take(1 << level);
        leaves.for_each(|leaf| range.push(*leaf));
        range.root()
    }

    fn append(&mut self, mut level: u32, mut found: Hash) {
        let mut index = self.end >> level;
        self.end += 1 << level;
        while index % 2 == 1 && ((index - 1) << level) >= self.start {
            let Some(left) = self.hashes.pop() else { break };
            found = hash::node(&left, &found);
            level += 1;
            index >>= 1;
        }
        self.hashes.push(found);
    }
}

/// The level of the largest whole subtree that begins at `at` and does not pass `end`.
fn largest(at: u64, end: u64) -> u32 {
    let room = (end - at).max(1).ilog2();
    match at {
        0 => room,
        _ => at.trailing_zeros().min(room),
    }
}
