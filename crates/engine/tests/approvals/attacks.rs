//! Somebody who can write the data folder, and people who decide at the same time.

use std::path::PathBuf;

use countersign_approval::audit::{AuditChain, Condition, Evidence, SignedHead};
use countersign_approval::{Cast, Decision, DenyRule, Human, KeyStatus, SigningKey, State};
use countersign_engine::{Approvers, Engine, NotCounted, NotEdited, Redeemed, Wanted};
use countersign_store::Folder;

use crate::scene::{Scene, bytes_of, engine, json, permit, refusal};

impl Scene {
    /// What somebody does to the database behind our back.
    fn tamper(&self, sql: &str) {
        let database = Folder::new(self.folder.path()).database();
        let db = rusqlite::Connection::open(database).unwrap();
        db.execute_batch(sql).unwrap();
    }

    fn audit_file(&self, name: &str) -> PathBuf {
        self.folder.path().join("audit").join(name)
    }

    pub(crate) fn audit_condition(&self) -> Condition {
        let log = std::fs::read(self.audit_file("approvals.jsonl")).unwrap();
        let head = std::fs::read(self.audit_file("head.json")).unwrap();
        let secret = std::fs::read_to_string(self.folder.path().join("audit.key")).unwrap();
        let mut seed = [0; 32];
        base16ct::lower::decode(secret.trim(), &mut seed).unwrap();
        let head = SignedHead::read(head.trim_ascii_end()).unwrap();
        let evidence = Evidence {
            head: Some((head, SigningKey::from_bytes(&seed).verifying_key())),
            anchors: Vec::new(),
            must_be_signed: true,
        };
        AuditChain::verify(&log, evidence).condition()
    }
}

fn is_permitted(redeemed: &Redeemed) -> bool {
    matches!(redeemed, Redeemed::Permit(_))
}

#[test]
fn d05_not_even_without_its_tombstone_is_an_approval_used_twice() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    scene.approve(0, &envelope);
    scene.run(permit(scene.redeem(envelope.id())));
    scene.tamper(
        "DROP TRIGGER approvals_end_once; DROP TRIGGER spent_nonces_keep_rows;
         DELETE FROM spent_nonces; UPDATE approvals SET state = 'approved', owner = NULL",
    );
    assert!(!is_permitted(&scene.redeem(envelope.id())));
}

#[test]
fn a_row_that_says_approved_is_worth_nothing_without_signatures() {
    let scene = Scene::new(&["olga", "max"], 2);
    let envelope = scene.ask("c1");
    scene.tamper(
        "UPDATE approvals SET state = 'approved', decided_unix_ms = 0, ends_unix_ms = 9e15",
    );
    assert_eq!(
        refusal(scene.redeem(envelope.id())),
        "configuration_changed"
    );

    // One of two has signed, and his vote is counted again.
    scene.tamper("UPDATE approvals SET state = 'pending', ends_unix_ms = NULL");
    scene.approve(0, &envelope);
    scene.tamper(
        "UPDATE approvals SET state = 'approved', ends_unix_ms = 9e15;
         DROP INDEX approval_votes_by_approval;
         INSERT INTO events (session, seq, line, sealed)
             SELECT session, seq + 1000, line, sealed FROM events
             WHERE id = (SELECT max(event) FROM approval_votes);
         INSERT INTO approval_votes (event, approval)
             SELECT (SELECT max(id) FROM events), approval FROM approval_votes",
    );
    assert!(!is_permitted(&scene.redeem(envelope.id())));
}

#[test]
fn a_vote_on_one_request_does_not_count_for_another() {
    let scene = Scene::new(&["olga"], 1);
    let (small, large) = (scene.ask("c1"), scene.ask("c2"));
    scene.approve(0, &small);
    scene.tamper(&format!(
        "UPDATE approval_votes SET approval = '{}';
         UPDATE approvals SET state = 'approved', decided_unix_ms = 0, ends_unix_ms = 9e15",
        large.id()
    ));
    assert!(!is_permitted(&scene.redeem(large.id())));
}

#[test]
fn f07_a_row_with_more_time_than_was_signed_is_refused() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    scene.approve(0, &envelope);
    scene.wait(3_600_000);
    scene.tamper("UPDATE approvals SET ends_unix_ms = ends_unix_ms + 3600000");
    assert_eq!(refusal(scene.redeem(envelope.id())), "expired_unused");
}

#[test]
fn g04_an_audit_that_was_cut_in_the_database_too_is_not_continued() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    scene.approve(0, &envelope);
    assert_eq!(scene.audit_condition(), Condition::Intact);
    let file = scene.audit_file("approvals.jsonl");
    let lines = std::fs::read_to_string(&file).unwrap();
    let cut: Vec<&str> = lines.lines().collect();
    let cut = cut[..cut.len() - 1].join("\n") + "\n";
    std::fs::write(&file, &cut).unwrap();
    assert_ne!(scene.audit_condition(), Condition::Intact);
    scene.tamper(
        "DROP TRIGGER audit_keep_rows; DELETE FROM audit WHERE number = (SELECT max(number) FROM audit);
         CREATE TRIGGER audit_keep_rows BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END",
    );
    // Whoever comes next signs no end that hides it, and permits nothing.
    let scene = scene.restart();
    let redeemed = scene.redeem(envelope.id());
    let Redeemed::Failed(failed) = redeemed else {
        panic!("{redeemed:?}");
    };
    assert_eq!(failed.reason(), "runtime_error:audit_write_failed");
    assert_ne!(scene.audit_condition(), Condition::Intact);
}

#[test]
fn g04_a_head_from_before_is_found_or_written_anew() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    let old = std::fs::read(scene.audit_file("head.json")).unwrap();
    scene.approve(0, &envelope);
    std::fs::write(scene.audit_file("head.json"), old).unwrap();
    assert_ne!(scene.audit_condition(), Condition::Intact);
    let scene = scene.restart();
    scene.run(permit(scene.redeem(envelope.id())));
    assert_eq!(scene.audit_condition(), Condition::Intact);
    scene.verify();
}

#[test]
fn m04_a_key_that_is_not_on_the_list_decides_nothing() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    let mut agent = Scene::join(scene.folder.path());
    agent.keys[0].1 = SigningKey::from_bytes(&[77; 32]);
    for name in ["olga", "agent"] {
        agent.keys[0].0 = Human::new(name).unwrap();
        let refused = agent.vote(0, &envelope, Decision::Approved);
        assert!(matches!(refused, Err(NotCounted::Refused(_))), "{name}");
    }
    assert_eq!(scene.state(envelope.id()), State::Pending);
    let rejections = scene.audit();
    assert_eq!(rejections[1..], ["rejected:key", "rejected:key"]);
}

#[test]
fn j06_what_was_superseded_cannot_be_edited_again() {
    let scene = Scene::new(&["olga"], 1);
    let old = scene.ask("c1");
    let olga = Human::new("olga").unwrap();
    let new = scene
        .engine
        .edit(old.id(), json(r#"{"cents":1}"#), &olga, None);
    let again = scene
        .engine
        .edit(old.id(), json(r#"{"cents":2}"#), &olga, None);
    assert!(matches!(again, Err(NotEdited::Refused(_))), "{again:?}");
    assert_eq!(scene.state(new.unwrap().id()), State::Pending);
    scene.verify();
}

#[test]
fn n04_votes_at_the_same_time_decide_once() {
    for round in 0..24 {
        let names = ["olga", "max", "ines", "jo"];
        let scene = Scene::new(&names, 2);
        let envelope = scene.ask("c1");
        let other = engine(scene.folder.path(), &scene.clock);
        let engines: [&Engine; 2] = [&scene.engine, &other];
        // In every other round one of four denies, which is a veto.
        let veto = round % 2 == 1;
        let votes: Vec<Vec<u8>> = (0..names.len())
            .map(|who| {
                let decision = match who == 0 && veto {
                    true => Decision::Denied(None),
                    false => Decision::Approved,
                };
                scene.submission(who, &envelope, decision)
            })
            .collect();
        std::thread::scope(|threads| {
            for (who, vote) in votes.iter().enumerate() {
                let engine = engines[who % 2];
                threads.spawn(move || engine.vote(vote).unwrap());
            }
        });
        drop(other);
        let audit = scene.audit();
        let count = |outcome: &str| audit.iter().filter(|it| *it == outcome).count();
        assert_eq!(count("approved") + count("denied"), 1, "{audit:?}");
        let after = count("vote:late") + count("rejected:already_decided");
        assert_eq!(count("vote:counted") + after, 4, "{audit:?}");
        let state = scene.state(envelope.id());
        match state {
            State::Approved => drop(permit(scene.redeem(envelope.id()))),
            State::Denied => assert_eq!(refusal(scene.redeem(envelope.id())), "denied"),
            other => panic!("{other}"),
        }
        assert!(veto || state == State::Approved);
        scene.verify();
    }
}

#[test]
fn a_list_of_approvers_that_was_changed_behind_our_back_voids_what_was_asked() {
    let scene = Scene::new(&["olga", "max"], 2);
    let envelope = scene.ask("c1");
    scene.approve(0, &envelope);
    let mut approvers = Approvers::load(scene.folder.path()).unwrap();
    approvers.require(1, DenyRule::Veto).unwrap();
    approvers.save(scene.folder.path()).unwrap();
    let redeemed = scene
        .engine
        .redeem(envelope.id(), Wanted::default(), &bytes_of);
    assert_eq!(refusal(redeemed), "not_approved");
    assert!(scene.vote(1, &envelope, Decision::Approved).is_err());
    scene.verify();
}

#[test]
fn n06_votes_after_a_denial_are_recorded_and_change_nothing() {
    let scene = Scene::new(&["olga", "max", "ines"], 1);
    let envelope = scene.ask("c1");
    scene.vote(0, &envelope, Decision::Denied(None)).unwrap();
    let late = scene.vote(1, &envelope, Decision::Approved).unwrap();
    let agreeing = scene.vote(2, &envelope, Decision::Denied(None)).unwrap();
    assert_eq!(
        (late.cast, agreeing.cast),
        (Cast::AlreadyDecided, Cast::Late)
    );
    assert_eq!(scene.state(envelope.id()), State::Denied);
    let audit = scene.audit();
    assert_eq!(audit[3..], ["rejected:already_decided", "vote:late"]);
    scene.verify();
}

#[test]
fn a07_what_is_no_submission_at_all_is_in_the_audit_too() {
    let scene = Scene::new(&["olga"], 1);
    assert!(scene.engine.vote(b"{}").is_err());
    let envelope = scene.ask("c1");
    let vote = scene.submission(0, &envelope, Decision::Approved);
    let elsewhere = Scene::new(&["olga"], 1);
    assert!(elsewhere.engine.vote(&vote).is_err());
    assert_eq!(scene.audit()[0], "rejected:invalid_submission");
    assert_eq!(elsewhere.audit(), ["rejected:unknown_nonce"]);
    scene.verify();
    elsewhere.verify();
}

#[test]
fn who_was_shown_a_request_is_in_the_audit() {
    let scene = Scene::new(&["olga"], 1);
    let envelope = scene.ask("c1");
    let standing = scene.engine.approval(envelope.id()).unwrap().unwrap();
    let olga = Human::new("olga").unwrap();
    scene.engine.note_view(&standing, &olga).unwrap();
    let text = std::fs::read_to_string(scene.audit_file("approvals.jsonl")).unwrap();
    let line = json(text.lines().last().unwrap());
    let member = |name| {
        line.get(name)
            .and_then(|it| it.as_str())
            .unwrap()
            .to_owned()
    };
    assert_eq!(member("outcome"), "viewed");
    assert_eq!(member("actor"), "human:olga");
    assert_eq!(member("envelope_id"), envelope.id().to_string());
    let display = standing.rendering.display_sha256().to_string();
    assert_eq!(member("display_hash"), display);
    scene.verify();
}

#[test]
fn a_vote_that_came_late_decides_nothing_when_the_one_that_decided_is_taken_back() {
    let scene = Scene::new(&["olga", "max"], 1);
    let envelope = scene.ask("c1");
    scene.approve(0, &envelope);
    scene.wait(1_000);
    assert_eq!(scene.approve(1, &envelope).cast, Cast::Late);
    let mut approvers = Approvers::load(scene.folder.path()).unwrap();
    let key = approvers.keys()[0].key_id;
    approvers.end(key, KeyStatus::Retired).unwrap();
    let next = SigningKey::from_bytes(&[9; 32]).verifying_key();
    approvers.add(Human::new("olga").unwrap(), &next).unwrap();
    approvers.save(scene.folder.path()).unwrap();

    let before = scene.audit().len();
    let redeemed = scene.redeem(envelope.id());
    assert_eq!(refusal(redeemed), "configuration_changed");
    assert_eq!(scene.audit().len(), before + 1);
    assert_eq!(scene.state(envelope.id()), State::Approved);
    scene.verify();
}

#[test]
fn what_the_store_refuses_for_good_is_refused_once() {
    let scene = Scene::new(&["olga"], 1);
    let (late, spent) = (scene.ask("c1"), scene.ask("c2"));
    scene.approve(0, &late);
    scene.approve(0, &spent);
    let _never = permit(scene.redeem(spent.id()));
    // Somebody changed the row back, and another process has seen a later time than this one.
    scene.tamper(&format!(
        "UPDATE approvals SET state = 'approved' WHERE id = '{}';
         UPDATE clock SET latest_unix_ms =
             (SELECT ends_unix_ms FROM approvals WHERE id = '{}')",
        spent.id(),
        late.id()
    ));

    let before = scene.audit().len();
    assert!(matches!(scene.redeem(spent.id()), Redeemed::Replayed(_)));
    assert_eq!(refusal(scene.redeem(late.id())), "expired_unused");
    assert!(scene.audit().len() <= before + 2);
    scene.verify();
}
