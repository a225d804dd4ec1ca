//! The right edge of a tree in tiles: all that is needed to make it grow.

use countersign_canon::Hash;

use crate::hash;
use crate::tile::{WIDTH, root_of};

/// The unfinished tile of every level.
///
/// Growing gives the tiles that are full now; they never change again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edge {
    size: u64,
    /// Fewer than 256 hashes at each level.
    levels: Vec<Vec<Hash>>,
    full: Vec<FullTile>,
}

/// A tile that has become full: level, number and hashes.
pub(crate) type FullTile = (u8, u64, Vec<Hash>);

impl Edge {
    /// The edge of a tree of this size. `tile` gives the hashes of the unfinished tile of a level;
    /// `None` if they are not as many as the size says.
    pub fn read<E>(
        size: u64,
        mut tile: impl FnMut(u8, u64) -> Result<Vec<Hash>, E>,
    ) -> Result<Option<Self>, E> {
        let mut edge = Self {
            size,
            ..Self::default()
        };
        let mut left = size;
        for level in 0.. {
            if left == 0 {
                break;
            }
            let width = usize::try_from(left % WIDTH).unwrap_or_default();
            let mut hashes = match width {
                0 => Vec::new(),
                _ => tile(level, left / WIDTH)?,
            };
            if hashes.len() < width {
                return Ok(None);
            }
            // What a later write has added is not part of this tree.
            hashes.truncate(width);
            edge.levels.push(hashes);
            left /= WIDTH;
        }
        Ok(Some(edge))
    }

    /// How many leaves the tree has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds the next leaf, given by its hash.
    pub fn push(&mut self, leaf: Hash) {
        let mut number = self.size / WIDTH;
        self.size += 1;
        let mut next = leaf;
        for level in 0u8.. {
            let at = usize::from(level);
            if self.levels.len() == at {
                self.levels.push(Vec::with_capacity(WIDTH as usize));
            }
            let Some(hashes) = self.levels.get_mut(at) else {
                return;
            };
            hashes.push(next);
            if (hashes.len() as u64) < WIDTH {
                return;
            }
            next = root_of(hashes);
            self.full.push((level, number, std::mem::take(hashes)));
            number /= WIDTH;
        }
    }

    /// The tiles that have become full since the last call, and the unfinished ones: level, number
    /// and hashes of each. All of them together are what has to be stored.
    pub fn take_tiles(&mut self) -> Vec<(u8, u64, Vec<Hash>)> {
        let mut tiles = std::mem::take(&mut self.full);
        let mut hashes_below = self.size;
        for (level, hashes) in (0..).zip(&self.levels) {
            if !hashes.is_empty() {
                tiles.push((level, hashes_below / WIDTH, hashes.clone()));
            }
            hashes_below /= WIDTH;
        }
        tiles
    }

    /// The root of the tree.
    pub fn root(&self) -> Hash {
        // From the smallest subtree up: the right one is always the smaller.
        let mut right: Option<Hash> = None;
        for hashes in &self.levels {
            let mut rest = hashes.as_slice();
            let mut roots = Vec::new();
            while !rest.is_empty() {
                let (whole, later) = rest.split_at(1 << rest.len().ilog2());
                roots.push(root_of(whole));
                rest = later;
            }
            for left in roots.iter().rev() {
                right = Some(right.map_or(*left, |right| hash::node(left, &right)));
            }
        }
        right.unwrap_or_else(hash::empty)
    }
}
