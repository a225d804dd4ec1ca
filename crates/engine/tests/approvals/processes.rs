//! Processes that share a folder, and processes that are killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use countersign_approval::audit::Condition;
use countersign_approval::{Decision, State};
use countersign_engine::{Engine, Outcome, Redeemed, Wanted};
use countersign_store::{Folder, Observer, Options, Store};

use crate::children::{
    APPROVAL, Waiting, command, die, effect, effects, given_approval, given_folder, say,
    wait_for_go,
};
use crate::scene::{Scene, bytes_of, json, permit, policies, refusal};

/// `COUNTERSIGN_FULL` makes it a hundred rounds.
#[test]
fn d02_of_64_processes_one_wins() {
    let full = std::env::var_os("COUNTERSIGN_FULL").is_some();
    let rounds = if full { 100 } else { 3 };
    let mut scene = Scene::new(&["olga"], 1);
    for round in 0..rounds {
        // A session that has grown long is read back slowly by everybody who was overtaken.
        let ran = round % 10;
        if ran == 0 && round > 0 {
            std::mem::replace(&mut scene, Scene::new(&["olga"], 1)).verify();
        }
        let envelope = scene.ask(&format!("c{round}"));
        scene.approve(0, &envelope);
        let before = scene.audit().len();
        let mut children: Vec<Waiting> = (0..64)
            .map(|_| {
                let mut command = command("processes::child_redeems", scene.folder.path());
                command.env(APPROVAL, envelope.id().to_string());
                Waiting::start(command)
            })
            .collect();
        for child in &mut children {
            assert_eq!(child.hear().as_deref(), Some("ready"));
        }
        children.iter_mut().for_each(Waiting::go);
        let mut said = Vec::new();
        for child in children {
            let (words, _, errors) = child.end();
            assert_eq!(words.len(), 1, "{words:?}\n{errors}");
            said.extend(words);
        }
        said.sort_unstable();
        let replayed = said.iter().filter(|word| *word == "replayed").count();
        assert_eq!((said[63].as_str(), replayed), ("won", 63), "{said:?}");
        assert_eq!(effects(scene.folder.path()), ran + 1);
        scene = scene.restart();
        assert_eq!(scene.state(envelope.id()), State::Executed);
        // One of consumed, started and executed, and every replay.
        let audit = scene.audit();
        assert_eq!(audit.len() - before, 3 + 63, "{:?}", audit.get(before..));
    }
    scene.verify();
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_redeems() {
    let Some(folder) = given_folder() else { return };
    let scene = Scene::join(&folder);
    say("ready");
    wait_for_go();
    match scene.redeem(given_approval()) {
        Redeemed::Permit(permit) => {
            let bytes = permit.rewritten().unwrap().to_vec();
            let running = scene.engine.begin(permit, &bytes).unwrap();
            effect(&folder);
            let outcome = Outcome::Result {
                content: json("\"ok\""),
                is_error: false,
            };
            let _recorded = scene.engine.settle(running, outcome).unwrap();
            say("won");
        }
        Redeemed::Failed(failed) => say(failed.message()),
        other => say(refusal(other)),
    }
}

/// Where a process dies, what is true afterwards, and how often the tool ran.
const DEATHS: [(&str, State, usize); 7] = [
    ("before the vote", State::Pending, 0),
    ("before the use", State::Approved, 0),
    ("after the use", State::NotStarted, 0),
    ("after the beginning", State::Unknown, 0),
    ("after the effect", State::Unknown, 1),
    ("after the outcome", State::Executed, 1),
    ("after a failure", State::Failed, 1),
];

#[test]
fn e01_to_e04_killed_at_every_step_the_state_is_the_true_one() {
    for (death, state, ran) in DEATHS {
        let scene = Scene::new(&["olga"], 1);
        let Scene { folder, engine, .. } = scene;
        drop(engine);
        let mut command = command("processes::child_dies", folder.path());
        command.env(DEATH, death);
        let mut child = Waiting::start(command);
        let id = child.hear().unwrap().parse().unwrap();
        child.go();
        let (_, killed, errors) = child.end();
        assert!(killed, "{death}: {errors}");

        let scene = Scene::join(folder.path());
        let moved = matches!(state, State::NotStarted | State::Unknown);
        assert_eq!(
            scene.engine.sweep().unwrap().moved,
            usize::from(moved),
            "{death}"
        );
        assert_eq!(scene.state(id), state, "{death}");
        assert_eq!(effects(folder.path()), ran, "{death}");
        // Nothing is tried again by itself; what was not used can be.
        match state {
            State::Pending => {
                let envelope = scene.engine.approval(id).unwrap().unwrap().envelope;
                scene.approve(0, &envelope);
                scene.run(permit(scene.redeem(id)));
            }
            State::Approved => drop(scene.run(permit(scene.redeem(id)))),
            _ => assert_eq!(refusal(scene.redeem(id)), "replayed", "{death}"),
        }
        assert_audit_holds(folder.path());
        scene.verify();
    }
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_dies() {
    let Some(folder) = given_folder() else { return };
    let death = std::env::var(DEATH).unwrap();
    let at = |step: &str| {
        if step == death {
            die();
        }
    };
    let scene = Scene::join(&folder);
    let envelope = scene.ask("c1");
    say(&envelope.id().to_string());
    wait_for_go();
    at("before the vote");
    scene.vote(0, &envelope, Decision::Approved).unwrap();
    at("before the use");
    let permit = permit(
        scene
            .engine
            .redeem(envelope.id(), Wanted::default(), &bytes_of),
    );
    at("after the use");
    let bytes = permit.rewritten().unwrap().to_vec();
    let running = scene.engine.begin(permit, &bytes).unwrap();
    at("after the beginning");
    effect(&folder);
    at("after the effect");
    let outcome = match death.as_str() {
        "after a failure" => Outcome::Failed {
            code: "gone".to_owned(),
            message: "the tool is gone".to_owned(),
        },
        _ => Outcome::Result {
            content: json("\"ok\""),
            is_error: false,
        },
    };
    let _recorded = scene.engine.settle(running, outcome).unwrap();
    die();
}

/// Before its transaction is committed nothing has happened; once it is, everything has, and the next
/// process brings the copy of the audit up to date.
#[test]
fn a01_e01_killed_inside_a_change_all_of_it_has_happened_or_nothing() {
    let none: &[State] = &[];
    for (change, before, after) in [
        ("ask", none, &[State::Pending][..]),
        ("vote", &[State::Pending], &[State::Approved]),
        ("use", &[State::Approved], &[State::NotStarted]),
    ] {
        // What is in the queue may be written before the process is gone.
        for (step, states) in [
            ("Queued", &[before, after][..]),
            ("Written", &[before]),
            ("Synced", &[after]),
        ] {
            let scene = Scene::new(&["olga"], 1);
            let id = (change != "ask").then(|| scene.ask("c1").id());
            if change == "use" {
                let envelope = scene
                    .engine
                    .approval(id.unwrap())
                    .unwrap()
                    .unwrap()
                    .envelope;
                scene.approve(0, &envelope);
            }
            let Scene { folder, engine, .. } = scene;
            drop(engine);
            let mut command = command("processes::child_dies_inside", folder.path());
            command.env(DEATH, format!("{change} {step}"));
            if let Some(id) = id {
                command.env(APPROVAL, id.to_string());
            }
            let (_, killed, errors) = Waiting::start(command).end();
            assert!(killed, "{change} {step}: {errors}");

            let scene = Scene::join(folder.path());
            let _swept = scene.engine.sweep().unwrap();
            let rows = scene.engine.store().reader().newest_approvals(9).unwrap();
            let found: Vec<State> = rows.iter().map(|row| row.state).collect();
            assert!(
                states.contains(&found.as_slice()),
                "{change} {step}: {found:?}"
            );
            scene.ask("c2");
            assert_eq!(
                scene.audit_condition(),
                Condition::Intact,
                "{change} {step}"
            );
            scene.verify();
        }
    }
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_dies_inside() {
    let Some(folder) = given_folder() else { return };
    let death = std::env::var(DEATH).unwrap();
    let (change, step) = death.split_once(' ').unwrap();
    let armed = Arc::new(AtomicBool::new(false));
    let (wanted, trigger) = (step.to_owned(), Arc::clone(&armed));
    let observer: Observer = Arc::new(move |step| {
        if trigger.load(Ordering::SeqCst) && format!("{step:?}") == wanted {
            die();
        }
    });
    let mut scene = Scene::join(&folder);
    let options = Options {
        observer: Some(observer),
        ..Options::default()
    };
    let store = Store::open(&Folder::new(&folder), options).unwrap();
    scene.engine = Engine::new(store, policies(), scene.clock.clone());
    let act: Box<dyn FnOnce()> = match change {
        "ask" => Box::new(|| drop(scene.ask("c1"))),
        "vote" => {
            let standing = scene.engine.approval(given_approval()).unwrap().unwrap();
            let vote = scene.submission(0, &standing.envelope, Decision::Approved);
            let engine = scene.engine;
            Box::new(move || drop(engine.vote(&vote)))
        }
        _ => Box::new(|| drop(scene.redeem(given_approval()))),
    };
    armed.store(true, Ordering::SeqCst);
    act();
    say("it lives");
}

fn assert_audit_holds(folder: &std::path::Path) {
    use countersign_approval::audit::{AuditChain, Condition, Evidence};
    let log = std::fs::read(folder.join("audit/approvals.jsonl")).unwrap();
    let report = AuditChain::verify(&log, Evidence::default());
    assert_eq!(report.condition(), Condition::Intact, "{report:?}");
}

const DEATH: &str = "COUNTERSIGN_TEST_DEATH";
