//! Asking, deciding, the one use, time, and what changed meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};

use countersign_approval::{Class, Decision, DenyRule, Reason, State, Subject, SubjectKind};
use countersign_engine::{ApprovalTimes, Approvers, Origin, Precondition, Redeemed, Told, Wanted};
use countersign_event::EventType;
use countersign_event::payload::{ErrorRaised, Payload};
use countersign_policy::Policies;
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_store::Folder;

use crate::scene::{START, Scene, bytes_of, code, engine, permit, policies, refusal};

#[test]
fn every_change_of_an_approval_is_news_and_nothing_else_is() {
    let scene = Scene::new(&["olga"], 1);
    let mut all = vec![scene.engine.news().unwrap()];
    let mut changed = || {
        let now = scene.engine.news().unwrap();
        assert_eq!(scene.engine.latest_news(), Some(now));
        let is_new = !all.contains(&now);
        all.push(now);
        is_new
    };
    let (used, denied, left) = (scene.ask("c1"), scene.ask("c2"), scene.ask("c3"));
    assert!(changed());
    scene.approve(0, &used);
    assert!(changed());
    assert!(scene.vote(0, &denied, Decision::Denied(None)).is_ok() && changed());
    scene.run(permit(scene.redeem(used.id())));
    assert!(changed());
    scene.engine.cancel(left.id()).unwrap();
    assert!(changed());
    assert!(!changed());
    let event = Payload::ErrorRaised(ErrorRaised::default());
    let recorded = scene
        .engine
        .record(&scene.scope, EventType::ErrorRaised, event);
    assert!(recorded.is_ok() && !changed());
    scene.verify();
}

#[test]
fn what_was_approved_runs_once_with_the_stored_bytes() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    assert_eq!(scene.state(envelope.id()), State::Pending);
    assert_eq!(refusal(scene.redeem(envelope.id())), "not_approved");

    let voted = scene.approve(0, &envelope);
    assert_eq!((voted.state, voted.counted), (State::Approved, (1, 1)));
    let ran = scene.run(permit(scene.redeem(envelope.id())));
    assert_eq!(ran, br#"{"cents":500,"to":"c1"}"#);
    assert_eq!(scene.state(envelope.id()), State::Executed);
    assert_eq!(refusal(scene.redeem(envelope.id())), "replayed");
    assert_eq!(
        scene.audit(),
        [
            "requested",
            "rejected:not_approved",
            "vote:counted",
            "approved",
            "consumed",
            "started",
            "executed",
            "rejected:replayed"
        ]
    );
    scene.verify();
}

#[test]
fn j01_a_denial_reaches_the_agent_with_its_reason_and_nothing_runs() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    let reason = Reason::new("too dear").unwrap();
    let voted = scene
        .vote(0, &envelope, Decision::Denied(Some(reason)))
        .unwrap();
    assert_eq!(voted.state, State::Denied);
    assert_eq!(refusal(scene.redeem(envelope.id())), "denied");
    scene.verify();
}

#[test]
fn o05_without_anybody_to_ask_the_call_stays_held_and_says_so() {
    let scene = Scene::new(&[], 1);
    let hold = scene.hold("c1", "pay", "{}");
    let why = hold.approval.unwrap_err().to_string();
    assert!(why.starts_with("approval_unavailable"), "{why}");
    scene.verify();
}

#[test]
fn d01_of_64_threads_one_wins() {
    let rounds = if std::env::var_os("COUNTERSIGN_FULL").is_some() {
        100
    } else {
        3
    };
    let scene = Scene::new(&["olga"], 1);
    for round in 0..rounds {
        let envelope = scene.ask(&format!("c{round}"));
        scene.approve(0, &envelope);
        let before = scene.audit().len();
        let (won, replayed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|threads| {
            for _ in 0..64 {
                threads.spawn(|| match scene.redeem(envelope.id()) {
                    Redeemed::Permit(permit) => {
                        won.fetch_add(1, Ordering::SeqCst);
                        scene.run(permit);
                    }
                    other => {
                        assert_eq!(refusal(other), "replayed");
                        replayed.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!((won.into_inner(), replayed.into_inner()), (1, 63));
        // One of consumed, started and executed, and every replay.
        assert_eq!(scene.audit().len() - before, 3 + 63);
    }
    scene.verify();
}

#[test]
fn d03_two_engines_on_one_store_give_one_permit() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    scene.approve(0, &envelope);
    let other = engine(scene.folder.path(), &scene.clock);
    let first = other.redeem(envelope.id(), Wanted::default(), &bytes_of);
    assert!(matches!(first, Redeemed::Permit(_)));
    assert_eq!(refusal(scene.redeem(envelope.id())), "replayed");
    drop(first);
    drop(other);
    scene.verify();
}

#[test]
fn d05_a_row_that_was_changed_back_is_not_believed() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    scene.approve(0, &envelope);
    scene.run(permit(scene.redeem(envelope.id())));
    let Scene { folder, engine, .. } = &scene;
    let _ = engine;
    let db = rusqlite::Connection::open(Folder::new(folder.path()).database()).unwrap();
    db.execute_batch("DROP TRIGGER approvals_end_once; UPDATE approvals SET state = 'approved'")
        .unwrap();
    drop(db);
    match scene.redeem(envelope.id()) {
        Redeemed::Failed(_) => {}
        other => assert_eq!(refusal(other), "replayed"),
    }
}

#[test]
fn f01_the_last_millisecond_counts() {
    let times = ApprovalTimes::default();
    let (within, execute) = (times.decide_within_ms.unwrap(), times.execute_within_ms);
    let scene = Scene::new(&["olga"], 1);
    let (early, late) = (scene.ask("c1"), scene.ask("c2"));
    scene.wait(within - 1);
    scene.approve(0, &early);
    scene.wait(1);
    assert_eq!(code(scene.vote(0, &late, Decision::Approved)), "expired");
    assert_eq!(scene.engine.sweep().unwrap().moved, 1);
    assert_eq!(scene.state(late.id()), State::Expired);

    scene.wait(execute - 2);
    scene.run(permit(scene.redeem(early.id())));
    let unused = scene.ask("c3");
    scene.approve(0, &unused);
    scene.wait(execute);
    assert_eq!(refusal(scene.redeem(unused.id())), "expired_unused");
    assert_eq!(scene.engine.sweep().unwrap().moved, 1);
    assert_eq!(scene.state(unused.id()), State::ExpiredUnused);
    scene.verify();
}

#[test]
fn f02_a_clock_that_is_set_back_revives_nothing_not_even_after_a_restart() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    scene.wait(3_600_001);
    let other = scene.ask("c2");
    scene.clock.0.store(START, Ordering::SeqCst);
    assert_eq!(
        code(scene.vote(0, &envelope, Decision::Approved)),
        "expired"
    );
    let scene = scene.restart();
    assert_eq!(
        code(scene.vote(0, &envelope, Decision::Approved)),
        "expired"
    );
    // The approver's own clock is now an hour behind ours.
    assert_eq!(
        code(scene.vote(0, &other, Decision::Approved)),
        "clock_skew"
    );
    scene.verify();
}

#[test]
fn a04_other_policies_are_another_context() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    scene.approve(0, &envelope);
    let other = Policies::new(Capability::new(None).unwrap());
    scene.engine.replace_policies(other);
    assert_eq!(refusal(scene.redeem(envelope.id())), "context_drift");
    scene.engine.replace_policies(policies());
    // Nothing was used up.
    scene.run(permit(scene.redeem(envelope.id())));
    scene.verify();
}

#[test]
fn a05_another_folder_under_the_same_path_is_another_context() {
    let mut scene = Scene::new(&["olga"], 1);
    let work = crate::replayed::folder();
    let (folder, moved) = (work.path().join("w"), work.path().join("old"));
    std::fs::create_dir(&folder).unwrap();
    scene.origin = Origin::new("root", "agent", &folder).unwrap();
    let envelope = scene.ask("c1");
    scene.approve(0, &envelope);
    std::fs::rename(&folder, &moved).unwrap();
    std::fs::create_dir(&folder).unwrap();
    assert_eq!(refusal(scene.redeem(envelope.id())), "context_drift");
    scene.verify();
}

#[test]
fn a05_another_folder_than_the_approved_one_is_another_context() {
    let mut scene = Scene::new(&["olga"], 1);
    let work = crate::replayed::folder();
    let [folder, other] = ["w", "other"].map(|name| work.path().join(name));
    std::fs::create_dir(&folder).unwrap();
    std::fs::create_dir(&other).unwrap();
    scene.origin = Origin::new("root", "agent", &folder).unwrap();
    let envelope = scene.ask("c1");
    scene.approve(0, &envelope);
    let redeem = |folder: &std::path::Path| {
        let wanted = Wanted {
            folder: Some(folder),
            ..Wanted::default()
        };
        scene.engine.redeem(envelope.id(), wanted, &bytes_of)
    };
    assert_eq!(refusal(redeem(&other)), "context_drift");
    assert_eq!(scene.audit().last().unwrap(), "rejected:mismatch");
    assert_eq!(scene.state(envelope.id()), State::Approved);
    // Another name of the same folder is the same folder.
    let link = work.path().join("link");
    std::os::unix::fs::symlink(&folder, &link).unwrap();
    scene.run(permit(redeem(&link)));
    scene.verify();
}

#[test]
fn a06_what_only_a_door_can_look_at_is_what_it_was_or_nothing_runs() {
    let scene = Scene::new(&["olga"], 1);
    let told = |value: &str| {
        Precondition::Told(Told {
            name: "command".to_owned(),
            value: value.to_owned(),
        })
    };
    let hold = scene.hold_if("c1", "write_file", "{}", vec![told("'make'")]);
    let envelope = hold.approval.unwrap();
    let shown = scene.engine.approval(envelope.id()).unwrap().unwrap();
    assert!(shown.rendering.text().contains("«'make'»"));
    scene.approve(0, &envelope);
    let redeem = |preconditions: &[Precondition]| {
        let wanted = Wanted {
            preconditions,
            ..Wanted::default()
        };
        scene.engine.redeem(envelope.id(), wanted, &bytes_of)
    };
    let file = Precondition::Seen(Subject {
        kind: SubjectKind::File,
        name: "/etc/passwd".to_owned(),
    });
    for other in [
        vec![],
        vec![told("'make' 'all'")],
        // A file that the plan does not name was not there, or was not looked at.
        vec![told("'make'"), file],
    ] {
        assert_eq!(refusal(redeem(&other)), "precondition_failed", "{other:?}");
        assert_eq!(scene.state(envelope.id()), State::Approved);
    }
    scene.run(permit(redeem(&[told("'make'")])));
    scene.verify();
}

#[test]
fn a06_a_file_that_changed_since_it_was_shown_stops_the_action() {
    let scene = Scene::new(&["olga"], 1);
    let file = scene.folder.path().join("target.txt");
    std::fs::write(&file, "before").unwrap();
    let subject = Subject {
        kind: SubjectKind::File,
        name: file.to_str().unwrap().to_owned(),
    };
    let hold = scene.hold_if("c1", "write_file", "{}", vec![Precondition::Seen(subject)]);
    let envelope = hold.approval.unwrap();
    scene.approve(0, &envelope);
    std::fs::write(&file, "after").unwrap();
    assert_eq!(refusal(scene.redeem(envelope.id())), "precondition_failed");
    assert_eq!(scene.state(envelope.id()), State::Approved);
    // A door that starts something looks once more itself.
    let standing = scene.engine.approval(envelope.id()).unwrap().unwrap();
    assert!(standing.look_again().is_err());
    std::fs::write(&file, "before").unwrap();
    assert!(standing.look_again().is_ok());
    scene.run(permit(scene.redeem(envelope.id())));
    scene.verify();
}

#[test]
fn n01_the_same_person_twice_is_one() {
    let scene = Scene::new(&["olga", "max", "eva"], 2);
    let envelope = scene.ask("c1");
    assert_eq!(scene.approve(0, &envelope).state, State::Pending);
    assert_eq!(scene.approve(0, &envelope).state, State::Pending);
    assert_eq!(refusal(scene.redeem(envelope.id())), "not_approved");
    assert_eq!(scene.approve(1, &envelope).state, State::Approved);
    scene.run(permit(scene.redeem(envelope.id())));
    scene.verify();
}

#[test]
fn n03_one_denial_is_enough_and_n05_another_roster_asks_again() {
    let scene = Scene::new(&["olga", "max"], 2);
    let (denied, changed) = (scene.ask("c1"), scene.ask("c2"));
    scene.approve(0, &denied);
    let voted = scene.vote(1, &denied, Decision::Denied(None)).unwrap();
    assert_eq!(voted.state, State::Denied);

    scene.approve(0, &changed);
    let mut approvers = Approvers::load(scene.folder.path()).unwrap();
    approvers.require(1, DenyRule::Veto).unwrap();
    approvers.save(scene.folder.path()).unwrap();
    assert_eq!(
        code(scene.vote(1, &changed, Decision::Approved)),
        "configuration_changed"
    );
    scene.verify();
}

#[test]
fn k06_a_key_that_was_revoked_takes_its_vote_with_it() {
    let scene = Scene::new(&["olga", "max"], 1);
    let envelope = scene.ask("c1");
    scene.approve(0, &envelope);
    let mut approvers = Approvers::load(scene.folder.path()).unwrap();
    let key = approvers.keys()[0].key_id;
    approvers
        .end(key, countersign_approval::KeyStatus::Revoked)
        .unwrap();
    approvers.save(scene.folder.path()).unwrap();
    assert!(!matches!(scene.redeem(envelope.id()), Redeemed::Permit(_)));
    assert_eq!(scene.state(envelope.id()), State::Approved);
    scene.verify();
}

#[test]
fn a07_bad_submissions_never_cost_a_good_approval() {
    let scene = Scene::new(&["olga", "max"], 1);
    let envelope = scene.ask("c1");
    let good = scene.submission(0, &envelope, Decision::Approved);
    for at in (0..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(scene.engine.vote(&bad).is_err(), "byte {at}");
    }
    assert_eq!(scene.state(envelope.id()), State::Pending);
    assert_eq!(scene.engine.vote(&good).unwrap().state, State::Approved);
    scene.verify();
}

#[test]
fn e02_to_e04_what_a_process_did_not_finish_is_told_truly() {
    let scene = Scene::new(&["olga"], 1);
    let (consumed, started) = (scene.ask("c1"), scene.ask("c2"));
    scene.approve(0, &consumed);
    scene.approve(0, &started);
    let first = permit(scene.redeem(consumed.id()));
    let second = permit(scene.redeem(started.id()));
    let bytes = second.rewritten().unwrap().to_vec();
    let running = scene.engine.begin(second, &bytes).unwrap();
    // The owner lives, so nobody speaks for it.
    let other = engine(scene.folder.path(), &scene.clock);
    assert_eq!(other.sweep().unwrap().moved, 0);
    drop(other);

    drop((first, running));
    let scene = scene.restart();
    assert_eq!(scene.engine.sweep().unwrap().moved, 2);
    assert_eq!(scene.state(consumed.id()), State::NotStarted);
    assert_eq!(scene.state(started.id()), State::Unknown);
    assert_eq!(refusal(scene.redeem(consumed.id())), "replayed");
    assert_eq!(refusal(scene.redeem(started.id())), "replayed");
    scene.verify();
}

#[test]
fn e05_without_an_audit_nothing_runs_and_the_use_is_gone() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    scene.approve(0, &envelope);
    let kept = scene.lose_audit();
    match scene.redeem(envelope.id()) {
        Redeemed::Failed(refusal) => {
            assert_eq!(refusal.reason(), "runtime_error:audit_write_failed")
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(scene.state(envelope.id()), State::Consumed);
    // Mended, the file gets what it missed.
    scene.mend_audit(&kept);
    assert_eq!(refusal(scene.redeem(envelope.id())), "replayed");
    assert_eq!(scene.audit().last().unwrap(), "rejected:replayed");
    scene.verify();
}

#[test]
fn a_request_that_was_taken_back_is_over() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    assert!(scene.engine.cancel(envelope.id()).unwrap());
    assert!(!scene.engine.cancel(envelope.id()).unwrap());
    assert_eq!(
        code(scene.vote(0, &envelope, Decision::Approved)),
        "cancelled"
    );
    assert_eq!(refusal(scene.redeem(envelope.id())), "cancelled");
    scene.verify();
}

#[test]
fn a_command_that_may_change_something_is_not_shown_as_reading() {
    let scene = Scene::new(&["ann"], 1);
    let manifest = "schema: countersign/manifest/v1\nname: m\nversion: 1.0.0\npublisher: acme\n\
        permissions:\n  tools: {exec: {side_effect: read}}\n  exec: {allowed_bins: [rm]}\n\
        sandbox: {required: true}\n";
    let manifest = Manifest::read(manifest.as_bytes()).unwrap();
    let policies = Policies::new(Capability::new(Some(manifest)).unwrap());
    scene.engine.replace_policies(policies);
    let hold = scene.hold("c1", "exec", r#"{"cmd":"rm x"}"#);
    assert_eq!(hold.verdict.reason(), Some("SIDE_EFFECT_UNKNOWN"));
    let envelope = hold.approval.unwrap();
    let class = envelope.plan().calls()[0].class;
    assert_eq!(class.effect, Class::UNKNOWN.effect);
}

#[test]
fn a_use_that_was_taken_and_not_begun_has_not_started() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    scene.approve(0, &envelope);
    let unused = permit(scene.redeem(envelope.id()));
    scene.engine.abandon(unused).unwrap();
    assert_eq!(scene.state(envelope.id()), State::NotStarted);
    // It was for once, although nothing ran.
    assert_eq!(refusal(scene.redeem(envelope.id())), "replayed");
    scene.verify();
}
