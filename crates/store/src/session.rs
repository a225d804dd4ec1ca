//! Listing sessions, and erasing their content.

use countersign_canon::Hash;
use countersign_event::{Line, Order, Scope, SessionId, TenantId};
use rusqlite::{Connection, Row, ToSql, TransactionBehavior};
use std::time::Duration;

use crate::{Cursor, Error, Filter, PageError, Reader, backlog, identity};

/// One session, in a few numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// Its name.
    pub scope: Scope,
    /// How many events it has.
    pub events: u64,
    /// The hash of the last one.
    pub head: Hash,
    /// When the first event happened.
    pub first_unix_ms: u64,
    /// When the last event happened.
    pub last_unix_ms: u64,
    /// Whether it has ended.
    pub terminated: bool,
    /// When its content was erased.
    pub erased_unix_ms: Option<u64>,
}

/// Which sessions to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only those of this tenant.
    pub tenant: Option<TenantId>,
    /// Only this one.
    pub session: Option<SessionId>,
    /// Only those that this one has begun over the API.
    pub owner: Option<String>,
}

/// Some sessions, and where to go on.
#[derive(Debug, Clone)]
pub struct SessionPage {
    /// The sessions, in the order that was asked for.
    pub sessions: Vec<SessionSummary>,
    /// Where the next page starts; `None` when there is nothing more now.
    pub next: Option<Cursor>,
}

/// What an erasure did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Erasure {
    /// Whether every copy of the key that the database had is overwritten. While a reader holds an
    /// old state, the copy in the write-ahead log stays; it is overwritten when the reader has let
    /// go, by whoever has the folder open for writing then.
    pub complete: bool,
}

impl Reader {
    /// One page of sessions after a cursor. What stands before it is not read.
    pub fn session_page(
        &self,
        filter: &SessionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<SessionPage, PageError> {
        self.page_of_sessions(filter, after, limit, false)
    }

    /// One page of sessions after a cursor, the one that began last first.
    pub fn newest_sessions(
        &self,
        filter: &SessionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<SessionPage, PageError> {
        self.page_of_sessions(filter, after, limit, true)
    }

    fn page_of_sessions(
        &self,
        filter: &SessionFilter,
        after: Option<&Cursor>,
        limit: usize,
        newest_first: bool,
    ) -> Result<SessionPage, PageError> {
        let (order, start, page, own_page) = match newest_first {
            false => ("sessions", 0, PAGE, OWN_PAGE),
            true => ("newest sessions", u64::MAX, NEWEST, OWN_NEWEST),
        };
        let tag = Hash::of(format!("{order} {filter:?}").as_bytes());
        let after = after.map_or(Ok(start), |cursor| cursor.last_id(&tag))?;
        let limit = limit.max(1);
        let tenant = filter.tenant.as_ref().map(TenantId::as_str);
        let session = filter.session.as_ref().map(SessionId::as_str);
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let wanted = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
        let (mut sessions, more) = self.with(|db| {
            let mut found = Vec::new();
            match &filter.owner {
                Some(_) if !identity::has_tables(db)? => {}
                Some(owner) => {
                    let values: [&dyn ToSql; 5] = [&tenant, &session, &after, &wanted, owner];
                    collect(db, own_page, &values, &mut found)?;
                }
                None => {
                    let values: [&dyn ToSql; 4] = [&tenant, &session, &after, &wanted];
                    collect(db, page, &values, &mut found)?;
                }
            }
            let more = found.len() > limit;
            found.truncate(limit);
            Ok::<_, Error>((found, more))
        })?;
        let last = sessions.last().map(|(id, _)| *id).filter(|_| more);
        Ok(SessionPage {
            sessions: sessions.drain(..).map(|(_, session)| session).collect(),
            next: last.map(|last| Cursor::new(last, &tag)),
        })
    }

    /// Every session, in the order in which they began.
    pub fn sessions(&self, tenant: Option<&TenantId>) -> Result<Vec<SessionSummary>, Error> {
        self.summaries(tenant.map(TenantId::as_str), None)
    }

    /// One session.
    pub fn session(&self, scope: &Scope) -> Result<Option<SessionSummary>, Error> {
        let found = self.summaries(Some(scope.tenant.as_str()), Some(scope.session.as_str()))?;
        Ok(found.into_iter().next())
    }

    /// Whether a session has ended.
    pub fn is_terminated(&self, scope: &Scope) -> Result<bool, Error> {
        self.with(|db| {
            let mut statement = db.prepare_cached(LAST)?;
            let session = (scope.tenant.as_str(), scope.session.as_str());
            let mut rows = statement.query(session)?;
            let Some(row) = rows.next()? else {
                return Ok(false);
            };
            let line = row.get_ref(0)?.as_bytes().map_err(rusqlite::Error::from)?;
            Ok(ends(&Line::read(line)?))
        })
    }

    fn summaries(
        &self,
        tenant: Option<&str>,
        session: Option<&str>,
    ) -> Result<Vec<SessionSummary>, Error> {
        self.with(|db| {
            let mut statement = db.prepare_cached(SUMMARY)?;
            let mut rows = statement.query((tenant, session))?;
            let mut sessions = Vec::new();
            while let Some(row) = rows.next()? {
                sessions.push(summary(row)?);
            }
            Ok(sessions)
        })
    }

    /// How many events there are of each type, in the order of the types.
    pub fn counts(
        &self,
        scope: &Scope,
    ) -> Result<std::collections::BTreeMap<countersign_event::EventType, u64>, Error> {
        let mut counts = std::collections::BTreeMap::new();
        self.each(&Filter::session(scope), 0, |event| {
            *counts
                .entry(Line::read(&event.line)?.event_type)
                .or_default() += 1;
            Ok::<_, Error>(())
        })?;
        Ok(counts)
    }
}

pub(crate) fn erase(
    scope: &Scope,
    now_unix_ms: u64,
    db: &mut Connection,
) -> Result<Erasure, Error> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (session, wrapped) = crate::lane::find(scope, &transaction)?
        .ok_or_else(|| Error::NoSession(scope.session.as_str().to_owned()))?;
    if wrapped.is_none() {
        return Err(Error::Erased);
    }
    transaction.execute(
        "UPDATE session_keys SET master = '', wrapped = x'', erased_unix_ms = ?2 WHERE session = ?1",
        (session, i64::try_from(now_unix_ms).unwrap_or(i64::MAX)),
    )?;
    transaction.commit()?;
    // SECURITY: the write-ahead log still holds the page with the old key; in the database
    // `secure_delete` has overwritten it.
    Ok(Erasure {
        complete: backlog::empty(db, PATIENCE),
    })
}

/// The rows of a page, each with its place.
fn collect(
    db: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
    found: &mut Vec<(u64, SessionSummary)>,
) -> Result<(), Error> {
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        let id = u64::try_from(row.get::<_, i64>(5)?).unwrap_or_default();
        found.push((id, summary(row)?));
    }
    Ok(())
}

fn summary(row: &Row<'_>) -> Result<SessionSummary, Error> {
    let first = row.get_ref(3)?.as_bytes().map_err(rusqlite::Error::from)?;
    let last = row.get_ref(4)?.as_bytes().map_err(rusqlite::Error::from)?;
    let (first, last) = (Line::read(first)?, Line::read(last)?);
    Ok(SessionSummary {
        scope: Scope::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?)
            .map_err(|error| Error::damaged(0, error))?,
        events: last.seq + 1,
        head: last.hash,
        first_unix_ms: first.ts_unix_ms,
        last_unix_ms: last.ts_unix_ms,
        terminated: ends(&last),
        erased_unix_ms: row
            .get::<_, Option<i64>>(2)?
            .and_then(|ms| ms.try_into().ok()),
    })
}

fn ends(last: &Line<'_>) -> bool {
    let mut order = Order::default();
    order.admit(last.event_type, &last.refs).is_ok() && order.is_terminated()
}

/// How long an erasure waits for readers; nothing can be appended meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);

const LAST: &str = "
    SELECT e.line FROM sessions s JOIN events e ON e.session = s.id
    WHERE s.tenant_id = ?1 AND s.session_id = ?2 ORDER BY e.seq DESC LIMIT 1";
/// What a summary is made of, of the sessions that the rest says.
macro_rules! summary {
    ($rest:literal) => {
        concat!(
            "SELECT s.tenant_id, s.session_id, k.erased_unix_ms,
                (SELECT line FROM events WHERE session = s.id ORDER BY seq LIMIT 1),
                (SELECT line FROM events WHERE session = s.id ORDER BY seq DESC LIMIT 1), s.id
            FROM sessions s LEFT JOIN session_keys k ON k.session = s.id ",
            $rest
        )
    };
}

const SUMMARY: &str = summary!(
    "WHERE (?1 IS NULL OR s.tenant_id = ?1) AND (?2 IS NULL OR s.session_id = ?2) ORDER BY s.id"
);

const PAGE: &str = summary!(
    "WHERE (?1 IS NULL OR s.tenant_id = ?1) AND (?2 IS NULL OR s.session_id = ?2) AND s.id > ?3
     ORDER BY s.id LIMIT ?4"
);

/// Of those that one has begun only.
const OWN_PAGE: &str = summary!(
    "JOIN session_owners o ON o.tenant_id = s.tenant_id AND o.session_id = s.session_id
     WHERE (?1 IS NULL OR s.tenant_id = ?1) AND (?2 IS NULL OR s.session_id = ?2) AND s.id > ?3
         AND o.owner = ?5
     ORDER BY s.id LIMIT ?4"
);

const NEWEST: &str = summary!(
    "WHERE (?1 IS NULL OR s.tenant_id = ?1) AND (?2 IS NULL OR s.session_id = ?2) AND s.id < ?3
     ORDER BY s.id DESC LIMIT ?4"
);

const OWN_NEWEST: &str = summary!(
    "JOIN session_owners o ON o.tenant_id = s.tenant_id AND o.session_id = s.session_id
     WHERE (?1 IS NULL OR s.tenant_id = ?1) AND (?2 IS NULL OR s.session_id = ?2) AND s.id < ?3
         AND o.owner = ?5
     ORDER BY s.id DESC LIMIT ?4"
);
