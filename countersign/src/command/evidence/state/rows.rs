//! Rows of a table of SQLite.

use std::path::PathBuf;

use clap::Args;
use countersign_canon::{Digest, Json, Number};
use countersign_evidence::state::{
    Coverage, Database, DatabaseBoundary, DatabaseIdentity, DatabaseObserved, DatabaseSelector,
    StateDigest,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::failed;
use crate::errors::Failure;

#[derive(Args)]
#[command(after_help = "\
The database is opened for reading only, and read in one transaction. The digest is SHA-256 over the
selected rows: each as JSON with its columns sorted by name, ASCII only, without white space, a blob as
{\"blob\":\"hex\"}; the lines sorted, each ended by a line feed. query_hash is the SHA-256 of the predicate
with runs of white space outside quotes as one space.

SQLite names no snapshot, so digests are comparable by best effort unless you name one with --snapshot.

Examples:
  countersign evidence state db-rowset shop.db --database shop --table orders --where \"state = 'open'\"")]
pub(crate) struct DbRowset {
    /// The file of the database
    file: PathBuf,
    /// A label of the database that stays the same; not a connection string
    #[arg(long, value_name = "LABEL")]
    database: String,
    /// The schema
    #[arg(long, value_name = "SCHEMA", default_value = "main")]
    schema: String,
    /// The table
    #[arg(long, value_name = "TABLE")]
    table: String,
    /// Which rows, as SQL
    #[arg(long = "where", value_name = "PREDICATE", default_value = "true")]
    predicate: String,
    /// The name of the snapshot, if something outside names it
    #[arg(long, value_name = "ID")]
    snapshot: Option<String>,
}

impl DbRowset {
    pub(super) fn digest(self) -> Result<StateDigest, Failure> {
        let mut rows = self.rows().map_err(|error| failed(error.to_string()))??;
        rows.sort_unstable();
        let mut text = Vec::new();
        for row in &rows {
            text.extend_from_slice(row);
            text.push(b'\n');
        }
        let query = Digest::of(canonical(&self.predicate).as_bytes());
        let coverage = Coverage::DbRowset(Database {
            identity: DatabaseIdentity {
                database_id: self.database,
                schema: self.schema,
                table: self.table,
            },
            selector: DatabaseSelector {
                rows_predicate: self.predicate,
                query_hash: query.to_hash().to_string(),
            },
            boundary: DatabaseBoundary {
                snapshot_id: self.snapshot,
                isolation_level: Some("serializable".to_owned()),
            },
            observed: DatabaseObserved {
                row_count: Some(rows.len() as u64),
            },
        });
        Ok(StateDigest::new(Digest::of(&text).to_string(), coverage))
    }

    fn rows(&self) -> rusqlite::Result<Result<Vec<Vec<u8>>, Failure>> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut database = Connection::open_with_flags(&self.file, flags)?;
        let transaction = database.transaction()?;
        let (schema, table) = (quoted(&self.schema), quoted(&self.table));
        // Whatever the predicate says, this connection cannot write.
        let sql = format!(
            "SELECT * FROM {schema}.{table} WHERE (\n{}\n)",
            self.predicate
        );
        let mut statement = transaction.prepare(&sql)?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut found = statement.query([])?;
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            let mut members = Vec::with_capacity(columns.len());
            for (index, column) in columns.iter().enumerate() {
                match value(row.get_ref(index)?) {
                    Some(value) => members.push((column.as_str(), value)),
                    None => {
                        let message = format!("`{column}` holds what JSON cannot hold");
                        return Ok(Err(failed(message)));
                    }
                }
            }
            rows.push(Json::object(members).to_sorted_ascii());
        }
        Ok(Ok(rows))
    }
}

fn value(value: ValueRef<'_>) -> Option<Json> {
    Some(match value {
        ValueRef::Null => Json::Null,
        ValueRef::Integer(number) => Json::from(number),
        ValueRef::Real(number) => Json::from(Number::from_f64(number)?),
        ValueRef::Text(text) => Json::from(std::str::from_utf8(text).ok()?),
        ValueRef::Blob(bytes) => {
            Json::object([("blob", Json::from(base16ct::lower::encode_string(bytes)))])
        }
    })
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The predicate with runs of white space outside quotes as one space.
fn canonical(predicate: &str) -> String {
    let mut out = String::new();
    let mut quote = None;
    for letter in predicate.trim().chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if matches!(letter, '\'' | '"' | '`') => quote = Some(letter),
            None if letter.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
                continue;
            }
            None => {}
        }
        out.push(letter);
    }
    out
}
