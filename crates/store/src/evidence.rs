//! What an evidence pack takes from the store beside events and proofs.

use countersign_approval::audit::Head;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::tree::signed;
use crate::{Error, Reader, audit};

impl Reader {
    /// Where the audit ends.
    pub fn audit_head(&self) -> Result<Head, Error> {
        self.with(audit::head)
    }

    /// So many entries of the audit after the one with this number, with their own numbers, as they are
    /// stored: whoever compares them wants to see what is wrong with them.
    pub fn audit_after(&self, number: u64, limit: u64) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        self.with(|db: &Connection| {
            let sql = "SELECT number, line FROM audit WHERE number > ?1 ORDER BY number LIMIT ?2";
            let mut statement = db.prepare_cached(sql)?;
            let entries = statement.query_map([signed(number), signed(limit)], |row| {
                let line = match row.get_ref(1)? {
                    ValueRef::Text(line) => line.to_vec(),
                    _ => Vec::new(),
                };
                let number: i64 = row.get(0)?;
                Ok((u64::try_from(number).unwrap_or_default(), line))
            })?;
            Ok(entries.collect::<Result<_, _>>()?)
        })
    }

    /// Shows entries of the audit, the newest first, for as long as somebody wants to see more.
    pub fn audit_back(&self, mut wants_more: impl FnMut(&[u8]) -> bool) -> Result<(), Error> {
        self.with(|db: &Connection| {
            let sql = "SELECT line FROM audit ORDER BY number DESC";
            let mut statement = db.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let line: String = row.get(0)?;
                if !wants_more(line.as_bytes()) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// The first entries of the audit, as they were written, without line ends.
    pub fn audit_lines(&self, count: u64) -> Result<Vec<Vec<u8>>, Error> {
        self.with(|db: &Connection| {
            let sql = "SELECT line FROM audit WHERE number <= ?1 ORDER BY number";
            let mut statement = db.prepare_cached(sql)?;
            let lines = statement.query_map([signed(count)], |row| {
                Ok(row.get_ref(0)?.as_bytes()?.to_vec())
            })?;
            Ok(lines.collect::<Result<_, _>>()?)
        })
    }
}
