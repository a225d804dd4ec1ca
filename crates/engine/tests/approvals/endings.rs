//! What becomes of requests when their session ends, and of those that cannot be ended.

use std::sync::atomic::{AtomicUsize, Ordering};

use countersign_approval::{Decision, State};
use countersign_engine::NotEdited;
use countersign_event::payload::{Payload, Termination};
use countersign_event::{EventType, Scope};
use countersign_store::Draft;

use crate::scene::{START, Scene, code, json, permit, refusal};

/// The end of a session as a door writes it that knows nothing of approvals.
fn end_bluntly(scene: &Scene) {
    let draft = Draft {
        scope: scene.scope.clone(),
        ts_unix_ms: START,
        event_type: EventType::Termination,
        payload: Payload::Termination(Termination::default()),
    };
    let _recorded = scene.store().record(draft).unwrap();
}

#[test]
fn the_end_of_a_session_takes_back_what_it_has_asked_for() {
    let scene = Scene::new(&["olga"], 1);
    let (pending, approved, used) = (scene.ask("c1"), scene.ask("c2"), scene.ask("c3"));
    scene.approve(0, &approved);
    scene.approve(0, &used);
    scene.run(permit(scene.redeem(used.id())));
    let _recorded = scene.engine.terminate(&scene.scope, "client_left").unwrap();
    assert_eq!(scene.state(pending.id()), State::Cancelled);
    assert_eq!(scene.state(approved.id()), State::Cancelled);
    assert_eq!(scene.state(used.id()), State::Executed);
    assert_eq!(
        code(scene.vote(0, &pending, Decision::Approved)),
        "cancelled"
    );
    assert_eq!(refusal(scene.redeem(approved.id())), "cancelled");
    let again = scene.engine.terminate(&scene.scope, "client_left");
    assert_eq!(again.unwrap_err().reason(), "runtime_error:order");
    // The withdrawals are in the session itself, before its end.
    let events = scene.engine.store().reader().session(&scene.scope);
    assert!(events.unwrap().unwrap().terminated);
    scene.verify();
}

#[test]
fn what_a_session_left_behind_leaves_the_list_and_keeps_nobody_from_the_others() {
    let mut scene = Scene::new(&["olga"], 1);
    let (pending, approved, begun) = (scene.ask("c1"), scene.ask("c2"), scene.ask("c3"));
    scene.approve(0, &approved);
    scene.approve(0, &begun);
    drop(permit(scene.redeem(begun.id())));
    end_bluntly(&scene);
    scene.scope = Scope::new("t", "other").unwrap();
    let other = scene.ask("d1");
    let scene = scene.restart();

    let swept = scene.engine.sweep().unwrap();
    assert!(swept.failed.is_empty(), "{:?}", swept.failed);
    assert_eq!(swept.moved, 3);
    assert_eq!(scene.state(pending.id()), State::Cancelled);
    assert_eq!(scene.state(approved.id()), State::Cancelled);
    assert_eq!(scene.state(begun.id()), State::NotStarted);
    scene.approve(0, &other);
    scene.run(permit(scene.redeem(other.id())));
    scene.verify();
}

#[test]
fn whoever_decides_about_a_closed_session_is_told_so() {
    let scene = Scene::new(&["olga", "max"], 2);
    let (first, second, late) = (scene.ask("c1"), scene.ask("c2"), scene.ask("c3"));
    for who in 0..2 {
        scene.approve(who, &second);
        scene.approve(who, &late);
    }
    scene.run(permit(scene.redeem(late.id())));
    end_bluntly(&scene);
    let scene = scene.restart();
    assert_eq!(
        code(scene.vote(0, &first, Decision::Approved)),
        "session_over"
    );
    assert_eq!(scene.state(first.id()), State::Cancelled);
    assert_eq!(code(scene.vote(1, &first, Decision::Approved)), "cancelled");
    assert_eq!(refusal(scene.redeem(second.id())), "session_over");
    assert_eq!(scene.state(second.id()), State::Cancelled);
    assert_eq!(refusal(scene.redeem(late.id())), "replayed");
    scene.verify();
}

#[test]
fn a_closed_session_is_not_asked_again() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    end_bluntly(&scene);
    let scene = scene.restart();
    let edited = json(r#"{"cents":1,"to":"c1"}"#);
    match scene
        .engine
        .edit(envelope.id(), edited, &scene.keys[0].0, None)
    {
        Err(NotEdited::Refused(refusal)) => assert_eq!(refusal.code(), "session_over"),
        other => panic!("{other:?}"),
    }
    assert_eq!(scene.state(envelope.id()), State::Cancelled);
    scene.verify();
}

#[test]
fn one_request_that_cannot_be_ended_is_told_of_and_the_others_end() {
    let mut scene = Scene::new(&["olga"], 1);
    let (bad, good) = (scene.ask("c1"), scene.ask("c2"));
    scene.scope = Scope::new("t", "erased").unwrap();
    let erased = scene.ask("d1");
    scene.wait(3_600_001);
    let database = countersign_store::Folder::new(scene.folder.path()).database();
    let db = rusqlite::Connection::open(database).unwrap();
    db.execute_batch("DROP TRIGGER approvals_keep_identity")
        .unwrap();
    let other = good.plan().hash().to_string();
    let changed = "UPDATE approvals SET plan_hash = ?1 WHERE id = ?2";
    db.execute(changed, (other, bad.id().to_string())).unwrap();
    drop(db);
    scene.store().erase(&scene.scope, START).unwrap();

    let swept = scene.engine.sweep().unwrap();
    let failed: Vec<_> = swept.failed.iter().map(|(id, _)| *id).collect();
    assert_eq!((swept.moved, failed), (2, vec![bad.id()]));
    assert_eq!(scene.state(good.id()), State::Expired);
    let row = scene.engine.store().reader().approval(erased.id());
    assert_eq!(row.unwrap().unwrap().state, State::Expired);
}

#[test]
fn what_is_taken_back_stays_so_however_close_a_vote_comes() {
    let scene = Scene::new(&["olga"], 1);
    let taken = AtomicUsize::new(0);
    for round in 0..40 {
        let envelope = scene.ask(&format!("c{round}"));
        let vote = scene.submission(0, &envelope, Decision::Approved);
        std::thread::scope(|threads| {
            threads.spawn(|| scene.engine.vote(&vote));
            threads.spawn(|| {
                let cancelled = scene.engine.cancel(envelope.id()).unwrap();
                taken.fetch_add(usize::from(cancelled), Ordering::SeqCst);
            });
        });
        assert_eq!(scene.state(envelope.id()), State::Cancelled, "{round}");
    }
    assert_eq!(taken.into_inner(), 40);
    scene.verify();
}
