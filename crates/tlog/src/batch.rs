//! One proof for many leaves: the roots of the subtrees that hold none of them, left to right.

use std::thread;

use countersign_canon::Hash;

use crate::hash::{node, split};
use crate::inclusion::subtree;

/// The place of a leaf, and its hash.
pub type Leaf = (u64, Hash);

/// The proof for leaves in rising order, all of them in the tree.
pub fn prove<E>(
    leaves: &[u64],
    size: u64,
    mut nodes: impl FnMut(u32, u64) -> Result<Hash, E>,
) -> Result<Vec<Hash>, E> {
    let mut proof = Vec::new();
    let mut open = vec![(0, size, leaves)];
    while let Some((low, high, leaves)) = open.pop() {
        if leaves.is_empty() && low < high {
            proof.push(subtree(low, high, &mut nodes)?);
        } else if high - low > 1 {
            let middle = low + split(high - low);
            let (left, right) = leaves.split_at(leaves.partition_point(|leaf| *leaf < middle));
            open.push((middle, high, right));
            open.push((low, middle, left));
        }
    }
    Ok(proof)
}

/// The root that the leaves and their proof lead to, worked out on up to `threads` threads. `None` if
/// the leaves do not rise or lie outside the tree, or the proof has another length than it must have.
pub fn root(leaves: &[Leaf], size: u64, proof: &[Hash], threads: usize) -> Option<Hash> {
    let rises = leaves.windows(2).all(|pair| match pair {
        [(first, _), (second, _)] => first < second,
        _ => false,
    });
    if !rises || leaves.last().is_some_and(|(last, _)| *last >= size) {
        return None;
    }
    if proof.len() as u64 != needed(leaves, 0, size) {
        return None;
    }
    if size == 0 {
        return Some(crate::hash::empty());
    }
    Part {
        leaves,
        proof,
        low: 0,
        high: size,
    }
    .root(threads.max(1))
}

/// How many hashes a proof for these leaves has.
fn needed(leaves: &[Leaf], low: u64, high: u64) -> u64 {
    let mut count = 0;
    let mut open = vec![(low, high, leaves)];
    while let Some((low, high, leaves)) = open.pop() {
        if leaves.is_empty() {
            count += u64::from(low < high);
        } else if (leaves.len() as u64) < high - low {
            let middle = low + split(high - low);
            let (left, right) = part(leaves, middle);
            open.push((low, middle, left));
            open.push((middle, high, right));
        }
    }
    count
}

/// Some leaves of a subtree, and the part of the proof that belongs to it.
#[derive(Clone, Copy)]
struct Part<'a> {
    leaves: &'a [Leaf],
    proof: &'a [Hash],
    low: u64,
    high: u64,
}

impl Part<'_> {
    /// INVARIANT: the proof has as many hashes as the leaves need, so every part finds its own.
    fn root(self, threads: usize) -> Option<Hash> {
        let mut rest = self.proof;
        if threads < 2 || self.leaves.len() < WORTH_A_THREAD {
            return self.walk(&mut rest);
        }
        let middle = self.low + split(self.high - self.low);
        let (left, right) = part(self.leaves, middle);
        let taken = usize::try_from(needed(left, self.low, middle)).ok()?;
        let (left_proof, right_proof) = self.proof.split_at_checked(taken)?;
        let left = Self {
            leaves: left,
            proof: left_proof,
            low: self.low,
            high: middle,
        };
        let right = Self {
            leaves: right,
            proof: right_proof,
            low: middle,
            high: self.high,
        };
        let (left, right) = thread::scope(|scope| {
            let beside = scope.spawn(|| left.root(threads / 2));
            let right = right.root(threads - threads / 2);
            (beside.join(), right)
        });
        Some(node(&left.ok()??, &right?))
    }

    /// Goes at most as deep as a tree is high.
    fn walk(self, rest: &mut &[Hash]) -> Option<Hash> {
        match self.leaves {
            [] => {
                let (first, later) = rest.split_first()?;
                *rest = later;
                Some(*first)
            }
            [(_, found)] if self.high - self.low == 1 => Some(*found),
            leaves => {
                let middle = self.low + split(self.high - self.low);
                let (left, right) = part(leaves, middle);
                let left = Self {
                    leaves: left,
                    high: middle,
                    ..self
                };
                let right = Self {
                    leaves: right,
                    low: middle,
                    ..self
                };
                let left = left.walk(rest)?;
                Some(node(&left, &right.walk(rest)?))
            }
        }
    }
}

fn part(leaves: &[Leaf], middle: u64) -> (&[Leaf], &[Leaf]) {
    leaves.split_at(leaves.partition_point(|(leaf, _)| *leaf < middle))
}

const WORTH_A_THREAD: usize = 4096;
