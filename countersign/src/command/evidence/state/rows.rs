//! Rows of a table of SQLite or PostgreSQL.

use std::path::{Path, PathBuf};

use clap::Args;
use countersign_canon::{Digest, Json, Number};
use countersign_evidence::state::{
    Coverage, Database, DatabaseBoundary, DatabaseIdentity, DatabaseObserved, DatabaseSelector,
    StateDigest,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::{failed, postgres};
use crate::errors::Failure;

#[derive(Args)]
#[command(after_help = "\
The database is opened for reading only, and read in one transaction. The digest is SHA-256 over the
selected rows: each as JSON with its columns sorted by name, ASCII only, without white space, a blob as
{\"blob\":\"hex\"}; the lines sorted, each ended by a line feed. query_hash is the SHA-256 of the predicate
with runs of white space outside quotes as one space.

SQLite names no snapshot, so digests are comparable by best effort unless you name one with --snapshot.

With --postgres the rows are read by `psql`, which must be installed, in one transaction that is read-only
and repeatable. Each value is the text that PostgreSQL prints for it (dates in ISO form, times in UTC, bytes
in hexadecimal), or null, and otherwise the digest is made as above. The snapshot is the one that
pg_current_snapshot() names. The predicate must not leave its place: no comments, semicolons, dollar signs or
backslashes, and brackets that close. The connection string holds no password.

Examples:
  countersign evidence state db-rowset shop.db --database shop --table orders --where \"state = 'open'\"
  countersign evidence state db-rowset --postgres service=shop --database shop --table orders")]
pub(crate) struct DbRowset {
    /// The file of a database of SQLite
    #[arg(required_unless_present = "postgres", conflicts_with = "postgres")]
    file: Option<PathBuf>,
    /// A database of PostgreSQL, as `psql -d` takes it: a connection string or address without a password
    #[arg(long, value_name = "CONNECTION")]
    postgres: Option<String>,
    /// A label of the database that stays the same; not a connection string
    #[arg(long, value_name = "LABEL")]
    database: String,
    /// The schema [default: main in SQLite, public in PostgreSQL]
    #[arg(long, value_name = "SCHEMA")]
    schema: Option<String>,
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
        let (usual, isolation) = match self.postgres {
            Some(_) => ("public", "repeatable-read"),
            None => ("main", "serializable"),
        };
        let schema = self.schema.as_deref().unwrap_or(usual).to_owned();
        let (mut rows, snapshot) = match (&self.postgres, &self.file) {
            (Some(connection), _) => {
                let table = (schema.as_str(), self.table.as_str());
                let read = postgres::read(connection, table, &self.predicate)?;
                (read.rows, self.snapshot.or(Some(read.snapshot)))
            }
            (None, file) => {
                let file = file.as_deref().unwrap_or(Path::new(""));
                let read = self.rows(file, &schema);
                let rows = read.map_err(|error| failed(error.to_string()))??;
                (rows, self.snapshot)
            }
        };
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
                schema,
                table: self.table,
            },
            selector: DatabaseSelector {
                rows_predicate: self.predicate,
                query_hash: query.to_hash().to_string(),
            },
            boundary: DatabaseBoundary {
                snapshot_id: snapshot,
                isolation_level: Some(isolation.to_owned()),
            },
            observed: DatabaseObserved {
                row_count: Some(rows.len() as u64),
            },
        });
        Ok(StateDigest::new(Digest::of(&text).to_string(), coverage))
    }

    fn rows(&self, file: &Path, schema: &str) -> rusqlite::Result<Result<Vec<Vec<u8>>, Failure>> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut database = Connection::open_with_flags(file, flags)?;
        let transaction = database.transaction()?;
        let (schema, table) = (quoted(schema), quoted(&self.table));
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

pub(super) fn quoted(name: &str) -> String {
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
