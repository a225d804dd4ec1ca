//! Deciding and beginning in one write, and outcomes that are told before they are durable.

use countersign_engine::{Engine, Outcome, Proposal, Running, Start};
use countersign_event::EventType;
use rusqlite::Connection;

use super::{Hands, ORIGIN, Scene, engine, json, policies};

impl Scene {
    fn start(&self, call_id: &str, tool: &str, args: &str) -> Start {
        start(&self.engine, self, call_id, tool, args)
    }

    pub(super) fn running(&self, call_id: &str, tool: &str, args: &str) -> Running {
        match self.start(call_id, tool, args) {
            Start::Running(running) => running,
            Start::Refusal(refusal) => panic!("{call_id} is refused: {}", refusal.message()),
            Start::Permit(_) | Start::Hold(_) => panic!("{call_id} was not begun"),
        }
    }

    pub(super) fn kinds(&self) -> Vec<EventType> {
        self.events().into_iter().map(|(kind, _)| kind).collect()
    }

    fn database(&self) -> Connection {
        Connection::open(countersign_store::Folder::new(self.folder.path()).database()).unwrap()
    }

    /// From now on the disk takes no event.
    pub(super) fn break_disk(&self) {
        let refuse = "CREATE TRIGGER broken BEFORE INSERT ON events
            BEGIN SELECT RAISE(ABORT, 'no space left'); END";
        self.database().execute_batch(refuse).unwrap();
    }

    pub(super) fn mend_disk(&self) {
        self.database()
            .execute_batch("DROP TRIGGER broken")
            .unwrap();
    }
}

pub(super) fn start(
    engine: &Engine,
    scene: &Scene,
    call_id: &str,
    tool: &str,
    args: &str,
) -> Start {
    proposed(scene, call_id, tool, args, |it| engine.start(it))
}

pub(super) fn proposed<T>(
    scene: &Scene,
    call_id: &str,
    tool: &str,
    args: &str,
    to: impl FnOnce(Proposal<'_>) -> T,
) -> T {
    to(Proposal {
        scope: &scene.scope,
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
    })
}

pub(super) fn result(content: &str) -> Outcome {
    Outcome::Result {
        content: json(content),
        is_error: false,
    }
}

pub(super) const BEGUN: [EventType; 4] = [
    EventType::ToolCallProposed,
    EventType::PolicyDecision,
    EventType::ToolCallAllowed,
    EventType::ToolCallExecuted,
];

#[test]
fn what_starts_is_recorded_as_begun_and_covers_its_bytes_only() {
    let scene = Scene::new();
    let running = scene.running("c1", "read_file", r#"{"path":"/a"}"#);
    assert_eq!(scene.kinds(), BEGUN);
    assert!(running.covers(br#"{"path":"/a"}"#));
    assert!(!running.covers(br#"{"path":"/b"}"#));
    let _recorded = scene.engine.settle(running, result("1")).unwrap();
    scene.verify();
}

#[test]
fn what_is_held_or_denied_is_not_begun() {
    let scene = Scene::new();
    assert!(matches!(scene.start("c1", "deploy", "{}"), Start::Hold(_)));
    assert!(matches!(
        scene.start("c2", "format_disk", "{}"),
        Start::Refusal(_)
    ));
    assert!(!scene.kinds().contains(&EventType::ToolCallExecuted));
}

#[test]
fn nothing_starts_when_nothing_can_be_recorded() {
    let scene = Scene::new();
    let _running = scene.running("c1", "read_file", "{}");
    scene.break_disk();
    assert!(matches!(
        scene.start("c2", "read_file", "{}"),
        Start::Refusal(_)
    ));
    scene.mend_disk();
    let _running = scene.running("c3", "read_file", r#"{"path":"/c"}"#);
}

/// The next decision is judged with an outcome that may not be on the disk yet.
#[test]
fn an_outcome_counts_at_once() {
    let [waited, soon] = [Scene::new(), Scene::new()];
    let running = waited.running("c1", "read_file", "{}");
    let _recorded = waited.engine.settle(running, result("1")).unwrap();
    let running = soon.running("c1", "read_file", "{}");
    let _told = soon.engine.settle_soon(running, result("1")).unwrap();
    for scene in [&waited, &soon] {
        let _running = scene.running("c2", "read_file", r#"{"path":"/b"}"#);
        scene.verify();
    }
    assert_eq!(waited.events(), soon.events());
}

#[test]
fn an_outcome_that_the_disk_refused_is_recorded_before_anything_else_is_decided() {
    let scene = Scene::new();
    let running = scene.running("c1", "read_file", "{}");
    scene.break_disk();
    let _told = scene.engine.settle_soon(running, result("1"));
    let refused = scene.start("c2", "read_file", r#"{"path":"/b"}"#);
    assert!(matches!(refused, Start::Refusal(_)));
    scene.mend_disk();
    let _running = scene.running("c3", "read_file", r#"{"path":"/c"}"#);
    let mut expected = BEGUN.to_vec();
    expected.push(EventType::ToolResult);
    expected.extend(BEGUN);
    assert_eq!(scene.kinds(), expected);
    scene.verify();
}

#[test]
fn an_outcome_survives_another_process_that_was_faster() {
    let scene = Scene::new();
    let running = scene.running("c1", "read_file", "{}");
    let other = engine(scene.folder.path(), policies(), Hands::default());
    let theirs = start(&other, &scene, "c2", "read_file", r#"{"path":"/b"}"#);
    assert!(matches!(theirs, Start::Running(_)));
    let _told = scene.engine.settle_soon(running, result("1")).unwrap();
    let _running = scene.running("c3", "read_file", r#"{"path":"/c"}"#);
    let results = scene.kinds();
    let results = results
        .iter()
        .filter(|kind| **kind == EventType::ToolResult);
    assert_eq!(results.count(), 1);
    scene.verify();
}

/// Two results of one session are under one key; the chain says which is which.
#[test]
fn a_session_whose_contents_were_swapped_decides_nothing() {
    let scene = Scene::new();
    scene.run("c1", "read_file", r#"{"path":"/a"}"#, "1");
    scene.run("c2", "read_file", r#"{"path":"/b"}"#, "2");
    let scene = scene.restart();
    let swap = "UPDATE events SET sealed = (SELECT other.sealed FROM events other
            WHERE other.seq = 13 - events.seq) WHERE seq IN (4, 9)";
    let database = scene.database();
    let unlock = "DROP TRIGGER events_keep_content";
    database.execute_batch(unlock).unwrap();
    assert_eq!(database.execute(swap, []).unwrap(), 2);
    let start = scene.start("c3", "read_file", r#"{"path":"/c"}"#);
    assert!(
        matches!(start, Start::Refusal(refusal) if refusal.reason() == "runtime_error:history")
    );
}
