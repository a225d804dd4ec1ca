//! Held calls, and questions of the server, that nobody wants any more.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;

use std::time::Duration;

use countersign_approval::{Decision, State};
use scene::Scene;

const LOOK: Duration = Duration::from_millis(250);

#[test]
fn cancelling_the_call_cancels_the_approval() {
    let mut scene = Scene::of_an_approver();
    scene.call("7", "deploy", "{}");
    scene.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
    assert_eq!(scene.approvals(), [State::Cancelled]);
    assert!(scene.pass(Duration::from_secs(600)).is_empty());
    assert_eq!(scene.effects, 0);
    scene.verify();
}

#[test]
fn who_takes_a_call_back_while_it_is_looked_at_finds_its_id_in_use() {
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    for is_decided in [true, false] {
        let mut scene = Scene::of_an_approver();
        scene.call("1", "deploy", "{}");
        if is_decided {
            scene.decide(Decision::Approved);
        }
        scene.hold_jobs = true;
        scene.pass(LOOK);
        // It is looked at, and nobody has heard yet what came of it.
        let looked = scene.jobs.pop_front().unwrap();
        let done = scene.gate.run(looked);
        scene.send(cancel);
        scene.call("1", "write", "{}");
        scene.done(done);
        scene.run_jobs();
        let told = scene.client.last().unwrap();
        assert!(told.contains("-32600"), "{:?}", scene.client);
        assert_eq!(scene.effects, 0);
        let got = scene.call("2", "write", "{}");
        assert!(got[0].contains("result") && scene.effects == 1, "{got:?}");
        // Nothing of it is left.
        assert!(scene.session.deadline().is_none());
        scene.verify_log();
    }
}

#[test]
fn a_client_that_closes_its_end_takes_its_requests_back_also_those_that_come_later() {
    let mut scene = Scene::of_an_approver();
    scene.call("1", "deploy", "{}");
    scene.hold_jobs = true;
    scene.call("2", "deploy", r#"{"n":2}"#);
    let effects = scene.session.client_closed();
    scene.apply(effects);
    scene.hold_jobs = false;
    scene.run_jobs();
    assert_eq!(scene.approvals(), [State::Cancelled, State::Cancelled]);
    let told: Vec<_> = scene
        .client
        .iter()
        .filter(|one| one.contains("APPROVAL_WITHDRAWN"))
        .collect();
    assert_eq!(told.len(), 2, "{:?}", scene.client);
    assert_eq!(scene.effects, 0);
    scene.verify();
}

#[test]
fn a_question_that_the_server_takes_back_is_not_asked_and_waits_for_nobody() {
    let ask =
        r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m"}}"#;
    let cancel =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":"q","result":{"action":"decline"}}"#;
    let mut scene = Scene::of_an_approver();
    // While it is still looked at.
    scene.hold_jobs = true;
    scene.serve(ask);
    scene.serve(cancel);
    scene.run_jobs();
    assert!(!scene.client.iter().any(|one| one == ask));
    // And after it was asked, as often as the server likes.
    for _ in 0..2000 {
        assert_eq!(scene.serve(ask), [ask]);
        assert_eq!(scene.serve(cancel), [cancel]);
    }
    let before = scene.server.len();
    scene.send(answer);
    assert_eq!(scene.server.len(), before);
    assert_eq!(scene.faults(), ["client_answer_late"]);
    // The next one is answered.
    assert_eq!(scene.serve(ask), [ask]);
    scene.send(answer);
    assert_eq!(scene.server.last().unwrap(), answer);
    scene.verify();
}
