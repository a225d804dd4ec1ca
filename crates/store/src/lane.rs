//! What the store keeps in memory about a session that is being written.
//!
//! A lane runs ahead of the database: it seals an event on top of the ones that are still on their
//! way, so that a busy session does not wait for one fsync per event. The database has the last
//! word. When an append fails, the lane is stale and is rebuilt from the database before its next
//! use, once nothing of it is on its way any more.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use countersign_event::{Head, Line, Order, Scope};
use countersign_vault::{KeyringError, SessionKey, WrappedKey};
use rusqlite::{Connection, OptionalExtension as _};

use crate::Error;
use crate::keys::Keys;

/// One session, as seen by the writers of this process.
pub(crate) struct Lane {
    pub(crate) scope: Scope,
    /// The session's row, or 0 while it has none.
    row: AtomicI64,
    stale: AtomicBool,
    state: Mutex<State>,
    flying: Mutex<Flying>,
    landed: Condvar,
}

/// What is on its way.
#[derive(Default)]
struct Flying {
    /// How many groups of events.
    groups: usize,
    /// How many wait until all have landed.
    awaited_by: usize,
}

/// A group of events on its way to the database, until its fate is known.
pub(crate) struct Flight(Arc<Lane>);

/// The part of a lane that an append changes.
pub(crate) struct State {
    pub(crate) key: Arc<SessionKey>,
    /// The key as it will be stored, while the session has no row.
    pub(crate) wrapped: Option<Arc<WrappedKey>>,
    pub(crate) head: Head,
    pub(crate) order: Order,
}

impl Lane {
    pub(crate) fn load(scope: Scope, db: Option<&Connection>, keys: &Keys) -> Result<Self, Error> {
        let (row, state) = load(&scope, db, keys)?;
        Ok(Self {
            scope,
            row: AtomicI64::new(row.unwrap_or(0)),
            stale: AtomicBool::new(false),
            state: Mutex::new(state),
            flying: Mutex::default(),
            landed: Condvar::new(),
        })
    }

    /// The current state, rebuilt first if an append has failed since.
    ///
    /// INVARIANT: it contains every event of this process that is stored or will be.
    pub(crate) fn state(
        &self,
        rebuild: impl FnOnce(&Scope) -> Result<(Option<i64>, State), Error>,
    ) -> Result<MutexGuard<'_, State>, Error> {
        let mut state = self.lock();
        if self.stale.load(Ordering::Acquire) {
            // What is on its way would be missing otherwise.
            self.wait_until_landed();
            self.stale.store(false, Ordering::Release);
            match rebuild(&self.scope) {
                Ok((row, fresh)) => {
                    self.row.store(row.unwrap_or(0), Ordering::Release);
                    *state = fresh;
                }
                Err(error) => {
                    self.mark_stale();
                    return Err(error);
                }
            }
        }
        Ok(state)
    }

    /// A group of events leaves for the database.
    pub(crate) fn depart(self: &Arc<Self>) -> Flight {
        self.flying().groups += 1;
        Flight(Arc::clone(self))
    }

    /// Blocks until the fate of everything that was on its way is known. Whoever has the lane's state
    /// locked waits for no longer than the writer needs.
    pub(crate) fn wait_until_landed(&self) {
        let mut flying = self.flying();
        flying.awaited_by += 1;
        let landed = self.landed.wait_while(flying, |flying| flying.groups > 0);
        landed.unwrap_or_else(PoisonError::into_inner).awaited_by -= 1;
    }

    fn flying(&self) -> MutexGuard<'_, Flying> {
        self.flying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next use must look at the database first.
    pub(crate) fn mark_stale(&self) {
        self.stale.store(true, Ordering::Release);
    }

    pub(crate) fn row(&self) -> Option<i64> {
        Some(self.row.load(Ordering::Acquire)).filter(|row| *row != 0)
    }

    pub(crate) fn set_row(&self, row: i64) {
        self.row.store(row, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| {
            // A panic may have left the state half changed.
            self.mark_stale();
            PoisonError::into_inner(poisoned)
        })
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut flying = self.0.flying();
        flying.groups -= 1;
        if flying.groups == 0 && flying.awaited_by > 0 {
            self.0.landed.notify_all();
        }
    }
}

/// Reads a session from the database. Every hash, link and order rule is checked on the way:
/// nothing is ever added on top of a history that does not hold.
pub(crate) fn load(
    scope: &Scope,
    db: Option<&Connection>,
    keys: &Keys,
) -> Result<(Option<i64>, State), Error> {
    let stored = match db {
        Some(db) => find_key(scope, db, keys)?.map(|found| (found, db)),
        None => None,
    };
    let Some(((row, key), db)) = stored else {
        let (key, wrapped) = keys.generate(scope)?;
        let state = State {
            key: Arc::new(key),
            wrapped: Some(Arc::new(wrapped)),
            head: Head::GENESIS,
            order: Order::default(),
        };
        return Ok((None, state));
    };
    let (head, order) = read_chain(scope, row, db)?;
    Ok((
        Some(row),
        State {
            key: Arc::new(key),
            wrapped: None,
            head,
            order,
        },
    ))
}

/// The session's row and its key.
pub(crate) fn find_key(
    scope: &Scope,
    db: &Connection,
    keys: &Keys,
) -> Result<Option<(i64, SessionKey)>, Error> {
    let mut missed = None;
    loop {
        let Some((row, wrapped)) = find(scope, db)? else {
            return Ok(None);
        };
        match keys.unwrap(&wrapped.ok_or(Error::Erased)?, scope) {
            // A rotation may have come between the row and the key file; then the row is new too.
            Err(Error::Keyring(KeyringError::Missing(id))) if missed.as_ref() != Some(&id) => {
                missed = Some(id);
            }
            key => return Ok(Some((row, key?))),
        }
    }
}

/// The session's row and its wrapped key, which is `None` once erased.
pub(crate) fn find(
    scope: &Scope,
    db: &Connection,
) -> Result<Option<(i64, Option<WrappedKey>)>, Error> {
    let mut statement = db.prepare_cached(
        "SELECT s.id, k.master, k.wrapped, k.erased_unix_ms FROM sessions s
         LEFT JOIN session_keys k ON k.session = s.id
         WHERE s.tenant_id = ?1 AND s.session_id = ?2",
    )?;
    let mut rows = statement.query((scope.tenant.as_str(), scope.session.as_str()))?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let master: Option<String> = row.get(1)?;
    let master = master.ok_or_else(|| Error::damaged(0, NO_KEY))?;
    let erased: Option<i64> = row.get(3)?;
    let wrapped = crate::keys::wrapped(master, row.get(2)?);
    Ok(Some((row.get(0)?, erased.is_none().then_some(wrapped))))
}

/// The head of a session as it is stored, from its last event alone.
pub(crate) fn stored_head(scope: &Scope, db: &Connection) -> Result<Head, Error> {
    match find(scope, db)? {
        Some((session, _)) => last_head(session, db),
        None => Ok(Head::GENESIS),
    }
}

pub(crate) fn last_head(session: i64, db: &Connection) -> Result<Head, Error> {
    let last: Option<(i64, Vec<u8>)> = db
        .prepare_cached(
            "SELECT seq, line FROM events WHERE session = ?1 ORDER BY seq DESC LIMIT 1",
        )?
        .query_row([session], |row| {
            Ok((row.get(0)?, row.get_ref(1)?.as_bytes()?.to_vec()))
        })
        .optional()?;
    let Some((seq, text)) = last else {
        return Ok(Head::GENESIS);
    };
    let damaged = |problem: &dyn ToString| {
        Error::damaged(u64::try_from(seq).unwrap_or_default(), problem.to_string())
    };
    let line = Line::read(&text).map_err(|error| damaged(&error))?;
    check(&line, seq).map_err(|problem| damaged(&problem))?;
    Ok(Head::after(line.seq, line.hash))
}

fn read_chain(scope: &Scope, session: i64, db: &Connection) -> Result<(Head, Order), Error> {
    let mut head = Head::GENESIS;
    let mut order = Order::default();
    let mut statement =
        db.prepare_cached("SELECT seq, line FROM events WHERE session = ?1 ORDER BY seq")?;
    let mut rows = statement.query([session])?;
    while let Some(row) = rows.next()? {
        let text = row.get_ref(1)?.as_bytes().map_err(rusqlite::Error::from)?;
        let damaged = |problem: &dyn ToString| Error::damaged(head.count(), problem.to_string());
        let line = Line::read(text).map_err(|error| damaged(&error))?;
        head.accepts(line.seq, line.prev_hash.as_ref())
            .map_err(|error| damaged(&error))?;
        check(&line, row.get(0)?).map_err(|problem| damaged(&problem))?;
        if line.tenant_id != scope.tenant.as_str() || line.session_id != scope.session.as_str() {
            return Err(damaged(&"it belongs to another session"));
        }
        order
            .admit(line.event_type, &line.refs)
            .map_err(|error| damaged(&error))?;
        head = Head::after(line.seq, line.hash);
    }
    Ok((head, order))
}

/// What an event shows about itself.
fn check(line: &Line<'_>, seq: i64) -> Result<(), &'static str> {
    if line.computed_hash() != line.hash {
        return Err("its hash does not match its content");
    }
    if u64::try_from(seq) != Ok(line.seq) {
        return Err("its row has another sequence number");
    }
    Ok(())
}

pub(crate) const NO_KEY: &str = "the session has no key";

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    #[allow(clippy::unwrap_used, reason = "a test may stop at once")]
    fn a_stale_lane_is_read_back_when_nothing_of_it_is_on_its_way() {
        let folder = tempfile::tempdir().unwrap();
        let folder = crate::Folder::new(folder.path());
        let db = crate::schema::open_writer(&folder, crate::Durability::Relaxed).unwrap();
        let keys = Keys::open_or_create(&folder, &db).unwrap();
        let scope = Scope::new("t", "s").unwrap();
        let lane = Arc::new(Lane::load(scope, None, &keys).unwrap());
        let (flight, is_read) = (lane.depart(), AtomicBool::new(false));
        lane.mark_stale();
        std::thread::scope(|threads| {
            let reading = threads.spawn(|| {
                let state = lane.state(|scope| {
                    is_read.store(true, Ordering::Release);
                    load(scope, None, &keys)
                });
                drop(state.unwrap());
            });
            std::thread::sleep(Duration::from_millis(100));
            assert!(!is_read.load(Ordering::Acquire));
            drop(flight);
            reading.join().unwrap();
        });
        assert!(is_read.into_inner());
    }
}
