//! The decision path, end to end on a real store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

#[path = "engine/at_once.rs"]
mod at_once;
#[path = "../../../tests/replayed.rs"]
mod replayed;
#[path = "engine/start.rs"]
mod start;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use countersign_canon::{Digest, Json, Limits};
use countersign_engine::{
    Admission, Clock, ClockError, Engine, Origin, Outcome, PolicyFiles, Proposal,
};
use countersign_event::{EventType, Line, Scope};
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_policy::rego::{Machine, Source};
use countersign_policy::{Decision, Mode, Policies, UserPolicy};
use countersign_store::{Filter, Folder, Options, Store};
use countersign_verify::{Expectation, Selection, database::verify_database};

static ORIGIN: LazyLock<Origin> =
    LazyLock::new(|| Origin::new("operator", "agent", std::path::Path::new("/")).unwrap());

/// A clock that a test moves.
#[derive(Clone, Default)]
struct Hands(Arc<AtomicU64>);

impl Clock for Hands {
    fn now_unix_ms(&self) -> Result<u64, ClockError> {
        match self.0.load(Ordering::Relaxed) {
            u64::MAX => Err(ClockError),
            now => Ok(now),
        }
    }
}

struct Scene {
    clock: Hands,
    engine: Engine,
    scope: Scope,
    /// Goes last: what was recorded is looked at when nobody writes any more.
    folder: replayed::Kept,
}

const MANIFEST: &str = r#"{"permissions":{
    "tools":["read_file","write_file","deploy","poll"],
    "approval_required":["deploy"],
    "budgets":{"max_tool_calls":4,"max_steps":100}}}"#;

fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

fn policies() -> Policies {
    let manifest = Manifest::partial(&json(MANIFEST)).unwrap();
    Policies::new(Capability::new(Some(manifest)).unwrap())
}

impl Scene {
    fn new() -> Self {
        Self::with(policies())
    }

    fn with(policies: Policies) -> Self {
        let folder = replayed::folder();
        let clock = Hands::default();
        let engine = engine(folder.path(), policies, clock.clone());
        Self {
            folder,
            clock,
            engine,
            scope: Scope::new("t", "s").unwrap(),
        }
    }

    fn restart(mut self) -> Self {
        drop(self.engine);
        self.engine = engine(self.folder.path(), policies(), self.clock.clone());
        self
    }

    fn admit(&self, call_id: &str, tool: &str, args: &str) -> Admission {
        let args_json = json(args);
        self.engine.admit(Proposal {
            scope: &self.scope,
            call_id: call_id.to_owned(),
            tool_name: tool.to_owned(),
            server: None,
            definition: None,
            origin: &ORIGIN,
            preconditions: Vec::new(),
            args: args_json,
            sanitizer_key: None,
            bytes: args.as_bytes(),
            encode: &|args| args.to_jcs().unwrap(),
        })
    }

    /// A call that is allowed, forwarded and answered.
    fn run(&self, call_id: &str, tool: &str, args: &str, result: &str) {
        let Admission::Permit(permit) = self.admit(call_id, tool, args) else {
            panic!("{call_id} was not permitted");
        };
        let running = self.engine.begin(permit, args.as_bytes()).unwrap();
        let outcome = Outcome::Result {
            content: json(result),
            is_error: false,
        };
        let _recorded = self.engine.settle(running, outcome).unwrap();
    }

    fn reason(&self, call_id: &str, tool: &str, args: &str) -> String {
        match self.admit(call_id, tool, args) {
            Admission::Refusal(refusal) => refusal.reason().to_owned(),
            Admission::Hold(hold) => format!("HOLD {}", hold.verdict.reason().unwrap_or_default()),
            Admission::Permit(_) => "PERMIT".to_owned(),
        }
    }

    fn events(&self) -> Vec<(EventType, Json)> {
        let reader = self.engine.store().reader();
        let page = reader
            .page(&Filter::session(&self.scope), None, 1000)
            .unwrap();
        page.events
            .iter()
            .map(|event| {
                let event_type = Line::read(&event.line).unwrap().event_type;
                (event_type, reader.open_payload(event).unwrap())
            })
            .collect()
    }

    fn verify(&self) {
        let path = Folder::new(self.folder.path()).database();
        let (selection, expectation) = (Selection::default(), Expectation::default());
        let report = verify_database(&path, &selection, &expectation, None, &mut |_| {});
        assert!(report.is_good(), "{:?}", report.failure);
    }
}

fn engine(folder: &std::path::Path, policies: Policies, clock: Hands) -> Engine {
    let store = Store::open(&Folder::new(folder), Options::default()).unwrap();
    Engine::new(store, policies, clock)
}

#[test]
fn an_allowed_call_leaves_its_whole_life_in_the_log() {
    let scene = Scene::new();
    scene.run("c1", "read_file", r#"{"path":"/a"}"#, r#""text""#);
    let events = scene.events();
    let types: Vec<EventType> = events.iter().map(|(event_type, _)| *event_type).collect();
    assert_eq!(
        types,
        [
            EventType::ToolCallProposed,
            EventType::PolicyDecision,
            EventType::ToolCallAllowed,
            EventType::ToolCallExecuted,
            EventType::ToolResult,
        ]
    );
    let decision = &events[1].1;
    for member in [
        "policy_digest",
        "snapshot_hash",
        "policy_ref",
        "verdict",
        "constraints",
    ] {
        assert!(decision.get(member).is_some(), "{member}");
    }
    let digest = Digest::of(br#"{"path":"/a"}"#).to_string();
    assert_eq!(
        events[2].1.get("action_digest").and_then(Json::as_str),
        Some(digest.as_str())
    );
    scene.verify();
}

#[test]
fn other_bytes_than_the_permitted_ones_do_not_begin() {
    let scene = Scene::new();
    let Admission::Permit(permit) = scene.admit("c1", "read_file", r#"{"path":"/a"}"#) else {
        panic!("not permitted");
    };
    let refused = scene
        .engine
        .begin(permit, br#"{"path":"/b"}"#)
        .err()
        .unwrap();
    assert_eq!(refused.reason(), "runtime_error:bytes_differ");
    assert!(
        !scene
            .events()
            .iter()
            .any(|(event_type, _)| *event_type == EventType::ToolCallExecuted)
    );
}

#[test]
fn denials_and_holds_are_recorded() {
    let scene = Scene::new();
    assert_eq!(scene.reason("c1", "unknown", "{}"), "PERMISSION_UNDECLARED");
    assert_eq!(scene.reason("c2", "deploy", "{}"), "HOLD APPROVAL_REQUIRED");
    let types: Vec<EventType> = scene
        .events()
        .into_iter()
        .map(|(event_type, _)| event_type)
        .collect();
    assert_eq!(
        types,
        [
            EventType::ToolCallProposed,
            EventType::PolicyDecision,
            EventType::ToolCallDenied,
            EventType::ToolCallProposed,
            EventType::PolicyDecision,
        ]
    );
}

#[test]
fn a_budget_of_four_allows_four() {
    let scene = Scene::new();
    for number in 0..4 {
        scene.run(
            &format!("c{number}"),
            "read_file",
            &format!(r#"{{"n":{number}}}"#),
            &number.to_string(),
        );
    }
    assert_eq!(
        scene.reason("c4", "read_file", r#"{"n":4}"#),
        "BUDGET_EXCEEDED"
    );
}

#[test]
fn taint_loops_and_budgets_survive_a_restart() {
    let scene = Scene::new();
    scene.run("c1", "read_file", r#"{"path":"/a"}"#, r#""evil""#);
    let scene = scene.restart();
    assert_eq!(
        scene.reason("c2", "write_file", r#"{"path":"/b"}"#),
        "TAINTED_TO_HIGH_RISK"
    );
    assert_eq!(
        scene.reason("c3", "read_file", r#"{"path":"/a"}"#),
        "LOOP_DETECTED"
    );
    scene.run("c4", "read_file", r#"{"path":"/c"}"#, r#""more""#);
    let scene = scene.restart();
    assert_eq!(
        scene.reason("c5", "read_file", r#"{"path":"/d"}"#),
        "BUDGET_EXCEEDED"
    );
    scene.verify();
}

#[test]
fn a_used_call_id_and_an_odd_clock_refuse() {
    let scene = Scene::new();
    assert_eq!(scene.reason("c1", "read_file", "{}"), "PERMIT");
    assert_eq!(
        scene.reason("c1", "read_file", r#"{"x":1}"#),
        "runtime_error:order"
    );
    assert_eq!(scene.reason("c2", "read_file", r#"{"x":2}"#), "PERMIT");
    scene.clock.0.store(u64::MAX, Ordering::Relaxed);
    assert_eq!(
        scene.reason("c3", "read_file", r#"{"x":3}"#),
        "runtime_error:clock"
    );
}

#[test]
fn many_threads_in_one_session_get_one_history() {
    let manifest = r#"{"permissions":{"tools":["read_file"],
        "budgets":{"max_tool_calls":100000,"max_steps":100000}}}"#;
    let manifest = Manifest::partial(&json(manifest)).unwrap();
    let scene = Scene::with(Policies::new(Capability::new(Some(manifest)).unwrap()));
    let permits = Mutex::new(0);
    std::thread::scope(|threads| {
        for thread in 0..8 {
            let (scene, permits) = (&scene, &permits);
            threads.spawn(move || {
                for number in 0..25 {
                    let call = format!("c{thread}-{number}");
                    scene.run(
                        &call,
                        "read_file",
                        &format!(r#"{{"f":"{call}"}}"#),
                        &format!("\"{call}\""),
                    );
                    *permits.lock().unwrap() += 1;
                }
            });
        }
    });
    assert_eq!(*permits.lock().unwrap(), 200);
    assert_eq!(scene.events().len(), 1000);
    scene.verify();
}

#[test]
fn two_engines_on_one_folder_agree() {
    let scene = Scene::new();
    let other = engine(scene.folder.path(), policies(), scene.clock.clone());
    let other = Scene {
        folder: replayed::folder(),
        clock: scene.clock.clone(),
        engine: other,
        scope: scene.scope.clone(),
    };
    scene.run("c1", "read_file", r#"{"n":1}"#, "1");
    other.run("c2", "read_file", r#"{"n":2}"#, "2");
    scene.run("c3", "read_file", r#"{"n":3}"#, "3");
    other.run("c4", "read_file", r#"{"n":4}"#, "4");
    assert_eq!(
        scene.reason("c5", "read_file", r#"{"n":5}"#),
        "BUDGET_EXCEEDED"
    );
    assert_eq!(
        other.reason("c6", "read_file", r#"{"n":6}"#),
        "BUDGET_EXCEEDED"
    );
    scene.verify();
}

fn user_policy(text: &str, mode: Mode) -> UserPolicy {
    let text = format!("package mine\nimport rego.v1\n{text}\n");
    let source = Source {
        name: "mine.rego".into(),
        text,
    };
    UserPolicy::compile("mine", &[source], "data.mine.verdict", mode).unwrap()
}

#[test]
fn the_strictest_policy_wins_and_shadows_only_watch() {
    let deny =
        r#"verdict := {"decision":"deny","reason":"NO"} if input.action.tool == "read_file""#;
    let enforced = Scene::with(policies().with(user_policy(deny, Mode::Enforce)));
    assert_eq!(enforced.reason("c1", "read_file", "{}"), "NO");
    // Undefined for other tools: no answer is a denial.
    assert_eq!(
        enforced.reason("c2", "poll", "{}"),
        "runtime_error:policy_undefined"
    );

    let shadow = Scene::with(policies().with(user_policy(deny, Mode::Shadow)));
    assert_eq!(shadow.reason("c1", "read_file", "{}"), "PERMIT");
    let decision = &shadow.events()[1].1;
    let noted = decision.get("reason_codes").unwrap().as_array().unwrap();
    assert_eq!(noted, [Json::from("mine=deny")]);
}

#[test]
fn a_transform_permits_the_rewritten_bytes_only() {
    let rewrite = r#"verdict := {"decision":"transform","transform":{"path":"$policy_target.path","value":"/safe"}}"#;
    let scene = Scene::with(policies().with(user_policy(rewrite, Mode::Enforce)));
    let original = r#"{"path":"/a"}"#;
    let Admission::Permit(permit) = scene.admit("c1", "read_file", original) else {
        panic!("not permitted");
    };
    let rewritten = permit.rewritten().unwrap().to_vec();
    assert_eq!(rewritten, br#"{"path":"/safe"}"#);
    assert_eq!(permit.digest(), Digest::of(&rewritten));
    assert!(scene.engine.begin(permit, original.as_bytes()).is_err());
    // Nothing at the place: the action is denied, not passed as it was.
    assert_eq!(
        scene.reason("c2", "read_file", r#"{"other":1}"#),
        "runtime_error:transform_target_missing"
    );
}

#[test]
fn new_policies_are_in_force_from_the_next_decision_on() {
    let scene = Scene::new();
    assert_eq!(scene.reason("c1", "read_file", r#"{"n":1}"#), "PERMIT");
    let manifest = Manifest::partial(&json(r#"{"permissions":{"tools":[]}}"#)).unwrap();
    scene
        .engine
        .replace_policies(Policies::new(Capability::new(Some(manifest)).unwrap()));
    assert_eq!(
        scene.reason("c2", "read_file", r#"{"n":2}"#),
        "PERMISSION_UNDECLARED"
    );
    let digests: Vec<Json> = scene
        .events()
        .into_iter()
        .filter_map(|(_, payload)| payload.get("policy_digest").cloned())
        .collect();
    assert_ne!(digests[0], digests[1]);
}

#[test]
fn without_a_manifest_every_call_is_held() {
    let scene = Scene::with(Policies::new(Capability::new(None).unwrap()));
    let Admission::Hold(hold) = scene.admit("c1", "anything", "{}") else {
        panic!("not held");
    };
    assert_eq!(hold.verdict.decision(), Decision::Escalate);
    assert!(!hold.irreversible);
}

fn with_rules(rules: &str) -> Policies {
    let rules = Source {
        name: "rules.rego".to_owned(),
        text: rules.to_owned(),
    };
    Policies::new(Capability::with_unseen_rules(rules, None).unwrap())
}

#[test]
fn evaluators_that_disagree_refuse_the_action_and_leave_an_event() {
    // Members of a text, for one tool: the interpreter fails, the machine does not notice. The look at the
    // syntax would have kept the machine out.
    let scene = Scene::with(with_rules(
        "package countersign.capability\nimport rego.v1\n\
         decision := {\"rule\": \"b\", \"decision\": \"deny\", \"reason\": \"NO\"} if bad\n\
         else := {\"rule\": \"a\", \"decision\": \"allow\", \"reason\": \"OK\"}\n\
         bad if { input.tool == \"odd\"; some part in input.tool; part == \"d\" }\n",
    ));
    let capability = |scene: &Scene| scene.engine.policies().capability().machine();
    assert_eq!(capability(&scene), Machine::Serving);
    let disagreement = "runtime_error:policy_disagreement";
    assert_eq!(scene.reason("c1", "odd", "{}"), disagreement);
    assert_eq!(capability(&scene), Machine::Demoted);
    let code = Json::from(disagreement);
    let raised = |(event_type, payload): &(EventType, Json)| {
        *event_type == EventType::ErrorRaised && payload.get("code") == Some(&code)
    };
    assert!(scene.events().iter().any(raised));
    // From now on the interpreter answers, and it fails.
    assert_eq!(
        scene.reason("c2", "odd", "{}"),
        "runtime_error:policy_failed"
    );
    assert_eq!(scene.reason("c3", "even", "{}"), "PERMIT");
}

#[test]
fn information_does_not_flow_to_a_tool_that_is_not_cleared_for_it() {
    let manifest = Manifest::read(
        br#"{"schema":"countersign/manifest/v1","name":"n","version":"1.0.0","publisher":"p",
            "permissions":{"tools":{
                "read_salaries":{"side_effect":"read","labels":["confidential"]},
                "post":{"side_effect":"read","clearance":"internal"},
                "archive":{"side_effect":"read","clearance":"secret"}}}}"#,
    )
    .unwrap();
    let policies = || Policies::new(Capability::new(Some(manifest.clone())).unwrap());
    let scene = Scene::with(policies());
    scene.run("c1", "post", "{}", "1");
    scene.run("c2", "read_salaries", "{}", "2");
    assert_eq!(
        scene.reason("c3", "post", "{\"n\":3}"),
        "CLEARANCE_EXCEEDED"
    );
    assert_eq!(scene.reason("c4", "archive", "{}"), "PERMIT");
    let scene = scene.restart();
    scene.engine.replace_policies(policies());
    assert_eq!(
        scene.reason("c5", "post", "{\"n\":5}"),
        "CLEARANCE_EXCEEDED"
    );
}

#[test]
fn a_preview_says_what_admitting_would_and_records_nothing() {
    let scene = Scene::new();
    for (tool, expect) in [
        ("read_file", Decision::Allow),
        ("deploy", Decision::Escalate),
    ] {
        let preview = scene.engine.preview(&Proposal {
            scope: &scene.scope,
            call_id: "c1".to_owned(),
            tool_name: tool.to_owned(),
            server: None,
            definition: None,
            origin: &ORIGIN,
            preconditions: Vec::new(),
            args: json("{}"),
            sanitizer_key: None,
            bytes: b"{}",
            encode: &|args| args.to_jcs().unwrap(),
        });
        assert_eq!(preview.unwrap().judgement.verdict.decision(), expect);
    }
    assert!(scene.events().is_empty());
}

#[test]
fn only_policies_that_compile_and_pass_their_tests_take_over() {
    let scene = Scene::new();
    let policy = |decision: &str| {
        format!(
            "package p\nimport rego.v1\nverdict := {{\"decision\": \"{decision}\", \"reason\": \"P\"}}\n"
        )
    };
    let folder = replayed::folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "manifest.json",
        &format!(
            "{{\"schema\":\"aegis.dev/manifest/v0.1\",\"name\":\"n\",\"version\":\"1.0.0\",\"publisher\":\"p\",{}",
            &MANIFEST[1..]
        ),
    );
    write("p.rego", &policy("allow"));
    write(
        "p_test.rego",
        "package t\nimport rego.v1\ntest_it if data.p.verdict.decision != \"warn\"\n",
    );
    let files = PolicyFiles {
        manifest: Some(folder.path().join("manifest.json")),
        enforced: vec![folder.path().to_owned()],
        ..PolicyFiles::default()
    };
    let reload = || {
        scene
            .engine
            .reload(&files)
            .map_err(|error| error.to_string())
    };
    assert_eq!(reload(), Ok(true));
    assert_eq!(reload(), Ok(false));
    let in_force = scene.engine.policies().digest();
    assert_eq!(scene.reason("c1", "read_file", "{}"), "PERMIT");

    for (text, problem) in [
        (policy("warn"), "test_it"),
        (
            "package p\nimport rego.v1\nverdict := {".to_owned(),
            "p.rego",
        ),
        (
            "package p\nimport rego.v1\nother := 1\n".to_owned(),
            "no rule `verdict`",
        ),
    ] {
        write("p.rego", &text);
        let error = reload().unwrap_err();
        assert!(error.contains(problem), "{error}");
        assert_eq!(scene.engine.policies().digest(), in_force);
    }
    write("manifest.json", "{}");
    assert!(reload().unwrap_err().contains("not a valid manifest"));
    assert_eq!(scene.reason("c2", "read_file", "{\"n\":2}"), "PERMIT");

    write(
        "manifest.json",
        &format!(
            "{{\"schema\":\"aegis.dev/manifest/v0.1\",\"name\":\"n\",\"version\":\"1.0.0\",\"publisher\":\"p\",{}",
            &MANIFEST[1..]
        ),
    );
    write("p.rego", &policy("deny"));
    assert_eq!(reload(), Ok(true));
    assert_eq!(scene.reason("c3", "read_file", "{\"n\":3}"), "P");
}

#[test]
fn an_entry_that_names_a_server_says_nothing_about_tools_of_nobody() {
    let manifest = "schema: countersign/manifest/v1\nname: m\nversion: 1.0.0\npublisher: acme\n\
        permissions:\n  tools:\n    list: {side_effect: read, server: files}\n    \
        pinned: {side_effect: mutate-local, definition: 'sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb'}\n    \
        plain: {side_effect: read}\n";
    let manifest = Manifest::read(manifest.as_bytes()).unwrap();
    let scene = Scene::with(Policies::new(Capability::new(Some(manifest)).unwrap()));
    assert_eq!(scene.reason("c1", "list", "{}"), "HOLD SIDE_EFFECT_UNKNOWN");
    assert_eq!(
        scene.reason("c2", "pinned", "{}"),
        "HOLD SIDE_EFFECT_UNKNOWN"
    );
    assert_eq!(scene.reason("c3", "plain", "{}"), "PERMIT");
}
