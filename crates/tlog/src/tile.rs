//! Tiles: how a tree is stored and served as files that never change.

use std::fmt;
use std::str::FromStr;

use countersign_canon::Hash;

use crate::base64::decimal;
use crate::hash::node;
use crate::range::Range;

/// Hashes of a full tile.
pub const WIDTH: u64 = 256;
/// Levels of the tree that one tile stands for.
pub const HEIGHT: u32 = 8;

/// A place where some hashes, or some entries, of a tree are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tile {
    /// What is in it.
    pub kind: TileKind,
    /// Its place in its level.
    pub number: u64,
    /// How many hashes or entries it has: 256 if it is full.
    pub width: u64,
}

/// What is in a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TileKind {
    /// Hashes, at this level: leaves at 0, roots of full tiles of the level below above it.
    Hashes(u8),
    /// The entries themselves.
    Entries,
}

impl Tile {
    /// The tiles of a level of a tree, the last one as wide as the tree has it.
    pub fn of_level(kind: TileKind, size: u64) -> impl Iterator<Item = Self> {
        let hashes = match kind {
            TileKind::Hashes(level) => hashes_at(level, size),
            TileKind::Entries => size,
        };
        (0..hashes.div_ceil(WIDTH)).map(move |number| Self {
            kind,
            number,
            width: (hashes - number * WIDTH).min(WIDTH),
        })
    }

    /// Every level of hashes that a tree of this size has.
    pub fn levels(size: u64) -> impl Iterator<Item = u8> {
        (0..8).take_while(move |level| hashes_at(*level, size) > 0)
    }
}

/// How many hashes a level of tiles has.
fn hashes_at(level: u8, size: u64) -> u64 {
    size.checked_shr(u32::from(level) * HEIGHT).unwrap_or(0)
}

/// The path of the file, such as `tile/0/x001/x234/067.p/5`.
impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TileKind::Hashes(level) => write!(f, "tile/{level}")?,
            TileKind::Entries => f.write_str("tile/entries")?,
        }
        let mut groups = vec![self.number % 1000];
        let mut rest = self.number / 1000;
        while rest > 0 {
            groups.push(rest % 1000);
            rest /= 1000;
        }
        let last = groups.len() - 1;
        for (place, group) in groups.iter().rev().enumerate() {
            let mark = if place < last { "x" } else { "" };
            write!(f, "/{mark}{group:03}")?;
        }
        match self.width {
            WIDTH => Ok(()),
            width => write!(f, ".p/{width}"),
        }
    }
}

/// The text is no path of a tile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no path of a tile", .0.escape_debug())]
pub struct TilePathError(String);

impl FromStr for Tile {
    type Err = TilePathError;

    fn from_str(path: &str) -> Result<Self, TilePathError> {
        // One text per tile: whatever is written in another way is refused.
        let tile = parse(path).filter(|tile| tile.to_string() == path);
        tile.ok_or_else(|| TilePathError(path.to_owned()))
    }
}

fn parse(path: &str) -> Option<Tile> {
    let (level, rest) = path.strip_prefix("tile/")?.split_once('/')?;
    let kind = match level {
        "entries" => TileKind::Entries,
        level => TileKind::Hashes(
            decimal(level)
                .filter(|level| *level < 64)?
                .try_into()
                .ok()?,
        ),
    };
    let (number, width) = match rest.split_once(".p/") {
        None => (rest, WIDTH),
        Some((number, width)) => (number, decimal(width)?),
    };
    let mut value: u64 = 0;
    for group in number.split('/') {
        let digits = group.strip_prefix('x').unwrap_or(group);
        let three = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let digits: u64 = three.then(|| digits.parse().ok())??;
        value = value.checked_mul(1000)?.checked_add(digits)?;
    }
    (1..=WIDTH).contains(&width).then_some(Tile {
        kind,
        number: value,
        width,
    })
}

/// The root of a whole subtree, from the tile that holds it or the hashes below it. `tile` gives the
/// hashes of the tile of a level with a number, as many as there are.
pub fn subtree_root<E>(
    level: u32,
    index: u64,
    tile: impl FnOnce(u8, u64) -> Result<Vec<Hash>, E>,
) -> Result<Option<Hash>, E> {
    let (tile_level, above) = (level / HEIGHT, level % HEIGHT);
    let first = index << above;
    let hashes = tile(u8::try_from(tile_level).unwrap_or(u8::MAX), first / WIDTH)?;
    let from = usize::try_from(first % WIDTH).unwrap_or(usize::MAX);
    let Some(part) = hashes.get(from..).and_then(|rest| rest.get(..1 << above)) else {
        return Ok(None);
    };
    Ok(Some(root_of(part)))
}

/// The root of whole hashes, as many as a power of two.
pub(crate) fn root_of(hashes: &[Hash]) -> Hash {
    match hashes {
        [left, right] => node(left, right),
        hashes => {
            let mut range = Range::default();
            hashes.iter().for_each(|hash| range.push(*hash));
            range.root()
        }
    }
}

/// The bytes of a tile of hashes.
pub fn hashes_to_bytes(hashes: &[Hash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| *hash.as_bytes()).collect()
}

/// The hashes of a tile; `None` if the bytes are not whole hashes, or more than a tile has.
pub fn hashes_from_bytes(bytes: &[u8]) -> Option<Vec<Hash>> {
    let (hashes, rest) = bytes.as_chunks::<32>();
    let fits = rest.is_empty() && hashes.len() as u64 <= WIDTH;
    fits.then(|| hashes.iter().copied().map(Hash::from_bytes).collect())
}

/// The bytes of a bundle of entries; `None` if one is longer than a bundle can hold.
pub fn entries_to_bytes<'a>(entries: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for entry in entries {
        let length = u16::try_from(entry.len()).ok()?;
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(entry);
    }
    Some(bytes)
}

/// The entries of a bundle; `None` if the bytes end within one, or there are more than a bundle has.
pub fn entries_from_bytes(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut entries = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let (entry, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        entries.push(entry);
        bytes = rest;
        if entries.len() as u64 > WIDTH {
            return None;
        }
    }
    bytes.is_empty().then_some(entries)
}
