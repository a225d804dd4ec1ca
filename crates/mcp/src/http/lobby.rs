//! The sessions of one server.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use countersign_canon::{Digest, Json};
use countersign_web::{Room, only};
use hyper::header::{HeaderMap, HeaderValue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::FrameLimits;
use crate::frame::{Frame, FrameError};
use crate::session::seen::Sights;

use super::beside::Beside;
use super::farewell::Farewells;
use super::headers::SESSION;
use super::link::{Census, Failed, LARGE, Link, Reception, Threads};
use super::loss::{FULL, Loss, UNREADABLE};
use super::places::{self, Occupant, Peer};
use super::pump::SLACK;
use super::serve::Limits;
use super::upstream::Upstream;

/// One server, and the sessions that it knows by name.
pub(super) struct Lobby {
    pub(super) upstream: Upstream,
    pub(super) limits: Limits,
    pub(super) room: Room,
    /// For events that have not ended: no other server goes without because of them.
    pub(super) events: Room,
    reception: Arc<dyn Reception>,
    threads: Threads,
    census: Census,
    sessions: Mutex<HashMap<String, Arc<Link>>>,
    /// Sessions without a name, by what they have given out and want back.
    handles: Mutex<HashMap<String, Handle>>,
    /// What clients without a name were shown.
    sights: Mutex<HashMap<Peer, Sights>>,
    /// For programs that run.
    programs: Arc<Semaphore>,
    farewells: Farewells,
    is_closing: watch::Sender<bool>,
}

struct Handle {
    link: Arc<Link>,
    used: Instant,
}

/// Why a request finds no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoSession {
    /// It is not known, or no longer.
    Unknown,
    /// There are too many.
    Full,
    /// None could be opened.
    Failed,
    /// Its server cannot be started.
    NotStarted,
}

impl Lobby {
    pub(super) fn new(
        upstream: Upstream,
        reception: Arc<dyn Reception>,
        limits: Limits,
        room: Room,
        threads: Threads,
        census: Census,
    ) -> Arc<Self> {
        Arc::new(Self {
            upstream,
            // The longest message and what an event has beside it.
            events: Room::new(limits.max_held_bytes.saturating_add(2 * SLACK)),
            programs: Arc::new(Semaphore::new(limits.max_programs)),
            limits,
            room,
            reception,
            threads,
            census,
            sessions: Mutex::default(),
            handles: Mutex::default(),
            sights: Mutex::default(),
            farewells: Farewells::default(),
            is_closing: watch::Sender::default(),
        })
    }

    /// Reads a message of a client; a large one beside those who carry messages.
    pub(super) async fn read(
        &self,
        bytes: Vec<u8>,
        limits: FrameLimits,
    ) -> Result<Result<Frame, FrameError>, Failed> {
        match bytes.len() <= LARGE {
            true => Ok(Frame::read(bytes, &limits)),
            false => self.threads.run(move || Frame::read(bytes, &limits)).await,
        }
    }

    /// The session that a request names, if it names one.
    pub(super) fn named(&self, headers: &HeaderMap) -> Result<Option<Arc<Link>>, NoSession> {
        let Some(name) = only(headers, &SESSION).map_err(|_| NoSession::Unknown)? else {
            return Ok(None);
        };
        let sessions = self.sessions();
        let link = sessions.get(name).ok_or(NoSession::Unknown)?;
        link.touch();
        Ok(Some(Arc::clone(link)))
    }

    /// Whoever brings this back is to find this session.
    ///
    /// SECURITY: it is sealed, so nobody can guess it, and it opens nothing but what it was made for.
    pub(super) fn remember(&self, handle: String, link: &Arc<Link>) {
        let kept = Handle {
            link: Arc::clone(link),
            used: Instant::now(),
        };
        let mut handles = self.handles();
        if handles.len() >= self.limits.max_sessions {
            let first = first_to_go(&handles, link);
            first.and_then(|first| handles.remove(&first));
        }
        handles.insert(handle, kept);
    }

    /// The session that has given this out.
    pub(super) fn that_gave(&self, handle: &str) -> Option<Arc<Link>> {
        let mut handles = self.handles();
        let kept = handles.get_mut(handle)?;
        kept.used = Instant::now();
        kept.link.touch();
        Some(Arc::clone(&kept.link))
    }

    /// A new session.
    pub(super) async fn open(
        self: &Arc<Self>,
        peer: Peer,
        mut about: Vec<(&'static str, Json)>,
    ) -> Result<Arc<Link>, NoSession> {
        // Before anything is in the log about a session that cannot be.
        let place = self.place_of_program()?;
        about.push(("transport", Json::from("http")));
        about.push(("upstream", Json::from(self.upstream.shown())));
        let reception = Arc::clone(&self.reception);
        let (threads, census) = (self.threads.clone(), self.census.clone());
        // Whoever asks may leave: a session that is in the log already ends there too, as every link does.
        let open = move || {
            let opened = reception.receive(about)?;
            Ok::<_, String>(Link::new(opened, peer, threads, census))
        };
        match self.threads.run(open).await {
            Ok(Ok(link)) => self.start(link, place).await,
            // FAIL-CLOSED: without a record nobody is let in.
            Ok(Err(_)) | Err(_) => Err(NoSession::Failed),
        }
    }

    /// A place for another program, where one is started for each session.
    fn place_of_program(&self) -> Result<Option<OwnedSemaphorePermit>, NoSession> {
        match &self.upstream {
            Upstream::Http(_) => Ok(None),
            Upstream::Command(_) => {
                let place = Arc::clone(&self.programs).try_acquire_owned();
                place.map(Some).map_err(|_| NoSession::Full)
            }
        }
    }

    /// Whether there is a place for another session, or one that would make place. None does before the new one
    /// has a name.
    pub(super) fn has_place(&self, newcomer: Peer) -> Result<(), NoSession> {
        let sessions = self.sessions();
        let is_free = sessions.len() < self.limits.max_sessions;
        match is_free || self.who_goes(&sessions, newcomer).is_some() {
            true => Ok(()),
            false => Err(NoSession::Full),
        }
    }

    /// Gives a session a place under this name. One that makes place for it ends: its client begins anew, as the
    /// protocol has it, and its server is told.
    fn give_place(&self, name: &str, link: &Arc<Link>) -> Result<(), Loss> {
        let mut sessions = self.sessions();
        match sessions.get(name) {
            None => {}
            Some(known) if Arc::ptr_eq(known, link) => return Ok(()),
            // SECURITY: two clients under one name would hear each other.
            Some(_) => return Err(UNREADABLE),
        }
        let mut gone = None;
        if sessions.len() >= self.limits.max_sessions {
            let first = self.who_goes(&sessions, link.peer).ok_or(FULL)?;
            gone = sessions.remove_entry(&first);
        }
        link.touch();
        sessions.insert(name.to_owned(), Arc::clone(link));
        drop(sessions);
        if let Some((name, link)) = gone {
            self.tell_end(&name, &link);
            link.ends_for("place_taken");
            self.handles()
                .retain(|_, kept| !Arc::ptr_eq(&kept.link, &link));
        }
        Ok(())
    }

    fn who_goes(&self, sessions: &HashMap<String, Arc<Link>>, newcomer: Peer) -> Option<String> {
        let now = Instant::now();
        // Its names, and what was given out to come back with, keep a session and do not use it.
        let handles = self.handles();
        let known = sessions
            .values()
            .chain(handles.values().map(|one| &one.link));
        let mut kept: HashMap<*const Link, usize> = HashMap::new();
        for link in known {
            *kept.entry(Arc::as_ptr(link)).or_default() += 1;
        }
        let is_in_hand = |link| Some(&Arc::strong_count(link)) != kept.get(&Arc::as_ptr(link));
        let all = sessions.iter().map(|(name, link)| {
            // A program that runs is not ended: what it holds would be lost.
            let runs = matches!(self.upstream, Upstream::Command(_)) && !link.route.is_over();
            let may_go = !is_in_hand(link) && !runs;
            Occupant {
                name,
                peer: link.peer,
                unfinished: may_go.then(|| link.session().unfinished(now)),
                used: link.used(),
            }
        });
        let all: Vec<_> = all.collect();
        places::who_goes(&all, newcomer).map(str::to_owned)
    }

    /// The server hears that a session is over, if it knows the session by this name.
    fn tell_end(&self, name: &str, link: &Link) {
        if let Upstream::Http(remote) = &self.upstream
            && link.name() != name
        {
            let era = link.session().era();
            self.farewells.tell(remote, name, era);
        }
    }

    /// Starts the server of a session, where it is a program.
    async fn start(
        &self,
        link: Arc<Link>,
        place: Option<OwnedSemaphorePermit>,
    ) -> Result<Arc<Link>, NoSession> {
        let program = match &self.upstream {
            Upstream::Command(program) => program.clone(),
            Upstream::Http(remote) => {
                remote.begin(&link.idle);
                link.session().connects_for_each();
                return Ok(link);
            }
        };
        let max = self.limits.max_frame_bytes;
        let start = move || super::pipes::start(&program, max, place);
        let started = self.threads.run(start);
        match started.await {
            Ok(Ok((pipes, lines))) => {
                link.route.attach(pipes);
                tokio::spawn(super::route::listen(Arc::downgrade(&link), lines));
                Ok(link)
            }
            Ok(Err(error)) => {
                self.reception.server_not_started(&error);
                Err(NoSession::NotStarted)
            }
            Err(_) => Err(NoSession::NotStarted),
        }
    }

    /// The server has given a session a name, or none: then it gets one of ours, which the server does not
    /// hear of. Gives that one.
    pub(super) async fn register(
        &self,
        headers: &HeaderMap,
        link: &Arc<Link>,
    ) -> Result<Option<HeaderValue>, Loss> {
        if let Some(name) = only(headers, &SESSION).map_err(|_| UNREADABLE)? {
            self.register_as(name, link).await?;
            return Ok(None);
        }
        if self.is_named(link) {
            return Ok(None);
        }
        self.register_as(link.name(), link).await?;
        Ok(HeaderValue::try_from(link.name()).ok())
    }

    /// Whether clients know the session by a name.
    pub(super) fn is_named(&self, link: &Arc<Link>) -> bool {
        let sessions = self.sessions();
        sessions.values().any(|known| Arc::ptr_eq(known, link))
    }

    /// What the clients that come from there were shown, where each of their requests may have a session of its own.
    pub(super) fn sights_of(&self, peer: Peer) -> Sights {
        let mut all = self.sights.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= self.limits.max_sessions && !all.contains_key(&peer) {
            all.retain(|_, sights| !sights.is_unused());
        }
        all.entry(peer).or_insert_with(Sights::of_a_client).clone()
    }

    /// Whether the name in these headers is one of the session.
    pub(super) fn leads_to(&self, headers: &HeaderMap, link: &Arc<Link>) -> bool {
        let Ok(Some(name)) = only(headers, &SESSION) else {
            return false;
        };
        let sessions = self.sessions();
        let found = sessions.get(name);
        found.is_some_and(|found| Arc::ptr_eq(found, link))
    }

    /// From now on clients know the session by this name.
    pub(super) async fn register_as(&self, name: &str, link: &Arc<Link>) -> Result<(), Loss> {
        // Whoever has the name has the session: the log keeps what proves it, not the name.
        let digest = Digest::of(name.as_bytes()).to_string();
        link.introduce(Json::object([("mcp_session", Json::from(digest))]))
            .await;
        let placed = self.give_place(name, link);
        if let Err(FULL) = placed {
            self.tell_end(name, link);
        }
        placed
    }

    /// A session is over.
    pub(super) fn forget(&self, headers: &HeaderMap) {
        if let Ok(Some(name)) = only(headers, &SESSION) {
            let link = self.sessions().remove(name);
            drop(link);
        }
    }

    /// From now on nobody is waited for who may take long.
    pub(super) fn close_soon(&self) {
        self.is_closing.send_replace(true);
    }

    pub(super) fn is_closing(&self) -> bool {
        *self.is_closing.borrow()
    }

    /// Waits until nobody is to be waited for who may take long.
    pub(super) async fn closes(&self) {
        let mut told = self.is_closing.subscribe();
        // It ends only with us.
        let _ = told.wait_for(|is_closing| *is_closing).await;
    }

    /// Lets go of all sessions.
    pub(super) fn close(&self) {
        let sessions = std::mem::take(&mut *self.sessions());
        let handles = std::mem::take(&mut *self.handles());
        drop((sessions, handles));
    }

    /// Lets go of sessions that nobody has used for long, and looks at the clock for the others.
    pub(super) async fn sweep(self: &Arc<Self>) {
        let now = Instant::now();
        let is_old = |used: Instant| now.saturating_duration_since(used) > self.limits.idle_time;
        // Somebody who listens holds the session too.
        let is_idle = |link: &Arc<Link>| Arc::strong_count(link) == 1 && is_old(link.used());
        let (mut idle, mut late) = (Vec::new(), Vec::new());
        {
            let mut handles = self.handles();
            let old = handles.extract_if(|_, kept| is_old(kept.used));
            idle.extend(old.map(|(_, kept)| kept.link));
        }
        {
            let mut sessions = self.sessions();
            let gone = sessions.extract_if(|_, link| is_idle(link));
            idle.extend(gone.map(|(_, link)| link));
            let links = sessions.iter().filter(|(_, link)| link.is_late(now));
            late.extend(links.map(|(name, link)| (name.clone(), Arc::clone(link))));
        }
        drop(idle);
        if let Upstream::Http(remote) = &self.upstream {
            remote.sweep(now);
        }
        for (name, link) in late {
            let came = link.tick(None).await;
            Beside::of_session(self, &link, &name).send_all(came.to_server);
        }
    }

    fn handles(&self) -> MutexGuard<'_, HashMap<String, Handle>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Link>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of the peer that has been given the most, and there of the session that has, the one unused for longest. The
/// newcomer is counted with what it is to be given.
fn first_to_go(handles: &HashMap<String, Handle>, newcomer: &Arc<Link>) -> Option<String> {
    let (mut of_peer, mut of_link) = (HashMap::new(), HashMap::new());
    let given = handles.values().map(|one| &one.link);
    for link in given.chain([newcomer]) {
        *of_peer.entry(link.peer).or_insert(0usize) += 1;
        *of_link.entry(Arc::as_ptr(link)).or_insert(0usize) += 1;
    }
    let share = |one: &Handle| {
        let peer = of_peer.get(&one.link.peer).copied();
        (peer, of_link.get(&Arc::as_ptr(&one.link)).copied())
    };
    let first = handles
        .iter()
        .max_by_key(|(_, one)| (share(one), Reverse(one.used)));
    first.map(|(handle, _)| handle.clone())
}

pub(super) const SWEEP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
