//! Verifying a log database, by reading its tables.
//!
//! The statements here are written from the documented schema, not shared with the writer.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};

use crate::examine::{Item, Opener, StoredColumns};
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
    progress: &mut dyn FnMut(Progress),
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
    let count: i64 = db.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).ok()?;
    u64::try_from(count).ok()
}

fn verify(
    path: &Path,
    run: &mut Run<'_>,
    opener: Option<&dyn Opener>,
    progress: &mut dyn FnMut(Progress),
) -> rusqlite::Result<Option<Finding>> {
    let db = open(path)?;
    // One transaction, so that all tables are seen as they were at one moment.
    let db = db.unchecked_transaction()?;
    if let Some(bad) = foreign_schema(&db)? {
        return Ok(Some(bad));
    }
    let sessions = sessions(&db)?;
    let mut statement = db.prepare("SELECT id, session, seq, line, sealed FROM events ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut expected_id = 1;
    loop {
        let batch = read_batch(&mut rows)?;
        if batch.is_empty() {
            run.finish();
            return Ok(match sessions_without_events(&db)? {
                None => damage(&db)?,
                bad => bad,
            });
        }
        for event in &batch {
            if event.id != expected_id {
                return Ok(run_until(run, &batch, &sessions, event.id, opener)
                    .or(Some(gap(expected_id))));
            }
            expected_id += 1;
        }
        if let Some(bad) = run_until(run, &batch, &sessions, i64::MAX, opener) {
            return Ok(Some(bad));
        }
        progress(run.progress());
    }
}

/// Checks the events of a batch that come before an id.
fn run_until(
    run: &mut Run<'_>,
    batch: &[StoredEvent],
    sessions: &HashMap<i64, (String, String)>,
    end: i64,
    opener: Option<&dyn Opener>,
) -> Option<Finding> {
    let mut items = Vec::with_capacity(batch.len());
    let mut orphan = None;
    for event in batch.iter().take_while(|event| event.id < end) {
        let place = Place::Row(event.id);
        let Some((tenant_id, session_id)) = sessions.get(&event.session) else {
            orphan = Some(Finding {
                place: Some(place),
                event: None,
                problem: Problem::Column("session"),
            });
            break;
        };
        let stored = StoredColumns {
            seq: event.seq,
            tenant_id,
            session_id,
            ciphertext: event.sealed.as_deref(),
        };
        items.push(Item { place, text: &event.line, stored: Some(stored) });
    }
    run.take(&items, opener).or(orphan)
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
    Ok(None)
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
    Ok(rows.next()?.map(|row| (row.get(0), row.get(1))).map(|(tenant, session)| Finding {
        place: None,
        event: tenant.ok().zip(session.ok()).map(|(tenant, session)| (tenant, session, 0)),
        problem: Problem::Nothing,
    }))
}

struct StoredEvent {
    id: i64,
    session: i64,
    seq: i64,
    line: Vec<u8>,
    sealed: Option<Vec<u8>>,
}

fn read_batch(rows: &mut rusqlite::Rows<'_>) -> rusqlite::Result<Vec<StoredEvent>> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while bytes < BATCH_BYTES {
        let Some(row) = rows.next()? else {
            break;
        };
        let event = read_event(row)?;
        bytes += event.line.len() + event.sealed.as_ref().map_or(0, Vec::len);
        batch.push(event);
    }
    Ok(batch)
}

fn read_event(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    Ok(StoredEvent {
        id: row.get(0)?,
        session: row.get(1)?,
        seq: row.get(2)?,
        line: read_line(row)?,
        sealed: row.get(4)?,
    })
}

/// Text only: the same bytes as a blob would be hidden from everybody who asks for text.
fn read_line(row: &Row<'_>) -> rusqlite::Result<Vec<u8>> {
    match row.get_ref(3)? {
        ValueRef::Text(line) => Ok(line.to_vec()),
        other => {
            Err(rusqlite::Error::InvalidColumnType(3, "line".to_owned(), other.data_type()))
        }
    }
}

fn sessions(db: &Connection) -> rusqlite::Result<HashMap<i64, (String, String)>> {
    db.prepare("SELECT id, tenant_id, session_id FROM sessions")?
        .query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?
        .collect()
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(std::time::Duration::from_secs(10))?;
    // SECURITY: the file may come from anybody.
    db.pragma_update(None, "trusted_schema", false)?;
    db.pragma_update(None, "cell_size_check", true)?;
    Ok(db)
}

fn gap(expected: i64) -> Finding {
    Finding { place: Some(Place::Row(expected)), event: None, problem: Problem::RowGap { expected } }
}

fn unreadable(why: &str) -> Finding {
    Finding { place: None, event: None, problem: Problem::Database(why.to_owned()) }
}

const BATCH_BYTES: usize = 4 << 20;
