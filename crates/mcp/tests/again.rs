//! The same call made again, while people decide about it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;

use std::time::Duration;

use countersign_approval::{Decision, Reason, State};
use scene::{Scene, error, json};

const LOOK: Duration = Duration::from_millis(250);
const LONG: Duration = Duration::from_secs(300);

/// A scene in which agents may want the same thing twice.
fn scene_without_loops() -> Scene {
    let scene = Scene::of_an_approver();
    let off =
        r#""loops":{"identical_calls":0,"no_progress_steps":0,"sequence_min":0,"sequence_max":0}"#;
    scene.govern(r#""permissions""#, &format!(r#"{off},"permissions""#));
    scene
}

/// The approval that a client was told of, and what it was told.
fn told(frames: &[String]) -> (String, String) {
    let [frame] = frames else {
        panic!("{frames:?}");
    };
    assert_eq!(error(frame).0, -32001, "{frame}");
    let error = json(frame).get("error").unwrap().clone();
    let data = error.get("data").unwrap();
    let text = |member: &str| data.get(member).unwrap().as_str().unwrap().to_owned();
    (text("approval"), text("message"))
}

fn cancel(scene: &mut Scene, id: u32) {
    scene.send(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ));
}

#[test]
fn the_same_call_made_again_waits_for_the_same_decision_and_runs_once() {
    let mut scene = scene_without_loops();
    scene.call("1", "deploy", r#"{"n":1, "to":"prod"}"#);
    told(&scene.pass(LONG));
    assert!(
        scene
            .call("2", "deploy", r#"{"to":"prod","n":1}"#)
            .is_empty()
    );
    assert!(scene.pass(LOOK).is_empty());
    assert_eq!(scene.approvals(), [State::Pending]);
    scene.decide(Decision::Approved);
    let got = scene.pass(LOOK);
    assert_eq!(json(&got[0]).get("id").unwrap().as_u64(), Some(2));
    assert!(got[0].contains("done"), "{got:?}");
    // That was the one intention. Who wants it once more asks once more.
    assert!(
        scene
            .call("3", "deploy", r#"{"n":1,"to":"prod"}"#)
            .is_empty()
    );
    assert_eq!(scene.approvals(), [State::Pending, State::Executed]);
    assert_eq!(scene.effects, 1);
    scene.verify();
}

#[test]
fn who_is_refused_at_once_hears_of_the_same_request_each_time_and_of_no_loop() {
    let mut scene = Scene::with(|settings| settings.hold_wait = Some(Duration::ZERO), None);
    scene.register_approver();
    scene.list();
    let mut retry = |id: u32| {
        scene.call(&id.to_string(), "deploy", r#"{"n":1}"#);
        told(&scene.pass(Duration::ZERO))
    };
    let first = retry(1);
    for id in 2..10 {
        assert_eq!(retry(id), first);
    }
    assert_eq!(scene.approvals(), [State::Pending]);
    scene.decide(Decision::Approved);
    let got = scene.call("10", "deploy", r#"{"n":1}"#);
    assert!(got[0].contains("done"), "{got:?}");
    assert_eq!(scene.effects, 1);
    scene.verify();
}

#[test]
fn who_leaves_takes_back_what_nobody_will_come_back_for() {
    let mut scene = Scene::of_an_approver();
    scene.call("1", "deploy", r#"{"n":1}"#);
    told(&scene.pass(LONG));
    assert_eq!(scene.approvals(), [State::Pending]);
    let effects = scene.session.client_closed();
    scene.apply(effects);
    scene.run_jobs();
    assert_eq!(scene.approvals(), [State::Cancelled]);
    scene.verify();
}

#[test]
fn a_client_that_hears_nothing_is_told_to_come_back_before_it_gives_up() {
    let (short, minute) = (Duration::from_secs(44), Duration::from_secs(60));
    let with_token = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"deploy","arguments":{"n":2},"_meta":{"progressToken":1}}}"#;
    let mut scene = Scene::of_an_approver();
    scene.call("1", "deploy", r#"{"n":1}"#);
    scene.send(with_token);
    let is_answer = |frame: &String| json(frame).get("id").is_some();
    assert!(!scene.pass(short).iter().any(is_answer));
    let got: Vec<_> = scene
        .pass(minute - short)
        .into_iter()
        .filter(is_answer)
        .collect();
    assert_eq!(json(&got[0]).get("id").unwrap().as_u64(), Some(1));
    told(&got);
    // The other one hears that it waits, and may wait longer.
    assert!(!scene.pass(minute * 3).iter().any(is_answer));
    assert!(scene.pass(minute).iter().any(is_answer));
    assert_eq!(scene.approvals(), [State::Pending; 2]);
    scene.verify();
    // What the operator says holds for all.
    let mut scene = Scene::with(|settings| settings.hold_wait = Some(minute), None);
    scene.register_approver();
    scene.list();
    scene.call("1", "deploy", r#"{"n":1}"#);
    scene.send(with_token);
    assert!(!scene.pass(short).iter().any(is_answer));
    let got: Vec<_> = scene
        .pass(minute - short)
        .into_iter()
        .filter(is_answer)
        .collect();
    assert_eq!(got.len(), 2, "{got:?}");
    scene.verify();
}

#[test]
fn calls_that_wait_side_by_side_have_a_request_each() {
    let mut scene = scene_without_loops();
    scene.call("1", "deploy", "{}");
    scene.call("2", "deploy", "{}");
    assert_eq!(scene.approvals(), [State::Pending; 2]);
    let both = scene.pass(LONG);
    let first = [told(&both[..1]).0, told(&both[1..]).0];
    assert_ne!(first[0], first[1]);
    // Both are made again, and a third one beside them.
    for id in ["3", "4", "5"] {
        scene.call(id, "deploy", "{}");
    }
    assert_eq!(scene.approvals(), [State::Pending; 3]);
    cancel(&mut scene, 3);
    cancel(&mut scene, 5);
    scene.decide(Decision::Approved);
    let got = scene.pass(LOOK);
    assert_eq!(json(&got[0]).get("id").unwrap().as_u64(), Some(4));
    assert_eq!(scene.effects, 1);
    scene.verify();
}

#[test]
fn what_was_approved_is_for_the_call_that_waits_for_it() {
    let mut scene = scene_without_loops();
    scene.call("1", "deploy", "{}");
    scene.decide(Decision::Approved);
    // The first one has not looked yet.
    assert!(scene.call("2", "deploy", "{}").is_empty());
    let got = scene.pass(LOOK);
    assert_eq!(json(&got[0]).get("id").unwrap().as_u64(), Some(1));
    assert!(got[0].contains("done"), "{got:?}");
    assert_eq!(scene.approvals(), [State::Pending, State::Executed]);
    assert_eq!(scene.effects, 1);
    scene.verify();
}

#[test]
fn another_call_waits_for_a_request_of_its_own() {
    let mut scene = Scene::of_an_approver();
    scene.call("1", "deploy", r#"{"n":1}"#);
    let (first, _) = told(&scene.pass(LONG));
    let beside = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"deploy","arguments":{"n":1},"task":{}}}"#;
    for other in [
        &scene::call("2", "deploy", r#"{"n":2}"#),
        &beside.to_owned(),
    ] {
        scene.send(other);
        assert_ne!(told(&scene.pass(LONG)).0, first);
    }
    // Another tool under the same name.
    scene.tools = scene::TOOLS.replace(
        r#"{"name":"deploy"}"#,
        r#"{"name":"deploy","description":"now with mail"}"#,
    );
    scene.list_as("again");
    let got = scene.call("4", "deploy", r#"{"n":1}"#);
    assert_eq!(error(&got[0]).1, "TOOL_CHANGED");
    assert_eq!((scene.effects, scene.approvals().len()), (0, 3));
    scene.verify();
}

#[test]
fn who_cancels_the_call_that_was_made_again_takes_the_request_back() {
    let mut scene = scene_without_loops();
    scene.call("1", "deploy", "{}");
    scene.pass(LONG);
    scene.call("2", "deploy", "{}");
    cancel(&mut scene, 2);
    assert_eq!(scene.approvals(), [State::Cancelled]);
    // The same before anybody has looked at it.
    scene.call("3", "deploy", "{}");
    scene.pass(LONG);
    scene.hold_jobs = true;
    scene.call("4", "deploy", "{}");
    cancel(&mut scene, 4);
    scene.run_jobs();
    assert_eq!(scene.approvals(), [State::Cancelled; 2]);
    assert_eq!(scene.effects, 0);
    scene.verify();
}

#[test]
fn a_denial_is_heard_by_the_call_that_is_made_again() {
    let mut scene = Scene::of_an_approver();
    scene.call("1", "deploy", "{}");
    scene.pass(LONG);
    scene.decide(Decision::Denied(Some(Reason::new("not today").unwrap())));
    let got = scene.call("2", "deploy", "{}");
    assert_eq!(error(&got[0]).1, "APPROVAL_DENIED");
    assert!(got[0].contains("who says: not today;"), "{got:?}");
    assert_eq!((scene.effects, scene.approvals()), (0, vec![State::Denied]));
    scene.verify();
}

#[test]
fn policies_that_were_changed_instead_of_deciding_are_asked() {
    let mut scene = Scene::of_an_approver();
    scene.call("1", "deploy", "{}");
    scene.pass(LONG);
    scene.govern(r#""deploy""#, r#""deliver""#);
    let got = scene.call("2", "deploy", "{}");
    assert_eq!(error(&got[0]).1, "PERMISSION_UNDECLARED");
    assert_eq!(
        (scene.effects, scene.approvals()),
        (0, vec![State::Cancelled])
    );
    scene.verify();
}
