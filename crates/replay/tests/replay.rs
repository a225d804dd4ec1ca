//! Sessions that an engine recorded, decided again.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

#[path = "../../../tests/replayed.rs"]
mod replayed;

use std::path::Path;
use std::sync::LazyLock;

use countersign_canon::{Json, Limits};
use countersign_engine::{Engine, Origin, Outcome, Proposal, Start, SystemClock};
use countersign_event::{EventType, Payload, Scope};
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_policy::rego::Source;
use countersign_policy::{Mode, Policies, UserPolicy};
use countersign_replay::{
    Error, Progress, Question, Reading, RecordedAction, backtest, calls, exact,
};
use countersign_store::{Folder, Options, Store};
use rusqlite::Connection;

static ORIGIN: LazyLock<Origin> =
    LazyLock::new(|| Origin::new("operator", "agent", Path::new("/")).unwrap());

const MANIFEST: &str = r#"{"permissions":{
    "tools":["read_file","fetch","send","deploy"],
    "approval_required":["deploy"],
    "budgets":{"max_tool_calls":50,"max_steps":100}}}"#;

struct Scene {
    engine: Engine,
    /// Goes last: what was recorded is looked at when nobody writes any more.
    folder: replayed::Kept,
}

fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

fn policies(manifest: &str) -> Policies {
    let manifest = Manifest::partial(&json(manifest)).unwrap();
    Policies::new(Capability::new(Some(manifest)).unwrap())
}

fn user(name: &str, body: &str, mode: Mode) -> UserPolicy {
    let source = Source {
        name: format!("{name}.rego"),
        text: format!("package {name}\nimport rego.v1\n{body}\n"),
    };
    UserPolicy::compile(name, &[source], &format!("data.{name}.verdict"), mode).unwrap()
}

impl Scene {
    fn new(policies: Policies) -> Self {
        let folder = replayed::folder();
        let store = Store::open(&Folder::new(folder.path()), Options::default()).unwrap();
        Self {
            engine: Engine::new(store, policies, SystemClock),
            folder,
        }
    }

    fn call(&self, session: &str, call_id: &str, tool: &str, args: &str) {
        let scope = Scope::new("t", session).unwrap();
        let start = self.engine.start(Proposal {
            scope: &scope,
            call_id: call_id.to_owned(),
            tool_name: tool.to_owned(),
            server: None,
            definition: None,
            origin: &ORIGIN,
            preconditions: Vec::new(),
            args: json(args),
            sanitizer_key: None,
            bytes: args.as_bytes(),
            encode: &|args| args.to_jcs().unwrap(),
        });
        let content = Json::from(format!("what {tool} says to {call_id}"));
        match start {
            Start::Running(running) => {
                let is_error = false;
                let outcome = Outcome::Result { content, is_error };
                let _told = self.engine.settle_soon(running, outcome).unwrap();
            }
            Start::Permit(permit) => {
                let bytes = permit.rewritten().unwrap().to_vec();
                let running = self.engine.begin(permit, &bytes).unwrap();
                let is_error = false;
                let outcome = Outcome::Result { content, is_error };
                let _told = self.engine.settle_soon(running, outcome).unwrap();
            }
            Start::Hold(_) | Start::Refusal(_) => {}
        }
    }

    /// Some of everything: allowed, denied, held, and a taint that matters.
    fn story(&self, session: &str) {
        self.call(session, "c1", "read_file", r#"{"path":"/a"}"#);
        self.call(session, "c2", "fetch", r#"{"url":"https://example.com"}"#);
        self.call(session, "c3", "send", r#"{"to":"x"}"#);
        self.call(session, "c4", "format_disk", "{}");
        self.call(session, "c5", "deploy", "{}");
        self.call(session, "c6", "read_file", r#"{"path":"/b"}"#);
        self.engine.flush().unwrap();
    }

    fn exact(&self, session: &str) -> Result<countersign_replay::Report, Error> {
        let scope = Scope::new("t", session).unwrap();
        exact(&scope, self.engine.store().reader())
    }

    fn backtest(&self, policies: &Policies, reading: Reading) -> countersign_replay::Backtest {
        let question = Question {
            policies,
            reading,
            since_unix_ms: None,
            until_unix_ms: None,
            tool: None,
            scope: None,
            wanted: None,
        };
        let reader = self.engine.store().reader();
        backtest(&question, reader, &Progress::default()).unwrap()
    }

    fn database(&self) -> Connection {
        Connection::open(Folder::new(self.folder.path()).database()).unwrap()
    }

    fn archive(&self) -> std::path::PathBuf {
        Folder::new(self.folder.path()).policies(self.engine.policies().digest())
    }
}

#[test]
fn a_session_comes_out_as_it_was_recorded() {
    let scene = Scene::new(policies(MANIFEST));
    scene.story("s");
    let report = scene.exact("s").unwrap();
    assert!(report.is_identical(), "{:?}", report.diffs);
    assert_eq!((report.decisions, report.steps), (6, 6));
    let document = report.to_json();
    assert_eq!(document.get("identical"), Some(&Json::Bool(true)));
    assert_eq!(document.get("diffs"), Some(&Json::Array(Vec::new())));
}

#[test]
fn policies_beside_the_rules_and_rewritings_come_out_too() {
    let rewrite = r#"verdict := {"decision": "transform", "reason": "mask",
        "transform": {"path": "$policy_target.path", "value": "/masked"}} if input.action.tool == "read_file"
        verdict := {"decision": "allow"} if input.action.tool != "read_file""#;
    let policies = policies(MANIFEST)
        .with(user("masking", rewrite, Mode::Enforce))
        .with(user(
            "watching",
            r#"verdict := {"decision": "deny", "reason": "no"}"#,
            Mode::Shadow,
        ));
    let scene = Scene::new(policies);
    scene.story("s");
    let report = scene.exact("s").unwrap();
    assert!(report.is_identical(), "{:?}", report.diffs);
}

#[test]
fn links_that_are_gone_are_still_met() {
    let folder = replayed::folder();
    let (inside, link) = (folder.path().join("inside"), folder.path().join("link"));
    std::fs::create_dir(&inside).unwrap();
    std::os::unix::fs::symlink("/etc", &link).unwrap();
    let root = folder.path().canonicalize().unwrap();
    let manifest = format!(
        r#"{{"permissions":{{"tools":["fs.read"],"fs":{{"read_roots":["{}"]}}}}}}"#,
        root.display()
    );
    let scene = Scene::new(policies(&manifest));
    let path = root.join("link/passwd");
    scene.call(
        "s",
        "c1",
        "fs.read",
        &format!(r#"{{"path":"{}"}}"#, path.display()),
    );
    scene.engine.flush().unwrap();
    std::fs::remove_file(&link).unwrap();
    let report = scene.exact("s").unwrap();
    assert!(report.is_identical(), "{:?}", report.diffs);
    assert_eq!(report.decisions, 1);
}

#[test]
fn a_session_that_is_not_there_is_an_error() {
    let scene = Scene::new(policies(MANIFEST));
    scene.story("s");
    assert!(matches!(scene.exact("other"), Err(Error::NoSession(_))));
}

#[test]
fn a_session_whose_content_was_erased_is_an_error() {
    let scene = Scene::new(policies(MANIFEST));
    scene.story("s");
    let scope = Scope::new("t", "s").unwrap();
    scene.engine.store().erase(&scope, 1).unwrap();
    let error = scene.exact("s").unwrap_err();
    assert!(error.to_string().contains("erased"), "{error}");
}

#[test]
fn a_log_under_another_key_is_an_error() {
    let scene = Scene::new(policies(MANIFEST));
    scene.story("s");
    let other = Scene::new(policies(MANIFEST));
    let key = Folder::new(scene.folder.path()).master_key();
    let right = std::fs::read(&key).unwrap();
    std::fs::copy(Folder::new(other.folder.path()).master_key(), &key).unwrap();
    assert!(matches!(scene.exact("s"), Err(Error::Store(_))));
    std::fs::write(key, right).unwrap();
}

/// Every event of a story, and its content, is held against the chain.
#[test]
fn a_changed_byte_is_an_error() {
    let scene = Scene::new(policies(MANIFEST));
    scene.story("s");
    let database = scene.database();
    database
        .execute_batch("DROP TRIGGER events_keep_content")
        .unwrap();
    let events: i64 = database
        .query_row("SELECT count(*) FROM events", [], |row| row.get(0))
        .unwrap();
    for id in 1..=events {
        let line: String = database
            .query_row("SELECT line FROM events WHERE id = ?1", [id], |row| {
                row.get(0)
            })
            .unwrap();
        let at = line.len() / 2;
        let mut changed = line.clone().into_bytes();
        changed[at] ^= 1;
        let changed = String::from_utf8(changed).unwrap();
        let update = "UPDATE events SET line = ?2 WHERE id = ?1";
        database.execute(update, (id, &changed)).unwrap();
        assert!(scene.exact("s").is_err(), "byte {at} of event {id}");
        database.execute(update, (id, &line)).unwrap();
        let sealed: Option<Vec<u8>> = database
            .query_row("SELECT sealed FROM events WHERE id = ?1", [id], |row| {
                row.get(0)
            })
            .unwrap();
        if let Some(sealed) = sealed {
            let mut changed = sealed.clone();
            changed[sealed.len() / 2] ^= 1;
            let update = "UPDATE events SET sealed = ?2 WHERE id = ?1";
            database.execute(update, (id, &changed)).unwrap();
            assert!(scene.exact("s").is_err(), "content of event {id}");
            database.execute(update, (id, &sealed)).unwrap();
        }
    }
    assert!(scene.exact("s").unwrap().is_identical());
}

/// The same for every single byte of a small session: its lines and its sealed content.
#[test]
fn every_changed_byte_of_a_small_session_is_an_error() {
    let scene = Scene::new(policies(MANIFEST));
    let scope = Scope::new("t", "s").unwrap();
    for (event_type, payload) in [
        (
            EventType::MemoryWrite,
            r#"{"memory_key":"k","content":"secret"}"#,
        ),
        (
            EventType::ModelCallStarted,
            r#"{"call_id":"m1","model":"m","prompt":[1,2]}"#,
        ),
        (EventType::Termination, r#"{"reason":"done"}"#),
    ] {
        let payload = Payload::admit(event_type, json(payload)).unwrap();
        let _recorded = scene.engine.record(&scope, event_type, payload).unwrap();
    }
    let database = scene.database();
    database
        .execute_batch("DROP TRIGGER events_keep_content")
        .unwrap();
    let rows: Vec<(i64, Vec<u8>, Option<Vec<u8>>)> = database
        .prepare("SELECT id, CAST(line AS BLOB), sealed FROM events")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let mut tried = 0;
    for (id, line, sealed) in &rows {
        let write = "UPDATE events SET line = CAST(?2 AS TEXT), sealed = ?3 WHERE id = ?1";
        let whole = (line, sealed.as_ref());
        let mut spoil = |line: &[u8], sealed: Option<&Vec<u8>>, what: &str| {
            database.execute(write, (id, line, sealed)).unwrap();
            tried += 1;
            assert!(scene.exact("s").is_err(), "{what} of event {id}");
        };
        for at in 0..line.len() {
            let mut changed = line.clone();
            changed[at] ^= 1;
            spoil(&changed, whole.1, &format!("byte {at}"));
        }
        for at in 0..sealed.as_ref().map_or(0, Vec::len) {
            let mut changed = sealed.clone().unwrap();
            changed[at] ^= 1;
            spoil(line, Some(&changed), &format!("byte {at} of the content"));
        }
        database.execute(write, (id, whole.0, whole.1)).unwrap();
    }
    assert!(tried > 1000, "{tried}");
    assert!(scene.exact("s").unwrap().is_identical());
}

/// Whatever is changed in the policies that took the decisions, they are not the same policies.
#[test]
fn rules_that_were_changed_are_not_used() {
    let scene = Scene::new(policies(MANIFEST));
    scene.story("s");
    let path = scene.archive();
    let kept = std::fs::read_to_string(&path).unwrap();
    // The manifest, the rules, and how they are put together.
    for (mark, other) in [
        ("\"read_file\"", "\"read_fila\""),
        ("50", "51"),
        ("\"deploy\"", "\"deplay\""),
        ("EGRESS_DENY", "EGRESS_DENI"),
        ("\\\"deny\\\"", "\\\"allow\\\""),
        ("\"observing\":false", "\"observing\":true"),
    ] {
        let changed = kept.replace(mark, other);
        assert_ne!(changed, kept, "{mark}");
        std::fs::write(&path, changed).unwrap();
        assert!(
            matches!(scene.exact("s"), Err(Error::Unusable { .. })),
            "{mark}"
        );
    }
    std::fs::write(&path, kept).unwrap();
    assert!(scene.exact("s").unwrap().is_identical());
}

#[test]
fn only_actions_that_are_wanted_are_counted() {
    let scene = Scene::new(policies(MANIFEST));
    scene.story("a");
    scene.story("b");
    let nothing = policies(r#"{"permissions":{"tools":[]}}"#);
    let wanted = |action: &RecordedAction<'_>| {
        action.outcome == "allow" && action.scope.session.as_str() == "a"
    };
    let question = Question {
        policies: &nothing,
        reading: Reading::Independent,
        since_unix_ms: None,
        until_unix_ms: None,
        tool: None,
        scope: None,
        wanted: Some(&wanted),
    };
    let reader = scene.engine.store().reader();
    let result = backtest(&question, reader, &Progress::default()).unwrap();
    // Four of the six calls ran.
    assert_eq!((result.actions, result.changes.total()), (4, 4));
    assert_eq!(result.sessions, 2);
}

#[test]
fn calls_that_ran_are_told_with_what_came_back() {
    let scene = Scene::new(policies(MANIFEST));
    scene.story("s");
    let scope = Scope::new("t", "s").unwrap();
    let reader = scene.engine.store().reader();
    let ran = calls(&scope, reader).unwrap();
    let tools: Vec<&str> = ran.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(tools, ["read_file", "fetch", "send", "read_file"]);
    assert_eq!(ran[0].args, json(r#"{"path":"/a"}"#));
    let said = Json::from("what read_file says to c1");
    assert_eq!(ran[0].result.as_ref(), Some(&said));
    let none = calls(&Scope::new("t", "none").unwrap(), reader);
    assert!(matches!(none, Err(Error::NoSession(_))));
}

#[test]
fn a_changed_rule_is_an_error_and_so_is_one_that_is_gone() {
    let scene = Scene::new(policies(MANIFEST));
    scene.story("s");
    let path = scene.archive();
    let kept = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, kept.replace("deploy", "deplay")).unwrap();
    assert!(matches!(scene.exact("s"), Err(Error::Unusable { .. })));
    std::fs::write(&path, "{").unwrap();
    assert!(matches!(scene.exact("s"), Err(Error::Unusable { .. })));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(scene.exact("s"), Err(Error::NotKept { .. })));
    std::fs::write(&path, kept).unwrap();
    assert!(scene.exact("s").unwrap().is_identical());
}

#[test]
fn the_same_policies_change_nothing() {
    let scene = Scene::new(policies(MANIFEST));
    for session in ["a", "b", "c"] {
        scene.story(session);
    }
    for reading in [Reading::Independent, Reading::FeedForward] {
        let result = scene.backtest(&policies(MANIFEST), reading);
        assert_eq!((result.sessions, result.actions), (3, 18));
        assert_eq!(result.changes.total(), 0, "{:?}", result.changes);
    }
}

#[test]
fn changes_are_counted_by_what_they_have_in_common() {
    let scene = Scene::new(policies(MANIFEST));
    for session in ["a", "b"] {
        scene.story(session);
    }
    let stricter = MANIFEST
        .replace(r#""read_file","#, "")
        .replace(r#"["deploy"]"#, r#"["send"]"#);
    let result = scene.backtest(&policies(&stricter), Reading::Independent);
    let by = result
        .changes
        .by(|change| (change.from.clone(), change.to.clone(), change.tool.clone()));
    let of = |from: &str, to: &str, tool: &str| {
        let key = (from.to_owned(), to.to_owned(), tool.to_owned());
        by.get(&key).copied().unwrap_or_default()
    };
    assert_eq!(of("allow", "deny", "read_file"), 4);
    assert_eq!(of("allow", "escalate", "send"), 2);
    assert_eq!(of("escalate", "allow", "deploy"), 2);
    assert_eq!(result.changes.total(), 8);
    let (_, _, examples) = result.changes.iter().next().unwrap();
    assert_eq!(examples[0].0.session.as_str(), "a");
}

/// What would not have run taints nothing.
#[test]
fn verdicts_are_carried_on_when_that_is_asked() {
    let scene = Scene::new(policies(MANIFEST));
    scene.story("s");
    let tainted = r#"verdict := {"decision": "deny", "reason": "tainted"} if {
            input.session.is_tainted
            input.action.tool == "send"
        }
        verdict := {"decision": "allow"} if not _bad
        _bad if { input.session.is_tainted; input.action.tool == "send" }"#;
    let no_reading = MANIFEST.replace(r#""read_file","fetch","#, "");
    let count = |manifest: &str, reading| {
        let policies = policies(manifest).with(user("tainting", tainted, Mode::Enforce));
        let result = scene.backtest(&policies, reading);
        result
            .changes
            .by(|change| (change.tool.clone(), change.to.clone()))
            .get(&("send".to_owned(), "deny".to_owned()))
            .copied()
            .unwrap_or_default()
    };
    assert_eq!(count(MANIFEST, Reading::Independent), 1);
    assert_eq!(count(MANIFEST, Reading::FeedForward), 1);
    assert_eq!(count(&no_reading, Reading::Independent), 1);
    assert_eq!(count(&no_reading, Reading::FeedForward), 0);
}

#[test]
fn what_cannot_be_read_is_said_and_a_stop_stops() {
    let scene = Scene::new(policies(MANIFEST));
    scene.story("a");
    scene.story("b");
    scene
        .engine
        .store()
        .erase(&Scope::new("t", "a").unwrap(), 1)
        .unwrap();
    let result = scene.backtest(&policies(MANIFEST), Reading::Independent);
    assert_eq!((result.sessions, result.unread.len()), (1, 1));
    let question = Question {
        policies: &policies(MANIFEST),
        reading: Reading::Independent,
        since_unix_ms: None,
        until_unix_ms: None,
        tool: None,
        scope: None,
        wanted: None,
    };
    let progress = Progress::default();
    progress
        .stop
        .store(true, std::sync::atomic::Ordering::Relaxed);
    let stopped = backtest(&question, scene.engine.store().reader(), &progress).unwrap();
    assert!(stopped.interrupted && stopped.actions == 0);
}
