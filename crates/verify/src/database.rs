//! Verifying a log database, by reading its tables.
//!
//! The statements here are written from the documented schema, not shared with the writer.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};

use crate::examine::{Item, Opener, StoredColumns};
use crate::pipeline::{self, Batch};
use crate::report::{Finding, Place, Problem, Progress, Report};
use crate::stream::{Run, Source};
use crate::{Expectation, Selection};

/// Verifies every event of a database, in the order in which they were recorded.
///
/// With an opener, sealed content is opened and held against its commitments.
pub fn verify_database(
    path: &Path,
    selection: &Selection,
    expectation: &Expectation,
    opener: Option<&dyn Opener>,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Report {
    let mut run = Run::new(selection, expectation);
    let failure = match verify(path, &mut run, opener, progress) {
        Ok(Some(bad)) => Some(bad),
        Ok(None) => run.missing(),
        Err(error) => Some(unreadable(&error.to_string())),
    };
    run.report(failure, Source::Database)
}

/// How many events the database holds, for a progress bar.
pub fn count_events(path: &Path) -> Option<u64> {
    let db = open(path).ok()?;
    let count: i64 = db
        .query_row("SELECT count(*) FROM events", [], |row| row.get(0))
        .ok()?;
    u64::try_from(count).ok()
}

fn verify(
    path: &Path,
    run: &mut Run<'_>,
    opener: Option<&dyn Opener>,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> rusqlite::Result<Option<Finding>> {
    let db = open(path)?;
    // One transaction, so that all tables are seen as they were at one moment.
    let db = db.unchecked_transaction()?;
    if let Some(bad) = foreign_schema(&db)? {
        return Ok(Some(bad));
    }
    let sessions = sessions(&db)?;
    if let Some(bad) = same_name_twice(&sessions) {
        return Ok(Some(bad));
    }
    let mut statement =
        db.prepare("SELECT id, session, seq, line, sealed FROM events ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut last_id = 0;
    let read = pipeline::take_all_read_here(run, opener, progress, |spare| {
        let batch = Rows::read(&mut rows, &sessions, last_id, spare)?;
        last_id += batch.events.len() as i64;
        Ok::<_, rusqlite::Error>((batch.is_last() || !batch.events.is_empty()).then_some(batch))
    });
    if let Some(bad) = run.failure() {
        return Ok(Some(bad));
    }
    read?;
    run.finish();
    Ok(match sessions_without_events(&db)? {
        None => damage(&db)?,
        bad => bad,
    })
}

/// A view could show the verifier other rows than it shows tomorrow, so only tables count.
fn foreign_schema(db: &Connection) -> rusqlite::Result<Option<Finding>> {
    for table in ["events", "sessions"] {
        let sql =
            "SELECT count(*) FROM pragma_table_list(?1) WHERE schema = 'main' AND type = 'table'";
        if db.query_row(sql, [table], |row| row.get::<_, i64>(0))? != 1 {
            return Ok(Some(unreadable(&format!("`{table}` is not a table"))));
        }
    }
    let mut statement = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        if !TRIGGERS.contains(&name.as_str()) {
            return Ok(Some(unreadable(&format!(
                "`{}` is a foreign trigger",
                name.escape_debug()
            ))));
        }
    }
    Ok(None)
}

/// Two rows with one name would show a reader one half of a session.
fn same_name_twice(sessions: &HashMap<i64, Names>) -> Option<Finding> {
    let mut seen = HashSet::new();
    let (tenant, session) = sessions.values().find(|names| !seen.insert(*names))?;
    Some(Finding {
        place: None,
        event: Some((tenant.clone(), session.clone(), 0)),
        problem: Problem::Column("sessions"),
    })
}

/// Readers find events through indexes, which the chain does not cover: an index that lies would
/// hide events that are all there.
fn damage(db: &Connection) -> rusqlite::Result<Option<Finding>> {
    let found: String = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    Ok((found != "ok").then(|| unreadable(&found)))
}

/// A session is stored together with its first event.
fn sessions_without_events(db: &Connection) -> rusqlite::Result<Option<Finding>> {
    let sql = "SELECT tenant_id, session_id FROM sessions
               WHERE id NOT IN (SELECT session FROM events) ORDER BY id LIMIT 1";
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([])?;
    Ok(rows
        .next()?
        .map(|row| (row.get(0), row.get(1)))
        .map(|(tenant, session)| Finding {
            place: None,
            event: tenant
                .ok()
                .zip(session.ok())
                .map(|(tenant, session)| (tenant, session, 0)),
            problem: Problem::Nothing,
        }))
}

/// Rows that follow each other, up to one that cannot be.
#[derive(Default)]
struct Rows<'s> {
    events: Vec<StoredEvent<'s>>,
    /// The lines and the ciphertexts of all of them.
    bytes: Vec<u8>,
    end: Option<Finding>,
}

struct StoredEvent<'s> {
    id: i64,
    seq: i64,
    names: &'s Names,
    line: Range<usize>,
    sealed: Option<Range<usize>>,
}

/// A tenant and a session.
type Names = (String, String);

impl<'s> Rows<'s> {
    /// The rows after an id, in the memory of others.
    fn read(
        rows: &mut rusqlite::Rows<'_>,
        sessions: &'s HashMap<i64, Names>,
        mut last_id: i64,
        spare: Option<Self>,
    ) -> rusqlite::Result<Self> {
        let mut batch = spare.unwrap_or_default();
        batch.events.clear();
        batch.bytes.clear();
        while batch.bytes.len() < BATCH_BYTES {
            let Some(row) = rows.next()? else {
                break;
            };
            let id = row.get(0)?;
            last_id += 1;
            if id != last_id {
                batch.end = Some(at_row(last_id, Problem::RowGap { expected: last_id }));
                break;
            }
            let Some(names) = sessions.get(&row.get(1)?) else {
                batch.end = Some(at_row(id, Problem::Column("session")));
                break;
            };
            let line = batch.keep(text(row, 3)?);
            let sealed = blob(row, 4)?.map(|bytes| batch.keep(bytes));
            batch.events.push(StoredEvent {
                id,
                seq: row.get(2)?,
                names,
                line,
                sealed,
            });
        }
        Ok(batch)
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    fn kept(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.get(range.clone()).unwrap_or_default()
    }
}

impl Batch for Rows<'_> {
    fn items(&self) -> impl Iterator<Item = Item<'_>> {
        self.events.iter().map(|event| {
            let (tenant_id, session_id) = event.names;
            let ciphertext = event.sealed.as_ref().map(|range| self.kept(range));
            let stored = StoredColumns {
                id: event.id,
                seq: event.seq,
                tenant_id,
                session_id,
                ciphertext,
            };
            Item {
                text: self.kept(&event.line),
                stored: Some(stored),
            }
        })
    }

    fn is_last(&self) -> bool {
        self.end.is_some()
    }

    fn end(&self, _: Progress) -> Option<Finding> {
        self.end.clone()
    }
}

/// Text only: the same bytes as a blob would be hidden from everybody who asks for text.
fn text<'r>(row: &'r Row<'_>, column: usize) -> rusqlite::Result<&'r [u8]> {
    match row.get_ref(column)? {
        ValueRef::Text(text) => Ok(text),
        other => Err(another_type(row, column, other)?),
    }
}

fn blob<'r>(row: &'r Row<'_>, column: usize) -> rusqlite::Result<Option<&'r [u8]>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        ValueRef::Blob(blob) => Ok(Some(blob)),
        other => Err(another_type(row, column, other)?),
    }
}

fn another_type(
    row: &Row<'_>,
    column: usize,
    found: ValueRef<'_>,
) -> rusqlite::Result<rusqlite::Error> {
    let name = row.as_ref().column_name(column)?.to_owned();
    Ok(rusqlite::Error::InvalidColumnType(
        column,
        name,
        found.data_type(),
    ))
}

fn sessions(db: &Connection) -> rusqlite::Result<HashMap<i64, Names>> {
    db.prepare("SELECT id, tenant_id, session_id FROM sessions")?
        .query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?
        .collect()
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags)?;
    if let (Err(_), Some(frozen)) = (probe(&db), frozen(path)) {
        db = Connection::open_with_flags(frozen, flags | OpenFlags::SQLITE_OPEN_URI)?;
    }
    db.busy_timeout(std::time::Duration::from_secs(10))?;
    // SECURITY: the file may come from anybody.
    db.pragma_update(None, "trusted_schema", false)?;
    db.pragma_update(None, "cell_size_check", true)?;
    Ok(db)
}

fn probe(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
}

/// The name under which a copy on a read-only medium can be opened: as a file that nobody changes.
/// `None` if a write-ahead log lies beside it, which would be left out.
fn frozen(path: &Path) -> Option<String> {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    let pending = std::fs::metadata(wal).is_ok_and(|wal| wal.len() > 0);
    let name = path
        .to_str()?
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    (!pending).then(|| format!("file:{name}?immutable=1"))
}

fn at_row(id: i64, problem: Problem) -> Finding {
    Finding {
        place: Some(Place::Row(id)),
        event: None,
        problem,
    }
}

fn unreadable(why: &str) -> Finding {
    Finding {
        place: None,
        event: None,
        problem: Problem::Database(why.to_owned()),
    }
}

const BATCH_BYTES: usize = 256 << 10;
/// Triggers that belong to a log. Another one could change or swallow what is written later.
const TRIGGERS: &[&str] = &[
    "events_keep_content",
    "events_keep_rows",
    "sessions_keep_content",
    "sessions_keep_rows",
    "sessions_replace_nothing",
    "session_keys_stay_erased",
    "session_keys_replace_nothing",
    "session_keys_stay_with_their_session",
    "session_keys_keep_rows",
    "approvals_keep_identity",
    "approvals_end_once",
    "approvals_replace_nothing",
    "spent_nonces_keep_content",
    "spent_nonces_keep_rows",
    "audit_keep_content",
    "audit_keep_rows",
    "audit_follows",
    "clock_goes_forward",
    "tree_grows",
    "tree_stays",
    "tiles_grow",
    "tiles_keep_rows",
    "tiles_replace_nothing",
    "checkpoints_keep_content",
    "checkpoints_keep_rows",
    "checkpoints_follow",
    "session_heads_keep_content",
    "session_heads_keep_rows",
];
