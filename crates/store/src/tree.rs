//! The Merkle tree over all events: integrating what was sequenced, and proofs from its tiles.
//!
//! Leaf n is the hash of the event with the id n + 1, so the order of the leaves is the order in which
//! events were recorded, and there is nothing to keep in step. Events are hashed in batches beside the
//! writer; one short transaction stores the tiles of a batch, if the tree still is where the batch
//! begins. Of several processes that integrate at once, one is first and the others look again.

use countersign_canon::Hash;
use countersign_event::Line;
use countersign_tlog::tile::{self, hashes_from_bytes, hashes_to_bytes};
use countersign_tlog::{Edge, batch, consistency, hash, inclusion};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use crate::writer::{Command, observe};
use crate::{Error, Reader, Step, Store};

impl Store {
    /// Makes every event that is recorded now a leaf of the tree, and returns how many leaves it has.
    ///
    /// FAIL-CLOSED: stops at an event whose text does not fit its hash. Nothing that is damaged
    /// becomes part of the tree.
    pub fn integrate(&self) -> Result<u64, Error> {
        let last = self.reader().last_id()?;
        loop {
            let size = self.integrate_batch(MAX_BATCH)?;
            if size >= last {
                return Ok(size);
            }
        }
    }

    /// Integrates up to so many events. The tree may have grown by others meanwhile.
    fn integrate_batch(&self, most: u64) -> Result<u64, Error> {
        let Some((from, mut edge)) = self.reader().with(|db| grown(most, db))? else {
            return self.reader().tree_size();
        };
        let tiles = edge.take_tiles();
        let to = edge.size();
        let observer = self.observer().cloned();
        self.between(move |db| {
            let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // INVARIANT: tiles are stored only on top of the tree that they were made for.
            if size(&transaction)? != from {
                return size(&transaction);
            }
            for (level, number, hashes) in &tiles {
                store_tile(*level, *number, hashes, &transaction)?;
            }
            transaction.execute("UPDATE tree SET size = ?1", [signed(to)])?;
            observe(observer.as_ref(), Step::Integrating);
            transaction.commit()?;
            observe(observer.as_ref(), Step::Integrated);
            Ok(to)
        })
    }

    /// Runs a short transaction on the writing connection, between two batches of events.
    pub(crate) fn between<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.with_writer(Command::Between, work)
    }
}

/// The tree with the next events, and the size it had before; `None` when there are none.
fn grown(most: u64, db: &Connection) -> Result<Option<(u64, Edge)>, Error> {
    // One look at everything: what others integrate meanwhile is not seen.
    let db = db.unchecked_transaction()?;
    let from = size(&db)?;
    let mut edge = edge(from, &db)?;
    let mut statement = db.prepare_cached(NEXT)?;
    let mut rows = statement.query((signed(from), signed(most)))?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let text = row.get_ref(1)?.as_bytes().map_err(rusqlite::Error::from)?;
        let line = Line::read(text)?;
        if signed(edge.size() + 1) != id {
            return Err(Error::damaged(line.seq, "events before it are missing"));
        }
        if line.computed_hash() != line.hash {
            return Err(Error::damaged(
                line.seq,
                "its hash does not match its content",
            ));
        }
        edge.push(hash::leaf_of_hash(&line.hash));
    }
    Ok((edge.size() > from).then_some((from, edge)))
}

impl Reader {
    /// How many events are leaves of the tree.
    pub fn tree_size(&self) -> Result<u64, Error> {
        self.with(|db| match is_there(db)? {
            true => size(db),
            false => Ok(0),
        })
    }

    /// The root of the tree when it had so many leaves.
    pub fn tree_root(&self, leaves: u64) -> Result<Hash, Error> {
        self.with(|db| Ok(edge(leaves, db)?.root()))
    }

    /// The hashes of a tile, as many as there are; none if there is no such tile.
    pub fn tile(&self, level: u8, number: u64) -> Result<Vec<Hash>, Error> {
        self.with(|db| tile_hashes(level, number, db))
    }

    /// The entries of a bundle, as many as are asked for and there are: the hashes of the events as they
    /// are stored.
    pub fn entries(&self, number: u64, most: u64) -> Result<Vec<Hash>, Error> {
        let first = number.saturating_mul(tile::WIDTH);
        self.with(|db| {
            let mut statement = db.prepare_cached(NEXT)?;
            let mut rows = statement.query((signed(first), signed(most.min(tile::WIDTH))))?;
            let mut entries = Vec::new();
            while let Some(row) = rows.next()? {
                let text = row.get_ref(1)?.as_bytes().map_err(rusqlite::Error::from)?;
                entries.push(Line::read(text)?.hash);
            }
            Ok(entries)
        })
    }

    /// The path from a leaf to the root of the tree of this size.
    pub fn prove_inclusion(&self, leaf: u64, leaves: u64) -> Result<Vec<Hash>, Error> {
        self.in_tree(leaves, leaf.saturating_add(1))?;
        self.with(|db| inclusion::prove(leaf, leaves, nodes(db)))
    }

    /// The proof that a tree has grown out of a smaller one.
    pub fn prove_consistency(&self, old: u64, new: u64) -> Result<Vec<Hash>, Error> {
        self.in_tree(new, old)?;
        self.with(|db| consistency::prove(old, new, nodes(db)))
    }

    /// One proof for many leaves in rising order.
    pub fn prove_batch(&self, leaves: &[u64], size: u64) -> Result<Vec<Hash>, Error> {
        let needed = leaves.last().map_or(0, |last| last.saturating_add(1));
        self.in_tree(size, needed)?;
        self.with(|db| batch::prove(leaves, size, nodes(db)))
    }

    fn in_tree(&self, size: u64, needed: u64) -> Result<(), Error> {
        match size <= self.tree_size()? && needed <= size {
            true => Ok(()),
            false => Err(Error::NotIntegrated),
        }
    }
}

/// The right edge of the tree of a size that it has, or had.
pub(crate) fn edge(leaves: u64, db: &Connection) -> Result<Edge, Error> {
    let edge = Edge::read(leaves, |level, number| tile_hashes(level, number, db))?;
    edge.ok_or_else(|| Error::damaged(leaves, MISSING_TILE))
}

/// The roots of whole subtrees. Neighbours come from one tile, so the last one is kept.
fn nodes(db: &Connection) -> impl FnMut(u32, u64) -> Result<Hash, Error> {
    let mut last: Option<((u8, u64), Vec<Hash>)> = None;
    move |level, index| {
        let root = tile::subtree_root(level, index, |level, number| {
            if let Some((place, hashes)) = &last
                && *place == (level, number)
            {
                return Ok(hashes.clone());
            }
            let hashes = tile_hashes(level, number, db)?;
            last = Some(((level, number), hashes.clone()));
            Ok::<_, Error>(hashes)
        })?;
        root.ok_or_else(|| Error::damaged(index, MISSING_TILE))
    }
}

/// A log of an older version has no tree until somebody opens it for writing.
pub(crate) fn is_there(db: &Connection) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'tree'";
    Ok(db.prepare_cached(sql)?.exists([])?)
}

pub(crate) fn size(db: &Connection) -> Result<u64, Error> {
    let size: i64 = db
        .prepare_cached("SELECT size FROM tree")?
        .query_row([], |row| row.get(0))?;
    Ok(u64::try_from(size).unwrap_or_default())
}

fn tile_hashes(level: u8, number: u64, db: &Connection) -> Result<Vec<Hash>, Error> {
    let bytes: Option<Vec<u8>> = db
        .prepare_cached("SELECT hashes FROM tiles WHERE id = ?1")?
        .query_row([tile_id(level, number)], |row| row.get(0))
        .optional()?;
    hashes_from_bytes(&bytes.unwrap_or_default())
        .ok_or_else(|| Error::damaged(number, "a tile of the tree does not hold whole hashes"))
}

fn store_tile(level: u8, number: u64, hashes: &[Hash], db: &Connection) -> Result<(), Error> {
    let (id, bytes) = (tile_id(level, number), hashes_to_bytes(hashes));
    let changed = db
        .prepare_cached("UPDATE tiles SET hashes = ?2 WHERE id = ?1")?
        .execute((id, &bytes))?;
    if changed == 0 {
        db.prepare_cached("INSERT INTO tiles (id, hashes) VALUES (?1, ?2)")?
            .insert((id, &bytes))?;
    }
    Ok(())
}

fn tile_id(level: u8, number: u64) -> i64 {
    i64::from(level) << 48 | signed(number)
}

pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

const NEXT: &str = "SELECT id, line FROM events WHERE id > ?1 ORDER BY id LIMIT ?2";
/// Hashed in some milliseconds, and 256 KiB of tiles.
const MAX_BATCH: u64 = 8192;
const MISSING_TILE: &str = "a tile of the tree is missing or too short";
