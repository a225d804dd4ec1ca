//! Results that people have to see before the agent does.

use std::sync::Arc;

use countersign_canon::Json;
use countersign_engine::{Delivery, Refusal, Released};
use countersign_event::{EventType, Scope};
use countersign_policy::Policies;
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;

use crate::{CAPABILITIES, MANIFEST, Mood, Scene, json, voice};

#[test]
fn a_result_that_people_let_pass_is_the_one_that_was_kept() {
    let scene = Scene::new();
    let (_, seen) = scene.run("read_note", r#"{"path":"/ledger"}"#, "odd things");
    let Delivery::Held(held) = seen else {
        panic!("not held: {seen:?}");
    };
    assert_eq!(held.reason, "look_at_it");
    let release = |scope: &Scope| scene.engine.release(held.approval, scope);
    let reason = |refused: Result<Released, Refusal>| match refused {
        Err(refusal) => refusal.reason().to_owned(),
        Ok(released) => panic!("released: {released:?}"),
    };
    assert!(reason(release(&scene.scope)).contains("approval"));
    // The same call, made again, is about this result.
    let same = |args: &str| {
        let found = scene
            .engine
            .held_result(&scene.scope, "read_note", &json(args));
        found.unwrap()
    };
    assert_eq!(same(r#"{"path":"/ledger"}"#), Some(held.approval));
    assert_eq!(same(r#"{"path":"/other"}"#), None);
    scene.approve(held.approval);
    assert!(scene.labels().is_empty(), "{:?}", scene.labels());
    let elsewhere = Scope::new("t", "elsewhere").unwrap();
    assert!(reason(release(&elsewhere)).contains("approval"));
    let released = release(&scene.scope).unwrap();
    assert_eq!(released.content, Json::from("odd things"));
    assert!(!released.is_error);
    assert_eq!(scene.labels(), ["confidential", "internal"]);
    assert!(reason(release(&scene.scope)).contains("approval"));
    assert_eq!(same(r#"{"path":"/ledger"}"#), None);
    let told = scene.events().into_iter();
    let told: Vec<Json> = told
        .filter(|(kind, _)| *kind == EventType::ToolResult)
        .map(|(_, payload)| payload.get("content").unwrap().clone())
        .collect();
    let withheld = Json::object([("withheld", Json::from("look_at_it"))]);
    assert_eq!(told, [withheld], "the call ran once");
    scene.replays(1 + 1);
}

#[test]
fn a_result_under_another_manifest_is_another_result() {
    let scene = Scene::new();
    let (_, seen) = scene.run("read_note", r#"{"path":"/a"}"#, "odd things");
    let Delivery::Held(held) = seen else {
        panic!("not held: {seen:?}");
    };
    scene.approve(held.approval);
    let changed = MANIFEST.replace("tools: {read_note: {}", "tools: {read_note: {new: 1}");
    let capabilities = Manifest::read(CAPABILITIES.as_bytes()).unwrap();
    let policies = Policies::new(Capability::new(Some(capabilities)).unwrap())
        .with_beside(Arc::new(voice(&changed, Mood::default()).unwrap()));
    scene.engine.replace_policies(policies);
    let refused = scene.engine.release(held.approval, &scene.scope);
    assert_eq!(
        refused.unwrap_err().reason(),
        "runtime_error:approval_action_mismatch"
    );
}
