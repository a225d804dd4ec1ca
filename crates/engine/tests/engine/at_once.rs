//! Deciding and settling for a caller that must not wait.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use countersign_engine::{Engine, Haste, Start};
use countersign_event::EventType;

use super::start::{BEGUN, proposed, result, start};
use super::{Hands, Scene, engine, policies};

/// What comes of a call that is decided at once, if one can be.
fn start_at_once(
    engine: &Engine,
    scene: &Scene,
    haste: Haste,
    (call_id, tool, args): (&str, &str, &str),
) -> Option<Option<Start>> {
    let starting = proposed(scene, call_id, tool, args, |it| {
        engine.start_at_once(&it, haste)
    })?;
    Some(wait(starting))
}

fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::sleep(Duration::from_millis(1)),
        }
    }
}

#[test]
fn what_is_decided_and_settled_at_once_is_recorded_as_ever() {
    for haste in [Haste::Now, Haste::Here] {
        let [waited, at_once] = [Scene::new(), Scene::new()];
        for scene in [&waited, &at_once] {
            scene.run("c1", "read_file", "{}", "1");
        }
        let args = r#"{"path":"/b"}"#;
        let running = waited.running("c2", "read_file", args);
        let _recorded = waited.engine.settle(running, result("2")).unwrap();
        let refused = start(&waited.engine, &waited, "c3", "format_disk", "{}");
        assert!(matches!(refused, Start::Refusal(_)));

        let engine = &at_once.engine;
        let running = match start_at_once(engine, &at_once, haste, ("c2", "read_file", args)) {
            Some(Some(Start::Running(running))) => running,
            _ => panic!("c2 was not begun"),
        };
        assert!(running.covers(args.as_bytes()));
        assert!(engine.settle_at_once(running, result("2")).is_ok());
        let refused = start_at_once(engine, &at_once, haste, ("c3", "format_disk", "{}"));
        assert!(matches!(refused, Some(Some(Start::Refusal(_)))));
        assert_eq!(waited.events(), at_once.events());
        at_once.verify();
    }
}

/// An outcome that is only noted is counted by whatever comes next, whoever takes the state first.
#[test]
fn nothing_is_decided_without_an_outcome_that_was_told_of() {
    type Then = fn(&Scene);
    let ways: [(&str, Then); 5] = [
        ("the next decision", |_| {}),
        ("catching up", |scene| {
            assert!(scene.engine.catch_up(&scene.scope));
        }),
        ("catching up in turn", |scene| {
            scene.engine.catch_up_in_turn(&scene.scope).unwrap();
        }),
        ("flushing", |scene| scene.engine.flush().unwrap()),
        ("who asks for the state", |scene| {
            let (state, _) = scene.engine.snapshot(&scene.scope).unwrap();
            assert_eq!(state.open_calls().count(), 0);
        }),
    ];
    let waited = Scene::new();
    waited.run("c1", "read_file", "{}", "1");
    let _running = waited.running("c2", "read_file", r#"{"path":"/b"}"#);
    for (way, then) in ways {
        let scene = Scene::new();
        let running = scene.running("c1", "read_file", "{}");
        assert!(scene.engine.settle_at_once(running, result("1")).is_ok());
        then(&scene);
        let _running = scene.running("c2", "read_file", r#"{"path":"/b"}"#);
        assert_eq!(scene.events(), waited.events(), "{way}");
        scene.verify();
    }
}

#[test]
fn what_was_told_of_is_put_on_its_way_without_another_decision() {
    let scene = Scene::new();
    let running = scene.running("c1", "read_file", "{}");
    assert!(scene.engine.settle_at_once(running, result("1")).is_ok());
    assert_eq!(scene.kinds(), BEGUN);
    assert!(scene.engine.catch_up(&scene.scope));
    let began = Instant::now();
    while scene.kinds().len() == BEGUN.len() {
        assert!(began.elapsed() < Duration::from_secs(60), "never recorded");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(scene.kinds().last(), Some(&EventType::ToolResult));
}

/// A disk that refuses an outcome while nobody looks is noticed before the next decision.
#[test]
fn an_outcome_that_was_lost_while_catching_up_is_recorded_first() {
    let scene = Scene::new();
    let running = scene.running("c1", "read_file", "{}");
    scene.break_disk();
    assert!(scene.engine.settle_at_once(running, result("1")).is_ok());
    let _put_on_its_way = scene.engine.catch_up(&scene.scope);
    assert!(scene.engine.flush().is_err());
    assert!(!scene.engine.catch_up(&scene.scope));
    assert!(scene.engine.catch_up_in_turn(&scene.scope).is_err());
    let refused = start(&scene.engine, &scene, "c2", "read_file", r#"{"path":"/b"}"#);
    assert!(matches!(refused, Start::Refusal(_)));
    scene.mend_disk();
    scene.engine.catch_up_in_turn(&scene.scope).unwrap();
    let mut expected = BEGUN.to_vec();
    expected.push(EventType::ToolResult);
    assert_eq!(scene.kinds(), expected);
    scene.verify();
}

#[test]
fn where_somebody_has_to_be_waited_for_nothing_is_done() {
    for haste in [Haste::Now, Haste::Here] {
        let scene = Scene::new();
        let nothing = start_at_once(&scene.engine, &scene, haste, ("c1", "read_file", "{}"));
        assert!(nothing.is_none(), "the state of the session is not at hand");
        scene.run("c1", "read_file", "{}", "1");
        let before = scene.kinds();
        let nothing = start_at_once(&scene.engine, &scene, haste, ("c2", "deploy", "{}"));
        assert!(nothing.is_none(), "people have to be asked");
        assert_eq!(scene.kinds(), before);
        let held = start(&scene.engine, &scene, "c2", "deploy", "{}");
        assert!(matches!(held, Start::Hold(_)));
    }
}

#[test]
fn who_was_overtaken_has_decided_nothing() {
    for haste in [Haste::Now, Haste::Here] {
        let scene = Scene::new();
        scene.run("c1", "read_file", "{}", "1");
        let other = engine(scene.folder.path(), policies(), Hands::default());
        let theirs = start(&other, &scene, "c2", "read_file", r#"{"path":"/b"}"#);
        assert!(matches!(theirs, Start::Running(_)));
        let before = scene.kinds();
        let args = r#"{"path":"/c"}"#;
        let mine = start_at_once(&scene.engine, &scene, haste, ("c3", "read_file", args));
        assert!(matches!(mine, None | Some(None)));
        assert_eq!(scene.kinds(), before);
        let _running = scene.running("c3", "read_file", args);
        scene.verify();
    }
}

#[test]
fn nothing_is_permitted_at_once_that_cannot_be_recorded() {
    for haste in [Haste::Now, Haste::Here] {
        let scene = Scene::new();
        scene.run("c1", "read_file", "{}", "1");
        scene.break_disk();
        let refused = start_at_once(&scene.engine, &scene, haste, ("c2", "read_file", "{}"));
        assert!(matches!(refused, Some(Some(Start::Refusal(_)))));
        scene.mend_disk();
        assert!(!scene.kinds()[BEGUN.len() + 1..].contains(&EventType::ToolCallExecuted));
    }
}

#[test]
fn the_outcome_of_a_session_that_is_over_is_given_back() {
    let scene = Scene::new();
    let running = scene.running("c1", "read_file", "{}");
    let _recorded = scene.engine.terminate(&scene.scope, "over").unwrap();
    assert!(scene.engine.settle_at_once(running, result("1")).is_err());
}
