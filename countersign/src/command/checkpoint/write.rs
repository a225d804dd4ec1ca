//! A log as files in the layout of tiled transparency logs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use countersign_store::{Published, Reader};
use countersign_tlog::tile::{Tile, TileKind, entries_to_bytes, hashes_to_bytes};

use crate::errors::{Code, Failure};
use crate::folder::replace;

/// The folder that is served.
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Writes what is missing. The checkpoint comes last: whoever reads it finds every tile of it.
    pub(crate) fn write(&self, published: &Published, reader: &Reader) -> Result<(), Failure> {
        let size = published.checkpoint.size;
        for level in Tile::levels(size) {
            for tile in Tile::of_level(TileKind::Hashes(level), size) {
                if self.lacks(&tile) {
                    self.put(&tile, &hashes(&tile, level, reader)?)?;
                }
            }
        }
        for tile in Tile::of_level(TileKind::Entries, size) {
            if self.lacks(&tile) {
                self.put(&tile, &entries(&tile, reader)?)?;
            }
        }
        let note = published.note.to_string();
        let path = self.path.join("checkpoint");
        replace(&path, note.as_bytes()).map_err(|error| unwritten(&path, &error))
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

/// The entries of a bundle are the hashes of its events.
fn entries(tile: &Tile, reader: &Reader) -> Result<Vec<u8>, Failure> {
    let hashes = reader.entries(tile.number, tile.width)?;
    let entries = hashes.iter().map(|hash| hash.as_bytes().as_slice());
    // A hash is far shorter than the longest entry.
    Ok(entries_to_bytes(entries).unwrap_or_default())
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write `{}`: {error}", path.display());
    Failure::new(Code::Output, message)
}
