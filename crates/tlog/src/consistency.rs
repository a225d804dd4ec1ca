//! Proofs that a tree has grown from a smaller one and that nothing in that one was changed.

use countersign_canon::Hash;

use crate::hash::{node, split};
use crate::inclusion::subtree;

/// The proof from the tree of `old` leaves to the tree of `new` leaves. `nodes` gives the root of a
/// whole subtree by its level and its place in it.
pub fn prove<E>(
    old: u64,
    new: u64,
    mut nodes: impl FnMut(u32, u64) -> Result<Hash, E>,
) -> Result<Vec<Hash>, E> {
    if old == 0 || old >= new {
        return Ok(Vec::new());
    }
    let (mut low, mut high) = (0, new);
    let mut away = Vec::new();
    // The old tree ends inside the leaves from `low` to `high`, or with them.
    while old < high {
        let middle = low + split(high - low);
        if old <= middle {
            away.push((middle, high));
            high = middle;
        } else {
            away.push((low, middle));
            low = middle;
        }
    }
    let mut proof = Vec::new();
    // Whoever has the old root knows the whole old tree, and needs no hash for it.
    if low > 0 {
        proof.push(subtree(low, high, &mut nodes)?);
    }
    for (low, high) in away.into_iter().rev() {
        proof.push(subtree(low, high, &mut nodes)?);
    }
    Ok(proof)
}

/// Whether the proof leads from one root to the other.
pub fn check(old: (u64, Hash), new: (u64, Hash), proof: &[Hash]) -> bool {
    let ((old_size, old_root), (new_size, new_root)) = (old, new);
    if old_size >= new_size || old_size == 0 {
        let fits = match old_size {
            0 => old_root == crate::hash::empty(),
            _ => old_size == new_size && old_root == new_root,
        };
        return fits && proof.is_empty();
    }
    let mut rest = proof.iter();
    let first = match old_size.is_power_of_two() {
        true => Some(&old_root),
        false => rest.next(),
    };
    let Some(first) = first else { return false };
    let (mut at, mut last) = (old_size - 1, new_size - 1);
    while at % 2 == 1 {
        at >>= 1;
        last >>= 1;
    }
    let (mut old_found, mut new_found) = (*first, *first);
    for next in rest {
        if last == 0 {
            return false;
        }
        if at % 2 == 1 || at == last {
            old_found = node(next, &old_found);
            new_found = node(next, &new_found);
            while at % 2 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            new_found = node(&new_found, next);
        }
        at >>= 1;
        last >>= 1;
    }
    last == 0 && old_found == old_root && new_found == new_root
}
