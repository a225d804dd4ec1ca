//! Reading what is stored.

use std::sync::{Mutex, OnceLock, PoisonError};

use countersign_canon::{Digest, Hash, Json, Limits};
use countersign_event::{EventType, Line, Scope, SessionId, TenantId};
use countersign_vault::joined;
use rusqlite::{Connection, Row, ToSql};

use crate::keys::Keys;
use crate::{Cursor, CursorError, Error, Folder, lane, schema};

/// Read-only access to a data folder, from any thread.
pub struct Reader {
    folder: Folder,
    idle: Mutex<Vec<Connection>>,
    /// The master keys, once they were needed.
    keys: OnceLock<Keys>,
}

/// An event as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Stored {
    /// The place among all events, from 1.
    pub id: u64,
    /// The JCS text of the envelope, hash included.
    pub line: Vec<u8>,
    /// The ciphertext of the sealed members.
    pub ciphertext: Option<Vec<u8>>,
}

/// Which events to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only this tenant.
    pub tenant: Option<TenantId>,
    /// Only this session (of the tenant, or of any).
    pub session: Option<SessionId>,
    /// Only this type.
    pub event_type: Option<EventType>,
    /// Only events about this tool.
    pub tool_name: Option<String>,
    /// Only events from this time on.
    pub since_unix_ms: Option<u64>,
    /// Only events before this time.
    pub until_unix_ms: Option<u64>,
}

/// Some events, and where to go on.
#[derive(Clone)]
pub struct Page {
    /// The events, in the order in which they were recorded.
    pub events: Vec<Stored>,
    /// Where the next page starts; `None` when there is nothing more now.
    pub next: Option<Cursor>,
}

impl Reader {
    /// Opens a folder that holds a log.
    pub fn open(folder: &Folder) -> Result<Self, Error> {
        let first = schema::open_reader(folder)?;
        Ok(Self {
            folder: folder.clone(),
            idle: Mutex::new(vec![first]),
            keys: OnceLock::new(),
        })
    }

    /// The data folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// One page of at least one event after a cursor. Going from cursor to cursor sees every event once, also
    /// while others are being appended.
    pub fn page(
        &self,
        filter: &Filter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page, PageError> {
        let tag = filter.tag();
        let after = after.map_or(Ok(0), |cursor| cursor.last_id(&tag))?;
        let mut events = Vec::new();
        let mut more = false;
        self.scan(filter, after, |event| {
            if events.len() == limit.max(1) {
                more = true;
                return Ok(Scan::Stop);
            }
            events.push(event);
            Ok::<_, Error>(Scan::Continue)
        })?;
        let last = events.last().map_or(after, |event| event.id);
        Ok(Page {
            events,
            next: more.then(|| Cursor::new(last, &tag)),
        })
    }

    /// Every event of a filter, one at a time, in the order in which they were recorded.
    pub fn each<E: From<Error>>(
        &self,
        filter: &Filter,
        after_id: u64,
        mut visit: impl FnMut(Stored) -> Result<(), E>,
    ) -> Result<(), E> {
        self.scan(filter, after_id, |event| {
            visit(event).map(|()| Scan::Continue)
        })
    }

    /// The last events of a filter, oldest first.
    pub fn last(&self, filter: &Filter, count: usize) -> Result<Vec<Stored>, Error> {
        let mut events = Vec::new();
        let query = Selection::of(filter, Direction::Backward, u64::MAX);
        self.with(|db| {
            query.run(filter, db, |event| {
                events.push(event);
                Ok::<_, Error>(if events.len() < count {
                    Scan::Continue
                } else {
                    Scan::Stop
                })
            })
        })?;
        events.truncate(count);
        events.reverse();
        Ok(events)
    }

    /// The place of the newest event; 0 when there is none.
    pub fn last_id(&self) -> Result<u64, Error> {
        self.with(|db| {
            let id: Option<i64> = db
                .prepare_cached("SELECT max(id) FROM events")?
                .query_row([], |row| row.get(0))?;
            Ok(id.and_then(|id| u64::try_from(id).ok()).unwrap_or_default())
        })
    }

    /// One event by its place.
    pub fn event(&self, scope: &Scope, seq: u64) -> Result<Option<Stored>, Error> {
        let filter = Filter::session(scope);
        let mut found = None;
        let query = Selection::of(&filter, Direction::Exactly(seq), 0);
        self.with(|db| {
            query.run(&filter, db, |event| {
                found = Some(event);
                Ok::<_, Error>(Scan::Stop)
            })
        })?;
        Ok(found)
    }

    /// The payload as it was given, sealed members opened.
    pub fn open_payload(&self, event: &Stored) -> Result<Json, Error> {
        let line = Line::read(&event.line)?;
        let damaged = |problem| Err(Error::damaged(line.seq, problem));
        if line.computed_hash() != line.hash {
            return damaged("its hash does not match its content");
        }
        // SECURITY: a session key opens every ciphertext of its session, so the line has to say
        // which one belongs to it.
        let (seal, ciphertext) = match (&line.seal, &event.ciphertext) {
            (None, None) => return Ok(joined(line.payload, Vec::new())?),
            (Some(seal), Some(ciphertext)) => (seal.read()?, ciphertext),
            (Some(_), None) => return damaged("its ciphertext is missing"),
            (None, Some(_)) => return damaged("its ciphertext belongs to no sealed member"),
        };
        if Digest::of(ciphertext) != seal.ciphertext {
            return damaged("its ciphertext was changed");
        }
        let scope = scope_of(&line)?;
        let key = self.session_key(&scope)?;
        Ok(joined(line.payload, key.open(ciphertext, &scope)?)?)
    }

    /// Whether the key file is there, may be used, and holds every master key that sessions need.
    pub fn check_keys(&self) -> Result<(), Error> {
        let keys = Keys::open(&self.folder)?;
        self.with(|db| keys.check_fit(db))
    }

    /// The data key of a session.
    pub fn session_key(&self, scope: &Scope) -> Result<countersign_vault::SessionKey, Error> {
        let found = self.with(|db| lane::find_key(scope, db, self.keys()?))?;
        let (_, key) = found.ok_or_else(|| Error::NoSession(scope.session.as_str().to_owned()))?;
        Ok(key)
    }

    /// A key file that another process has changed is read again when a key is missing.
    fn keys(&self) -> Result<&Keys, Error> {
        if let Some(keys) = self.keys.get() {
            return Ok(keys);
        }
        let opened = Keys::open(&self.folder)?;
        Ok(self.keys.get_or_init(|| opened))
    }

    /// Runs something on a connection of its own.
    pub(crate) fn with<T, E: From<Error>>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let idle = self.idle().pop();
        let connection = idle.map_or_else(|| schema::open_reader(&self.folder), Ok)?;
        let result = work(&connection);
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
        result
    }

    fn scan<E: From<Error>>(
        &self,
        filter: &Filter,
        after_id: u64,
        visit: impl FnMut(Stored) -> Result<Scan, E>,
    ) -> Result<(), E> {
        let query = Selection::of(filter, Direction::Forward, after_id);
        self.with(|db| query.run(filter, db, visit))
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a page could not be given.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The cursor is not of this listing.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Filter {
    /// All events of one session.
    pub fn session(scope: &Scope) -> Self {
        Self {
            tenant: Some(scope.tenant.clone()),
            session: Some(scope.session.clone()),
            ..Self::default()
        }
    }

    /// Tells filters apart, so that a cursor is not used with another one.
    fn tag(&self) -> Hash {
        Hash::of(format!("{self:?}").as_bytes())
    }

    /// The part of the filter that the database cannot answer by itself.
    fn matches(&self, line: &Line<'_>) -> bool {
        self.event_type
            .is_none_or(|wanted| wanted == line.event_type)
            && self
                .since_unix_ms
                .is_none_or(|since| line.ts_unix_ms >= since)
            && self
                .until_unix_ms
                .is_none_or(|until| line.ts_unix_ms < until)
            && self
                .tool_name
                .as_deref()
                .is_none_or(|tool| tool_name(line).as_deref() == Some(tool))
    }

    fn reads_lines(&self) -> bool {
        self.event_type.is_some()
            || self.since_unix_ms.is_some()
            || self.until_unix_ms.is_some()
            || self.tool_name.is_some()
    }
}

/// The tool that an event is about.
pub(crate) fn tool_name(line: &Line<'_>) -> Option<String> {
    // What is sealed beside it may have made the payload longer than it was.
    let limits = Limits {
        max_bytes: usize::MAX,
        ..Limits::event()
    };
    let payload = Json::admit(line.payload, &limits).ok()?;
    payload.get("tool_name")?.as_str().map(str::to_owned)
}

fn scope_of(line: &Line<'_>) -> Result<Scope, Error> {
    Scope::new(line.tenant_id.as_ref(), line.session_id.as_ref())
        .map_err(|error| Error::damaged(line.seq, error))
}

/// Whether to go on after a row.
enum Scan {
    Continue,
    Stop,
}

#[derive(Clone, Copy)]
enum Direction {
    Forward,
    Backward,
    Exactly(u64),
}

/// The part of a listing that the database answers, as one statement.
struct Selection {
    sql: String,
    parameters: Vec<Box<dyn ToSql>>,
}

impl Selection {
    fn of(filter: &Filter, direction: Direction, id: u64) -> Self {
        let mut sql = "SELECT e.id, e.line, e.sealed FROM events e".to_owned();
        let mut parameters: Vec<Box<dyn ToSql>> = Vec::new();
        let id = i64::try_from(id).unwrap_or(i64::MAX);
        let (condition, bound, order) = match direction {
            Direction::Forward => ("e.id > ?1", id, "ASC"),
            Direction::Backward => ("e.id < ?1", id, "DESC"),
            Direction::Exactly(seq) => ("e.seq = ?1", i64::try_from(seq).unwrap_or(-1), "ASC"),
        };
        parameters.push(Box::new(bound));
        sql.push_str(" WHERE ");
        sql.push_str(condition);
        let sessions = [
            (
                "tenant_id",
                filter.tenant.as_ref().map(|id| id.as_str().to_owned()),
            ),
            (
                "session_id",
                filter.session.as_ref().map(|id| id.as_str().to_owned()),
            ),
        ];
        let mut conditions = Vec::new();
        for (column, id) in sessions {
            if let Some(id) = id {
                parameters.push(Box::new(id));
                conditions.push(format!("{column} = ?{}", parameters.len()));
            }
        }
        if !conditions.is_empty() {
            sql.push_str(" AND e.session IN (SELECT id FROM sessions WHERE ");
            sql.push_str(&conditions.join(" AND "));
            sql.push(')');
        }
        sql.push_str(&format!(" ORDER BY e.id {order}"));
        Self { sql, parameters }
    }

    fn run<E: From<Error>>(
        &self,
        filter: &Filter,
        db: &Connection,
        mut visit: impl FnMut(Stored) -> Result<Scan, E>,
    ) -> Result<(), E> {
        let mut statement = db.prepare_cached(&self.sql).map_err(Error::from)?;
        let parameters: Vec<&dyn ToSql> = self.parameters.iter().map(AsRef::as_ref).collect();
        let mut rows = statement
            .query(parameters.as_slice())
            .map_err(Error::from)?;
        while let Some(row) = rows.next().map_err(Error::from)? {
            let event = stored(row).map_err(Error::from)?;
            if filter.reads_lines()
                && !filter.matches(&Line::read(&event.line).map_err(Error::from)?)
            {
                continue;
            }
            if let Scan::Stop = visit(event)? {
                break;
            }
        }
        Ok(())
    }
}

pub(crate) fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored {
        id: u64::try_from(row.get::<_, i64>(0)?).unwrap_or_default(),
        line: row.get_ref(1)?.as_bytes()?.to_vec(),
        ciphertext: row.get(2)?,
    })
}

const MAX_IDLE: usize = 8;
