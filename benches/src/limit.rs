//! The limits: what the disk, SQLite and SHA-256 do when nothing else is asked of them.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use countersign_canon::Hash;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, TransactionBehavior};

use crate::measure::{Latencies, Result};

/// Where a bare write goes.
#[derive(Clone, Copy)]
pub(crate) enum Write {
    /// To the end of a file that grows, like a new log.
    Append,
    /// Over older content, like a log that is recycled.
    Overwrite,
}

/// Writes 4 KiB to a file and waits for the disk, again and again.
pub(crate) fn bare_fsync(write: Write, folder: &Path, duration: Duration) -> Result<Latencies> {
    let mut file = File::create(folder.join("bare"))?;
    if let Write::Overwrite = write {
        file.write_all(&[0; RECYCLED])?;
        file.sync_all()?;
    }
    let mut latencies = Latencies::default();
    let end = Instant::now() + duration;
    while Instant::now() < end {
        let start = Instant::now();
        if let Write::Overwrite = write {
            let offset = latencies.len() * PAGE % RECYCLED;
            file.seek(SeekFrom::Start(offset as u64))?;
        }
        file.write_all(&[7; PAGE])?;
        file.sync_data()?;
        latencies.push(start.elapsed());
    }
    Ok(latencies)
}

/// The row of an event, byte by byte as the store wrote it.
pub(crate) struct Row {
    session: i64,
    seq: i64,
    line: Vec<u8>,
    sealed: Option<Vec<u8>>,
}

/// The rows of a log from one place to another.
pub(crate) fn rows(database: &Path, from: usize, to: usize) -> Result<Vec<Row>> {
    let db = Connection::open(database)?;
    let sql =
        "SELECT session, seq, line, sealed FROM events WHERE id > ?1 AND id <= ?2 ORDER BY id";
    let mut statement = db.prepare(sql)?;
    let rows = statement.query_map((from as i64, to as i64), |row| {
        let line = row.get_ref(2)?.as_bytes()?.to_vec();
        Ok(Row {
            session: row.get(0)?,
            seq: row.get(1)?,
            line,
            sealed: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// SQLite with the store's table, index and durability, on one thread; rows are ready-made.
pub(crate) struct RawSqlite(Connection);

impl RawSqlite {
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let db = Connection::open(folder.join("raw.db"))?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "FULL")?;
        db.pragma_update(None, "wal_autocheckpoint", 1000)?;
        db.execute_batch(
            "CREATE TABLE events (
                 id INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL,
                 line TEXT NOT NULL, sealed BLOB, UNIQUE (session, seq)
             ) STRICT;",
        )?;
        Ok(Self(db))
    }

    /// Inserts the rows, that many per transaction on average.
    pub(crate) fn insert(&mut self, rows: &[Row], batch: f64) -> Result<Duration> {
        let start = Instant::now();
        let mut rest = rows;
        let mut due = 0.0;
        while !rest.is_empty() {
            due += batch;
            let done = rows.len() - rest.len();
            let size = (due as usize).saturating_sub(done).clamp(1, rest.len());
            let (now, later) = rest.split_at(size);
            self.commit(now)?;
            rest = later;
        }
        Ok(start.elapsed())
    }

    fn commit(&mut self, rows: &[Row]) -> Result<()> {
        let transaction = self
            .0
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let sql = "INSERT INTO events (session, seq, line, sealed) VALUES (?1, ?2, ?3, ?4)";
        let mut insert = transaction.prepare_cached(sql)?;
        for row in rows {
            insert.execute((row.session, row.seq, Text(&row.line), row.sealed.as_deref()))?;
        }
        drop(insert);
        Ok(transaction.commit()?)
    }
}

/// Text that is bound without a copy or a check.
struct Text<'a>(&'a [u8]);

impl ToSql for Text<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

/// SHA-256 of each of many texts, shared out once among all cores.
pub(crate) fn hash_all(texts: &[&[u8]]) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for share in texts.chunks(texts.len().div_ceil(cores).max(1)) {
            scope.spawn(move || hash_each(share));
        }
    });
}

/// SHA-256 of each of many texts, on this thread.
pub(crate) fn hash_each(texts: &[&[u8]]) {
    for text in texts {
        std::hint::black_box(Hash::of(text));
    }
}

const PAGE: usize = 4096;
/// As large as the write-ahead log of a store becomes, as a rule.
const RECYCLED: usize = 1000 * PAGE;
