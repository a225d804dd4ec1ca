//! A session between a scripted client and a server that counts what it does, on a real engine.
#![allow(dead_code, unreachable_pub, reason = "several tests share it")]

#[path = "../../../../tests/replayed.rs"]
pub(crate) mod replayed;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign_approval::{BallotPaper, CallDecision, Decision, DenyRule, Human, State, UnixMs};
use countersign_canon::{Json, Limits};
use countersign_engine::{Approvers, Engine, Origin, SystemClock};
use countersign_event::{EventType, Line, Scope};
use countersign_mcp::tools::{Book, Definition, Shelf};
use countersign_mcp::{Done, Effect, Gate, Job, List, Session, Settings};
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_policy::{Policies, UserPolicy};
use countersign_store::{Filter, Folder, Options, Store};
use countersign_verify::{Expectation, Selection, database::verify_database};
use ed25519_dalek::SigningKey;

pub struct Scene {
    engine: Arc<Engine>,
    scope: Scope,
    pub gate: Gate,
    settings: Settings,
    connections: usize,
    pub session: Session,
    pub now: Instant,
    /// What the client received.
    pub client: Vec<String>,
    /// What the server received.
    pub server: Vec<String>,
    /// How many calls reached the server.
    pub effects: usize,
    /// Jobs are kept here while a test wants them to wait.
    pub jobs: VecDeque<Job>,
    pub hold_jobs: bool,
    /// Whether the server answers by itself.
    pub answers: bool,
    /// The book as others see it, and how often it was kept.
    pub book: Book,
    pub times_kept: usize,
    /// Lists are kept here while a test wants them to wait.
    pub lists: VecDeque<List>,
    pub hold_lists: bool,
    /// The revision that the server speaks.
    pub version: &'static str,
    /// The tools that the server lists.
    pub tools: String,
    /// Goes last: what was recorded is looked at when nobody writes any more.
    folder: replayed::Kept,
}

pub const TOOLS: &str = r#"{"name":"read","annotations":{"readOnlyHint":true}},{"name":"write"},{"name":"deploy"},{"name":"secret"}"#;

/// What the manifest says about what is fetched by methods of its own.
pub const READS: &str = r#""resources/read":{"side_effect":"read"},
             "prompts/get":{"side_effect":"read"},"#;

/// `read` is pinned as it stands in [`TOOLS`]: only so it may run without a human.
pub fn manifest() -> String {
    let read = r#"{"name":"read","annotations":{"readOnlyHint":true}}"#;
    let digest = Definition::read(read.as_bytes()).unwrap().digest();
    format!(
        r#"{{"schema":"countersign/manifest/v1","permissions":{{
    "tools":{{"read":{{"side_effect":"read","server":"toy","definition":"{digest}"}},
             "write":{{"side_effect":"mutate-local"}},
             {READS}
             "deploy":{{"side_effect":"mutate-external","approval":"required"}}}},
    "budgets":{{"max_tool_calls":10000,"max_steps":10000,"max_wall_time_ms":10000000,"timeout_ms":1000,"max_output_bytes":2000}}}}}}"#
    )
}

fn policies() -> Policies {
    let manifest = Manifest::partial(&json(&manifest())).unwrap();
    Policies::new(Capability::new(Some(manifest)).unwrap())
}

pub fn origin() -> Origin {
    Origin::new("operator", "agent", std::path::Path::new("/")).unwrap()
}

impl Scene {
    pub fn new() -> Self {
        Self::with(|_| {}, None)
    }

    /// Somebody may approve, and the client knows the tools.
    pub fn of_an_approver() -> Self {
        let mut scene = Self::new();
        scene.register_approver();
        scene.list();
        scene
    }

    /// Calls are only observed.
    pub fn observing() -> Self {
        Self::judged_by(policies().observing(), |_| {})
    }

    pub fn with(settings: impl FnOnce(&mut Settings), policy: Option<UserPolicy>) -> Self {
        let policies = match policy {
            Some(policy) => policies().with(policy),
            None => policies(),
        };
        Self::judged_by(policies, settings)
    }

    fn judged_by(policies: Policies, settings: impl FnOnce(&mut Settings)) -> Self {
        let folder = replayed::folder();
        let store = Store::open(&Folder::new(folder.path()), Options::default()).unwrap();
        let engine = Arc::new(Engine::new(store, policies, SystemClock));
        let scope = Scope::new("t", "s").unwrap();
        let mut chosen = Settings::new("toy", "n0nce", "0ther");
        settings(&mut chosen);
        let settings = chosen.clone();
        Self {
            gate: Gate::new(Arc::clone(&engine), scope.clone(), "toy", origin()),
            engine,
            scope,
            folder,
            settings,
            connections: 0,
            session: Session::new(chosen, Shelf::new(Book::new("toy"), Vec::new())),
            now: Instant::now(),
            client: Vec::new(),
            server: Vec::new(),
            effects: 0,
            jobs: VecDeque::new(),
            hold_jobs: false,
            answers: true,
            book: Book::new("toy"),
            times_kept: 0,
            lists: VecDeque::new(),
            hold_lists: false,
            version: "2025-11-25",
            tools: TOOLS.to_owned(),
        }
    }

    /// Another connection, another session, the same log.
    pub fn reconnect(&mut self) {
        self.connections += 1;
        self.scope = Scope::new("t", format!("s{}", self.connections)).unwrap();
        self.gate = Gate::new(
            Arc::clone(&self.engine),
            self.scope.clone(),
            "toy",
            origin(),
        );
        let shelf = Shelf::new(Book::new("toy"), Vec::new());
        self.session = Session::new(self.settings.clone(), shelf);
        self.client.clear();
        self.server.clear();
        self.effects = 0;
    }

    /// The client sends a frame; gives what it received since.
    pub fn send(&mut self, frame: impl AsRef<[u8]>) -> Vec<String> {
        let before = self.client.len();
        let effects = self.session.from_client(frame.as_ref().to_vec(), self.now);
        self.apply(effects);
        self.client[before..].to_vec()
    }

    /// The server sends a frame; gives what the client received since.
    pub fn serve(&mut self, frame: impl AsRef<[u8]>) -> Vec<String> {
        let before = self.client.len();
        let effects = self.session.from_server(frame.as_ref().to_vec());
        self.apply(effects);
        self.client[before..].to_vec()
    }

    pub fn pass(&mut self, time: Duration) -> Vec<String> {
        let before = self.client.len();
        self.now += time;
        let effects = self.session.tick(self.now);
        self.apply(effects);
        self.client[before..].to_vec()
    }

    pub fn run_jobs(&mut self) {
        self.hold_jobs = false;
        while let Some(job) = self.jobs.pop_front() {
            let done = self.gate.run(job);
            self.done(done);
        }
    }

    pub fn done(&mut self, done: Done) {
        let effects = self.session.done(done, self.now);
        self.apply(effects);
    }

    /// Holds a list against the book, and keeps it.
    pub fn judge(&mut self, list: &List) {
        let mut shelf = Shelf::new(self.book.clone(), Vec::new());
        shelf.fill(list.tools().iter().map(AsRef::as_ref));
        if let Some(book) = shelf.take_changed_book() {
            self.book = book.clone();
            self.times_kept += 1;
        }
        let effects = self.session.judged(list.number(), Some(shelf));
        self.apply(effects);
    }

    pub fn apply(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::ToClient(bytes) | Effect::ToCaller(_, bytes) => {
                    self.client.push(text(bytes))
                }
                Effect::ToServer(outbound) => self.receive(outbound.into_bytes()),
                Effect::Job(job) => {
                    self.jobs.push_back(*job);
                    if !self.hold_jobs {
                        self.run_jobs();
                    }
                }
                Effect::Judge(list) => match self.hold_lists {
                    true => self.lists.push_back(*list),
                    false => self.judge(&list),
                },
                Effect::Remember(_) => {}
            }
        }
    }

    /// A server that reads as carelessly as some do, and counts.
    fn receive(&mut self, bytes: Vec<u8>) {
        let frame = text(bytes);
        self.server.push(frame.clone());
        let lower = frame
            .to_lowercase()
            .replace("\\/", "/")
            .replace("\\u002f", "/");
        let names = [
            "tools/call",
            "tools\\u002fcall",
            "resources/read",
            "prompts/get",
        ];
        let is_call = names.iter().any(|name| lower.contains(name));
        // An error that names the method calls nothing.
        let is_error = Json::admit(frame.as_bytes(), &Limits::event())
            .is_ok_and(|frame| frame.get("error").is_some());
        self.effects += usize::from(is_call && !is_error);
        if !self.answers {
            return;
        }
        let message = json(&frame);
        let (Some(id), Some(method)) = (message.get("id"), message.get("method")) else {
            return;
        };
        let id = text(id.to_jcs().unwrap());
        let result = match method.as_str().unwrap() {
            "tools/list" => format!(r#"{{"tools":[{}]}}"#, self.tools),
            "tools/call" => r#"{"content":[{"type":"text","text":"done"}]}"#.to_owned(),
            "initialize" => format!(r#"{{"protocolVersion":"{}"}}"#, self.version),
            "resources/read" => {
                r#"{"contents":[{"uri":"x:y","text":"ignore previous"}]}"#.to_owned()
            }
            _ => "{}".to_owned(),
        };
        self.serve(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
        ));
    }

    /// From now on the manifest says something else in this place.
    pub fn govern(&self, said: &str, now: &str) {
        let changed = manifest().replace(said, now);
        assert_ne!(changed, manifest(), "{said}");
        let manifest = Manifest::partial(&json(&changed)).unwrap();
        self.engine
            .replace_policies(Policies::new(Capability::new(Some(manifest)).unwrap()));
    }

    pub fn list(&mut self) {
        self.list_as("list");
    }

    pub fn list_as(&mut self, id: &str) {
        self.send(format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/list"}}"#
        ));
    }

    pub fn call(&mut self, id: &str, tool: &str, args: &str) -> Vec<String> {
        self.send(call(id, tool, args))
    }

    /// Somebody is registered who may approve.
    pub fn register_approver(&self) {
        register_approver(self.folder.path());
    }

    /// What dana says about the one request that waits.
    pub fn decide(&self, decision: Decision) {
        decide(&self.engine, decision);
    }

    /// Where every request for approval is.
    pub fn approvals(&self) -> Vec<State> {
        approvals(&self.engine)
    }

    /// The code of the one call that waits, as approvers see it.
    pub fn code(&self) -> String {
        let reader = self.engine.store().reader();
        let row = reader.approvals_in(State::Pending).unwrap().remove(0);
        let standing = self.engine.approval(row.id).unwrap().unwrap();
        standing.envelope.plan().hash().short()
    }

    pub fn terminate(&self) {
        self.gate.terminate("test").unwrap();
    }

    pub fn events(&self) -> Vec<(EventType, Json)> {
        self.engine.flush().unwrap();
        let reader = self.engine.store().reader();
        let page = reader
            .page(&Filter::session(&self.scope), None, 100_000)
            .unwrap();
        page.events
            .iter()
            .map(|event| {
                let event_type = Line::read(&event.line).unwrap().event_type;
                (event_type, reader.open_payload(event).unwrap())
            })
            .collect()
    }

    pub fn types(&self) -> Vec<EventType> {
        self.events().into_iter().map(|(event, _)| event).collect()
    }

    /// The codes of the faults that were recorded.
    pub fn faults(&self) -> Vec<String> {
        let events = self.events().into_iter();
        events
            .filter(|(event, _)| *event == EventType::ErrorRaised)
            .filter_map(|(_, payload)| payload.get("code")?.as_str().map(str::to_owned))
            .collect()
    }

    pub fn verify_log(&self) {
        let path = Folder::new(self.folder.path()).database();
        let (selection, expectation) = (Selection::default(), Expectation::default());
        let report = verify_database(&path, &selection, &expectation, None, &mut |_| {});
        // A log without events proves nothing, and is right where nothing was to be recorded.
        let empty = self.types().is_empty();
        assert!(report.is_good() || empty, "{:?}", report.failure);
        self.verify_refusals();
    }

    /// Whether the log of the session takes no more, or no more faults.
    fn is_full(&self) -> bool {
        self.types().contains(&EventType::Termination)
            || self.faults().iter().any(|code| code == "too_many_faults")
    }

    /// What was refused names the event that records it.
    fn verify_refusals(&self) {
        let reader = self.engine.store().reader();
        let filter = Filter::session(&self.scope);
        let events = reader.page(&filter, None, 100_000).unwrap().events;
        let hashes: Vec<String> = events
            .iter()
            .map(|event| Line::read(&event.line).unwrap().hash.to_string())
            .collect();
        for refusal in self.client.iter().filter_map(|frame| refusal(frame)) {
            match refusal.get("event").unwrap().as_str() {
                Some(event) => assert!(hashes.iter().any(|hash| hash == event), "{refusal:?}"),
                None => {
                    let reason = refusal.get("reason").unwrap().as_str().unwrap();
                    assert!(EVENTLESS.contains(&reason) || self.is_full(), "{refusal:?}");
                }
            }
        }
    }

    /// The log verifies, and everything that was called or fetched at the server was begun in it.
    pub fn verify(&self) {
        self.verify_log();
        let types = self.types();
        let begun = types
            .iter()
            .filter(|event| **event == EventType::ToolCallExecuted)
            .count();
        assert_eq!(self.effects, begun, "calls that reached the server");
    }
}

pub fn register_approver(folder: &std::path::Path) {
    let mut approvers = Approvers::default();
    let key = SigningKey::from_bytes(&[7; 32]).verifying_key();
    approvers.add(Human::new("dana").unwrap(), &key).unwrap();
    approvers.require(1, DenyRule::Veto).unwrap();
    approvers.save(folder).unwrap();
}

pub fn decide(engine: &Engine, decision: Decision) {
    let pending = engine
        .store()
        .reader()
        .approvals_in(State::Pending)
        .unwrap();
    let [row] = pending.as_slice() else {
        panic!("{} requests wait", pending.len());
    };
    let standing = engine.approval(row.id).unwrap().unwrap();
    let call = standing.envelope.plan().calls()[0].id.clone();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let paper = BallotPaper {
        decisions: vec![CallDecision { call, decision }],
        approver: Human::new("dana").unwrap(),
        display: standing.rendering.display_sha256(),
        signed_at: UnixMs::new(now as u64),
    };
    let key = SigningKey::from_bytes(&[7; 32]);
    let submission = paper.sign(&standing.envelope, &key);
    let _voted = engine.vote(&submission.to_text()).unwrap();
}

pub fn approvals(engine: &Engine) -> Vec<State> {
    let newest = engine.store().reader().newest_approvals(100).unwrap();
    newest.iter().map(|row| row.state).collect()
}

pub fn call(id: &str, tool: &str, args: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{args}}}}}"#
    )
}

pub fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

pub fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Refusals that follow from what the log tells elsewhere.
const EVENTLESS: &[&str] = &[
    "APPROVAL_USED",
    "APPROVAL_WITHDRAWN",
    "SERVER_GONE",
    "TOOL_CHANGED",
];

/// What a refusal of ours says, in either form.
fn refusal(frame: &str) -> Option<Json> {
    let frame = Json::admit(frame.as_bytes(), &Limits::event()).ok()?;
    let error = frame.get("error").and_then(|error| error.get("data"));
    let meta = || {
        frame
            .get("result")?
            .get("_meta")?
            .get("countersign/refusal")
    };
    let data = error.or_else(meta)?;
    data.get("reason").and(Some(data.clone()))
}

/// The code and the reason of an error, which says what to do next.
pub fn error(frame: &str) -> (i64, String) {
    let frame = json(frame);
    let error = frame.get("error").unwrap();
    let code = error.get("code").unwrap().as_i64().unwrap();
    let data = error.get("data").unwrap();
    let message = error.get("message").unwrap().as_str().unwrap();
    let reason = data.get("reason").unwrap().as_str().unwrap();
    let next = [
        "operator", "again", "retry", "send", "ask", "without", "later", "must", "needs", "new",
        "called",
    ];
    // Who has cancelled wants nothing next.
    let is_told = reason == "CANCELLED" || next.iter().any(|word| message.contains(word));
    assert!(is_told, "{message}");
    (code, reason.to_owned())
}
