//! Proofs that a leaf is in a tree.

use countersign_canon::Hash;

use crate::hash::{node, split};

/// The path of a leaf in a tree of this size, from its neighbour up. `nodes` gives the root of a whole
/// subtree by its level and its place in it.
///
/// The leaf must be in the tree; otherwise the path is of no use.
pub fn prove<E>(
    leaf: u64,
    size: u64,
    mut nodes: impl FnMut(u32, u64) -> Result<Hash, E>,
) -> Result<Vec<Hash>, E> {
    let (mut low, mut high) = (0, size);
    let mut away = Vec::new();
    while high - low > 1 {
        let middle = low + split(high - low);
        if leaf < middle {
            away.push((middle, high));
            high = middle;
        } else {
            away.push((low, middle));
            low = middle;
        }
    }
    let path = away.into_iter().rev();
    path.map(|(low, high)| subtree(low, high, &mut nodes))
        .collect()
}

/// The root that a leaf and its path lead to; `None` if the path has another length than it must have.
pub fn root(leaf: u64, found: Hash, size: u64, path: &[Hash]) -> Option<Hash> {
    if leaf >= size {
        return None;
    }
    let (mut first, mut last) = (leaf, size - 1);
    let mut found = found;
    for next in path {
        if last == 0 {
            return None;
        }
        if first % 2 == 1 || first == last {
            found = node(next, &found);
            while first % 2 == 0 && first != 0 {
                first >>= 1;
                last >>= 1;
            }
        } else {
            found = node(&found, next);
        }
        first >>= 1;
        last >>= 1;
    }
    (last == 0).then_some(found)
}

/// The root of the leaves from `low` to `high`, where `low` is where a subtree of that size begins.
pub(crate) fn subtree<E>(
    low: u64,
    high: u64,
    nodes: &mut impl FnMut(u32, u64) -> Result<Hash, E>,
) -> Result<Hash, E> {
    let mut parts = Vec::new();
    let mut at = low;
    while at < high {
        let level = (high - at).ilog2();
        parts.push(nodes(level, at >> level)?);
        at += 1 << level;
    }
    let mut parts = parts.into_iter().rev();
    let last = parts.next().unwrap_or_else(crate::hash::empty);
    Ok(parts.fold(last, |right, left| node(&left, &right)))
}
