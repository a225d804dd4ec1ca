//! One request of a client: what it says goes to the session, and what the session sends goes to the
//! server, whose response belongs to the client.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use countersign_canon::{Json, Limits};
use countersign_web::Share;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method as Verb, Response, StatusCode};

use crate::frame::{self, Frame, Id, Kind};
use crate::outbound::{Carries, Outbound};
use crate::reply::{METHOD_NOT_FOUND, Refused};
use crate::tools::Definition;
use crate::{Effect, FrameLimits, Method};

use super::beside::Beside;
use super::early::Ear;
use super::link::{self, Came, Form, InHand, Link};
use super::lobby::Lobby;
use super::loss::{Loss, REDIRECTED, SERVER_GONE, TIMEOUT, UNREADABLE};
use super::mailbox::{Letter, Mailbox};
use super::reply::{self, Waiting};
use super::request::{is_utf8, mismatched};
use super::upstream::{Served, Upstream};
use super::{headers, mirror};

/// Everything that one request needs. It goes from one step to the next in a box, and so does what is
/// rare: a future is as large as the largest that it waits for, and is moved as a whole.
pub(super) struct Exchange {
    pub(super) lobby: Arc<Lobby>,
    pub(super) link: Arc<Link>,
    /// What the server is told beside the body.
    pub(super) headers: HeaderMap,
    pub(super) verb: Verb,
    /// The id of the client's request, if it sent one.
    pub(super) id: Option<Id>,
    pub(super) method: Option<Method>,
    /// The frame as it came, where headers repeat parts of it.
    pub(super) original: Option<Frame>,
    pub(super) mailbox: Option<Mailbox>,
    /// How the client calls the server.
    pub(super) address: Option<String>,
    /// Whether the response belongs to this message alone.
    pub(super) form: Form,
    /// What the client is to call the session by, where the server has no name for it.
    pub(super) given: Option<HeaderValue>,
    /// The share of the room that the client's message takes, until the server has it.
    pub(super) held: Option<Arc<Share>>,
}

/// Bytes that take a share of a room for as long as anybody has them.
struct Covered {
    bytes: Vec<u8>,
    _share: Arc<Share>,
}

impl AsRef<[u8]> for Covered {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// What happened while the server was waited for.
pub(super) enum Turn<T> {
    /// The server came.
    Server(T),
    /// The session has something to say.
    Came(Came),
    /// The client is gone.
    Gone,
}

/// How waiting for the server ended.
pub(super) enum Attended<T> {
    /// The server came.
    Server(T),
    /// The client gets another answer.
    Answer(Vec<u8>),
    /// The client is gone.
    Gone,
}

impl Exchange {
    /// Carries a frame of the client.
    pub(super) async fn carry(mut self: Box<Self>, frame: Frame, waiting: Waiting) {
        // Before anybody is asked. Where the tool is not known yet, its call is looked at again.
        if let Err(mismatch) = self.check_headers() {
            let response = mismatched(&self.link, &mismatch, self.id.as_ref()).await;
            return answered(waiting, response);
        }
        let effects = self.tell(frame);
        self.go_on(effects, waiting).await;
    }

    /// Tells the session what the client sends.
    pub(super) fn tell(&mut self, frame: Frame) -> Vec<Effect> {
        let (effects, mailbox) = self.link.client_sends(frame, self.id.as_ref(), self.form);
        self.mailbox = mailbox;
        effects
    }

    /// Goes on with what the session made of it.
    pub(super) async fn go_on(mut self: Box<Self>, effects: Vec<Effect>, waiting: Waiting) {
        let _in_hand = InHand::new();
        let mut ear = Ear::new(waiting);
        let mut came = self.link.drive(effects, self.id.as_ref()).await;
        let mut gone = false;
        loop {
            let (main, messages) = self.sort_all(came);
            for message in messages {
                match self.id.clone().filter(|_| is_word(&message)) {
                    // The request is not answered by it: a human decides, and the client may hear so.
                    Some(id) => ear.say(&id, &message, self.lobby.limits.write_time).await,
                    None => {
                        let response = reply::message(self.status_of(&message), message);
                        return answered(ear.into_waiting(), response);
                    }
                }
            }
            if let Some(main) = main {
                return self.forward(main.into_bytes(), ear.into_waiting()).await;
            }
            let Some(id) = self.id.clone() else {
                return answered(ear.into_waiting(), reply::bare(StatusCode::ACCEPTED));
            };
            let waits = self.link.session().waits(&id);
            if !waits {
                // Somebody else's turn may have answered it.
                if let Some(letter) = self.mailbox.as_mut().and_then(Mailbox::come) {
                    came = self.open(letter).await;
                    continue;
                }
                // Cancelled before anything was sent.
                let refused = Refused::denied("CANCELLED", "the request was cancelled");
                let response = reply::error(StatusCode::OK, &refused, Some(&id));
                return answered(ear.into_waiting(), response);
            }
            let listens = (!gone).then_some(&mut ear);
            came = match self.hold(&id, listens).await {
                Turn::Server(()) => Came::default(),
                Turn::Came(came) => came,
                // Who stops asking about a task does not stop the task.
                Turn::Gone if self.carries_task() => {
                    gone = true;
                    Came::default()
                }
                Turn::Gone => return Box::pin(self.abandon()).await,
            };
        }
    }

    /// Waits for somebody else, as long as the door is open, and the client is there if it listens.
    async fn hold(&mut self, id: &Id, listens: Option<&mut Ear>) -> Turn<()> {
        let lobby = Arc::clone(&self.lobby);
        let is_closing = lobby.is_closing();
        if is_closing {
            let effects = self.link.session().let_go(id);
            if !effects.is_empty() {
                return Turn::Came(self.link.drive(effects, Some(id)).await);
            }
        }
        let closes = async {
            match is_closing {
                true => std::future::pending().await,
                false => lobby.closes().await,
            }
        };
        let leaves = async {
            match listens {
                Some(ear) => ear.closed().await,
                None => std::future::pending().await,
            }
        };
        self.turn(leaves, closes).await
    }

    /// From 2026-07-28 on a method that is not known is not found, also by its status.
    fn status_of(&self, answer: &[u8]) -> StatusCode {
        match !self.is_legacy() && error_code(answer) == Some(METHOD_NOT_FOUND) {
            true => StatusCode::NOT_FOUND,
            false => StatusCode::OK,
        }
    }

    /// Sends something to the server and gives the client its response.
    pub(super) async fn forward(mut self: Box<Self>, bytes: Vec<u8>, mut waiting: Waiting) {
        if matches!(
            self.method,
            Some(Method::TasksGet | Method::TasksUpdate | Method::TasksCancel)
        ) {
            self.headers_about_task(&bytes);
        }
        if let Err(mismatch) = self.mirror(&bytes) {
            let refused = header_mismatch(&mismatch);
            let answer = Box::pin(self.lose("header_mismatch", refused.clone())).await;
            let answer = answer.unwrap_or_else(|| refused.to_error(None));
            return answered(waiting, reply::message(StatusCode::BAD_REQUEST, answer));
        }
        let lobby = Arc::clone(&self.lobby);
        let Upstream::Http(remote) = &lobby.upstream else {
            return Box::pin(self.forward_line(bytes, waiting)).await;
        };
        let (verb, headers) = (self.verb.clone(), self.headers.clone());
        let sending = remote.send(self.link.idle.clone(), verb, headers, self.covered(bytes));
        let limit = self.lobby.limits.response_time;
        let attended = {
            let sending = pin!(tokio::time::timeout(limit, sending));
            self.attend(&mut waiting, sending).await
        };
        let response = match attended {
            Attended::Server(response) => response,
            Attended::Answer(answer) => {
                return answered(waiting, reply::message(StatusCode::OK, answer));
            }
            Attended::Gone => return Box::pin(self.abandon()).await,
        };
        match response {
            Ok(Ok(response)) => self.respond(response, waiting).await,
            Ok(Err(_)) => Box::pin(self.fail(SERVER_GONE, waiting)).await,
            Err(_) => Box::pin(self.fail(TIMEOUT, waiting)).await,
        }
    }

    /// Waits for the server, for as long as somebody waits for what it says.
    pub(super) async fn attend<T>(
        &mut self,
        waiting: &mut Waiting,
        mut server: Pin<&mut impl Future<Output = T>>,
    ) -> Attended<T> {
        let mut gone = false;
        loop {
            let closed = async {
                match gone {
                    true => std::future::pending().await,
                    false => waiting.closed().await,
                }
            };
            match self.turn(closed, server.as_mut()).await {
                Turn::Server(came) => return Attended::Server(came),
                Turn::Came(came) => {
                    if let (_, Some(answer)) = self.sort(came) {
                        return Attended::Answer(answer);
                    }
                    if gone
                        && self
                            .id
                            .as_ref()
                            .is_some_and(|id| !self.link.session().waits(id))
                    {
                        return Attended::Gone;
                    }
                }
                Turn::Gone if self.goes_on_alone() => gone = true,
                Turn::Gone => return Attended::Gone,
            }
        }
    }

    async fn respond(mut self: Box<Self>, response: Response<Served>, waiting: Waiting) {
        if let Err(refused) = self.meet(&response).await {
            return Box::pin(self.fail(refused, waiting)).await;
        }
        let status = response.status();
        if status.is_redirection() || status.is_informational() {
            // SECURITY: a client that follows would leave by another door.
            return Box::pin(self.fail(REDIRECTED, waiting)).await;
        }
        if response.headers().get_all(CONTENT_TYPE).iter().count() > 1 {
            // SECURITY: whoever takes the other one reads something else.
            return Box::pin(self.fail(UNREADABLE, waiting)).await;
        }
        let whole = response.headers().get(CONTENT_TYPE);
        let whole = whole
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let content = whole.split(';').next().unwrap_or_default().trim();
        if response.status().is_success() && !is_utf8(whole, content) {
            // SECURITY: a client may read another alphabet, in which the same bytes say something else.
            return Box::pin(self.fail(UNREADABLE, waiting)).await;
        }
        let coding = response.headers().get(CONTENT_ENCODING);
        if coding.is_some_and(|coding| coding != "identity") {
            // FAIL-CLOSED: what cannot be read is not passed on.
            return Box::pin(self.fail(UNREADABLE, waiting)).await;
        }
        match content.eq_ignore_ascii_case("text/event-stream") && response.status().is_success() {
            true => Box::pin(self.pump(response, waiting)).await,
            false => self.pass(response, waiting).await,
        }
    }

    /// The answer to the handshake says how the server knows this session.
    async fn meet(&mut self, response: &Response<Served>) -> Result<(), Loss> {
        if self.verb == Verb::DELETE && response.status().is_success() {
            self.lobby.forget(&self.headers);
            if self.headers.contains_key(headers::SESSION) {
                self.link.leave().await;
            }
        }
        if response.status() == StatusCode::NOT_FOUND && self.method != Some(Method::Initialize) {
            self.lobby.forget(&self.headers);
        }
        if self.method != Some(Method::Initialize) || !response.status().is_success() {
            return Ok(());
        }
        self.given = self.lobby.register(response.headers(), &self.link).await?;
        Ok(())
    }

    /// What a server's response says to the client.
    pub(super) fn pass_headers(&mut self, headers: &HeaderMap) -> HeaderMap {
        let mut passed = headers::to_client(headers);
        // SECURITY: some clients go on under whatever name comes with an answer, and so in somebody else's session.
        if passed.contains_key(headers::SESSION) && !self.lobby.leads_to(&passed, &self.link) {
            passed.remove(headers::SESSION);
        }
        passed.extend(self.given.take().map(|name| (headers::SESSION, name)));
        passed
    }

    /// What comes first: somebody else's job for this request, time, the server, or the client's end. A server
    /// that never stops speaking keeps neither of the first two waiting.
    pub(super) async fn turn<T>(
        &mut self,
        closed: impl Future<Output = ()>,
        server: impl Future<Output = T>,
    ) -> Turn<T> {
        let deadline = match &self.id {
            Some(id) => self.link.session().deadline_for(id),
            None => self.link.session().deadline(),
        };
        let late = async {
            match deadline {
                Some(time) => tokio::time::sleep_until(time.into()).await,
                None => std::future::pending().await,
            }
        };
        let job = async {
            match &mut self.mailbox {
                Some(mailbox) => mailbox.next().await,
                None => std::future::pending().await,
            }
        };
        let job = tokio::select! {
            biased;
            job = job => Some(job),
            () = late => None,
            came = server => return Turn::Server(came),
            () = closed => return Turn::Gone,
        };
        Turn::Came(match job {
            Some(Some(letter)) => self.open(letter).await,
            Some(None) => {
                // Somebody else has the id by now, and nothing comes here any more.
                self.mailbox = None;
                Came::default()
            }
            None => self.link.tick(self.id.as_ref()).await,
        })
    }

    async fn open(&self, letter: Letter) -> Came {
        match letter {
            Letter::Job(job) => {
                let mine = self.id.clone().or_else(|| link::owner(&job));
                self.link.drive(vec![Effect::Job(job)], mine.as_ref()).await
            }
            Letter::Message { bytes, .. } => Came {
                to_client: vec![bytes],
                ..Came::default()
            },
            Letter::Question(question) => Came {
                to_server: vec![question],
                ..Came::default()
            },
        }
    }

    /// What goes to the server as this request, and what the client is to hear. Anything else for
    /// the server is sent beside.
    pub(super) fn sort(&self, came: Came) -> (Option<Outbound>, Option<Vec<u8>>) {
        let (main, messages) = self.sort_all(came);
        (main, messages.into_iter().next_back())
    }

    pub(super) fn sort_all(&self, came: Came) -> (Option<Outbound>, Vec<Vec<u8>>) {
        let mut main = None;
        for handle in came.handles {
            self.lobby.remember(handle, &self.link);
        }
        for outbound in came.to_server {
            let is_main = match outbound.carries() {
                Carries::Request(id) => Some(id) == self.id.as_ref(),
                Carries::Word => self.id.is_none() && self.verb == Verb::POST,
                Carries::Own | Carries::OwnFor(_) => false,
            };
            match is_main {
                true => main = Some(outbound),
                false => self.send_beside(outbound),
            }
        }
        (main, came.to_client)
    }

    /// Whether the server should be heard out although the client is gone: before 2026-07-28 a
    /// connection that is lost cancels nothing, and the log is to know how a call ended.
    ///
    /// A task goes on whoever asks about it.
    pub(super) fn goes_on_alone(&self) -> bool {
        (self.is_legacy() && self.method.is_some_and(Method::is_decided)) || self.carries_task()
    }

    fn carries_task(&self) -> bool {
        let carries = |id: &Id| self.link.session().carries_task(id);
        self.id.as_ref().is_some_and(carries)
    }

    /// Whether the peers speak a revision in which a stream is not bound to its connection.
    pub(super) fn is_legacy(&self) -> bool {
        self.link.session().era().is_none_or(|era| era.handshake)
    }

    /// The client is gone.
    pub(super) async fn abandon(self: Box<Self>) {
        if let Some(id) = &self.id {
            if self.may_come_back() && self.link.session().connection_lost(id, Instant::now()) {
                return;
            }
            let was_sent = self.link.session().waits(id);
            if was_sent && self.link.route.has_program() {
                // On pipes nothing closes: the server is told.
                self.link
                    .route
                    .send(crate::reply::cancelled(id, "client_closed"));
            }
            let effects = self.link.session().abandoned(id);
            let came = self.link.drive(effects, Some(id)).await;
            self.sort(came);
        }
    }

    /// Whether the client can make its call again in the same session: before 2026-07-28 a connection that is lost
    /// takes nothing back.
    fn may_come_back(&self) -> bool {
        self.is_legacy() && self.lobby.is_named(&self.link)
    }

    /// Sends something of ours to the server, on its own way.
    fn send_beside(&self, outbound: Outbound) {
        let beside = Beside {
            lobby: Arc::clone(&self.lobby),
            link: Arc::clone(&self.link),
            headers: self.headers.clone(),
        };
        beside.send_all(vec![outbound]);
    }

    /// A question about a task that carries the call itself has the headers of that call, and one that
    /// asks under the server's own handle names that one.
    fn headers_about_task(&mut self, bytes: &[u8]) {
        let Ok(frame) = Frame::read(bytes.to_vec(), &FrameLimits::default()) else {
            return;
        };
        let Some((tool, args)) = call(&frame) else {
            if let Kind::Request { params, .. } = frame.kind()
                && let Some(handle) = frame.text(params.task_id)
            {
                mirror::name(&handle, &mut self.headers);
            }
            return;
        };
        let session = self.link.session();
        let definition = session.shelf().definition(&tool).cloned();
        drop(session);
        mirror::name_call(&tool, &mut self.headers);
        if let Some(definition) = definition {
            mirror::repeat_arguments(&definition, &args, &mut self.headers);
        }
    }

    /// Headers that repeat single arguments: compared with what the client sent, and made anew where
    /// a policy has changed the arguments.
    fn mirror(&mut self, bytes: &[u8]) -> Result<(), mirror::Mismatch> {
        let checked = self.check_headers()?;
        let original = self.original.take();
        if let (Some((definition, said)), Some(original)) = (checked, original)
            && original.bytes() != bytes
        {
            let sent = Frame::read(bytes.to_vec(), &FrameLimits::default()).ok();
            let sent = sent.and_then(|frame| call(&frame)).map(|(_, args)| args);
            mirror::rewrite_arguments(&definition, &sent.unwrap_or(said), &mut self.headers);
        }
        Ok(())
    }

    /// What goes to the server. INVARIANT: a server that does not read makes the room smaller, and
    /// takes no other memory.
    fn covered(&mut self, bytes: Vec<u8>) -> Bytes {
        match self.held.take() {
            Some(_share) => Bytes::from_owner(Covered { bytes, _share }),
            None => Bytes::from(bytes),
        }
    }

    /// Whether the headers that repeat arguments say what the arguments say. Gives the definition that
    /// tells which they are, and the arguments.
    fn check_headers(&self) -> Result<Option<(Definition, Json)>, mirror::Mismatch> {
        let Some((tool, said)) = self.original.as_ref().and_then(call) else {
            return Ok(None);
        };
        let definition = self.link.session().shelf().definition(&tool).cloned();
        match definition {
            Some(definition) => {
                mirror::check_arguments(&definition, &said, &self.headers)?;
                Ok(Some((definition, said)))
            }
            None => Ok(None),
        }
    }
}

/// A stream is used until it ends.
impl Drop for Exchange {
    fn drop(&mut self) {
        self.link.touch();
    }
}

/// The response to a client that may be gone.
pub(super) fn answered(waiting: Waiting, response: Response<super::body::Sent>) {
    // Who is gone hears nothing.
    let _ = waiting.send(response);
}

pub(super) fn header_mismatch(mismatch: &mirror::Mismatch) -> Refused {
    let text = format!("refused: {mismatch}; send the same in both");
    Refused::denied("HEADER_MISMATCH", text).with_code(HEADER_MISMATCH)
}

/// Whether it is a message of the protocol, or several that were put together here.
pub(super) fn is_message(bytes: &[u8]) -> bool {
    let limits = FrameLimits::default();
    match frame::is_batch(bytes) {
        true => frame::batch(bytes, &limits).is_ok(),
        false => Frame::read(bytes.to_vec(), &limits).is_ok(),
    }
}

/// Whether a message answers nothing.
fn is_word(message: &[u8]) -> bool {
    let frame = Frame::read(message.to_vec(), &FrameLimits::default());
    matches!(
        frame.as_ref().map(Frame::kind),
        Ok(Kind::Request { .. } | Kind::Notification { .. })
    )
}

fn error_code(message: &[u8]) -> Option<i64> {
    let frame = Frame::read(message.to_vec(), &FrameLimits::default()).ok()?;
    let Kind::Error { error, .. } = frame.kind() else {
        return None;
    };
    let code = frame.member(Some(*error), "code")?;
    std::str::from_utf8(frame.part(code)).ok()?.parse().ok()
}

/// The tool and the arguments of a call.
fn call(frame: &Frame) -> Option<(String, Json)> {
    let Kind::Request {
        method: Method::ToolsCall,
        params,
        ..
    } = frame.kind()
    else {
        return None;
    };
    let tool = frame.text(params.name)?.into_owned();
    let args = match params.arguments {
        None => Json::object::<String>([]),
        Some(args) => Json::admit(frame.part(args), &Limits::event()).ok()?,
    };
    Some((tool, args))
}

const HEADER_MISMATCH: i64 = -32020;
