//! Sessions that an Agent Control manifest had a say in: what it decides, what people approve, which
//! labels go where; and each of them decided again, with nobody asked.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

#[path = "../../tests/replayed.rs"]
mod replayed;
#[path = "agent_control/results.rs"]
mod results;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use countersign_acs::{
    Annotate, AnnotationError, AnnotatorCall, Keeping, Options, Policies as AcsPolicies, Runtime,
    Voice, VoiceError, load,
};
use countersign_approval::{
    Arguments, BallotPaper, CallDecision, Decision as Word, Human, SigningKey, Tool, UnixMs,
};
use countersign_callout::Disk;
use countersign_canon::{Json, Limits};
use countersign_engine::{
    Admission, ApprovalId, Approvers, Delivery, Engine, Intervened, Intervention, Origin, Outcome,
    Proposal, Redeemed, SystemClock, Wanted,
};
use countersign_event::{EventType, Scope};
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_policy::{Point, Policies};
use countersign_replay::exact;
use countersign_store::{Filter, Folder, Store};

static ORIGIN: LazyLock<Origin> =
    LazyLock::new(|| Origin::new("operator", "teller", Path::new("/")).unwrap());

const CAPABILITIES: &str = r#"{"schema":"countersign/manifest/v1","name":"n","version":"1","publisher":"p",
    "permissions":{"tools":{"read_note":{"side_effect":"read"},"mail":{"side_effect":"read"},
    "wipe":{"side_effect":"mutate-local","approval":"required"}}},
    "loops":{"polling_tools":["read_note","mail","wipe"]}}"#;

/// Everything that one manifest can say, by what it is asked about.
const RULES: &str = include_str!("agent_control/agent.rego");

const MANIFEST: &str = include_str!("agent_control/agent.yaml");

/// Says something else every time, and counts how often it was asked.
#[derive(Clone, Default)]
struct Mood(Arc<AtomicUsize>);

impl Annotate for Mood {
    fn annotate(&self, _: &AnnotatorCall<'_>) -> Result<Json, AnnotationError> {
        let asked = self.0.fetch_add(1, Ordering::SeqCst);
        if asked == 90 {
            return Err(AnnotationError::TimedOut("late".to_owned()));
        }
        Ok(Json::object([("score", Json::from(asked as u64))]))
    }
}

fn voice(manifest: &str, mood: Mood) -> Result<Voice, VoiceError> {
    let folder = replayed::folder();
    std::fs::create_dir(folder.path().join("rules")).unwrap();
    std::fs::write(folder.path().join("rules/agent.rego"), RULES).unwrap();
    let file = folder.path().join("agent.yaml");
    std::fs::write(&file, manifest).unwrap();
    let manifest = load(file.to_str().unwrap(), None, &Disk, &Options::default()).unwrap();
    // The files are gone when the decisions are taken again.
    let keeping = Keeping::new(&Disk);
    let policies = AcsPolicies::activate(&manifest, &keeping).unwrap();
    let runtime = Runtime::new(manifest, policies).with_annotators(mood);
    Voice::new(runtime, keeping.into_kept())
}

struct Scene {
    engine: Engine,
    scope: Scope,
    mood: Mood,
    calls: Mutex<u32>,
    /// Goes last: what was recorded is looked at when nobody writes any more.
    folder: replayed::Kept,
}

fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

impl Scene {
    fn new() -> Self {
        Self::with(MANIFEST)
    }

    fn with(manifest: &str) -> Self {
        let mood = Mood::default();
        let capabilities = Manifest::read(CAPABILITIES.as_bytes()).unwrap();
        let policies = Policies::new(Capability::new(Some(capabilities)).unwrap())
            .with_beside(Arc::new(voice(manifest, mood.clone()).unwrap()));
        let folder = replayed::folder();
        let mut approvers = Approvers::default();
        let dana = Human::new("dana").unwrap();
        approvers.add(dana, &key().verifying_key()).unwrap();
        approvers.save(folder.path()).unwrap();
        let store = Store::open(
            &Folder::new(folder.path()),
            countersign_store::Options::default(),
        )
        .unwrap();
        Self {
            engine: Engine::new(store, policies, SystemClock),
            folder,
            scope: Scope::new("t", "s").unwrap(),
            mood,
            calls: Mutex::new(0),
        }
    }

    fn admit(&self, tool: &str, args: &str) -> Admission {
        let mut calls = self.calls.lock().unwrap();
        *calls += 1;
        self.engine.admit(Proposal {
            scope: &self.scope,
            call_id: format!("c{calls}"),
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

    /// Runs a call with an answer; gives the bytes that ran and what the agent may see.
    fn run(&self, tool: &str, args: &str, answer: &str) -> (String, Delivery) {
        match self.admit(tool, args) {
            Admission::Permit(permit) => self.go(permit, args, answer),
            other => panic!("not permitted: {other:?}"),
        }
    }

    fn go(
        &self,
        permit: countersign_engine::Permit,
        args: &str,
        answer: &str,
    ) -> (String, Delivery) {
        let bytes = permit.rewritten().unwrap_or(args.as_bytes()).to_vec();
        let running = self.engine.begin(permit, &bytes).unwrap();
        let outcome = Outcome::Result {
            content: Json::from(answer),
            is_error: false,
        };
        let settled = self.engine.settle_soon(running, outcome).unwrap();
        (String::from_utf8(bytes).unwrap(), settled.into_delivery())
    }

    fn reason(&self, tool: &str, args: &str) -> String {
        match self.admit(tool, args) {
            Admission::Refusal(refusal) => refusal.reason().to_owned(),
            other => panic!("not refused: {other:?}"),
        }
    }

    fn hold(&self, tool: &str, args: &str) -> ApprovalId {
        match self.admit(tool, args) {
            Admission::Hold(hold) => hold.approval.unwrap().id(),
            other => panic!("not held: {other:?}"),
        }
    }

    fn at(&self, point: Point, subject: &str) -> Intervened {
        self.engine.intervene(&self.intervention(point, subject))
    }

    fn intervention(&self, point: Point, subject: &str) -> Intervention<'_> {
        let model = matches!(point, Point::PreModelCall | Point::PostModelCall);
        Intervention {
            scope: &self.scope,
            point,
            origin: &ORIGIN,
            subject: json(subject),
            call_id: model.then(|| "m1".to_owned()),
        }
    }

    fn approve(&self, id: ApprovalId) {
        let standing = self.engine.approval(id).unwrap().unwrap();
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let paper = BallotPaper {
            decisions: vec![CallDecision {
                call: standing.envelope.plan().calls()[0].id.clone(),
                decision: Word::Approved,
            }],
            approver: Human::new("dana").unwrap(),
            display: standing.rendering.display_sha256(),
            signed_at: UnixMs::new(since.unwrap().as_millis() as u64),
        };
        let text = paper.sign(&standing.envelope, &key()).to_text();
        let _voted = self.engine.vote(&text).unwrap();
    }

    fn redeem(&self, id: ApprovalId, tool: &str, args: &str) -> Redeemed {
        let tool = Tool {
            server: None,
            name: tool.to_owned(),
            definition: None,
        };
        let args = Arguments::new(json(args)).unwrap();
        let wanted = Wanted {
            tool: Some(&tool),
            args: Some(&args),
            ..Wanted::default()
        };
        let encode = |call: &countersign_approval::ToolCall| call.args.canonical().to_vec();
        self.engine.redeem(id, wanted, &encode)
    }

    fn labels(&self) -> Vec<String> {
        let (snapshot, _) = self.engine.snapshot(&self.scope).unwrap();
        self.engine.policies().view(&snapshot).labels
    }

    fn events(&self) -> Vec<(EventType, Json)> {
        let reader = self.engine.store().reader();
        let mut events = Vec::new();
        let seen = reader.each(&Filter::session(&self.scope), 0, |event| {
            let line = countersign_event::Line::read(&event.line).unwrap();
            events.push((line.event_type, reader.open_payload(&event).unwrap()));
            Ok::<_, countersign_store::Error>(())
        });
        seen.unwrap();
        events
    }

    /// INVARIANT of every story here: decided again, everything comes out the same, and nobody is asked.
    fn replays(&self, decisions: u64) {
        self.engine.flush().unwrap();
        let asked = self.mood.0.load(Ordering::SeqCst);
        let report = exact(&self.scope, self.engine.store().reader()).unwrap();
        assert!(report.diffs.is_empty(), "{:?}", report.diffs);
        assert_eq!(report.decisions, decisions);
        assert_eq!(self.mood.0.load(Ordering::SeqCst), asked);
        assert!(self.folder.path().exists());
    }
}

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn refused(intervened: Intervened) -> String {
    match intervened {
        Intervened::Refused(refusal) => refusal.reason().to_owned(),
        other => panic!("not refused: {other:?}"),
    }
}

fn passed(intervened: Intervened) -> countersign_engine::Passed {
    match intervened {
        Intervened::Passed(passed) => *passed,
        other => panic!("not passed: {other:?}"),
    }
}

#[test]
fn calls_are_decided_changed_and_held_and_results_are_looked_at() {
    let scene = Scene::new();
    let (ran, seen) = scene.run("read_note", r#"{"path":"/a"}"#, "hello");
    assert_eq!(
        (ran.as_str(), seen),
        (r#"{"path":"/a"}"#, Delivery::AsItCame)
    );
    assert_eq!(
        scene.reason("read_note", r#"{"path":"/secret"}"#),
        "not_that"
    );
    assert_eq!(
        scene.reason("other", "{}"),
        "PERMISSION_UNDECLARED",
        "the capability rules have their say too"
    );
    // The changed arguments are what runs.
    let (ran, _) = scene.run("read_note", r#"{"path":"/move"}"#, "hello");
    assert_eq!(ran, r#"{"path":"/safe"}"#);
    let (_, seen) = scene.run("read_note", r#"{"path":"/b"}"#, "a dirty word");
    assert_eq!(seen, Delivery::Changed(Json::from("clean")));
    let (_, seen) = scene.run("read_note", r#"{"path":"/c"}"#, "PASSWORD=x");
    assert_eq!(seen, Delivery::Withheld("leaks".to_owned()));
    let told: Vec<Json> = scene
        .events()
        .into_iter()
        .filter(|(kind, _)| *kind == EventType::ToolResult)
        .map(|(_, payload)| payload.get("content").unwrap().clone())
        .collect();
    let withheld = Json::object([("withheld", Json::from("leaks"))]);
    assert_eq!(told[2..], [Json::from("clean"), withheld]);
    scene.replays(6 + 4);
}

#[test]
fn what_is_approved_is_one_identity() {
    let scene = Scene::new();
    let id = scene.hold("read_note", r#"{"path":"/ask"}"#);
    scene.approve(id);
    let other = scene.redeem(id, "read_note", r#"{"path":"/ask","more":1}"#);
    let Redeemed::Failed(refusal) = other else {
        panic!("not refused: {other:?}");
    };
    assert_eq!(refusal.reason(), "runtime_error:approval_action_mismatch");
    // Other calls in between change the state of the session, not what was approved.
    let _between = scene.run("read_note", r#"{"path":"/a"}"#, "hello");
    let Redeemed::Permit(permit) = scene.redeem(id, "read_note", r#"{"path":"/ask"}"#) else {
        panic!("what was approved does not run");
    };
    let (ran, _) = scene.go(permit, "", "hello");
    assert_eq!(ran, r#"{"path":"/ask"}"#);
    let requested = scene.events().into_iter();
    let mut requested = requested.filter(|(kind, _)| *kind == EventType::ApprovalRequested);
    let envelope = requested.next().unwrap().1;
    let envelope = envelope
        .get("envelope")
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned();
    assert!(envelope.contains("agent_control/enforced_identity"));
    scene.replays(2 + 2);
}

#[test]
fn another_manifest_is_another_action() {
    let scene = Scene::new();
    let id = scene.hold("read_note", r#"{"path":"/ask"}"#);
    scene.approve(id);
    let changed = MANIFEST.replace("tools: {read_note: {}", "tools: {read_note: {new: 1}");
    let capabilities = Manifest::read(CAPABILITIES.as_bytes()).unwrap();
    let policies = Policies::new(Capability::new(Some(capabilities)).unwrap())
        .with_beside(Arc::new(voice(&changed, Mood::default()).unwrap()));
    scene.engine.replace_policies(policies);
    let redeemed = scene.redeem(id, "read_note", r#"{"path":"/ask"}"#);
    let Redeemed::Failed(refusal) = redeemed else {
        panic!("not refused: {redeemed:?}");
    };
    assert_eq!(refusal.reason(), "runtime_error:approval_action_mismatch");
}

#[test]
fn a_change_and_a_hold_are_a_hold_of_what_was_changed() {
    let scene = Scene::new();
    // The capability rules hold every wipe; the manifest changes this one.
    let id = scene.hold("wipe", r#"{"path":"/move"}"#);
    let standing = scene.engine.approval(id).unwrap().unwrap();
    let shown = standing.envelope.plan().calls()[0].args.value().clone();
    assert_eq!(shown, json(r#"{"path":"/safe"}"#));
    scene.approve(id);
    let Redeemed::Permit(permit) = scene.redeem(id, "wipe", r#"{"path":"/move"}"#) else {
        panic!("the call that was asked for is the one that was approved");
    };
    assert_eq!(scene.go(permit, "", "done").0, r#"{"path":"/safe"}"#);
    scene.replays(1 + 1);
}

#[test]
fn labels_go_with_what_went_on_and_with_nothing_else() {
    let scene = Scene::new();
    assert!(scene.labels().is_empty());
    assert_eq!(
        scene.reason("read_note", r#"{"path":"/labelled"}"#),
        "not_that"
    );
    let (_, seen) = scene.run("read_note", r#"{"path":"/ledger"}"#, "PASSWORD=1");
    assert!(matches!(seen, Delivery::Withheld(_)));
    assert!(scene.labels().is_empty(), "{:?}", scene.labels());
    let _mailed = scene.run("mail", r#"{"path":"/x"}"#, "sent");
    assert_eq!(scene.labels(), ["seen"]);
    let _read = scene.run("read_note", r#"{"path":"/ledger"}"#, "42");
    assert_eq!(scene.labels(), ["confidential", "seen"]);
    assert_eq!(
        scene.reason("mail", r#"{"path":"/x"}"#),
        "ifc_clearance_violation"
    );
    let _input = passed(scene.at(Point::Input, r#"{"input":{"body":"hello"}}"#));
    assert_eq!(
        refused(scene.at(Point::Input, r#"{"input":{"body":"rude"}}"#)),
        "rude"
    );
    assert_eq!(scene.labels(), ["confidential", "public", "seen"]);
    scene.replays(10);
}

#[test]
fn every_other_point_is_asked_and_told_of() {
    let scene = Scene::new();
    let _begun = passed(scene.at(Point::AgentStartup, r#"{"agent_init":{"name":"a"}}"#));
    let asked =
        r#"{"messages":[{"role":"user","content":"now"}],"model":{"name":"m","vendor":"v"}}"#;
    let asked = passed(scene.at(Point::PreModelCall, asked));
    let changed = asked.changed.unwrap();
    assert_eq!(
        changed.get("messages"),
        Some(&json(r#"[{"role":"user","content":"please"}]"#))
    );
    assert_eq!(
        changed.get("envelope"),
        None,
        "the agent gets back what it brought"
    );
    let answered = r#"{"response":{"content":"rude"},"model":{"name":"m"}}"#;
    assert_eq!(refused(scene.at(Point::PostModelCall, answered)), "rude");
    let gone_out = passed(scene.at(Point::Output, r#"{"response":{"content":"bye"}}"#));
    assert!(gone_out.identities.is_some());
    // Not in the manifest, so the answer is no.
    let unknown = refused(scene.at(Point::AgentShutdown, r#"{"summary":{}}"#));
    assert_eq!(unknown, "runtime_error:intervention_point_unknown");
    let missing = refused(scene.at(Point::Input, "{}"));
    assert_eq!(missing, "runtime_error:path_missing");
    assert_eq!(
        refused(scene.at(Point::PreToolCall, "{}")),
        "runtime_error:intervention_point_unknown"
    );
    let kinds: Vec<EventType> = scene.events().into_iter().map(|(kind, _)| kind).collect();
    let started = kinds
        .iter()
        .filter(|kind| **kind == EventType::ModelCallStarted);
    let finished = kinds
        .iter()
        .filter(|kind| **kind == EventType::ModelCallFinished);
    assert_eq!((started.count(), finished.count()), (1, 1));
    scene.replays(6);
}

#[test]
fn people_let_one_thing_pass_once() {
    let scene = Scene::new();
    let odd = r#"{"input":{"body":"odd"}}"#;
    let Intervened::Held(hold) = scene.at(Point::Input, odd) else {
        panic!("not held");
    };
    let id = hold.approval.unwrap().id();
    let asked = scene.intervention(Point::Input, odd);
    assert_eq!(
        refused(scene.engine.resume(id, &asked)),
        "runtime_error:approval"
    );
    scene.approve(id);
    let other = scene.intervention(Point::Input, r#"{"input":{"body":"odder"}}"#);
    assert_eq!(
        refused(scene.engine.resume(id, &other)),
        "runtime_error:approval_action_mismatch"
    );
    let elsewhere = scene.intervention(Point::Output, r#"{"response":{"content":"odd"}}"#);
    assert_eq!(
        refused(scene.engine.resume(id, &elsewhere)),
        "runtime_error:approval_action_mismatch"
    );
    assert!(scene.labels().is_empty());
    let _passed = passed(scene.engine.resume(id, &asked));
    assert_eq!(scene.labels(), ["internal"]);
    assert_eq!(
        refused(scene.engine.resume(id, &asked)),
        "runtime_error:approval"
    );
    let tainted = scene.engine.snapshot(&scene.scope).unwrap().0;
    assert!(!scene.engine.policies().view(&tainted).is_tainted);
    scene.replays(1);
}

#[test]
fn the_approval_section_is_honoured_or_refused() {
    let with = |section: &str| format!("{MANIFEST}approval: {section}\n");
    for (section, problem) in [
        ("{on_timeout: allow}", "nobody has approved"),
        ("{resolvers: {chat: {type: slack}}}", "`chat`"),
        ("{fatigue_threshold: 2}", "go together"),
    ] {
        let error = voice(&with(section), Mood::default()).err().unwrap();
        assert!(error.to_string().contains(problem), "{section}: {error}");
    }
    let scene = Scene::with(&with("{default_resolver: nobody}"));
    assert_eq!(
        scene.reason("read_note", r#"{"path":"/ask"}"#),
        "runtime_error:approval_resolver_missing"
    );
    let scene = Scene::with(&with(
        "{default_resolver: countersign, timeout_seconds: 60}",
    ));
    let row = scene
        .engine
        .approval(scene.hold("read_note", r#"{"path":"/ask"}"#));
    let row = row.unwrap().unwrap().row;
    assert_eq!(row.decide_by.unwrap().get() - row.issued.get(), 60_000);
    let scene = Scene::with(&with("{timeout_seconds: 60, on_timeout: suspend}"));
    let row = scene
        .engine
        .approval(scene.hold("read_note", r#"{"path":"/ask"}"#));
    assert_eq!(row.unwrap().unwrap().row.decide_by, None);
    let tired = "{fatigue_threshold: 2, fatigue_window_seconds: 60}";
    let scene = Scene::with(&with(tired));
    for note in ["1", "2"] {
        scene.hold(
            "read_note",
            &format!(r#"{{"path":"/ask","note":"{note}"}}"#),
        );
    }
    assert_eq!(
        scene.reason("read_note", r#"{"path":"/ask"}"#),
        "approval_fatigue"
    );
    // Nobody is on the list, so nobody can be asked.
    let scene = Scene::with(MANIFEST);
    Approvers::default().save(scene.folder.path()).unwrap();
    assert_eq!(
        scene.reason("read_note", r#"{"path":"/ask"}"#),
        "runtime_error:approval_resolver_failed"
    );
    let odd = refused(scene.at(Point::Input, r#"{"input":{"body":"odd"}}"#));
    assert_eq!(odd, "runtime_error:approval_resolver_failed");
    scene.replays(2);
}

#[test]
fn answers_of_others_are_read_from_the_record() {
    let scene = Scene::new();
    // It says something else every time; from the fifty-second on it is suspicious.
    for number in 0..60 {
        let args = format!(r#"{{"path":"/{number}"}}"#);
        let _answer = scene.admit("read_note", &args);
    }
    let events = scene.events().into_iter();
    let decisions = events.filter(|(kind, _)| *kind == EventType::PolicyDecision);
    let verdict = |payload: &Json| payload.get("verdict").unwrap().as_str().unwrap().to_owned();
    let verdicts: Vec<String> = decisions.map(|(_, payload)| verdict(&payload)).collect();
    assert!(verdicts.contains(&"allow".to_owned()) && verdicts.contains(&"deny".to_owned()));
    assert_eq!(
        scene.mood.0.load(Ordering::SeqCst),
        60,
        "each is asked once"
    );
    scene.replays(60);
}

#[test]
fn policies_that_are_gone_are_named() {
    let scene = Scene::new();
    let _run = scene.run("read_note", r#"{"path":"/a"}"#, "hello");
    scene.engine.flush().unwrap();
    let digest = scene.engine.policies().digest();
    let path = Folder::new(scene.folder.path()).policies(digest);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("not_that", "not_this")).unwrap();
    let error = exact(&scene.scope, scene.engine.store().reader()).unwrap_err();
    assert!(error.to_string().contains(&digest.to_string()), "{error}");
    std::fs::write(&path, text.replace("agent_control\"", "somebody\"")).unwrap();
    let error = exact(&scene.scope, scene.engine.store().reader()).unwrap_err();
    assert!(format!("{error:?}").contains("somebody"), "{error:?}");
}
