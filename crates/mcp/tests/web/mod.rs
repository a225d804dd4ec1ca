//! An HTTP server that counts what it does, a door in front of it, and a client that speaks HTTP byte
//! by byte.
#![allow(dead_code, unreachable_pub, reason = "several tests share it")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use countersign_approval::{Decision, State};
use countersign_canon::Json;
use countersign_engine::{Engine, SystemClock};
use countersign_event::{EventType, Line, Scope};
use countersign_mcp::http::{Access, Door, Limits, Opened, Reception, Remote, Served, Upstream};
use countersign_mcp::stdio::Host;
use countersign_mcp::tools::{Book, Definition, Shelf};
use countersign_mcp::{Gate, Session, Settings};
use countersign_policy::Policies;
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_store::{Filter, Folder, Options, Store};
use countersign_verify::{Expectation, Selection, database::verify_database};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

use crate::scene::{self, json, replayed};

pub mod client;

pub use client::Client;

/// What the server received.
#[derive(Clone, Debug)]
pub struct Seen {
    pub verb: String,
    pub head: String,
    pub body: Vec<u8>,
}

/// What the server does then.
pub enum Answer {
    /// A status, more header lines, and a body.
    Body(u16, &'static str, Vec<u8>),
    /// Events, as they come out of the channel; the connection ends with it.
    Events(mpsc::UnboundedReceiver<Bytes>),
    /// These bytes and nothing else.
    Raw(Vec<u8>),
    /// Nothing, until the peer goes.
    Hang,
}

type Behaviour = Arc<dyn Fn(&Seen) -> Option<Answer> + Send + Sync>;

pub struct Web {
    pub door: SocketAddr,
    pub seen: Arc<Mutex<Vec<Seen>>>,
    /// How many connections to the server ended before it had answered.
    pub left: Arc<Mutex<usize>>,
    pub engine: Arc<Engine>,
    folder: replayed::Kept,
    /// How many sessions were opened.
    pub opened: Arc<Mutex<usize>>,
    stop: Option<oneshot::Sender<()>>,
    stopped: Option<tokio::task::JoinHandle<std::io::Result<()>>>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines().skip(1);
        let mut pairs = lines.filter_map(|line| line.split_once(':'));
        let found = pairs.find(|(one, _)| one.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim().to_owned())
    }

    pub fn message(&self) -> Json {
        json(std::str::from_utf8(&self.body).unwrap())
    }

    pub fn method(&self) -> Option<String> {
        let method = self.message().get("method")?.as_str()?.to_owned();
        Some(method)
    }

    pub fn is_call(&self) -> bool {
        let text = String::from_utf8_lossy(&self.body).to_lowercase();
        let names = [["tools", "call"], ["resources", "read"], ["prompts", "get"]];
        let has = |name: &[&str; 2]| name.iter().all(|part| text.contains(part));
        names.iter().any(has) && !text.contains("\"error\"")
    }

    pub fn id(&self) -> String {
        let message = self.message();
        let id = message.get("id").map(|id| id.to_jcs().unwrap());
        String::from_utf8(id.unwrap_or_else(|| b"null".to_vec())).unwrap()
    }

    /// A result for this request.
    pub fn result(&self, result: &str) -> Vec<u8> {
        let id = self.id();
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into_bytes()
    }
}

/// A server that answers as it should.
pub fn usual(seen: &Seen) -> Answer {
    let json = "content-type: application/json\r\n";
    if seen.verb == "DELETE" {
        return Answer::Body(200, "", Vec::new());
    }
    if seen.verb == "GET" {
        return Answer::Body(405, "", Vec::new());
    }
    if seen.message().get("id").is_none() || seen.method().is_none() {
        return Answer::Body(202, "", Vec::new());
    }
    let result = match seen.method().unwrap().as_str() {
        "initialize" => {
            let body = seen.result(r#"{"protocolVersion":"2025-11-25"}"#);
            let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let head =
                format!("content-type: application/json\r\nmcp-session-id: sid-{number}\r\n");
            return Answer::Body(200, head.leak(), body);
        }
        "tools/list" => format!(r#"{{"tools":[{}]}}"#, scene::TOOLS),
        "tools/call" => r#"{ "content" : [{"type":"text","text":"done"}] }"#.to_owned(),
        _ => "{}".to_owned(),
    };
    Answer::Body(200, json, seen.result(&result))
}

static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(1);

/// Opens sessions on a real engine.
struct Desk {
    engine: Arc<Engine>,
    count: Arc<Mutex<usize>>,
    hold_wait: Duration,
    book: Arc<Mutex<Book>>,
}

/// The book that all sessions share.
struct Shared(Arc<Mutex<Book>>);

impl Host for Shared {
    fn judge(&mut self, tools: &[Arc<Definition>]) -> Option<Shelf> {
        let mut book = self.0.lock().unwrap();
        let mut shelf = Shelf::new(book.clone(), Vec::new());
        shelf.fill(tools.iter().map(AsRef::as_ref));
        *book = shelf.book().clone();
        Some(shelf)
    }
}

impl Reception for Desk {
    fn receive(&self, about: Vec<(&'static str, Json)>) -> Result<Opened, String> {
        let mut count = self.count.lock().unwrap();
        *count += 1;
        let scope = Scope::new("t", format!("s{count}")).unwrap();
        let name = format!("of-the-door-{count}");
        drop(count);
        let gate = Gate::new(Arc::clone(&self.engine), scope, "toy", scene::origin());
        gate.introduce(&Json::object(about))
            .map_err(|refusal| refusal.message().to_owned())?;
        let shelf = Shelf::new(Book::new("toy"), Vec::new());
        let mut settings = Settings::new("toy", "n0nce", "0ther");
        settings.list_wait = Duration::from_secs(5);
        settings.hold_wait = Some(self.hold_wait);
        settings.seal = Some(Arc::new(countersign_mcp::Seal::new(&[3; 32])));
        Ok(Opened {
            gate,
            session: Session::new(settings, shelf),
            host: Box::new(Shared(Arc::clone(&self.book))),
            name,
        })
    }

    fn server_not_started(&self, error: &std::io::Error) {
        panic!("{error}");
    }
}

/// The origin of a page that the operator has named.
pub const PAGE: &str = "https://pages.example";

impl Web {
    pub async fn new() -> Self {
        Self::with(|_| None, |_| {}).await
    }

    /// A server that answers as it should where `behaviour` has nothing to say.
    pub async fn with(
        behaviour: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
        limits: impl FnOnce(&mut Limits),
    ) -> Self {
        let (seen, left) = (Arc::default(), Arc::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let behaviour: Behaviour = Arc::new(behaviour);
        tokio::spawn(listen(
            listener,
            behaviour,
            Arc::clone(&seen),
            Arc::clone(&left),
        ));
        Self::before(&format!("http://{address}/upstream"), seen, left, limits).await
    }

    /// A door in front of any address.
    pub async fn before(
        address: &str,
        seen: Arc<Mutex<Vec<Seen>>>,
        left: Arc<Mutex<usize>>,
        change: impl FnOnce(&mut Limits),
    ) -> Self {
        let upstream = Upstream::Http(Remote::new(address).unwrap());
        Self::of(upstream, seen, left, change).await
    }

    /// A door in front of any server.
    pub async fn of(
        upstream: Upstream,
        seen: Arc<Mutex<Vec<Seen>>>,
        left: Arc<Mutex<usize>>,
        change: impl FnOnce(&mut Limits),
    ) -> Self {
        let folder = replayed::folder();
        let store = Store::open(&Folder::new(folder.path()), Options::default()).unwrap();
        let policies = policies(&scene::manifest());
        let engine = Arc::new(Engine::new(store, policies, SystemClock));
        let mut limits = Limits {
            max_frame_bytes: 1 << 20,
            max_held_bytes: 8 << 20,
            ..Limits::default()
        };
        change(&mut limits);
        let opened = Arc::default();
        let desk = Desk {
            engine: Arc::clone(&engine),
            count: Arc::clone(&opened),
            hold_wait: HOLD,
            book: Arc::new(Mutex::new(Book::new("toy"))),
        };
        let served = Served {
            path: "/mcp".to_owned(),
            upstream,
            reception: Arc::new(desk),
            response_time: None,
        };
        let access = Access::default().with_origin(PAGE).unwrap();
        let door = Door::new(vec![served], access, limits);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = oneshot::channel();
        let stopped = tokio::spawn(door.open(listener, async move {
            let _ = stopping.await;
        }));
        Self {
            door: address,
            seen,
            left,
            engine,
            folder,
            opened,
            stop: Some(stop),
            stopped: Some(stopped),
        }
    }

    /// From now on servers may take a minute for a call.
    pub fn be_patient(&self) {
        let manifest = scene::manifest();
        let patient = manifest.replace(r#""timeout_ms":1000"#, r#""timeout_ms":60000"#);
        assert_ne!(patient, manifest);
        let revised = self
            .engine
            .revise(|_| Ok::<_, std::convert::Infallible>(policies(&patient)));
        assert_eq!(revised, Ok(true));
    }

    /// Somebody is registered who may approve.
    pub fn register_approver(&self) {
        scene::register_approver(self.folder.path());
    }

    /// What they say about the one request that waits.
    pub fn decide(&self, decision: Decision) {
        tokio::task::block_in_place(|| scene::decide(&self.engine, decision));
    }

    pub fn approvals(&self) -> Vec<State> {
        scene::approvals(&self.engine)
    }

    pub async fn client(&self) -> Client {
        Client::to(self.door).await
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How many calls reached the server.
    pub fn effects(&self) -> usize {
        self.seen().iter().filter(|seen| seen.is_call()).count()
    }

    pub fn events(&self) -> Vec<(EventType, Json)> {
        // It waits for the disk, which is nothing for a thread that runs tasks.
        std::thread::scope(|threads| threads.spawn(|| self.engine.flush().unwrap()).join())
            .unwrap();
        self.recorded()
    }

    /// What is durable by now.
    pub fn recorded(&self) -> Vec<(EventType, Json)> {
        let reader = self.engine.store().reader();
        let page = reader.page(&Filter::default(), None, 100_000).unwrap();
        let events = page.events.iter().map(|event| {
            let event_type = Line::read(&event.line).unwrap().event_type;
            (event_type, reader.open_payload(event).unwrap())
        });
        events.collect()
    }

    pub fn count(&self, event_type: EventType) -> usize {
        let events = self.events();
        events.iter().filter(|(one, _)| *one == event_type).count()
    }

    /// How many of the calls that were begun have ended, well or badly.
    pub fn settled(&self) -> usize {
        let mut events = self.events();
        let begun = events
            .iter()
            .filter(|(event, _)| *event == EventType::ToolCallExecuted);
        let begun: Vec<Json> = begun
            .map(|(_, payload)| payload.get("call_id").unwrap().clone())
            .collect();
        events.retain(|(_, payload)| payload.get("call_id").is_some_and(|id| begun.contains(id)));
        let is_end = |(event, payload): &&(EventType, Json)| match event {
            EventType::ToolResult => true,
            EventType::ErrorRaised => payload.get("call_id").is_some_and(|id| !id.is_null()),
            _ => false,
        };
        events.iter().filter(is_end).count()
    }

    pub fn faults(&self) -> Vec<String> {
        let events = self.events().into_iter();
        events
            .filter(|(event, _)| *event == EventType::ErrorRaised)
            .filter_map(|(_, payload)| payload.get("code")?.as_str().map(str::to_owned))
            .collect()
    }

    /// Waits until something holds.
    pub async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        assert!(self.comes(holds).await, "never: {what}");
    }

    /// Whether it comes to hold.
    pub async fn comes(&self, holds: impl Fn(&Self) -> bool) -> bool {
        for _ in 0..1000 {
            if holds(self) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    /// Closes the door; the log verifies, every call that reached the server was begun in it, every
    /// call that was begun has a result, and every session has ended.
    pub async fn close(self) {
        self.close_but(0).await;
    }

    /// The same where at most so many calls were taken back when they had begun, and were not sent.
    pub async fn close_but(mut self, unsent: usize) {
        let _ = self.stop.take().unwrap().send(());
        self.stopped.take().unwrap().await.unwrap().unwrap();
        self.until("every session has ended", |web| {
            *web.opened.lock().unwrap() == web.count(EventType::Termination)
        })
        .await;
        let path = Folder::new(self.folder.path()).database();
        let (selection, expectation) = (Selection::default(), Expectation::default());
        let report = verify_database(&path, &selection, &expectation, None, &mut |_| {});
        assert!(report.is_good(), "{:?}", report.failure);
        let begun = self.count(EventType::ToolCallExecuted);
        let sent = self.effects();
        assert!(sent <= begun && begun <= sent + unsent, "{sent} of {begun}");
        assert_eq!(begun, self.settled());
    }
}

async fn listen(
    listener: TcpListener,
    behaviour: Behaviour,
    seen: Arc<Mutex<Vec<Seen>>>,
    left: Arc<Mutex<usize>>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let (behaviour, seen, left) =
            (Arc::clone(&behaviour), Arc::clone(&seen), Arc::clone(&left));
        tokio::spawn(async move {
            let mut stream = Wire::new(stream);
            while let Some((head, body)) = stream.request().await {
                let verb = head.split(' ').next().unwrap().to_owned();
                let one = Seen { verb, head, body };
                seen.lock().unwrap().push(one.clone());
                let answer = behaviour(&one).unwrap_or_else(|| usual(&one));
                if !stream.answer(answer).await {
                    *left.lock().unwrap() += 1;
                    return;
                }
            }
        });
    }
}

/// One side of a connection.
struct Wire {
    stream: TcpStream,
    held: Vec<u8>,
}

impl Wire {
    fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            held: Vec::new(),
        }
    }

    async fn more(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer).await {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.held.extend_from_slice(&buffer[..count]);
                true
            }
        }
    }

    async fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            let found = self.held.windows(end.len()).position(|part| part == end);
            if let Some(at) = found {
                return Some(self.held.drain(..at + end.len()).collect());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    async fn exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.held.len() < count {
            if !self.more().await {
                return None;
            }
        }
        Some(self.held.drain(..count).collect())
    }

    async fn head(&mut self) -> Option<String> {
        let head = self.until(b"\r\n\r\n").await?;
        Some(String::from_utf8(head).unwrap())
    }

    async fn request(&mut self) -> Option<(String, Vec<u8>)> {
        let head = self.head().await?;
        let body = self.exactly(length(&head).unwrap_or(0)).await?;
        Some((head, body))
    }

    /// Whether the connection can go on.
    async fn answer(&mut self, answer: Answer) -> bool {
        match answer {
            Answer::Body(status, head, body) => {
                let length = body.len();
                let head = format!("HTTP/1.1 {status} x\r\n{head}content-length: {length}\r\n\r\n");
                let bytes = [head.as_bytes(), &body].concat();
                self.stream.write_all(&bytes).await.is_ok()
            }
            Answer::Raw(bytes) => {
                let _ = self.stream.write_all(&bytes).await;
                false
            }
            Answer::Hang => {
                while self.more().await {}
                false
            }
            Answer::Events(mut events) => {
                let head = "HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                self.stream.write_all(head.as_bytes()).await.unwrap();
                loop {
                    let event = tokio::select! {
                        event = events.recv() => event,
                        more = self.more() => match more {
                            true => continue,
                            false => return false,
                        },
                    };
                    let Some(event) = event else { break };
                    let chunk = format!("{:x}\r\n", event.len());
                    let chunk = [chunk.as_bytes(), &event, b"\r\n"].concat();
                    if self.stream.write_all(&chunk).await.is_err() {
                        return false;
                    }
                }
                self.stream.write_all(b"0\r\n\r\n").await.is_ok()
            }
        }
    }
}

pub fn header(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().skip(1);
    let mut pairs = lines.filter_map(|line| line.split_once(':'));
    let found = pairs.find(|(one, _)| one.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim().to_owned())
}

fn length(head: &str) -> Option<usize> {
    header(head, "content-length").map(|length| length.parse().unwrap())
}

/// Long enough to hear that one waits, short enough to be told to come back.
/// The same call again and again is what these tests do.
fn policies(manifest: &str) -> Policies {
    let schema = r#"{"schema":"countersign/manifest/v1","#;
    let patient = format!(
        r#"{schema}"loops":{{"identical_calls":0,"no_progress_steps":0,"sequence_min":0,"sequence_max":0}},"#
    );
    let manifest = manifest.replace(schema, &patient);
    let manifest = Manifest::partial(&json(&manifest)).unwrap();
    Policies::new(Capability::new(Some(manifest)).unwrap())
}

const HOLD: Duration = Duration::from_secs(8);

/// Far longer than anything takes; who waits so long has found a hang.
const PATIENCE: Duration = Duration::from_secs(30);
