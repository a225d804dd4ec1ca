//! Appending.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use countersign_approval::UnixMs;
use countersign_event::{EventType, Head, Payload, Scope, Sealed};
use countersign_vault::SealedPayload;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use crate::audit::AuditFile;
use crate::keys::Keys;
use crate::lane::{self, Lane, State};
use crate::queue::Queue;
use crate::room::Room;
use crate::schema::VERSION;
use crate::writer::{Command, Haste, Job, Work, Writer, observe};
use crate::{
    Change, Conflict, Durability, Error, Folder, Observer, Reader, Recorded, Rotation, Step, schema,
};

/// A data folder that is open for writing.
///
/// Dropping it waits for the events that are on their way.
pub struct Store {
    reader: Reader,
    keys: Arc<Keys>,
    lanes: Mutex<HashMap<Scope, Arc<Lane>>>,
    queue: Arc<Queue>,
    writer: Option<JoinHandle<()>>,
    observer: Option<Observer>,
    durability: Durability,
}

/// An event before it has a place.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The chain it belongs to.
    pub scope: Scope,
    /// When it happened.
    pub ts_unix_ms: u64,
    /// What happened.
    pub event_type: EventType,
    /// Its content.
    pub payload: Payload,
}

/// Events that belong together, each with what else its transaction changes.
pub type Events = Vec<(EventType, Payload, Option<Change>)>;

/// Where an event is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// After whatever is the last event.
    Next,
    /// Right after this head, or nowhere.
    Head(Head),
}

/// An append on its way. Wait for it with [`Pending::wait`] in a thread, or `await` it in a task.
#[must_use = "an event counts as recorded only when the answer says so"]
pub struct Pending {
    answer: oneshot::Receiver<Result<Recorded, Error>>,
    head: Head,
}

/// How to open a store.
#[derive(Clone, Default)]
pub struct Options {
    /// Is told of each step in the life of each event.
    pub observer: Option<Observer>,
    /// What an acknowledged event survives.
    pub durability: Durability,
}

impl Store {
    /// Opens the folder; makes it, the database and the master key if they are not there.
    pub fn open(folder: &Folder, options: Options) -> Result<Self, Error> {
        let db = schema::open_writer(folder, options.durability)?;
        let keys = Arc::new(Keys::open_or_create(folder, &db)?);
        let reader = Reader::open(folder)?;
        let audit = AuditFile::new(folder);
        let room = Room::new(folder, options.durability);
        let writer = Writer::new(db, audit, room, options.observer.clone())?;
        let queue = Queue::new(writer);
        let writing = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("log-writer".to_owned())
            .spawn(move || writing.run())
            .map_err(|source| Error::Folder {
                path: folder.path().to_owned(),
                source,
            })?;
        Ok(Self {
            reader,
            keys,
            lanes: Mutex::default(),
            queue,
            writer: Some(thread),
            observer: options.observer,
            durability: options.durability,
        })
    }

    /// Seals the event and puts it on its way.
    ///
    /// Blocks while the queue is full, and where others on their way decide whether the event can
    /// follow. Events of one session are written in the order of these calls.
    pub fn append(&self, draft: Draft, at: At) -> Result<Pending, Error> {
        self.append_with(draft, at, None)
    }

    /// Like [`Store::append`], with a change of an approval or a lease in the same transaction. Where
    /// the change is refused, the event is not recorded.
    pub fn append_with(
        &self,
        draft: Draft,
        at: At,
        change: Option<Change>,
    ) -> Result<Pending, Error> {
        let Draft {
            scope,
            ts_unix_ms,
            event_type,
            payload,
        } = draft;
        let event = (event_type, payload, change);
        let mut pending = self.append_all(&scope, ts_unix_ms, vec![event], at, Haste::Now)?;
        pending.pop().ok_or(Error::Stopped)
    }

    /// Puts events of one session on their way that belong together: one transaction writes them, so
    /// no crash and no other process comes between. Where a change is refused, its event and those
    /// after it are not recorded; those before it are.
    pub fn append_all(
        &self,
        scope: &Scope,
        ts_unix_ms: u64,
        events: Events,
        at: At,
        haste: Haste,
    ) -> Result<Vec<Pending>, Error> {
        self.observe(Step::Admitted);
        let lane = self.lane(scope)?;
        // Encrypting takes time, so it happens outside the lock.
        let key = Arc::clone(&self.state_at(at, &lane)?.key);
        let mut sealed = Vec::with_capacity(events.len());
        for (event_type, payload, change) in events {
            sealed.push((event_type, key.seal(payload, scope)?, change));
        }

        let mut state = self.state_at(at, &lane)?;
        if *key != *state.key {
            // The session was made by another process while we encrypted.
            return Err(Conflict {
                expected_seq: 0,
                actual: state.head,
            }
            .into());
        }
        let base = state.head;
        let (mut jobs, mut pending) = (Vec::new(), Vec::new());
        for (event_type, payload, change) in sealed {
            let next = place(event_type, ts_unix_ms, payload, change, &lane, &mut state);
            let (job, answer) = match next {
                Ok(next) => next,
                Err(error) => {
                    if !jobs.is_empty() {
                        // What came before it in the group is not sent, but the lane has taken it in.
                        lane.mark_stale();
                    }
                    return Err(self.judged(error, base, &lane));
                }
            };
            state.head = answer.head;
            jobs.push(job);
            pending.push(answer);
        }
        if let Some(last) = jobs.last_mut() {
            last.flight = Some(lane.depart());
        }
        self.observe(Step::Sealed);
        if let Err(error) = self.send(Command::Append(jobs, haste)) {
            lane.mark_stale();
            return Err(error);
        }
        drop(state);
        self.observe(Step::Queued);
        if haste == Haste::Here {
            self.queue.write_here();
        }
        Ok(pending)
    }

    /// Whether an event is misplaced is known when nothing is on its way. The lane may have been behind
    /// other processes, or ahead with events that were not stored; then trying again helps.
    fn judged(&self, error: Error, base: Head, lane: &Lane) -> Error {
        if !matches!(error, Error::Order(_)) {
            return error;
        }
        lane.wait_until_landed();
        let stored = self.reader.with(|db| lane::stored_head(&lane.scope, db));
        match stored {
            Ok(stored) if stored == base => error,
            Ok(actual) => {
                lane.mark_stale();
                let expected_seq = base.count();
                Conflict {
                    expected_seq,
                    actual,
                }
                .into()
            }
            Err(unreadable) => unreadable,
        }
    }

    /// Appends after whatever is the last event, and waits until it is durable. When another
    /// process was faster, tries again on the new head.
    pub fn record(&self, draft: Draft) -> Result<Recorded, Error> {
        for _ in 1..MAX_ATTEMPTS {
            match self.append(draft.clone(), At::Next).and_then(Pending::wait) {
                Err(error) if error.is_retryable() => {}
                result => return result,
            }
        }
        self.append(draft, At::Next)?.wait()
    }

    /// Whether an event could be recorded now: writes a page that changes nothing, as durably as one.
    pub fn rehearse(&self) -> Result<(), Error> {
        self.with_writer(Command::Between, |db| {
            let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let version: i64 = transaction.pragma_query_value(None, VERSION, |row| row.get(0))?;
            // The page is written although it says the same.
            transaction.pragma_update(None, VERSION, version)?;
            Ok(transaction.commit()?)
        })
    }

    /// The data folder.
    pub fn folder(&self) -> &Folder {
        self.reader.folder()
    }

    /// What an acknowledged event survives.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// What is stored.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Replaces the master key and wraps every session key with the new one.
    pub fn rotate_master_key(&self) -> Result<Rotation, Error> {
        let keys = Arc::clone(&self.keys);
        self.exclusive(move |db| keys.rotate(db))
    }

    /// Destroys the key of a session, and with it the sealed content, for good.
    pub fn erase(&self, scope: &Scope, now_unix_ms: u64) -> Result<crate::Erasure, Error> {
        let target = scope.clone();
        let erasure = self.exclusive(move |db| crate::session::erase(&target, now_unix_ms, db));
        self.lanes().remove(scope);
        erasure
    }

    /// Forgets approvals that are over since `before`; their nonces stay spent. Returns how many.
    pub fn prune_approvals(&self, before: UnixMs) -> Result<usize, Error> {
        self.exclusive(move |db| crate::approval::prune(before, db))
    }

    /// Runs something on the writing connection, between two transactions.
    pub(crate) fn exclusive<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.with_writer(Command::Exclusive, work)
    }

    /// Waits until the writer has done it.
    pub(crate) fn with_writer<T: Send + 'static>(
        &self,
        command: fn(Work) -> Command,
        work: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = std::sync::mpsc::sync_channel(1);
        let work = Box::new(move |db: &mut Connection| {
            // The caller waits below, so somebody is there to hear.
            let _ = reply.send(work(db));
        });
        self.send(command(work))?;
        answer.recv().map_err(|_| Error::Stopped)?
    }

    fn send(&self, command: Command) -> Result<(), Error> {
        self.queue.put(command)
    }

    /// The lane's state, if its head is where the caller wants to go. The lane may be behind other
    /// processes, so a difference is looked up before it is called a conflict.
    fn state_at<'l>(&self, at: At, lane: &'l Lane) -> Result<MutexGuard<'l, State>, Error> {
        let state = self.state(lane)?;
        let expected = match at {
            At::Head(expected) if expected != state.head => expected,
            _ => return Ok(state),
        };
        let conflict = |actual| Conflict {
            expected_seq: expected.count(),
            actual,
        };
        if state.head.count() > expected.count() {
            // The place is taken, if only by an event that is still on its way.
            return Err(conflict(state.head).into());
        }
        let stored = self.reader.with(|db| lane::stored_head(&lane.scope, db))?;
        if stored != expected {
            let actual = if stored.count() > state.head.count() {
                stored
            } else {
                state.head
            };
            return Err(conflict(actual).into());
        }
        drop(state);
        lane.mark_stale();
        let state = self.state(lane)?;
        // INVARIANT: whatever happened while the lane was rebuilt, the event goes where the caller
        // wants it, or nowhere.
        if state.head != expected {
            return Err(conflict(state.head).into());
        }
        Ok(state)
    }

    fn lane(&self, scope: &Scope) -> Result<Arc<Lane>, Error> {
        if let Some(lane) = self.lanes().get(scope) {
            return Ok(Arc::clone(lane));
        }
        // Loading reads the database, so it happens outside the lock; if two threads do it at
        // once, the first lane stays.
        let lane = self
            .reader
            .with(|db| Lane::load(scope.clone(), Some(db), &self.keys))?;
        let mut lanes = self.lanes();
        if lanes.len() >= MAX_LANES {
            // A lane with events on their way is held by them too, and stays; some of the others make room.
            let mut surplus = MAX_LANES / 8;
            lanes.retain(|_, lane| {
                let stays = Arc::strong_count(lane) > 1 || surplus == 0;
                surplus -= usize::from(!stays);
                stays
            });
        }
        Ok(Arc::clone(
            lanes.entry(scope.clone()).or_insert_with(|| Arc::new(lane)),
        ))
    }

    fn state<'l>(&self, lane: &'l Lane) -> Result<MutexGuard<'l, State>, Error> {
        lane.state(|scope| {
            self.keys.reload()?;
            self.reader
                .with(|db| lane::load(scope, Some(db), &self.keys))
        })
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<Scope, Arc<Lane>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn observer(&self) -> Option<&Observer> {
        self.observer.as_ref()
    }

    fn observe(&self, step: Step) {
        observe(self.observer.as_ref(), step);
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has nothing left to wait for.
            let _ = writer.join();
        }
    }
}

/// Gives an event its place after the lane's head.
fn place(
    event_type: EventType,
    ts_unix_ms: u64,
    payload: SealedPayload,
    change: Option<Change>,
    lane: &Arc<Lane>,
    state: &mut State,
) -> Result<(Job, Pending), Error> {
    let scope = &lane.scope;
    let sealed = Sealed::seal(event_type, ts_unix_ms, &payload.body, scope, &state.head)?;
    state.order.admit(event_type, payload.body.refs())?;
    let head = sealed.head();
    let wrapped = lane
        .row()
        .is_none()
        .then(|| state.wrapped.clone())
        .flatten();
    let (reply, answer) = oneshot::channel();
    let job = Job {
        lane: Arc::clone(lane),
        sealed,
        ciphertext: payload.ciphertext,
        change: change.map(Box::new),
        wrapped,
        reply,
        flight: None,
    };
    Ok((job, Pending { answer, head }))
}

impl Pending {
    /// Blocks the thread until the event is durable or refused. Not for use inside async tasks.
    pub fn wait(self) -> Result<Recorded, Error> {
        self.answer.blocking_recv().unwrap_or(Err(Error::Stopped))
    }

    /// What became of the event, if that is known by now. Tells it once.
    pub fn try_wait(&mut self) -> Option<Result<Recorded, Error>> {
        match self.answer.try_recv() {
            Ok(answer) => Some(answer),
            Err(oneshot::error::TryRecvError::Empty) => None,
            Err(oneshot::error::TryRecvError::Closed) => Some(Err(Error::Stopped)),
        }
    }

    /// The head of the chain once this event is durable; what the next event can be made for.
    pub fn head(&self) -> Head {
        self.head
    }
}

impl Future for Pending {
    type Output = Result<Recorded, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer)
            .poll(context)
            .map(|answer| answer.unwrap_or(Err(Error::Stopped)))
    }
}

const MAX_LANES: usize = 4096;
/// Each lost race means that somebody else made progress; past this, something is wrong.
const MAX_ATTEMPTS: usize = 1000;
