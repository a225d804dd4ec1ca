//! The desk: people decide without the policies of the door, and the list of approvers is audited.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

#[path = "../../../tests/replayed.rs"]
mod replayed;

use countersign_approval::{
    BallotPaper, CallDecision, Decision, DenyRule, Envelope, Human, KeyStatus, Reason, SigningKey,
    State, UnixMs,
};
use countersign_canon::{Json, Limits};
use countersign_engine::{
    Admission, Approvers, Clock, Desk, Engine, NotChanged, NotEdited, Origin, Proposal, Redeemed,
    SystemClock, Wanted,
};
use countersign_event::Scope;
use countersign_policy::Policies;
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_store::{Folder, Options, Store};

const MANIFEST: &str = r#"{"permissions":{"tools":["pay"],"approval_required":["pay"]}}"#;

fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

fn store(folder: &replayed::Kept) -> Store {
    Store::open(&Folder::new(folder.path()), Options::default()).unwrap()
}

fn desk(folder: &replayed::Kept) -> Desk {
    Desk::new(store(folder), SystemClock).unwrap()
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn dana() -> Human {
    Human::new("dana").unwrap()
}

fn add(desk: &Desk, seed: u8) {
    desk.change_approvers(Some(&dana()), |list| {
        list.add(dana(), &key(seed).verifying_key()).map(drop)
    })
    .unwrap();
}

fn audit(folder: &replayed::Kept) -> Vec<Json> {
    let text = std::fs::read_to_string(folder.path().join("audit/approvals.jsonl"));
    text.unwrap_or_default().lines().map(json).collect()
}

fn outcomes(folder: &replayed::Kept) -> Vec<String> {
    let outcome = |entry: &Json| entry.get("outcome").unwrap().as_str().unwrap().to_owned();
    audit(folder).iter().map(outcome).collect()
}

#[test]
fn every_change_of_the_list_is_in_the_audit_with_the_hash_of_the_list() {
    let folder = replayed::folder();
    let desk = desk(&folder);
    add(&desk, 1);
    desk.change_approvers(None, |list| {
        let old = list.keys()[0].key_id;
        list.add(dana(), &key(2).verifying_key())?;
        list.end(old, KeyStatus::Retired)
    })
    .unwrap();
    let outvoted = |list: &mut Approvers| list.require(1, DenyRule::Outvoted);
    desk.change_approvers(None, outvoted).unwrap();
    let revoke = |list: &mut Approvers| list.end(list.keys()[1].key_id, KeyStatus::Revoked);
    desk.change_approvers(None, revoke).unwrap();
    assert_eq!(
        outcomes(&folder),
        [
            "key:added",
            "key:retired",
            "key:added",
            "configuration:changed",
            "key:revoked"
        ]
    );
    let list = Approvers::load(folder.path()).unwrap();
    let detail = format!("approvers sha256:{}", list.hash());
    let last = audit(&folder).pop().unwrap();
    assert_eq!(last.get("detail").unwrap().as_str(), Some(detail.as_str()));
}

#[test]
fn what_makes_no_sense_changes_nothing() {
    let folder = replayed::folder();
    let desk = desk(&folder);
    add(&desk, 1);
    let again = desk.change_approvers(None, |list| {
        list.add(Human::new("eve").unwrap(), &key(1).verifying_key())
    });
    assert!(matches!(again, Err(NotChanged::List(_))));
    let both = desk.change_approvers(None, |list| list.require(2, DenyRule::Veto));
    assert!(matches!(both, Err(NotChanged::List(_))));
    desk.change_approvers(None, |_| Ok(())).unwrap();
    assert_eq!(outcomes(&folder), ["key:added"]);
    assert_eq!(desk.approvers().unwrap().keys().len(), 1);
}

#[test]
fn changes_at_the_same_time_are_all_kept() {
    let folder = replayed::folder();
    std::thread::scope(|threads| {
        for seed in 1..=8 {
            let folder = &folder;
            threads.spawn(move || add(&desk(folder), seed));
        }
    });
    assert_eq!(desk(&folder).approvers().unwrap().keys().len(), 8);
    assert_eq!(outcomes(&folder).len(), 8);
}

#[test]
fn a_list_that_cannot_be_audited_stays_as_it_is() {
    let folder = replayed::folder();
    let desk = desk(&folder);
    add(&desk, 1);
    let file = folder.path().join("audit/approvals.jsonl");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let added = desk.change_approvers(None, |list| list.add(dana(), &key(2).verifying_key()));
    assert!(matches!(added, Err(NotChanged::NotRecorded(_))));
    assert_eq!(Approvers::load(folder.path()).unwrap().keys().len(), 1);
}

fn ask(engine: &Engine, folder: &replayed::Kept) -> Envelope {
    let admission = engine.admit(Proposal {
        scope: &Scope::new("t", "s").unwrap(),
        call_id: "c1".to_owned(),
        tool_name: "pay".to_owned(),
        server: None,
        definition: None,
        origin: &Origin::new("root", "agent", folder.path()).unwrap(),
        preconditions: Vec::new(),
        args: json("{}"),
        sanitizer_key: None,
        bytes: b"{}",
        encode: &|args| args.to_jcs().unwrap(),
    });
    let Admission::Hold(hold) = admission else {
        panic!("not held")
    };
    *hold.approval.unwrap()
}

#[test]
fn people_decide_without_the_policies_and_the_door_compares_them() {
    let folder = replayed::folder();
    let desk = desk(&folder);
    add(&desk, 1);
    let manifest = Manifest::partial(&json(MANIFEST)).unwrap();
    let policies = || Policies::new(Capability::new(Some(manifest.clone())).unwrap());
    let engine = Engine::new(store(&folder), policies(), SystemClock);
    let envelope = ask(&engine, &folder);

    let standing = desk.approval(envelope.id()).unwrap().unwrap();
    assert_eq!(
        desk.why_held(&standing).unwrap().as_deref(),
        Some("APPROVAL_REQUIRED")
    );
    assert_eq!(desk.tally(&standing).unwrap().approvals(), 0);
    let paper = BallotPaper {
        decisions: vec![CallDecision {
            call: envelope.plan().calls()[0].id.clone(),
            decision: Decision::Approved,
        }],
        approver: dana(),
        display: standing.rendering.display_sha256(),
        signed_at: UnixMs::new(SystemClock.now_unix_ms().unwrap()),
    };
    let voted = desk
        .vote(&paper.sign(&envelope, &key(1)).to_text())
        .unwrap();
    assert_eq!(voted.state, State::Approved);
    let tally = desk.tally(&standing).unwrap();
    assert_eq!((tally.approvals(), tally.required), (1, 1));
    assert_eq!(tally.votes[0].approver, dana());

    engine.replace_policies(Policies::new(Capability::new(None).unwrap()));
    let drifted = engine.redeem(envelope.id(), Wanted::default(), &|_| b"{}".to_vec());
    assert!(matches!(drifted, Redeemed::Refused(refusal) if refusal.code() == "context_drift"));
    engine.replace_policies(policies());
    let permitted = engine.redeem(envelope.id(), Wanted::default(), &|_| b"{}".to_vec());
    assert!(matches!(permitted, Redeemed::Permit(_)));
}

#[test]
fn a_name_that_people_would_take_for_another_is_not_registered() {
    let folder = replayed::folder();
    let desk = desk(&folder);
    add(&desk, 1);
    let before = outcomes(&folder);
    let refused = |name: &str| {
        let person = Human::new(name).unwrap();
        let change = |list: &mut Approvers| list.add(person, &key(2).verifying_key());
        desk.change_approvers(None, change).unwrap_err().to_string()
    };
    for name in ["Dana", "DANA", "d\u{430}na", "ⅾana"] {
        let why = refused(name);
        assert!(
            why.ends_with("looks like `dana`, who is registered"),
            "{why}"
        );
    }
    for (name, problem) in [
        ("dana ", "unusual spaces"),
        (" max", "unusual spaces"),
        ("m\u{a0}ax", "unusual spaces"),
        ("da\u{200b}na", "invisible characters"),
        ("dana\u{301}", "combining marks"),
        ("max\u{1b}[31m", "control characters"),
        ("human:dana", "the kind of somebody in front"),
        ("Agent:x", "the kind of somebody in front"),
    ] {
        let why = refused(name);
        assert!(why.ends_with(&format!("it has {problem}")), "{why}");
    }
    assert_eq!(outcomes(&folder), before);

    // A second key of the same person, and a name of its own, are fine.
    add(&desk, 3);
    let max = Human::new("Max Müller").unwrap();
    let change = |list: &mut Approvers| list.add(max, &key(4).verifying_key()).map(drop);
    desk.change_approvers(None, change).unwrap();
}

#[test]
fn an_edit_at_the_desk_is_judged_by_the_policies_of_the_request() {
    let folder = replayed::folder();
    let desk = desk(&folder);
    add(&desk, 1);
    let manifest = Manifest::partial(&json(MANIFEST)).unwrap();
    let policies = Policies::new(Capability::new(Some(manifest)).unwrap());
    let engine = Engine::new(store(&folder), policies, SystemClock);
    let old = ask(&engine, &folder);
    let reason = Reason::new("too dear").unwrap();
    let args = json(r#"{"cents":1}"#);
    let new = desk.edit(old.id(), args.clone(), &dana(), Some(&reason));
    let new = new.unwrap();
    assert_eq!(new.plan().policy(), old.plan().policy());
    assert_eq!(new.plan().calls()[0].args.value(), &args);
    let state = |id| desk.approval(id).unwrap().unwrap().row.state;
    assert_eq!(state(old.id()), State::Superseded);
    assert_eq!(state(new.id()), State::Pending);
    let entries = audit(&folder);
    let said = entries
        .iter()
        .filter_map(|entry| entry.get("detail")?.as_str());
    let edited = format!("edited as {}: too dear", new.id());
    assert_eq!(said.filter(|said| **said == edited).count(), 1);

    // Without the policies of the request nobody can tell what they would say.
    let kept = Folder::new(folder.path()).policies(new.plan().policy());
    std::fs::remove_file(kept).unwrap();
    let refused = desk.edit(new.id(), json("{}"), &dana(), None);
    assert!(matches!(refused, Err(NotEdited::Failed(_))), "{refused:?}");
    assert_eq!(state(new.id()), State::Pending);
}
