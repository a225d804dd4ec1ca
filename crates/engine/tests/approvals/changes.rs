//! Edits, arguments that drifted, trying again, and what is kept for how long.

use countersign_approval::{ApprovalMode, Arguments, Decision, Human, Nonce, State, Tool};
use countersign_engine::{ApprovalTimes, NotEdited, Redeemed, Wanted};
use countersign_store::Folder;

use crate::scene::{Scene, bytes_of, code, engine, json, permit, refusal};

fn args(text: &str) -> Arguments {
    Arguments::admit(text.as_bytes()).unwrap()
}

fn pay() -> Tool {
    Tool {
        server: None,
        name: "pay".to_owned(),
        definition: None,
    }
}

#[test]
fn j06_an_edit_is_a_new_request_and_the_old_one_is_superseded() {
    let scene = Scene::new(&["olga"], 1);
    let old = scene.ask("c1");
    let olga = Human::new("olga").unwrap();
    let edited = json(r#"{"cents":1,"to":"c1"}"#);
    let new = scene.engine.edit(old.id(), edited, &olga, None).unwrap();
    assert_eq!(new.supersedes(), Some(old.id()));
    assert_ne!(new.plan().hash(), old.plan().hash());
    assert_eq!(scene.state(old.id()), State::Superseded);
    assert_eq!(scene.state(new.id()), State::Pending);

    assert_eq!(code(scene.vote(0, &old, Decision::Approved)), "superseded");
    assert_eq!(refusal(scene.redeem(old.id())), "superseded");
    assert_eq!(refusal(scene.redeem(new.id())), "not_approved");
    scene.approve(0, &new);
    let ran = scene.run(permit(scene.redeem(new.id())));
    assert_eq!(ran, br#"{"cents":1,"to":"c1"}"#);
    let audit = scene.audit();
    assert_eq!(audit[..3], ["requested", "superseded", "requested"]);
    let again = scene.engine.edit(new.id(), json("{}"), &olga, None);
    assert!(matches!(again, Err(NotEdited::Refused(_))), "{again:?}");
    scene.verify();
}

#[test]
fn j06_an_edit_of_an_approved_request_needs_a_new_approval() {
    let scene = Scene::new(&["olga"], 1);
    let old = scene.ask("c1");
    scene.approve(0, &old);
    let olga = Human::new("olga").unwrap();
    let new = scene
        .engine
        .edit(old.id(), json("{}"), &olga, None)
        .unwrap();
    assert_eq!(refusal(scene.redeem(old.id())), "superseded");
    assert_eq!(refusal(scene.redeem(new.id())), "not_approved");
    scene.verify();
}

#[test]
fn j06_an_edit_that_policy_denies_is_refused_and_the_request_stays() {
    let scene = Scene::new(&["olga"], 1);
    let hold = scene.hold("c1", "send", r#"{"url":"https://api.example.com/"}"#);
    let old = hold.approval.unwrap();
    let olga = Human::new("olga").unwrap();
    let outside = json(r#"{"url":"https://evil.example/"}"#);
    let refused = scene.engine.edit(old.id(), outside, &olga, None);
    assert!(matches!(refused, Err(NotEdited::Denied(_))), "{refused:?}");
    let list = scene.engine.edit(old.id(), json("[]"), &olga, None);
    assert!(matches!(list, Err(NotEdited::Arguments(_))), "{list:?}");
    assert_eq!(scene.state(old.id()), State::Pending);
    scene.verify();
}

#[test]
fn a03_arguments_that_drifted_are_denied_with_both_digests_and_asked_for_anew() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    scene.approve(0, &envelope);
    let changed = args(r#"{"cents":50000,"to":"c1"}"#);
    let wanted = Wanted {
        tool: None,
        args: Some(&changed),
        ..Wanted::default()
    };
    let drifted = match scene.engine.redeem(envelope.id(), wanted, &bytes_of) {
        Redeemed::Drifted(drifted) => drifted,
        other => panic!("{other:?}"),
    };
    let approved = envelope.plan().calls()[0].args.digest();
    assert_eq!(drifted.drift.approved_args_digest, approved);
    assert_eq!(drifted.drift.observed_args_digest, changed.digest());
    assert_eq!(scene.state(envelope.id()), State::Approved);
    assert_eq!(scene.audit().last().unwrap(), "rejected:mismatch");
    let text = std::fs::read_to_string(scene.folder.path().join("audit/approvals.jsonl")).unwrap();
    let line = text.lines().last().unwrap();
    assert!(line.contains(&approved.to_string()) && line.contains(&changed.digest().to_string()));

    // Whoever asks for the changed call asks for another action, also after a restart.
    let scene = scene.restart();
    let again = scene.hold("c2", "pay", r#"{"cents":50000,"to":"c1"}"#);
    let again = again.approval.unwrap();
    assert_eq!(again.parent_action(), Some(drifted.action));
    assert_eq!(again.mode(), ApprovalMode::ReApprovalOnDrift);
    let other = scene.hold("c3", "pay", r#"{"cents":50001,"to":"c1"}"#);
    assert_eq!(other.approval.unwrap().parent_action(), None);

    // The approval was not used up.
    let same = args(r#"{"to":"c1","cents":500}"#);
    let wanted = Wanted {
        tool: None,
        args: Some(&same),
        ..Wanted::default()
    };
    let permit = permit(scene.engine.redeem(envelope.id(), wanted, &bytes_of));
    assert_eq!(permit.mode(), ApprovalMode::OneShotPayload);
    scene.run(permit);
    scene.approve(0, &again);
    let permit = crate::scene::permit(scene.redeem(again.id()));
    assert_eq!(permit.mode(), ApprovalMode::ReApprovalOnDrift);
    scene.run(permit);
    scene.verify();
}

#[test]
fn a_retry_finds_exactly_what_was_approved() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    let wanted = args(r#"{"to":"c1","cents":500}"#);
    let find = |tool: &Tool, args: &Arguments| {
        let found = scene.engine.matching(&scene.scope, tool, args, &[]);
        found.unwrap()
    };
    assert_eq!(find(&pay(), &wanted), None);
    scene.approve(0, &envelope);
    assert_eq!(find(&pay(), &wanted), Some(envelope.id()));
    let others = [envelope.id()];
    let found = scene
        .engine
        .matching(&scene.scope, &pay(), &wanted, &others);
    assert_eq!(found.unwrap(), None);
    assert_eq!(find(&pay(), &args(r#"{"cents":501,"to":"c1"}"#)), None);
    let other = Tool {
        server: Some("bank".to_owned()),
        ..pay()
    };
    assert_eq!(find(&other, &wanted), None);
    scene.wait(3_600_000);
    assert_eq!(find(&pay(), &wanted), None);
    scene.verify();
}

#[test]
fn d04_a_used_approval_gives_what_came_of_it_and_runs_nothing() {
    let scene = Scene::new(&["olga"], 1);
    let (ran, consumed) = (scene.ask("c1"), scene.ask("c2"));
    scene.approve(0, &ran);
    scene.approve(0, &consumed);
    scene.run(permit(scene.redeem(ran.id())));
    let _never = permit(scene.redeem(consumed.id()));
    let replay = |id| match scene.redeem(id) {
        Redeemed::Replayed(replay) => *replay,
        other => panic!("{other:?}"),
    };
    let first = replay(ran.id());
    assert_eq!(first.state, State::Executed);
    let result = first.result.unwrap();
    assert_eq!((result.content, result.is_error), (json("\"ok\""), false));
    let second = replay(consumed.id());
    assert_eq!((second.state, second.result), (State::Consumed, None));
    scene.verify();
}

#[test]
fn d06_what_is_over_is_forgotten_in_time_and_its_nonce_never() {
    let scene = Scene::new(&["olga"], 1);
    let (expired, used, waiting) = (scene.ask("c1"), scene.ask("c2"), scene.ask("c3"));
    scene.approve(0, &used);
    scene.run(permit(scene.redeem(used.id())));
    scene.approve(0, &waiting);
    scene.wait(3_600_000);
    assert_eq!(scene.engine.sweep().unwrap().moved, 2);
    assert_eq!(scene.engine.prune().unwrap(), 0);
    let keep = ApprovalTimes::default().keep_ms;
    scene.wait(keep - 3_600_000);
    assert_eq!(scene.engine.prune().unwrap(), 1);
    scene.wait(3_600_000);
    let fresh = scene.ask("c4");
    assert_eq!(scene.engine.prune().unwrap(), 2);
    assert!(scene.engine.approval(expired.id()).unwrap().is_none());
    assert_eq!(refusal(scene.redeem(used.id())), "unknown_nonce");
    assert_eq!(scene.state(fresh.id()), State::Pending);

    let database = Folder::new(scene.folder.path()).database();
    let db = rusqlite::Connection::open(database).unwrap();
    let insert = |nonce: Nonce| {
        db.execute(
            "INSERT INTO approvals (id, nonce, session, seq, plan_hash, state, issued_unix_ms)
             VALUES (?1, ?2, 1, 0, 'x', 'approved', 0)",
            (format!("apr_{nonce}"), nonce.to_string()),
        )
    };
    for nonce in [
        expired.nonce(),
        used.nonce(),
        waiting.nonce(),
        fresh.nonce(),
    ] {
        let refused = insert(nonce).unwrap_err().to_string();
        assert!(refused.contains("an approval is made once"), "{refused}");
    }
    drop(db);
    scene.verify();
}

#[test]
fn d07_an_engine_that_would_forget_too_soon_is_not_made() {
    let scene = Scene::new(&["olga"], 1);
    let times = ApprovalTimes {
        decide_within_ms: Some(1000),
        execute_within_ms: 1000,
        skew_ms: 500,
        keep_ms: 2500,
    };
    let made = |times| engine(scene.folder.path(), &scene.clock).with_times(times);
    assert!(made(times).is_ok());
    let short = ApprovalTimes {
        keep_ms: 2499,
        ..times
    };
    let refused = made(short).map(drop).unwrap_err().to_string();
    assert_eq!(
        refused,
        "approvals are kept for 2499 ms, but must be kept for at least 2500 ms"
    );
}
