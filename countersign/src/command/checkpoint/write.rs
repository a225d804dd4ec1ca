//! A log as files in the layout of tiled transparency logs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use countersign_canon::Hash;
use countersign_event::Line;
use countersign_store::{Error, Filter, Published, Reader};
use countersign_tlog::tile::{Tile, TileKind, WIDTH, entries_to_bytes, hashes_to_bytes};

use crate::errors::{Code, Failure};
use crate::folder::replace;

/// The folder that is served.
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Writes what is missing. The checkpoint comes last: whoever reads it finds every tile of it.
    pub(super) fn write(&self, published: &Published, reader: &Reader) -> Result<(), Failure> {
        let size = published.checkpoint.size;
        for level in Tile::levels(size) {
            for tile in Tile::of_level(TileKind::Hashes(level), size) {
                if self.lacks(&tile) {
                    self.put(&tile, &hashes(&tile, level, reader)?)?;
                }
            }
        }
        let bundles = Tile::of_level(TileKind::Entries, size);
        let missing: Vec<Tile> = bundles.filter(|tile| self.lacks(tile)).collect();
        self.write_entries(&missing, reader)?;
        let note = published.note.to_string();
        let path = self.path.join("checkpoint");
        replace(&path, note.as_bytes()).map_err(|error| unwritten(&path, &error))
    }

    /// The entries of a bundle are the hashes of its events. Bundles are full but for the last, so what
    /// is missing are the last ones.
    fn write_entries(&self, missing: &[Tile], reader: &Reader) -> Result<(), Failure> {
        let Some(first) = missing.first() else {
            return Ok(());
        };
        let end = missing
            .last()
            .map_or(0, |last| last.number * WIDTH + last.width);
        let mut bundles = missing.iter();
        let mut hashes: Vec<Hash> = Vec::new();
        let mut open = bundles.next();
        reader.each(&Filter::default(), first.number * WIDTH, |event| {
            let Some(tile) = open.filter(|_| event.id <= end) else {
                return Ok(());
            };
            if event.id > tile.number * WIDTH {
                hashes.push(Line::read(&event.line).map_err(Error::from)?.hash);
            }
            if hashes.len() as u64 == tile.width {
                let entries = hashes.iter().map(|hash| hash.as_bytes().as_slice());
                // A hash is far shorter than the longest entry.
                self.put(tile, &entries_to_bytes(entries).unwrap_or_default())?;
                hashes.clear();
                open = bundles.next();
            }
            Ok::<_, Failure>(())
        })
    }

    fn lacks(&self, tile: &Tile) -> bool {
        !self.path.join(tile.to_string()).exists()
    }

    fn put(&self, tile: &Tile, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.path.join(tile.to_string());
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| replace(&path, bytes))
            .map_err(|error| unwritten(&path, &error))
    }
}

/// The stored tile may have grown since; only the part that the checkpoint covers is written.
fn hashes(tile: &Tile, level: u8, reader: &Reader) -> Result<Vec<u8>, Failure> {
    let mut hashes = reader.tile(level, tile.number)?;
    hashes.truncate(usize::try_from(tile.width).unwrap_or(usize::MAX));
    Ok(hashes_to_bytes(&hashes))
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write `{}`: {error}", path.display());
    Failure::new(Code::Output, message)
}
