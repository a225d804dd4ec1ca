//! The one who writes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use countersign_approval::UnixMs;
use countersign_canon::Hash;
use countersign_event::{Head, Sealed};
use countersign_vault::WrappedKey;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Statement, ToSql, TransactionBehavior};
use tokio::sync::oneshot;

use crate::audit::{Added, AuditFile};
use crate::backlog::Backlog;
use crate::lane::{self, Flight, Lane, NO_KEY};
use crate::room::Room;
use crate::{Change, Conflict, Error, Observer, Step, backlog, schema};

/// Proof that an event is durable: its transaction was committed and fsynced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Recorded {
    id: u64,
    seq: u64,
    hash: Hash,
}

impl Recorded {
    /// The place among all events of the store, from 1.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The place in the session, from 0.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The hash, which is the head of the session's chain as long as nothing follows.
    pub fn hash(&self) -> Hash {
        self.hash
    }
}

/// What the writer is asked to do.
pub(crate) enum Command {
    /// Events that go into one transaction.
    Append(Vec<Job>, Haste),
    /// Something rare that needs the writing connection for itself.
    Exclusive(Work),
    /// A short transaction that changes no session.
    Between(Work),
    /// Nothing but what the writer's thread does after each command.
    CatchUp,
}

pub(crate) type Work = Box<dyn FnOnce(&mut Connection) + Send>;

/// Who commits events, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Haste {
    /// The writer's thread, at once.
    Now,
    /// The caller itself, if nobody is writing: nobody has to be woken then. For a caller that has
    /// nothing else to do than to wait for the disk.
    Here,
    /// Nobody waits for them: they may share the commit of what comes next, if that comes within a few
    /// milliseconds, or a few tens of them where other processes write.
    Soon,
}

/// One event on its way.
pub(crate) struct Job {
    pub(crate) lane: Arc<Lane>,
    pub(crate) sealed: Sealed,
    pub(crate) ciphertext: Option<Vec<u8>>,
    /// What else the transaction changes.
    pub(crate) change: Option<Box<Change>>,
    /// The session's key, for a session that has no row yet.
    pub(crate) wrapped: Option<Arc<WrappedKey>>,
    pub(crate) reply: oneshot::Sender<Result<Recorded, Error>>,
    /// With the last event of a group.
    pub(crate) flight: Option<Flight>,
}

pub(crate) struct Writer {
    db: Connection,
    audit: AuditFile,
    room: Option<Room>,
    heads: Heads,
    backlog: Backlog,
    /// Whether the write-ahead log may hold keys that were erased or wrapped anew.
    unclean: bool,
    observer: Option<Observer>,
    /// The time of the last change, for the anchor.
    latest: UnixMs,
}

/// Heads of recently written sessions and of the audit, right as long as no other process has written.
#[derive(Default)]
struct Heads {
    known: HashMap<i64, Head>,
    audit: Option<countersign_approval::audit::Head>,
    data_version: i64,
}

/// The outer error is the database's and ends the transaction; the inner one is about this event.
type Outcome = Result<Result<Recorded, Error>, Error>;
/// What became of each event of a transaction, and what it added to the audit.
type Transacted = Result<(Vec<Result<Recorded, Error>>, Added), Error>;

impl Writer {
    pub(crate) fn new(
        mut db: Connection,
        audit: AuditFile,
        room: Option<Room>,
        observer: Option<Observer>,
    ) -> Result<Self, Error> {
        let backlog = Backlog::watch(&mut db)?;
        // Whoever had the folder before may have been killed before it could clean up.
        Ok(Self {
            db,
            audit,
            room,
            heads: Heads::default(),
            backlog,
            unclean: true,
            observer,
            latest: UnixMs::new(0),
        })
    }

    /// Does what is asked.
    pub(crate) fn run(&mut self, command: Command) {
        match command {
            Command::Append(batch, _) => self.commit(batch),
            Command::Exclusive(work) => {
                work(&mut self.db);
                self.heads.forget();
                self.unclean = true;
            }
            Command::Between(work) => work(&mut self.db),
            Command::CatchUp => (),
        }
    }

    /// Whether there is something to do that nobody should wait for.
    pub(crate) fn has_backlog(&self) -> bool {
        self.backlog.is_due()
    }

    pub(crate) fn catch_up(&mut self) {
        if self.has_backlog() {
            self.backlog.clear(&mut self.db);
        }
    }

    /// Cleans up, if it has to be.
    pub(crate) fn tidy(&mut self) {
        if self.unclean {
            self.unclean = !backlog::empty(&mut self.db, Duration::ZERO);
        }
    }

    /// Ends the work.
    pub(crate) fn close(mut self) {
        // Nobody is left to hear; the next who opens the folder catches up.
        let _ = self.audit.close(self.latest, &self.db);
    }

    /// Writes events in one transaction, and tells those who wait for them.
    fn commit(&mut self, batch: Vec<Job>) {
        let written = self.write(&batch);
        self.tell(batch, written);
    }

    /// The same, unless another process is still writing after a while: then the events come back.
    pub(crate) fn commit_within(&mut self, wait: Duration, batch: Vec<Job>) -> Option<Vec<Job>> {
        let hurried = schema::wait_for_others(&mut self.db, wait);
        let written = hurried
            .map_err(Error::from)
            .and_then(|()| self.write(&batch));
        let patient = schema::wait_for_others(&mut self.db, schema::BUSY_TIMEOUT);
        match patient.map_err(Error::from).and(written) {
            Err(Error::Busy) => {
                self.heads.forget();
                Some(batch)
            }
            written => {
                self.tell(batch, written);
                None
            }
        }
    }

    fn tell(&mut self, batch: Vec<Job>, written: Transacted) {
        match written {
            Ok((mut outcomes, added)) => {
                self.copy_audit(&batch, added, &mut outcomes);
                for (job, outcome) in batch.into_iter().zip(outcomes) {
                    job.answer(outcome);
                }
            }
            // FAIL-CLOSED: the transaction is gone, so nobody in it is told that it was recorded.
            Err(error) => {
                self.heads.forget();
                let error = Arc::new(error);
                for job in batch {
                    job.answer(Err(Error::Shared(Arc::clone(&error))));
                }
            }
        }
    }

    /// FAIL-CLOSED: whoever changed an approval hears of success only when the audit can be read.
    fn copy_audit(
        &mut self,
        batch: &[Job],
        added: Added,
        outcomes: &mut [Result<Recorded, Error>],
    ) {
        let Some(latest) = batch
            .iter()
            .filter_map(|job| Some(job.change.as_ref()?.now()))
            .max()
        else {
            return;
        };
        self.latest = latest;
        let caught_up = self.audit.catch_up(added, latest, &self.db);
        self.heads.audit = caught_up.as_ref().ok().copied();
        let Err(error) = caught_up else {
            return;
        };
        let error = Arc::new(error);
        for (job, outcome) in batch.iter().zip(outcomes) {
            if job.change.is_some() && outcome.is_ok() {
                *outcome = Err(Error::Shared(Arc::clone(&error)));
            }
        }
    }

    fn write(&mut self, batch: &[Job]) -> Transacted {
        let transaction = self
            .db
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        self.heads.forget_if_others_wrote(&transaction)?;
        let mut rows = HashMap::new();
        let mut added = Added::after(self.heads.audit);
        let mut outcomes = Vec::with_capacity(batch.len());
        let mut insert = transaction.prepare_cached(INSERT)?;
        for job in batch {
            let written = &mut Written {
                heads: &mut self.heads,
                rows: &mut rows,
                added: &mut added,
            };
            outcomes.push(match append(job, &mut insert, &transaction, written) {
                // The other sessions of the transaction are not to blame.
                Err(damaged @ Error::Damaged { .. }) => Err(damaged),
                outcome => outcome?,
            });
        }
        drop(insert);
        self.audit.prepare(&added);
        if let Some(room) = &mut self.room {
            room.make(&transaction);
        }
        observe(self.observer.as_ref(), Step::Written);
        transaction.commit()?;
        observe(self.observer.as_ref(), Step::Synced);
        for job in batch {
            if let Some(row) = rows.get(&Arc::as_ptr(&job.lane)) {
                job.lane.set_row(*row);
            }
        }
        Ok((outcomes, added))
    }
}

/// What a transaction knows of what it has written so far.
struct Written<'t> {
    heads: &'t mut Heads,
    rows: &'t mut HashMap<*const Lane, i64>,
    added: &'t mut Added,
}

impl Job {
    pub(crate) fn len(&self) -> usize {
        self.sealed.line().len() + self.ciphertext.as_ref().map_or(0, Vec::len)
    }

    fn answer(self, outcome: Result<Recorded, Error>) {
        if outcome.is_err() {
            self.lane.mark_stale();
        }
        // It lands first: who tries again does not wait for itself.
        drop(self.flight);
        // The caller may have stopped waiting; the event is in the log all the same.
        let _ = self.reply.send(outcome);
    }
}

impl Heads {
    fn forget_if_others_wrote(&mut self, db: &Connection) -> Result<(), Error> {
        let version = db
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get::<_, i64>(0))?;
        if version != self.data_version || self.known.len() > MAX_KNOWN_HEADS {
            self.forget();
            self.data_version = version;
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.known.clear();
        self.audit = None;
    }

    /// The head of a session; `None` if its content was erased.
    fn of(&mut self, session: i64, db: &Connection) -> Result<Option<Head>, Error> {
        if let Some(head) = self.known.get(&session) {
            return Ok(Some(*head));
        }
        let head = read_head(session, db)?;
        if let Some(head) = head {
            self.known.insert(session, head);
        }
        Ok(head)
    }
}

/// Inserts one event if it is the next one of its chain.
fn append(
    job: &Job,
    insert: &mut Statement<'_>,
    db: &Connection,
    written: &mut Written<'_>,
) -> Outcome {
    let session = match session_row(job, db, written.rows)? {
        Ok(session) => session,
        Err(refused) => return Ok(Err(refused)),
    };
    let Some(head) = written.heads.of(session, db)? else {
        return Ok(Err(Error::Erased));
    };
    let event = &job.sealed;
    if head
        .accepts(event.seq(), event.prev_hash().as_ref())
        .is_err()
    {
        return Ok(Err(Conflict {
            expected_seq: event.seq(),
            actual: head,
        }
        .into()));
    }
    if let Some(change) = &job.change
        && let Err(refused) = change.apply(session, event.seq(), db)?
    {
        return Ok(Err(refused.into()));
    }
    // `insert` fails unless exactly one row was added: a trigger that somebody planted must not
    // swallow an event that is acknowledged then.
    let id = insert.insert((
        session,
        event.seq() as i64,
        Text(event.line()),
        job.ciphertext.as_deref(),
    ))?;
    if let Some(change) = &job.change {
        change.link(id, db)?;
        written.added.append(change.audit(), db)?;
    }
    written.heads.known.insert(session, event.head());
    let id = u64::try_from(id).unwrap_or_default();
    Ok(Ok(Recorded {
        id,
        seq: event.seq(),
        hash: event.hash(),
    }))
}

fn session_row(
    job: &Job,
    db: &Connection,
    rows: &mut HashMap<*const Lane, i64>,
) -> Result<Result<i64, Error>, Error> {
    let lane = Arc::as_ptr(&job.lane);
    if let Some(row) = job.lane.row().or_else(|| rows.get(&lane).copied()) {
        return Ok(Ok(row));
    }
    let row = match lane::find(&job.lane.scope, db)? {
        Some((row, _)) => row,
        None => match insert_session(job, db)? {
            Ok(row) => row,
            Err(refused) => return Ok(Err(refused)),
        },
    };
    rows.insert(lane, row);
    Ok(Ok(row))
}

fn insert_session(job: &Job, db: &Connection) -> Result<Result<i64, Error>, Error> {
    let Some(wrapped) = &job.wrapped else {
        // The row that the lane knew is gone: the history was cut behind our back.
        return Ok(Err(Error::damaged(
            0,
            "the session has disappeared from the database",
        )));
    };
    if job.sealed.seq() > 0 {
        // INVARIANT: a session begins with its first event. This one lost the events before it.
        let conflict = Conflict {
            expected_seq: job.sealed.seq(),
            actual: Head::GENESIS,
        };
        return Ok(Err(conflict.into()));
    }
    let retired = db
        .prepare_cached("SELECT 1 FROM retired_master_keys WHERE id = ?1")?
        .exists([wrapped.master.as_str()])?;
    if retired {
        return Ok(Err(Error::Rotated));
    }
    let scope = &job.lane.scope;
    let row = db
        .prepare_cached("INSERT INTO sessions (tenant_id, session_id) VALUES (?1, ?2)")?
        .insert((scope.tenant.as_str(), scope.session.as_str()))?;
    db.prepare_cached("INSERT INTO session_keys (session, master, wrapped) VALUES (?1, ?2, ?3)")?
        .insert((row, wrapped.master.as_str(), &wrapped.bytes))?;
    Ok(Ok(row))
}

fn read_head(session: i64, db: &Connection) -> Result<Option<Head>, Error> {
    let erased: Option<i64> = db
        .prepare_cached("SELECT erased_unix_ms FROM session_keys WHERE session = ?1")?
        .query_row([session], |row| row.get(0))
        .optional()?
        .ok_or_else(|| Error::damaged(0, NO_KEY))?;
    if erased.is_some() {
        return Ok(None);
    }
    lane::last_head(session, db).map(Some)
}

/// Text that is known to be UTF-8, bound without a copy or a second check.
struct Text<'a>(&'a [u8]);

impl ToSql for Text<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

pub(crate) fn observe(observer: Option<&Observer>, step: Step) {
    if let Some(observer) = observer {
        observer(step);
    }
}

const INSERT: &str = "INSERT INTO events (session, seq, line, sealed) VALUES (?1, ?2, ?3, ?4)";
const MAX_KNOWN_HEADS: usize = 1 << 16;
