//! Lines of a program, and the streams that they belong to.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method as Verb, StatusCode};
use tokio::sync::{Semaphore, mpsc};

use crate::frame::{Frame, FrameLimits, Id, Kind, Params};
use crate::{Line, Method};

use super::body::Sent;
use super::exchange::{Attended, Exchange, Turn, answered};
use super::headers::SESSION;
use super::link::{Came, Link};
use super::loss::{FULL, TIMEOUT, UNREADABLE};
use super::mailbox::Letter;
use super::pipes::Pipes;
use super::reply::{self, Waiting};
use super::sse;

/// Where the lines of a session's program go.
pub(super) struct Route {
    pipes: Mutex<Option<Pipes>>,
    streams: Mutex<Streams>,
    /// How many messages may wait for streams of requests.
    places: Arc<Semaphore>,
    over: AtomicBool,
}

#[derive(Default)]
struct Streams {
    /// The stream that the client keeps open for what belongs to no request.
    open: Option<mpsc::Sender<Bytes>>,
    /// What came while there was none.
    backlog: VecDeque<Vec<u8>>,
    /// Requests that want to hear how far they are.
    tokens: Vec<(Vec<u8>, Id)>,
}

impl Streams {
    /// Keeps a message until there is a stream for it. The oldest make room. `false` if it is too large.
    fn keep(&mut self, message: Vec<u8>) -> bool {
        if message.len() > MAX_BACKLOG_BYTES {
            return false;
        }
        self.backlog.push_back(message);
        let mut bytes: usize = self.backlog.iter().map(Vec::len).sum();
        while self.backlog.len() > MAX_BACKLOG || bytes > MAX_BACKLOG_BYTES {
            bytes -= self.backlog.pop_front().map_or(0, |oldest| oldest.len());
        }
        true
    }
}

impl Default for Route {
    fn default() -> Self {
        Self {
            pipes: Mutex::default(),
            streams: Mutex::default(),
            places: Arc::new(Semaphore::new(MAX_LETTERS)),
            over: AtomicBool::new(false),
        }
    }
}

impl Route {
    pub(super) fn attach(&self, pipes: Pipes) {
        *lock(&self.pipes) = Some(pipes);
    }

    fn detach(&self) {
        let pipes = lock(&self.pipes).take();
        drop(pipes);
    }

    /// Whether the program has ended.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(super) fn has_program(&self) -> bool {
        lock(&self.pipes).is_some()
    }

    /// Whether the program does not read what it was sent.
    pub(super) fn is_full(&self) -> bool {
        lock(&self.pipes).as_ref().is_some_and(Pipes::is_full)
    }

    pub(super) fn send(&self, message: Vec<u8>) {
        if let Some(pipes) = &*lock(&self.pipes) {
            pipes.send(message);
        }
    }

    /// Notes what a request says about its progress.
    fn note(&self, frame: &Frame) {
        if let Kind::Request { id, params, .. } = frame.kind()
            && let Some(token) = frame.member(params.meta, "progressToken")
            && let Some(token) = Some(frame.part(token)).filter(|it| it.len() <= LONGEST_TOKEN)
        {
            let mut streams = lock(&self.streams);
            streams.tokens.push((token.to_vec(), id.clone()));
            let excess = streams.tokens.len().saturating_sub(MAX_TOKENS);
            streams.tokens.drain(..excess);
        }
    }

    /// The request that a message says it belongs to.
    fn request_of(&self, frame: &Frame, params: &Params) -> Option<Id> {
        if let Some(listen) = frame.member(params.meta, SUBSCRIPTION) {
            return Id::of(frame.part(listen));
        }
        let token = frame.member(params.whole, "progressToken")?;
        let token = frame.part(token);
        let streams = lock(&self.streams);
        let mut tokens = streams.tokens.iter().rev();
        tokens
            .find(|(one, _)| one == token)
            .map(|(_, id)| id.clone())
    }
}

/// Tells the session what its program says, until one of them is gone.
pub(super) async fn listen(link: Weak<Link>, mut lines: mpsc::Receiver<Line>) {
    while let Some(line) = lines.recv().await {
        let Some(link) = link.upgrade() else { return };
        let effects = match line {
            Line::Whole(bytes) => link.server_says(bytes).await,
            Line::TooLong { beginning, end } => {
                link.session().too_long_from_server(&beginning, &end)
            }
        };
        let came = link.drive(effects, None).await;
        link.deliver(came).await;
    }
    if let Some(link) = link.upgrade() {
        link.route.over.store(true, Ordering::Release);
        let effects = link.session().server_closed();
        let came = link.drive(effects, None).await;
        link.deliver(came).await;
        // Another program has its place, however long the session is remembered.
        link.route.detach();
    }
}

impl Link {
    /// Gives each message to the stream it belongs to.
    async fn deliver(self: &Arc<Self>, came: Came) {
        for outbound in came.to_server {
            self.route.send(outbound.into_bytes());
        }
        for message in came.to_client {
            self.deliver_one(message).await;
        }
    }

    async fn deliver_one(self: &Arc<Self>, message: Vec<u8>) {
        let Ok(frame) = Frame::read(message, &LIMITS) else {
            return;
        };
        let owner = match frame.kind() {
            // Nobody is told what they no longer wait for.
            Kind::Response { id, .. } | Kind::Error { id: Some(id), .. } => {
                let id = id.clone();
                let (bytes, _place) = (frame.into_bytes(), None);
                drop(self.post(&id, Letter::Message { bytes, _place }));
                return;
            }
            Kind::Request { params, .. } => self.request_of(&frame, params).or(self.latest()),
            Kind::Notification { params, .. } => self.request_of(&frame, params),
            Kind::Error { id: None, .. } => None,
        };
        // A stream that is not read makes the program wait, but not for ever.
        let place = Arc::clone(&self.route.places).acquire_owned();
        let Ok(Ok(place)) = tokio::time::timeout(PATIENCE, place).await else {
            return;
        };
        let (bytes, _place) = (frame.into_bytes(), Some(place));
        let mut letter = Some(Letter::Message { bytes, _place });
        if let Some(id) = owner {
            letter = letter.and_then(|letter| self.post(&id, letter));
        }
        if let Some(Letter::Message { bytes, .. }) = letter {
            self.say(bytes).await;
        }
    }

    fn request_of(&self, frame: &Frame, params: &Params) -> Option<Id> {
        self.route.request_of(frame, params)
    }

    /// Says something on the stream that belongs to no request, now or when there is one.
    async fn say(self: &Arc<Self>, message: Vec<u8>) {
        let open = lock(&self.route.streams).open.clone();
        if let Some(open) = open {
            let event = Bytes::from(sse::event(&message));
            if let Ok(Ok(())) = tokio::time::timeout(PATIENCE, open.send(event)).await {
                return;
            }
        }
        let (length, is_kept) = (message.len(), lock(&self.route.streams).keep(message));
        if !is_kept {
            let effects = self.session().nobody_listens(length);
            self.drive(effects, None).await;
        }
    }
}

impl Exchange {
    /// Carries a message of the client, or what else it asks for, to a program.
    pub(super) async fn forward_line(mut self: Box<Self>, bytes: Vec<u8>, mut waiting: Waiting) {
        match self.verb {
            Verb::GET => return answered(waiting, self.keep_open()),
            Verb::DELETE => {
                self.lobby.forget(&self.headers);
                return answered(waiting, reply::bare(StatusCode::OK));
            }
            _ => {}
        }
        let frame = Frame::read(bytes, &LIMITS);
        let Ok(frame) = frame else {
            return self.fail(UNREADABLE, waiting).await;
        };
        self.link.route.note(&frame);
        self.link.route.send(frame.into_bytes());
        self.held = None;
        if self.id.is_none() {
            return answered(waiting, reply::bare(StatusCode::ACCEPTED));
        }
        let late = pin!(tokio::time::sleep(self.lobby.limits.response_time));
        let first = match self.attend(&mut waiting, late).await {
            Attended::Answer(first) => first,
            Attended::Server(()) => return self.fail(TIMEOUT, waiting).await,
            Attended::Gone => return self.abandon().await,
        };
        if !self.is_answer(&first) {
            return self.stream(first, waiting).await;
        }
        let mut response = reply::message(StatusCode::OK, first);
        if self.method == Some(Method::Initialize) {
            let name = self.link.name().to_owned();
            let registered = self.lobby.register_as(&name, &self.link).await;
            match (registered, HeaderValue::try_from(name)) {
                (Ok(()), Ok(name)) => drop(response.headers_mut().insert(SESSION, name)),
                (Err(FULL), _) => {
                    let busy = StatusCode::SERVICE_UNAVAILABLE;
                    response = reply::error(busy, &FULL.refused(), self.id.as_ref());
                }
                (Ok(()) | Err(_), _) => {}
            }
        }
        answered(waiting, response);
    }

    /// Something comes before the answer: the response is a stream.
    async fn stream(mut self: Box<Self>, first: Vec<u8>, waiting: Waiting) {
        let (to_client, pieces) = mpsc::channel(PIECES);
        answered(waiting, stream_of(pieces));
        let mut next = first;
        loop {
            let is_last = self.is_answer(&next);
            let given = to_client.send(sse::event(&next).into());
            let given = tokio::time::timeout(self.lobby.limits.write_time, given).await;
            if is_last {
                return;
            }
            if !matches!(given, Ok(Ok(()))) {
                return self.hear_out().await;
            }
            next = loop {
                match self
                    .turn(to_client.closed(), std::future::pending::<()>())
                    .await
                {
                    Turn::Came(came) => {
                        if let (_, Some(message)) = self.sort(came) {
                            break message;
                        }
                    }
                    Turn::Server(()) => {}
                    Turn::Gone => return self.hear_out().await,
                }
            };
        }
    }

    /// The client is gone; the log still wants to know how a call ends.
    async fn hear_out(mut self: Box<Self>) {
        let limit = self.lobby.limits.response_time;
        while self.goes_on_alone()
            && self
                .id
                .as_ref()
                .is_some_and(|id| self.link.session().waits(id))
        {
            let late = tokio::time::sleep(limit);
            match self.turn(std::future::pending(), late).await {
                Turn::Came(came) => drop(self.sort(came)),
                Turn::Server(()) | Turn::Gone => break,
            }
        }
        self.abandon().await;
    }

    /// A stream for what belongs to no request. There is one at a time.
    fn keep_open(&self) -> hyper::Response<Sent> {
        let mut streams = lock(&self.link.route.streams);
        if streams.open.as_ref().is_some_and(|open| !open.is_closed()) {
            return reply::bare(StatusCode::CONFLICT);
        }
        let (to_client, pieces) = mpsc::channel(streams.backlog.len() + PIECES);
        for message in streams.backlog.drain(..) {
            // There is room for all of it.
            let _ = to_client.try_send(sse::event(&message).into());
        }
        streams.open = Some(to_client);
        stream_of(pieces)
    }

    pub(super) fn is_answer(&self, message: &[u8]) -> bool {
        let frame = Frame::read(message.to_vec(), &LIMITS);
        match frame.as_ref().map(Frame::kind) {
            Ok(Kind::Response { id, .. } | Kind::Error { id: Some(id), .. }) => {
                Some(id) == self.id.as_ref()
            }
            _ => false,
        }
    }
}

pub(super) fn stream_of(pieces: mpsc::Receiver<Bytes>) -> hyper::Response<Sent> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply::passed(StatusCode::OK, headers, Sent::Stream(pieces))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What comes here was read before, within narrower limits.
const LIMITS: FrameLimits = FrameLimits {
    max_bytes: usize::MAX,
    max_depth: 512,
};
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const PATIENCE: Duration = Duration::from_secs(60);
const MAX_LETTERS: usize = 64;
const MAX_BACKLOG: usize = 256;
/// What waits for a stream that nobody has opened is at most so large.
const MAX_BACKLOG_BYTES: usize = 16 << 20;
const MAX_TOKENS: usize = 1024;
/// Whoever counts further is told of progress where nobody else is.
const LONGEST_TOKEN: usize = 1024;
const PIECES: usize = 8;
