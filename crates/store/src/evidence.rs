//! What an evidence pack takes from the store beside events and proofs.

use rusqlite::Connection;

use crate::tree::signed;
use crate::{Error, Reader};

impl Reader {
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
