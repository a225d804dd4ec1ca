//! The order of an evaluation, its determinism, and its identities.

use std::panic::AssertUnwindSafe;

use countersign_acs::{
    Annotate, AnnotationError, AnnotatorCall, ApprovalRequest, Dispatch, DispatchError, Manifest,
    Mode, Point, PolicyCall, Reserved, Resolution, Resolve, ResolverError, Runtime,
};
use countersign_canon::{Digest, Json};

use crate::scene::{Annotators, INPUT, Says, json, manifest, saying};

#[test]
fn the_input_has_five_members_and_a_known_text() {
    let text = "
agent_control_specification_version: 0.3.1-beta
policies: {p: {type: test}}
intervention_points:
  pre_tool_call:
    policy_target: $.tool_call.args
    policy_target_kind: tool_args
    tool_name_from: $.tool_call.name
    policy: {id: p}
    annotations: {b: {from: $tool.clearance}, a: {from: $policy_target}}
annotators: {a: {type: llm}, b: {type: llm}}
tools: {send: {clearance: internal}}
";
    let mut annotators = Annotators::default();
    annotators.outputs.insert("a".to_owned(), json("1.0"));
    let runtime = Runtime::new(manifest(text), Says(json(r#"{"decision":"allow"}"#)))
        .with_annotators(annotators);
    let snapshot = json(r#"{"tool_call":{"name":"send","args":{"to":"é","n":1e21}}}"#);
    let found = runtime.evaluate(Point::PreToolCall, &snapshot, Mode::Enforce);
    let expected = r#"{"annotations":{"a":1.0,"b":null},"intervention_point":"pre_tool_call","policy_target":{"kind":"tool_args","path":"$.tool_call.args","value":{"n":1e+21,"to":"é"}},"snapshot":{"tool_call":{"args":{"n":1e+21,"to":"é"},"name":"send"}},"tool":{"clearance":"internal","name":"send"}}"#;
    let input = found.input().unwrap().to_json().to_sorted();
    assert_eq!(String::from_utf8(input).unwrap(), expected);
    let identities = found.identities().unwrap();
    assert_eq!(identities.input, Digest::of(expected.as_bytes()));
    assert_eq!(identities.enforced, identities.input);
}

#[test]
fn a_change_has_an_identity_of_its_own() {
    let runtime = saying(
        r#"{"decision":"transform","transform":{"path":"$policy_target.text","value":null}}"#,
    );
    let snapshot = json(r#"{"input":{"text":"hi"}}"#);
    let enforced = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
    let both = enforced.identities().unwrap();
    assert_ne!(both.input, both.enforced);
    let mut changed = enforced.input().unwrap().to_json();
    let target = changed
        .as_object_mut()
        .unwrap()
        .get_mut("policy_target")
        .unwrap();
    let value = json(r#"{"text":null}"#);
    target
        .as_object_mut()
        .unwrap()
        .insert("value".to_owned(), value.clone());
    assert_eq!(both.enforced, Digest::of(&changed.to_sorted()));
    assert_eq!(enforced.transformed(), Some(&value));
    assert_eq!(
        enforced.to_json().get("transformed_policy_target_applied"),
        Some(&Json::Bool(true))
    );
    let only = runtime.evaluate(Point::Input, &snapshot, Mode::EvaluateOnly);
    assert_eq!(only.identities().unwrap().enforced, both.input);
    assert_eq!(only.transformed(), None);
    assert_eq!(only.verdict(), enforced.verdict());
}

#[test]
fn what_was_built_so_far_comes_with_a_failure() {
    let runtime = saying(r#"{"decision":"maybe"}"#);
    let snapshot = json(r#"{"input":1}"#);
    let found = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
    assert_eq!(found.input().unwrap().target(), &json("1"));
    assert!(found.identities().is_none());
    let snapshot = json(r#"{"other":1}"#);
    let found = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
    assert!(found.input().is_none());
}

struct Panics;

impl Dispatch for Panics {
    fn dispatch(&self, _: &PolicyCall<'_>) -> Result<Json, DispatchError> {
        panic!("policy")
    }
}

impl Annotate for Panics {
    fn annotate(&self, _: &AnnotatorCall<'_>) -> Result<Json, AnnotationError> {
        panic!("annotator")
    }
}

#[test]
fn code_of_the_host_that_panics_lets_nothing_pass() {
    std::panic::set_hook(Box::new(|_| {}));
    let snapshot = json(r#"{"input":1}"#);
    let runtime = Runtime::new(manifest(INPUT), Panics);
    let found = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
    assert_eq!(
        found.verdict().reason(),
        Some("runtime_error:policy_invocation_failed")
    );
    let text = INPUT.replace(
        "policy: {id: p}",
        "policy: {id: p}, annotations: {a: {from: $}}",
    );
    let text = format!("{text}annotators: {{a: {{type: llm}}}}\n");
    let runtime = Runtime::new(manifest(&text), Panics).with_annotators(Panics);
    let found = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let found = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
        found.verdict().reason().map(str::to_owned)
    }));
    assert_eq!(
        found.unwrap().as_deref(),
        Some("runtime_error:annotation_failed")
    );
    drop(std::panic::take_hook());
}

#[test]
fn the_same_question_has_the_same_answer_on_every_thread() {
    let runtime = saying(
        r#"{"decision":"transform","transform":{"path":"$policy_target[0]","value":{"z":1,"a":2}}}"#,
    );
    let snapshot = json(r#"{"input":[1,2,3],"b":1,"a":{"y":2,"x":1.5}}"#);
    let answer = || {
        let found = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
        found.to_json().to_sorted()
    };
    let first = answer();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(answer)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), first);
        }
    });
}

#[test]
fn reserved_reasons_are_told_apart() {
    let mut reasons: Vec<&str> = Reserved::ALL.iter().map(|one| one.as_str()).collect();
    assert!(reasons.iter().all(|one| one.starts_with("runtime_error:")));
    reasons.sort_unstable();
    reasons.dedup();
    assert_eq!(reasons.len(), 18);
}

struct Person {
    knows: bool,
    answer: Result<Resolution, ResolverError>,
}

impl Resolve for Person {
    fn knows(&self, _: Option<&str>) -> bool {
        self.knows
    }

    fn resolve(&self, _: &ApprovalRequest<'_>) -> Result<Resolution, ResolverError> {
        self.answer.clone()
    }
}

#[test]
fn an_approval_is_for_one_action_as_it_is_now() {
    let runtime = saying(r#"{"decision":"escalate","reason":"ask"}"#);
    let (snapshot, other) = (json(r#"{"input":1}"#), json(r#"{"input":2}"#));
    let held = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
    let drifted = runtime.evaluate(Point::Input, &other, Mode::Enforce);
    let identity = held.identities().unwrap().enforced;
    let moved = drifted.identities().unwrap().enforced;
    let ask = |knows, answer, now| {
        let verdict = runtime.resolve(&held, now, &Person { knows, answer });
        (
            verdict.decision().as_str(),
            verdict.reason().unwrap_or_default().to_owned(),
        )
    };
    let expect = |found: (&str, String), decision: &str, reason: &str| {
        assert_eq!((found.0, found.1.as_str()), (decision, reason));
    };
    let allow = |identity| Ok(Resolution::Allow { identity });
    expect(
        ask(true, allow(identity), &held),
        "allow",
        "approval_granted",
    );
    expect(
        ask(true, Ok(Resolution::Deny), &held),
        "deny",
        "approval_denied",
    );
    expect(
        ask(true, Ok(Resolution::Suspend { identity }), &held),
        "escalate",
        "ask",
    );
    let mismatch = "runtime_error:approval_action_mismatch";
    expect(ask(true, allow(moved), &held), "deny", mismatch);
    expect(ask(true, allow(identity), &drifted), "deny", mismatch);
    expect(ask(true, allow(moved), &drifted), "deny", mismatch);
    let suspended = Ok(Resolution::Suspend { identity: moved });
    expect(ask(true, suspended, &held), "deny", mismatch);
    let missing = "runtime_error:approval_resolver_missing";
    expect(ask(false, allow(identity), &held), "deny", missing);
    let failed = Err(ResolverError("x".to_owned()));
    expect(
        ask(true, failed, &held),
        "deny",
        "runtime_error:approval_resolver_failed",
    );
}

#[test]
fn nothing_that_is_read_panics() {
    let full = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../corpus/acs/more.json"
    ));
    let cases = json(&full.unwrap());
    let mut state: u64 = 1;
    let mut random = move |bound: usize| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize % bound
    };
    let mut mutated = |text: &[u8]| {
        let mut bytes = text.to_vec();
        for _ in 0..1 + random(3) {
            let at = random(bytes.len().max(1));
            let new = b"{}[]:,\"\\-0a$.\n #&*!\xff\x00"[random(21)];
            match random(3) {
                0 if at < bytes.len() => drop(bytes.remove(at)),
                1 if at < bytes.len() => bytes[at] = new,
                _ => bytes.insert(at.min(bytes.len()), new),
            }
        }
        bytes
    };
    let reserved: Vec<&str> = Reserved::ALL.iter().map(|one| one.as_str()).collect();
    let mut valid = 0;
    for case in cases.as_array().unwrap() {
        let text = case.get("manifest_yaml").unwrap().as_str().unwrap();
        for _ in 0..40 {
            match Manifest::read(&mutated(text.as_bytes())) {
                Ok(manifest) => {
                    valid += 1;
                    let again = Manifest::read(&manifest.source().to_sorted());
                    assert_eq!(again.as_ref(), Ok(&manifest));
                }
                Err(error) => assert!(reserved.contains(&error.reserved().as_str())),
            }
        }
        let Ok(known) = Manifest::read(text.as_bytes()) else {
            continue;
        };
        let limits = countersign_canon::Limits::plan();
        for _ in 0..40 {
            let part = |name: &str| case.get(name).unwrap().to_sorted();
            let read = |bytes: Vec<u8>| Json::admit(&bytes, &limits).unwrap_or(Json::Null);
            let output = read(mutated(&part("policy_response")));
            let snapshot = read(mutated(&part("snapshot")));
            let runtime = Runtime::new(known.clone(), Says(output));
            for point in Point::ALL {
                let found = runtime.evaluate(point, &snapshot, Mode::Enforce);
                let reason = found.verdict().reason().unwrap_or_default();
                assert_eq!(found.identities().is_none(), reserved.contains(&reason));
                assert!(found.identities().is_some() || found.transformed().is_none());
            }
        }
    }
    assert!(valid > 100, "{valid}");
}
