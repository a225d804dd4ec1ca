//! One session with its gate, and everybody who waits for it.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use countersign_canon::Json;
use countersign_engine::Haste;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::beside::asked;
use super::mailbox::{Letter, Mailbox, Waiting};
use super::places::Peer;
use super::route::Route;
use super::upstream::Idle;

use crate::frame::{Frame, Id};
use crate::gate::{Lost, Quick, Waits};
use crate::outbound::{Carries, Outbound};
use crate::stdio::Host;
use crate::{Done, Effect, Gate, Job, Session};

/// Opens sessions. May wait for the disk.
pub trait Reception: Send + Sync + 'static {
    /// A session for a client of whom this is known. It is in the log before anything happens in it.
    fn receive(&self, about: Vec<(&'static str, Json)>) -> Result<Opened, String>;

    /// The program of the server could not be started. The client hears no more than that; this is for whoever
    /// runs the door.
    fn server_not_started(&self, error: &std::io::Error);
}

/// A session that was opened.
pub struct Opened {
    /// The way to the engine.
    pub gate: Gate,
    /// The session.
    pub session: Session,
    /// Is told what the session learns.
    pub host: Box<dyn Host + Send>,
    /// A name that nobody can guess: clients of a server that gives none know the session by it.
    pub name: String,
}

/// A session between clients and a server.
pub(super) struct Link {
    // INVARIANT: never locked while anybody waits for something else than a processor.
    session: Mutex<Session>,
    gate: Arc<Gate>,
    host: Arc<Mutex<Box<dyn Host + Send>>>,
    threads: Threads,
    pub(super) waiting: Mutex<Waiting>,
    name: String,
    /// Who began it.
    pub(super) peer: Peer,
    began: Instant,
    /// When anybody used it last, in microseconds since then.
    used: AtomicU64,
    /// Why it ends, if not because its clients are gone.
    ending: OnceLock<&'static str>,
    census: Census,
    /// Where lines of a program go.
    pub(super) route: Route,
    /// Connections to the server, where there is an address.
    pub(super) idle: Idle,
}

/// How a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// By itself.
    Alone,
    /// With others in one body.
    Batched,
}

/// Counts the sessions whose end is not recorded yet.
#[derive(Clone, Default)]
pub(super) struct Census(Arc<()>);

/// The threads that wait for the disk.
#[derive(Clone)]
pub(super) struct Threads {
    places: Arc<Semaphore>,
    /// Starts them. It is there for longer than those who carry messages.
    runtime: Arc<OnceLock<Handle>>,
    /// Whether the disk took its time when it was waited for the last time.
    is_slow: Arc<AtomicBool>,
}

/// A request that this thread carries, as long as it does.
///
/// INVARIANT: it stays on the thread that made it, as everything does that is done for a connection.
pub(super) struct InHand(());

/// What came of some effects.
#[derive(Default)]
pub(super) struct Came {
    pub(super) to_client: Vec<Vec<u8>>,
    pub(super) to_server: Vec<Outbound>,
    /// Under which the session is to be found again.
    pub(super) handles: Vec<String>,
}

impl Link {
    pub(super) fn new(
        mut opened: Opened,
        peer: Peer,
        threads: Threads,
        census: Census,
    ) -> Arc<Self> {
        opened.session.client_is_known();
        Arc::new(Self {
            session: Mutex::new(opened.session),
            gate: Arc::new(opened.gate),
            host: Arc::new(Mutex::new(opened.host)),
            threads,
            waiting: Mutex::default(),
            name: opened.name,
            peer,
            began: Instant::now(),
            used: AtomicU64::new(0),
            ending: OnceLock::new(),
            census,
            route: Route::default(),
            idle: Idle::default(),
        })
    }

    pub(super) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A frame came from the client. If it is a request, its answer is waited for in the mailbox.
    pub(super) fn client_sends(
        self: &Arc<Self>,
        frame: Frame,
        id: Option<&Id>,
        form: Form,
    ) -> (Vec<Effect>, Option<Mailbox>) {
        let mut session = self.session();
        // A second request under the same id is refused, and must not take what the first waits for.
        let mailbox = id.filter(|id| !session.waits(id));
        let mailbox = mailbox.map(|id| self.mailbox(id));
        let effects = match form {
            Form::Alone => session.frame_from_client(frame, Instant::now()),
            Form::Batched => session.batched_from_client(frame, Instant::now()),
        };
        (effects, mailbox)
    }

    /// A message came from the server. A large one is read beside those who carry messages.
    pub(super) async fn server_says(self: &Arc<Self>, message: Vec<u8>) -> Vec<Effect> {
        if message.len() <= LARGE {
            return self.session().message_from_server(message);
        }
        let link = Arc::clone(self);
        let read = move || link.session().message_from_server(message);
        // FAIL-CLOSED: what could not be read was not said, and whoever waits for it hears so.
        self.threads.run(read).await.unwrap_or_default()
    }

    /// Keeps in the log what is known about the peers.
    pub(super) async fn introduce(self: &Arc<Self>, about: Json) {
        let gate = Arc::clone(&self.gate);
        // FAIL-CLOSED: a log that takes nothing refuses the next call by itself.
        let _ = self.threads.run(move || gate.introduce(&about)).await;
    }

    /// Does what the effects ask for, up to what is to be sent. Jobs that belong to a request that
    /// somebody else waits for go to them.
    ///
    /// INVARIANT: runs to its end; what a job began would be lost with it.
    pub(super) async fn drive(self: &Arc<Self>, effects: Vec<Effect>, mine: Option<&Id>) -> Came {
        let mut came = Came::default();
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::ToClient(bytes) => came.to_client.push(bytes),
                Effect::ToCaller(id, bytes) if Some(&id) == mine => came.to_client.push(bytes),
                Effect::ToCaller(id, bytes) => self.tell(&id, bytes),
                Effect::ToServer(outbound) => came.to_server.extend(self.hand_on(outbound, mine)),
                Effect::Remember(handle) => came.handles.push(handle),
                Effect::Job(job) => {
                    let Some(job) = self.hand_over(job, mine) else {
                        continue;
                    };
                    let done = self.run(job).await;
                    effects.extend(self.change(mine, |session| session.done(done, Instant::now())));
                }
                Effect::Judge(list) => {
                    let (host, number) = (Arc::clone(&self.host), list.number());
                    let judge = move || lock(&host).judge(list.tools());
                    // FAIL-CLOSED: what broke off was not judged.
                    let shelf = self.threads.run(judge).await.unwrap_or_default();
                    effects.extend(self.change(mine, |session| session.judged(number, shelf)));
                }
            }
        }
        if self.gate.owes() {
            tokio::spawn(Arc::clone(self).catch_up());
        }
        came
    }

    /// What is better done when the clients have their answers.
    async fn catch_up(self: Arc<Self>) {
        tokio::task::yield_now().await;
        if !self.gate.catch_up() {
            let gate = Arc::clone(&self.gate);
            // FAIL-CLOSED: what broke off is done before the next decision.
            let _ = self.threads.run(move || gate.catch_up_in_turn()).await;
        }
    }

    /// Changes the session. Gives what is to be done, without what others are to hear.
    ///
    /// INVARIANT: who finds that its request waits no longer has in its mailbox what was said about it.
    fn change(
        &self,
        mine: Option<&Id>,
        by: impl FnOnce(&mut Session) -> Vec<Effect>,
    ) -> Vec<Effect> {
        let mut session = self.session();
        let told = |effect| match effect {
            Effect::ToCaller(id, bytes) if Some(&id) != mine => {
                self.tell(&id, bytes);
                None
            }
            effect => Some(effect),
        };
        by(&mut session).into_iter().filter_map(told).collect()
    }

    /// Tells whoever waits under this id. Who no longer waits hears nothing.
    fn tell(&self, id: &Id, bytes: Vec<u8>) {
        let message = Letter::Message {
            bytes,
            _place: None,
        };
        if let Some(message) = self.post(id, message)
            && let Some((_, resumed)) = &lock(&self.waiting).resumed
        {
            drop(resumed.send(message));
        }
    }

    async fn run(&self, job: Box<Job>) -> Done {
        let since = Instant::now();
        let job = match self.gate.run_at_once(job, self.threads.haste()) {
            Quick::Done(done) => return *done,
            Quick::Soon(soon) => {
                let came = soon.await;
                self.threads.waited(since.elapsed());
                match came {
                    Ok(done) => return done,
                    Err(job) => job,
                }
            }
            Quick::Not(job) => job,
        };
        let (lost, gate) = (Lost::of(&job), Arc::clone(&self.gate));
        let done = self.threads.run(move || gate.run(*job)).await;
        // FAIL-CLOSED: a job that broke off has done nothing that anybody may rely on.
        done.unwrap_or_else(|Failed| lost.done())
    }

    /// The name that we give the session.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Gives a message to whoever waits under this id; gives it back if nobody does.
    pub(super) fn post(&self, id: &Id, letter: Letter) -> Option<Letter> {
        let waiting = lock(&self.waiting);
        match waiting.mailboxes.get(id) {
            Some((_, mailbox)) => mailbox.send(letter).err().map(|lost| lost.0),
            None => Some(letter),
        }
    }

    /// The request that came last of those that wait.
    pub(super) fn latest(&self) -> Option<Id> {
        let waiting = lock(&self.waiting);
        let latest = waiting
            .mailboxes
            .iter()
            .max_by_key(|(_, (number, _))| *number);
        latest.map(|(id, _)| id.clone())
    }

    /// The client has ended the session: nobody waits for a human any more.
    pub(super) async fn leave(self: &Arc<Self>) {
        let effects = self.change(None, Session::client_closed);
        drop(self.drive(effects, None).await);
    }

    /// The log is to say this when it ends.
    pub(super) fn ends_for(&self, reason: &'static str) {
        self.ending.get_or_init(|| reason);
    }

    /// Somebody uses it.
    pub(super) fn touch(&self) {
        let since = u64::try_from(self.began.elapsed().as_micros());
        self.used
            .store(since.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// When anybody used it last.
    pub(super) fn used(&self) -> Instant {
        let since = Duration::from_micros(self.used.load(Ordering::Relaxed));
        self.began.checked_add(since).unwrap_or(self.began)
    }

    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.session().deadline().is_some_and(|time| time <= now)
    }

    /// Time has passed. Gives what concerns whoever asks; others get theirs.
    pub(super) async fn tick(self: &Arc<Self>, mine: Option<&Id>) -> Came {
        let effects = self.change(mine, |session| session.tick(Instant::now()));
        let is_stray = |effect: &Effect| match effect {
            Effect::Job(job) => owner(job).is_some_and(|owner| {
                Some(&owner) != mine && lock(&self.waiting).whose(&owner, job).is_none()
            }),
            _ => false,
        };
        let (strays, effects) = effects.into_iter().partition(is_stray);
        // Nobody hears of these, but the log does.
        let mut strays = self.drive(strays, None).await;
        let mut came = self.drive(effects, mine).await;
        came.to_server.append(&mut strays.to_server);
        came
    }

    /// Gives what a request needs of the server to whoever carries that request; gives it back if that is
    /// whoever asks, or nobody.
    fn hand_on(&self, outbound: Outbound, mine: Option<&Id>) -> Option<Outbound> {
        let owner = match outbound.carries() {
            Carries::OwnFor(id) if Some(id) != mine => id.clone(),
            _ => return Some(outbound),
        };
        match self.post(&owner, Letter::Question(outbound))? {
            Letter::Question(outbound) => Some(outbound),
            Letter::Job(_) | Letter::Message { .. } => None,
        }
    }

    /// Whoever was to ask the server is gone: others who wait for the answer ask it.
    pub(super) async fn not_asked(self: Arc<Self>, question: Outbound) {
        if let Some(id) = asked(question.into_bytes()) {
            let effects = self.change(None, |session| session.own_unanswered(&id));
            drop(self.drive(effects, None).await);
        }
    }

    /// Gives a job to whom it belongs; gives it back if that is whoever asks, or nobody else.
    fn hand_over(&self, job: Box<Job>, mine: Option<&Id>) -> Option<Box<Job>> {
        let Some(owner) = owner(&job).filter(|owner| Some(owner) != mine) else {
            return Some(job);
        };
        let waiting = lock(&self.waiting);
        let job = match waiting.whose(&owner, &job) {
            Some(mailbox) => match mailbox.send(Letter::Job(job)).err()?.0 {
                Letter::Job(job) => job,
                Letter::Message { .. } | Letter::Question(_) => return None,
            },
            None => job,
        };
        drop(waiting);
        if job.call().is_some() {
            // Nobody is left who would carry the call.
            drop(self.session().done(Done::Dropped(owner), Instant::now()));
            return None;
        }
        Some(job)
    }
}

/// The last one who knew the session is gone: what is open is settled, and the end is recorded.
impl Drop for Link {
    fn drop(&mut self) {
        let session = self.session.get_mut();
        let effects = session.unwrap_or_else(PoisonError::into_inner).end();
        let (gate, census) = (Arc::clone(&self.gate), self.census.clone());
        let reason = self.ending.get().copied().unwrap_or("client_closed");
        let end = move || {
            let _census = census;
            for effect in effects {
                if let Effect::Job(job) = effect {
                    drop(gate.run(*job));
                }
            }
            // Nobody is left who could be told that it was not recorded.
            let _ = gate.terminate(reason);
        };
        match self.threads.runtime.get() {
            Some(runtime) => drop(runtime.spawn_blocking(end)),
            None => end(),
        }
    }
}

impl Census {
    /// How many know of it.
    pub(super) fn count(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

/// A job broke off.
#[derive(Debug)]
pub(super) struct Failed;

impl Threads {
    pub(super) fn new(count: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(count)),
            runtime: Arc::default(),
            is_slow: Arc::default(),
        }
    }

    /// From now on the runtime that is running here starts them.
    pub(super) fn start_here(&self) {
        self.runtime.get_or_init(Handle::current);
    }

    /// Who writes what a request records: a thread that carries messages waits for the disk itself if
    /// that is not for long and the thread carries no other request.
    fn haste(&self) -> Haste {
        match IN_HAND.get() == 1 && !self.is_slow.load(Ordering::Relaxed) {
            true => Haste::Here,
            false => Haste::Now,
        }
    }

    /// So long the disk was waited for.
    fn waited(&self, time: Duration) {
        self.is_slow.store(time > SLOW, Ordering::Relaxed);
    }

    /// Runs something that may wait for the disk, beside the threads that carry messages.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failed> {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let work = move || {
            let _place = place;
            work()
        };
        let runtime = self.runtime.get().ok_or(Failed)?;
        runtime.spawn_blocking(work).await.map_err(|_| Failed)
    }
}

impl InHand {
    pub(super) fn new() -> Self {
        IN_HAND.set(IN_HAND.get().saturating_add(1));
        Self(())
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        IN_HAND.set(IN_HAND.get().saturating_sub(1));
    }
}

/// Whose request a job is about.
pub(super) fn owner(job: &Job) -> Option<Id> {
    job.call().cloned().or(match job.waits() {
        Waits::Client(id) => Some(id),
        Waits::Server(_) | Waits::Nobody => None,
    })
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// How many requests this thread carries. Streams on which a client only listens are none.
    static IN_HAND: Cell<usize> = const { Cell::new(0) };
}

/// Longer than this a thread that carries messages does not wait for the disk.
const SLOW: Duration = Duration::from_millis(2);
/// What takes a moment to read.
pub(super) const LARGE: usize = 1 << 20;
