//! A client's request, from its head to the exchange that carries it.
//!
//! What is rare is boxed, so that what every request takes along stays small.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign_canon::Json;
use countersign_web::{Access, ReadError, Stranger};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, ORIGIN, USER_AGENT};
use hyper::http::request::Parts;
use hyper::{Method as Verb, Request, Response, StatusCode};
use tokio::sync::oneshot;

use crate::frame::{self, Frame, FrameError, Id, Kind, Span};
use crate::gate::Delivery;
use crate::reply::Refused;
use crate::{Effect, Era, FrameLimits, Method, Session};

use super::body::Sent;
use super::exchange::{Exchange, header_mismatch};
use super::link::{Failed, Form, Link};
use super::lobby::{Lobby, NoSession};
use super::pages::Page;
use super::places::Peer;
use super::reply::{self, Waiting};
use super::{headers, metadata, mirror, pages};

/// A client's connection.
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    /// The sessions that have no name, one for each server: they last as long as the connection.
    nameless: Mutex<Vec<Nameless>>,
}

struct Nameless {
    lobby: Arc<Lobby>,
    link: Arc<Link>,
    /// Ids of calls: a log knows each of them once.
    called: HashSet<Id>,
}

/// A request that was understood.
pub(super) struct Message {
    pub(super) frame: Frame,
    id: Option<Id>,
    method: Option<Method>,
    /// It says its revision itself, and that revision has no sessions.
    is_stateless: bool,
}

impl Connection {
    pub(super) fn new(peer: SocketAddr) -> Self {
        Self {
            peer,
            nameless: Mutex::default(),
        }
    }

    /// Answers a request.
    pub(super) async fn answer(
        &self,
        lobby: Result<Arc<Lobby>, Refused>,
        access: &Access,
        request: Request<Incoming>,
    ) -> Response<Sent> {
        let page = Page::of(access, &request);
        let response = match page.as_ref().filter(|_| pages::asks_for_leave(&request)) {
            Some(page) => page.leave(access, &request),
            None => self.admit(lobby, access, request).await,
        };
        pages::told(access, page, response)
    }

    async fn admit(
        &self,
        lobby: Result<Arc<Lobby>, Refused>,
        access: &Access,
        mut request: Request<Incoming>,
    ) -> Response<Sent> {
        if let Err(stranger) = access.check(request.uri(), request.headers()) {
            return reply::stranger(stranger);
        }
        if is_embedded(request.headers()) {
            return reply::stranger(Stranger::Origin);
        }
        if access.has_token() {
            // SECURITY: the door's own token is nobody else's business.
            request.headers_mut().remove(AUTHORIZATION);
        }
        let lobby = match lobby {
            Ok(lobby) => lobby,
            // Whoever looks for metadata tries many paths, and reads the status alone.
            Err(_) if request.uri().path().starts_with("/.well-known/") => {
                return reply::bare(StatusCode::NOT_FOUND);
            }
            Err(nowhere) => return reply::error(StatusCode::NOT_FOUND, &nowhere, None),
        };
        if let Some(path) = request.uri().path().strip_prefix(metadata::WELL_KNOWN) {
            // Where the token is ours, the server's are none of the client's business.
            return match access.has_token() || *request.method() != Verb::GET {
                true => reply::bare(StatusCode::NOT_FOUND),
                false => Box::pin(metadata::answer(&lobby, or_mcp(path), request.headers())).await,
            };
        }
        let (sender, response) = oneshot::channel();
        let answered = match *request.method() {
            Verb::POST => self.post(lobby, request, sender).await,
            Verb::GET | Verb::DELETE => Box::pin(self.other(lobby, request, sender)).await,
            _ => Err(reply::bare(StatusCode::METHOD_NOT_ALLOWED)),
        };
        match answered {
            Err(response) => response,
            // The exchange runs by itself, so that it ends as it should when we are dropped.
            Ok(()) => response
                .await
                .unwrap_or_else(|_| reply::bare(StatusCode::INTERNAL_SERVER_ERROR)),
        }
    }

    async fn post(
        &self,
        lobby: Arc<Lobby>,
        request: Request<Incoming>,
        sender: Waiting,
    ) -> Result<(), Response<Sent>> {
        let (head, body) = request.into_parts();
        // SECURITY: other types can be sent by any web page without asking.
        if !is_json(&head.headers) {
            return Err(reply::bare(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let limits = &lobby.limits;
        let read = lobby
            .room
            .read(body, limits.max_frame_bytes, limits.body_time)
            .await;
        let mut held = match read {
            Ok(held) => held,
            Err(error) => return Err(Box::pin(self.unread(&lobby, &head.headers, error)).await),
        };
        let frame_limits = FrameLimits {
            max_bytes: limits.max_frame_bytes,
            ..FrameLimits::default()
        };
        if frame::is_batch(&held.bytes) {
            let batch = self.post_batch(lobby, &head, held, &frame_limits, sender);
            return Box::pin(batch).await;
        }
        held.share.shrink(held.bytes.len());
        let message = match lobby.read(held.bytes, frame_limits).await {
            Ok(Ok(frame)) => Message::new(frame),
            Err(Failed) => return Err(reply::bare(StatusCode::INTERNAL_SERVER_ERROR)),
            Ok(Err(fault)) => {
                return Err(Box::pin(self.faulty(&lobby, &head.headers, &fault)).await);
            }
        };
        let found = self.link(&lobby, &head.headers, &message).await;
        let link = found.map_err(|why| no_session(why, message.id.as_ref()))?;
        if let Err(mismatch) = mirror::check(&message.frame, &head.headers) {
            return Err(mismatched(&link, &mismatch, message.id.as_ref()).await);
        }
        if link.route.is_full() {
            return Err(reply::unread(message.id.as_ref()));
        }
        let (mut exchange, frame) = exchange(&lobby, &link, &head, message, Form::Alone);
        exchange.held = Some(Arc::new(held.share));
        tokio::spawn(exchange.carry(frame, sender));
        Ok(())
    }

    /// A stream that the server speaks on, or the end of a session.
    async fn other(
        &self,
        lobby: Arc<Lobby>,
        request: Request<Incoming>,
        sender: Waiting,
    ) -> Result<(), Response<Sent>> {
        let (head, _) = request.into_parts();
        let named = lobby.named(&head.headers);
        let link = match named.map_err(|why| no_session(why, None))? {
            Some(link) => link,
            None => self
                .nameless(&lobby, &head.headers, None)
                .await
                .map_err(|why| no_session(why, None))?,
        };
        let is_ours = is_named_here(&head.headers, &link);
        if is_ours && head.method == Verb::DELETE {
            lobby.forget(&head.headers);
            // It ends as it should also when the client does not wait for that.
            let left = tokio::spawn(async move { link.leave().await });
            let _ = left.await;
            return Err(reply::bare(StatusCode::OK));
        }
        let mut headers = headers::to_server(&head.headers);
        if is_ours {
            headers.remove(headers::SESSION);
        }
        let exchange = Box::new(Exchange {
            original: None,
            given: None,
            held: None,
            headers,
            verb: head.method,
            id: None,
            method: None,
            mailbox: None,
            address: metadata::address(&head.headers, head.uri.path()),
            form: Form::Alone,
            lobby,
            link,
        });
        tokio::spawn(exchange.forward(Vec::new(), sender));
        Ok(())
    }

    /// The session that a message belongs to.
    async fn link(
        &self,
        lobby: &Arc<Lobby>,
        headers: &HeaderMap,
        message: &Message,
    ) -> Result<Arc<Link>, NoSession> {
        match lobby.named(headers) {
            Ok(Some(link)) => return Ok(link),
            // Who needs no session may name one that is over.
            Err(why) if !message.is_stateless => return Err(why),
            Ok(None) | Err(_) => {}
        }
        if message.method == Some(Method::Initialize) {
            let peer = Peer::of(self.peer.ip());
            lobby.has_place(peer)?;
            let link = Box::pin(lobby.open(peer, self.about(headers, Some(message)))).await?;
            self.keep(lobby, &link);
            return Ok(link);
        }
        if let Some(handle) = Session::brings_back(&message.frame)
            && let Some(link) = lobby.that_gave(&handle)
        {
            return Ok(link);
        }
        self.nameless(lobby, headers, Some(message)).await
    }

    /// The session of this connection. A call whose id it has seen before begins another one.
    async fn nameless(
        &self,
        lobby: &Arc<Lobby>,
        headers: &HeaderMap,
        message: Option<&Message>,
    ) -> Result<Arc<Link>, NoSession> {
        let call = message.filter(|message| message.is_decided());
        let call = call.and_then(|message| message.id.as_ref());
        {
            let mut all = self.all();
            let known = all.iter_mut().find(|one| Arc::ptr_eq(&one.lobby, lobby));
            // A program that has ended is started anew for the next message.
            let is_over = |link: &Link| link.route.is_over() || link.session().is_left();
            let known = known.filter(|one| !is_over(&one.link));
            if let Some(known) = known {
                let is_new = match call {
                    None => true,
                    Some(_) if known.called.len() >= MAX_CALLS => false,
                    Some(id) => known.called.insert(id.clone()),
                };
                if is_new {
                    return Ok(Arc::clone(&known.link));
                }
            }
        }
        let peer = Peer::of(self.peer.ip());
        let link = Box::pin(lobby.open(peer, self.about(headers, message))).await?;
        if message.is_none_or(|message| message.method != Some(Method::Initialize)) {
            link.session().share_sights(lobby.sights_of(peer));
        }
        let called = self.keep(lobby, &link);
        if let (Some(mut all), Some(id)) = (called, call)
            && let Some(one) = all.iter_mut().find(|one| Arc::ptr_eq(&one.link, &link))
        {
            one.called.insert(id.clone());
        }
        Ok(link)
    }

    /// Calls that came together in the session of this connection: their ids are used.
    pub(super) fn note_calls<'a>(
        &self,
        link: &Arc<Link>,
        messages: impl Iterator<Item = &'a Message>,
    ) {
        let mut all = self.all();
        let Some(one) = all.iter_mut().find(|one| Arc::ptr_eq(&one.link, link)) else {
            return;
        };
        let calls = messages.filter(|message| message.is_decided());
        let room = MAX_CALLS.saturating_sub(one.called.len());
        let calls = calls.filter_map(|message| message.id.clone());
        one.called.extend(calls.take(room));
    }

    /// From now on this is the connection's own session with the server.
    fn keep(&self, lobby: &Arc<Lobby>, link: &Arc<Link>) -> Option<MutexGuard<'_, Vec<Nameless>>> {
        let mut all = self.all();
        all.retain(|one| !Arc::ptr_eq(&one.lobby, lobby));
        all.push(Nameless {
            lobby: Arc::clone(lobby),
            link: Arc::clone(link),
            called: HashSet::new(),
        });
        Some(all)
    }

    fn all(&self) -> MutexGuard<'_, Vec<Nameless>> {
        self.nameless.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the log keeps about a client.
    fn about(&self, headers: &HeaderMap, message: Option<&Message>) -> Vec<(&'static str, Json)> {
        let agent = headers
            .get(USER_AGENT)
            .and_then(|value| value.to_str().ok());
        let agent = agent.map(|agent| agent.chars().take(200).collect::<String>());
        let mut about = vec![
            ("peer", Json::from(self.peer.to_string())),
            ("user_agent", Json::from(agent)),
        ];
        about.extend(message.into_iter().flat_map(Message::about));
        about
    }

    /// A body that was not read to its end.
    async fn unread(
        &self,
        lobby: &Arc<Lobby>,
        headers: &HeaderMap,
        error: ReadError,
    ) -> Response<Sent> {
        let status = match &error {
            ReadError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            ReadError::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
            ReadError::TooSlow => StatusCode::REQUEST_TIMEOUT,
            ReadError::Broken => StatusCode::BAD_REQUEST,
        };
        if let ReadError::TooLarge { beginning, .. } = &error
            && let Ok(link) = self.link_of_fault(lobby, headers).await
        {
            let effects = link.session().too_long_from_client(beginning, b"");
            if let Some(reply) = link.drive(effects, None).await.to_client.pop() {
                return reply::message(status, reply);
            }
        }
        let refused = Refused::denied("BODY_REFUSED", format!("refused: {error}"));
        reply::error(status, &refused, None)
    }

    /// A body that is not a message.
    pub(super) async fn faulty(
        &self,
        lobby: &Arc<Lobby>,
        headers: &HeaderMap,
        fault: &FrameError,
    ) -> Response<Sent> {
        let link = match self.link_of_fault(lobby, headers).await {
            Ok(link) => link,
            Err(why) => return no_session(why, fault.id()),
        };
        let effects = link.session().fault_from_client(fault);
        told(&link, effects).await
    }

    pub(super) async fn link_of_fault(
        &self,
        lobby: &Arc<Lobby>,
        headers: &HeaderMap,
    ) -> Result<Arc<Link>, NoSession> {
        match lobby.named(headers)? {
            Some(link) => Ok(link),
            None => self.nameless(lobby, headers, None).await,
        }
    }
}

impl Message {
    pub(super) fn new(frame: Frame) -> Self {
        let (id, method, meta) = match frame.kind() {
            Kind::Request {
                id, method, params, ..
            } => (Some(id.clone()), Some(*method), params.meta),
            Kind::Notification { method, params, .. } => (None, Some(*method), params.meta),
            Kind::Response { .. } | Kind::Error { .. } => (None, None, None),
        };
        let version = frame.text(frame.member(meta, Era::VERSION_KEY));
        let era = version.as_deref().and_then(Era::of);
        Self {
            is_stateless: era.is_some_and(|era| !era.sessions),
            id,
            method,
            frame,
        }
    }

    /// Whether the engine decides about it.
    fn is_decided(&self) -> bool {
        self.id.is_some() && self.method.is_some_and(Method::is_decided)
    }

    /// What the client says about itself, and which trace it belongs to.
    fn about(&self) -> Vec<(&'static str, Json)> {
        let Kind::Request { params, .. } = self.frame.kind() else {
            return Vec::new();
        };
        let said = |span: Option<Span>| {
            let part = self.frame.part(span?);
            let short = Some(part).filter(|part| part.len() <= MAX_ABOUT)?;
            Json::admit(short, &countersign_canon::Limits::event()).ok()
        };
        let named = |of, key| self.frame.member(of, key);
        let client = named(params.whole, "clientInfo").or(named(params.meta, Era::CLIENT_KEY));
        let trace = named(params.meta, "traceparent");
        let version = named(params.meta, Era::VERSION_KEY);
        let about = [
            ("client", said(client)),
            ("protocol_version", said(version)),
            ("traceparent", said(trace)),
        ];
        about
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect()
    }
}

/// Whether a page of another site has a browser ask for this, as it asks for a picture: without saying who
/// asks. Where that is said, it was judged.
fn is_embedded(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    let is_other = site.is_some_and(|site| site != "none" && site != "same-origin");
    is_other && !headers.contains_key(ORIGIN)
}

/// Whether the client calls the session by a name that the server does not know.
fn is_named_here(headers: &HeaderMap, link: &Link) -> bool {
    let said = headers.get(headers::SESSION);
    said.is_some_and(|said| said == link.name())
}

/// What carries a message, and the message.
pub(super) fn exchange(
    lobby: &Arc<Lobby>,
    link: &Arc<Link>,
    head: &Parts,
    message: Message,
    form: Form,
) -> (Box<Exchange>, Frame) {
    let mut headers = headers::to_server(&head.headers);
    // SECURITY: what was not judged as part of a session does not run there.
    if message.is_stateless || is_named_here(&head.headers, link) {
        headers.remove(headers::SESSION);
    }
    let exchange = Box::new(Exchange {
        given: None,
        held: None,
        original: mirror::has_arguments(&head.headers).then(|| message.frame.clone()),
        headers,
        verb: Verb::POST,
        id: message.id,
        method: message.method,
        mailbox: None,
        address: metadata::address(&head.headers, head.uri.path()),
        lobby: Arc::clone(lobby),
        link: Arc::clone(link),
        form,
    });
    (exchange, message.frame)
}

/// Refuses a message whose headers say something else than it does.
pub(super) async fn mismatched(
    link: &Arc<Link>,
    mismatch: &mirror::Mismatch,
    id: Option<&Id>,
) -> Response<Sent> {
    let then = Delivery::error(id, header_mismatch(mismatch));
    let effects = link.session().headers_differ(mismatch.to_string(), then);
    told(link, effects).await
}

/// The response to a body that is refused: what the session says about it.
async fn told(link: &Arc<Link>, effects: Vec<Effect>) -> Response<Sent> {
    match link.drive(effects, None).await.to_client.pop() {
        Some(reply) => reply::message(StatusCode::BAD_REQUEST, reply),
        None => reply::bare(StatusCode::BAD_REQUEST),
    }
}

pub(super) fn no_session(why: NoSession, id: Option<&Id>) -> Response<Sent> {
    let (status, reason, text) = match why {
        NoSession::Unknown => (
            StatusCode::NOT_FOUND,
            "SESSION_UNKNOWN",
            "the session is not known here; begin a new one",
        ),
        NoSession::Full => (
            StatusCode::SERVICE_UNAVAILABLE,
            "TOO_MANY_SESSIONS",
            "refused: too many sessions; try again later",
        ),
        NoSession::NotStarted => (
            StatusCode::BAD_GATEWAY,
            "SERVER_GONE",
            "the server cannot be started; tell the operator, do not retry",
        ),
        NoSession::Failed => (
            StatusCode::SERVICE_UNAVAILABLE,
            "runtime_error:log_unavailable",
            "refused: the log cannot be written; tell the operator, do not retry",
        ),
    };
    reply::error(status, &Refused::denied(reason, text), id)
}

/// One server without a name is at `/mcp`.
fn or_mcp(path: &str) -> &str {
    match path {
        "" | "/" => "/mcp",
        path => path,
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    // SECURITY: a server may read other alphabets, in which the same bytes say something else.
    let is_plain = !headers.contains_key(CONTENT_ENCODING);
    is_plain
        && value
            .to_str()
            .is_ok_and(|value| is_utf8(value, "application/json"))
}

/// Whether a content type is this one, in the one alphabet that is read here.
pub(super) fn is_utf8(value: &str, wanted: &str) -> bool {
    let mut parts = value.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default();
    let is_utf8 = |part: &str| match part.split_once('=') {
        Some((name, alphabet)) if name.trim().eq_ignore_ascii_case("charset") => {
            let alphabet = alphabet.trim().trim_matches('"');
            alphabet.eq_ignore_ascii_case("utf-8") || alphabet.eq_ignore_ascii_case("utf8")
        }
        // An alphabet by another way of writing is not looked for.
        _ => !part.to_ascii_lowercase().contains("charset"),
    };
    kind.eq_ignore_ascii_case(wanted) && parts.all(is_utf8)
}

/// After so many calls a connection without a session begins another one.
const MAX_CALLS: usize = 100_000;
const MAX_ABOUT: usize = 4096;
