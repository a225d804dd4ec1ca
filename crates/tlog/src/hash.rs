//! The two hashes of a tree, told apart by their first byte.

use countersign_canon::Hash;

/// The hash of an entry.
pub fn leaf(entry: &[u8]) -> Hash {
    Hash::of_parts(&[&[0], entry])
}

/// The hash of an entry that is a hash itself, in one go.
pub fn leaf_of_hash(entry: &Hash) -> Hash {
    let mut text = [0; 33];
    if let Some(rest) = text.get_mut(1..) {
        rest.copy_from_slice(entry.as_bytes());
    }
    Hash::of(&text)
}

/// The hash of two neighbours.
pub fn node(left: &Hash, right: &Hash) -> Hash {
    let mut text = [1; 65];
    if let Some((first, second)) = text.get_mut(1..).and_then(|it| it.split_at_mut_checked(32)) {
        first.copy_from_slice(left.as_bytes());
        second.copy_from_slice(right.as_bytes());
    }
    Hash::of(&text)
}

/// The root of a tree without leaves.
pub fn empty() -> Hash {
    Hash::of(b"")
}

/// Where a tree of this many leaves parts: the largest power of two below it.
pub(crate) fn split(leaves: u64) -> u64 {
    match leaves {
        0 | 1 => leaves,
        more => 1 << (more - 1).ilog2(),
    }
}
