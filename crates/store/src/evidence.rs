//! What an evidence pack takes from the store beside events and proofs.

use countersign_approval::audit::Head;
use countersign_canon::Hash;
use rusqlite::Connection;

use crate::tree::signed;
use crate::{Error, Reader, audit};

impl Reader {
    /// Where the audit ends.
    pub fn audit_head(&self) -> Result<Head, Error> {
        self.with(audit::head)
    }

    /// The hash of one entry of the audit, counted from 1.
    pub fn audit_hash(&self, number: u64) -> Result<Option<Hash>, Error> {
        self.with(|db| audit::line_hash(number, db))
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
