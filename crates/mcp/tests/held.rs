//! Calls that a human decides about while the client waits.
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

fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.register_approver();
    scene.list();
    scene
}

#[test]
fn a_call_that_is_approved_runs_with_the_stored_arguments_and_its_client_gets_the_result() {
    let mut scene = scene();
    assert!(
        scene
            .call("1", "deploy", r#"{"to":"prod", "n":1}"#)
            .is_empty()
    );
    assert!(scene.pass(LOOK).is_empty());
    assert_eq!(
        (scene.effects, scene.approvals()),
        (0, vec![State::Pending])
    );
    scene.decide(Decision::Approved);
    let got = scene.pass(LOOK);
    assert_eq!(json(&got[0]).get("id").unwrap().as_u64(), Some(1));
    assert!(json(&got[0]).get("result").is_some(), "{got:?}");
    let sent = scene.server.last().unwrap();
    assert!(
        sent.contains(r#""arguments":{"n":1,"to":"prod"}"#),
        "{sent}"
    );
    assert_eq!(
        (scene.effects, scene.approvals()),
        (1, vec![State::Executed])
    );
    scene.verify();
}

#[test]
fn j05_a_denial_and_silence_are_told_apart() {
    let mut scene = scene();
    scene.call("1", "deploy", "{}");
    scene.decide(Decision::Denied(Some(Reason::new("not today").unwrap())));
    let got = scene.pass(LOOK);
    assert_eq!(error(&got[0]), (-32000, "APPROVAL_DENIED".to_owned()));
    assert!(got[0].contains("who says: not today;"), "{got:?}");

    scene.call("2", "deploy", r#"{"n":2}"#);
    let got = scene.pass(Duration::from_secs(300));
    assert_eq!(error(&got[0]).0, -32001);
    assert!(!got[0].contains("denied"), "{got:?}");
    assert_eq!(
        (scene.effects, scene.approvals()),
        (0, vec![State::Pending, State::Denied])
    );
    scene.verify();
}

#[test]
fn cancelling_the_call_cancels_the_approval() {
    let mut scene = scene();
    scene.call("7", "deploy", "{}");
    scene.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
    assert_eq!(scene.approvals(), [State::Cancelled]);
    assert!(scene.pass(Duration::from_secs(600)).is_empty());
    assert_eq!(scene.effects, 0);
    scene.verify();
}

#[test]
fn a_client_that_leaves_takes_its_request_with_it() {
    let mut scene = scene();
    scene.call("1", "deploy", "{}");
    let effects = scene.session.end();
    scene.apply(effects);
    assert_eq!(scene.approvals(), [State::Cancelled]);
    scene.verify();
}

#[test]
fn a_client_that_asked_for_progress_hears_that_it_waits() {
    let mut scene = scene();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy","arguments":{},"_meta":{"progressToken":"p\"1"}}}"#;
    assert!(scene.send(call).is_empty());
    let heard = scene.pass(Duration::from_secs(6));
    let params = json(&heard[0]).get("params").unwrap().clone();
    assert_eq!(params.get("progressToken").unwrap().as_str(), Some("p\"1"));
    scene.verify();
}

#[test]
fn a_server_that_dies_ends_the_wait() {
    let mut scene = scene();
    scene.call("1", "deploy", "{}");
    let effects = scene.session.server_closed();
    let before = scene.client.len();
    scene.apply(effects);
    assert_eq!(error(&scene.client[before]).1, "SERVER_GONE");
    assert_eq!(scene.approvals(), [State::Cancelled]);
    scene.verify();
}

#[test]
fn the_server_cannot_answer_for_the_human() {
    let mut scene = scene();
    scene.call("1", "deploy", "{}");
    let heard = scene.serve(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#);
    assert!(heard.is_empty());
    assert_eq!(scene.approvals(), [State::Pending]);
    scene.verify();
}
