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
