//! A session that was recorded once (`corpus/replay/recorded.json`) and is decided again by every build.
//!
//! Whoever changes a line of the reducer folds it to another state and fails here; `.ci/reducer-mutations`
//! changes the lines one after the other and shows it. A change that is meant is written down with
//! `COUNTERSIGN_BLESS=1 cargo test -p countersign-replay --test recorded`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

#[path = "../../../tests/replayed.rs"]
mod replayed;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use countersign_canon::{Digest, Json, Limits};
use countersign_engine::{Clock, ClockError, Engine, Origin, Outcome, Proposal, Start};
use countersign_event::{EventType, Line, Payload, Scope};
use countersign_policy::Policies;
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_replay::exact;
use countersign_store::{Draft, Filter, Folder, Options, Store};

#[test]
fn a_session_that_was_recorded_once_comes_out_again() {
    if std::env::var_os("COUNTERSIGN_BLESS").is_some() {
        record();
    }
    let recorded = std::fs::read(file()).unwrap();
    let limits = Limits {
        max_bytes: 16 << 20,
        ..Limits::event()
    };
    let recorded = Json::admit(&recorded, &limits).unwrap();
    let place = replayed::folder();
    let folder = Folder::new(place.path());
    let store = Store::open(&folder, Options::default()).unwrap();
    for (digest, text) in recorded.get("policies").unwrap().as_object().unwrap() {
        let path = folder.policies(digest.parse::<Digest>().unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.as_str().unwrap()).unwrap();
    }
    let mut decisions = 0;
    for event in recorded.get("events").unwrap().as_array().unwrap() {
        let [time, kind, payload] = event.as_array().unwrap() else {
            panic!("an event has three parts");
        };
        let event_type: EventType = kind.as_str().unwrap().parse().unwrap();
        let is_judged = payload
            .get("policy_digest")
            .is_some_and(|digest| !digest.is_null());
        decisions += u64::from(event_type == EventType::PolicyDecision && is_judged);
        let draft = Draft {
            scope: scope(),
            ts_unix_ms: time.as_u64().unwrap(),
            event_type,
            payload: Payload::admit(event_type, payload.clone()).unwrap(),
        };
        let _recorded = store.record(draft).unwrap();
    }
    let report = exact(&scope(), store.reader()).unwrap();
    assert!(report.is_identical(), "{:?}", report.diffs);
    assert_eq!(report.decisions, decisions);
    assert!(decisions > 60, "{decisions}");
}

/// A clock that the story moves.
#[derive(Clone)]
struct Hands(Arc<AtomicU64>);

impl Clock for Hands {
    fn now_unix_ms(&self) -> Result<u64, ClockError> {
        Ok(self.0.load(Ordering::SeqCst))
    }
}

struct Story {
    engine: Engine,
    clock: Hands,
    origin: Origin,
    calls: u64,
}

impl Story {
    fn tell(&mut self, event_type: EventType, payload: &str) {
        self.clock.0.fetch_add(7, Ordering::SeqCst);
        let payload = Payload::admit(event_type, json(payload)).unwrap();
        let _recorded = self.engine.record(&scope(), event_type, payload).unwrap();
        self.look();
    }

    /// A call whose decision holds the state that everything before it came to.
    fn look(&mut self) {
        self.call("look", "{}", &Answer::Says("\"fine\""));
    }

    fn call(&mut self, tool: &str, args: &str, answer: &Answer) {
        self.keyed(tool, args, None, answer);
    }

    fn keyed(&mut self, tool: &str, args: &str, key: Option<&str>, answer: &Answer) {
        self.calls += 1;
        self.clock.0.fetch_add(11, Ordering::SeqCst);
        let start = self.engine.start(Proposal {
            scope: &scope(),
            call_id: format!("c{}", self.calls),
            tool_name: tool.to_owned(),
            server: (tool == "fetch").then(|| "web".to_owned()),
            definition: None,
            origin: &self.origin,
            preconditions: Vec::new(),
            args: json(args),
            sanitizer_key: key.map(str::to_owned),
            bytes: args.as_bytes(),
            encode: &|args| args.to_jcs().unwrap(),
        });
        let Start::Running(running) = start else {
            return;
        };
        self.clock.0.fetch_add(3, Ordering::SeqCst);
        let outcome = match answer {
            Answer::Says(text) => Outcome::Result {
                content: json(text),
                is_error: false,
            },
            Answer::Complains(text) => Outcome::Result {
                content: json(text),
                is_error: true,
            },
            Answer::Breaks => Outcome::Failed {
                code: "broken".to_owned(),
                message: "it broke".to_owned(),
            },
        };
        let _settled = self.engine.settle(running, outcome).unwrap();
    }
}

enum Answer {
    Says(&'static str),
    Complains(&'static str),
    Breaks,
}

/// Some of everything that moves the state of a session, each with a decision behind it.
fn record() {
    let place = replayed::folder();
    let folder = Folder::new(place.path());
    let store = Store::open(&folder, Options::default()).unwrap();
    let clock = Hands(Arc::new(AtomicU64::new(1_760_000_000_000)));
    let mut story = Story {
        engine: Engine::new(store, policies(MANIFEST), clock.clone()),
        clock,
        origin: Origin::new("operator", "agent", Path::new("/")).unwrap(),
        calls: 0,
    };
    use Answer::{Breaks, Complains, Says};
    use EventType as E;
    story.look();
    story.tell(E::ModelCallStarted, r#"{"call_id":"m1","model_id":"m"}"#);
    story.tell(
        E::ModelCallFinished,
        r#"{"call_id":"m1","content":"hello"}"#,
    );
    story.call("read_file", r#"{"path":"/a"}"#, &Says(r#"{"text":"a"}"#));
    story.look();
    story.call("read_file", r#"{"path":"/b"}"#, &Complains("\"no\""));
    story.look();
    story.call("read_file", r#"{"path":"/c"}"#, &Breaks);
    story.look();
    story.call("format_disk", "{}", &Says("1"));
    story.look();
    story.call("deploy", "{}", &Says("1"));
    story.look();
    story.tell(E::MemoryWrite, r#"{"memory_key":"k"}"#);
    story.tell(E::ErrorRaised, r#"{"code":"odd","message":"m"}"#);
    story.call("send", r#"{"to":"x"}"#, &Says("\"sent\""));
    story.look();
    story.call("ledger", "{}", &Says("\"numbers\""));
    story.look();
    story.tell(
        E::HandoffRequested,
        r#"{"from_agent":"a","to_agent":"b","context_id":"h1"}"#,
    );
    story.tell(E::HandoffCompleted, r#"{"context_id":"h1","success":true}"#);
    story.call(
        "fetch",
        r#"{"url":"https://example.com"}"#,
        &Says("\"page\""),
    );
    story.look();
    story.call("send", r#"{"to":"y"}"#, &Says("\"sent\""));
    story.look();
    story.tell(E::SanitizedText, r#"{"key":"k1","method":"m"}"#);
    story.tell(E::SanitizedText, r#"{"key":"","method":"m"}"#);
    story.tell(E::SanitizedText, r#"{"key":"k1","method":"m"}"#);
    story.keyed("send", r#"{"to":"z"}"#, Some("k1"), &Says("\"sent\""));
    story.look();
    story.keyed("send", r#"{"to":"z"}"#, Some("k2"), &Says("\"sent\""));
    story.look();
    story.tell(E::MemoryRead, r#"{"memory_key":"notes","content":"x"}"#);
    story.tell(E::MemoryRead, r#"{"memory_key":"notes","content":"x"}"#);
    story.tell(
        E::HandoffRequested,
        r#"{"from_agent":"b","to_agent":"c","context_id":"h2"}"#,
    );
    story.tell(
        E::HandoffRequested,
        r#"{"from_agent":"c","to_agent":"d","context_id":"h3"}"#,
    );
    story.tell(E::HandoffCompleted, r#"{"context_id":"h2","success":true}"#);
    story.tell(
        E::HandoffCompleted,
        r#"{"context_id":"h3","success":false}"#,
    );
    story.tell(E::CheckpointCreated, r#"{"checkpoint_id":"p"}"#);
    for _ in 0..4 {
        story.call("read_file", r#"{"path":"/same"}"#, &Says("\"same\""));
    }
    story.look();
    for _ in 0..4 {
        story.call("read_file", r#"{"path":"/one"}"#, &Says("\"1\""));
        story.call("ledger", r#"{"page":2}"#, &Says("\"2\""));
    }
    story.look();
    for number in 0..12 {
        let args = format!(r#"{{"path":"/{number}"}}"#);
        story.call("read_file", &args, &Says("\"nothing new\""));
    }
    story.look();
    story.tell(E::ModelCallStarted, r#"{"call_id":"m2"}"#);
    story.tell(
        E::ModelCallFinished,
        r#"{"call_id":"m2","content":"hello"}"#,
    );
    // Labels that come alone: with an approval of what is no call, and with a result of a tool that was
    // seen before, after somebody has labelled it anew.
    story.tell(
        E::PolicyDecision,
        r#"{"outcome":"allow","intervention_point":"input","result_labels":["private"]}"#,
    );
    story.engine.replace_policies(policies(
        &MANIFEST.replace(r#"["confidential"]"#, r#"["confidential","numbers"]"#),
    ));
    story.call("ledger", r#"{"page":3}"#, &Says("\"3\""));
    story.look();
    story.clock.0.fetch_add(3_600_000, Ordering::SeqCst);
    story.look();
    write(&story.engine, &folder);
}

fn policies(manifest: &str) -> Policies {
    let manifest = Manifest::read(manifest.as_bytes()).unwrap();
    Policies::new(Capability::new(Some(manifest)).unwrap())
}

fn write(engine: &Engine, folder: &Folder) {
    let reader = engine.store().reader();
    let page = reader
        .page(&Filter::session(&scope()), None, 10_000)
        .unwrap();
    let events = page.events.iter().map(|event| {
        let line = Line::read(&event.line).unwrap();
        Json::Array(vec![
            Json::from(line.ts_unix_ms),
            Json::from(line.event_type.as_str()),
            reader.open_payload(event).unwrap(),
        ])
    });
    let first = policies(MANIFEST).digest();
    let kept = [first, engine.policies().digest()].map(|digest| {
        let text = std::fs::read_to_string(folder.policies(digest)).unwrap();
        (digest.to_string(), Json::from(text))
    });
    let policies = Json::object(kept);
    let mut text = b"{\"policies\":".to_vec();
    text.extend(policies.to_sorted());
    text.extend(b",\n\"events\":[\n");
    let lines: Vec<Vec<u8>> = events.map(|event| event.to_sorted()).collect();
    text.extend(lines.join(&b",\n"[..]));
    text.extend(b"\n]}\n");
    std::fs::create_dir_all(file().parent().unwrap()).unwrap();
    std::fs::write(file(), text).unwrap();
}

fn scope() -> Scope {
    Scope::new("t", "recorded").unwrap()
}

fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/replay/recorded.json")
}

const MANIFEST: &str = r#"{"schema":"countersign/manifest/v1","name":"n","version":"1","publisher":"p",
    "permissions":{"tools":{"look":{"side_effect":"read","trusted_output":true},
        "read_file":{"side_effect":"read"},"fetch":{"side_effect":"read"},
        "ledger":{"side_effect":"read","labels":["confidential"]},
        "send":{"side_effect":"mutate-local"},
        "deploy":{"side_effect":"mutate-external","approval":"required"}},
    "budgets":{"max_tool_calls":1000,"max_steps":1000,"max_wall_time_ms":1000000000}},
    "loops":{"polling_tools":["look"]}}"#;
