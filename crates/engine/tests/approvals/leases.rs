//! What people approved ahead of time: as often, as long, as much and for whom they said.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign_approval::lease::{
    Budget, Constraint, Holder, HostSet, IntegerRange, Lease, LeaseStatus, PathRoot, Term, Terms,
    Validity,
};
use countersign_approval::{
    Agent, ApprovalMode, Class, Human, KeyStatus, LeaseId, SideEffect, Tool, Trust, UnixMs,
    WorkItemId,
};
use countersign_canon::Digest;
use countersign_engine::{Admission, Approvers, Desk, Engine, NotGranted, Outcome, Permit, Start};
use countersign_event::EventType;
use countersign_event::payload::{Payload, Termination};
use countersign_policy::Policies;
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;

use crate::scene::{MANIFEST, START, Scene, engine, held, json, policies};

pub(crate) const REVERSIBLE: Class = Class {
    effect: SideEffect::MutateExternal,
    irreversible: false,
};

/// Five payments of at most 500, 2000 in all, to anybody, for an hour.
pub(crate) fn terms(number: u8, scene: &Scene) -> Terms {
    let term = |constraint| Term {
        constraint,
        may_be_absent: false,
    };
    let names = ["a", "b", "c"].map(|name| name.into()).to_vec();
    Terms {
        id: LeaseId::from_random([number; 16]),
        tool: Tool {
            server: None,
            name: "pay".to_owned(),
            definition: None,
        },
        arguments: BTreeMap::from([
            (
                "cents".to_owned(),
                term(Constraint::Range(IntegerRange::new(1, 500).unwrap())),
            ),
            ("to".to_owned(), term(Constraint::OneOf(names))),
        ]),
        max_uses: NonZeroU64::new(5).unwrap(),
        budget: Some(Budget {
            argument: "cents".to_owned(),
            limit: 2000,
        }),
        valid: Validity {
            granted_at: UnixMs::new(START),
            expires_at: UnixMs::new(START + 3_600_000),
        },
        holder: Holder {
            chain: scene.scope.clone(),
            work_item: WorkItemId::new(scene.scope.session.as_str()).unwrap(),
            lineage: scene.origin.lineage.clone(),
            children: true,
        },
        least_trust: Trust::Untrusted,
        policy: policies().digest(),
        granted_by: scene.keys[0].0.clone(),
    }
}

pub(crate) fn text(lease: Lease, scene: &Scene) -> Vec<u8> {
    lease.sign(&scene.keys[0].1).to_text()
}

pub(crate) fn grant(terms: Terms, scene: &Scene) -> LeaseId {
    let lease = Lease::grant(terms, REVERSIBLE).unwrap();
    scene.engine.grant_lease(&text(lease, scene)).unwrap()
}

pub(crate) fn pay(call_id: &str, cents: u64, scene: &Scene) -> Admission {
    scene.admit(call_id, "pay", &format!(r#"{{"cents":{cents},"to":"a"}}"#))
}

pub(crate) fn permit(admission: Admission) -> Permit {
    match admission {
        Admission::Permit(permit) => permit,
        other => panic!("not permitted: {other:?}"),
    }
}

fn run(bytes: &str, permit: Permit, engine: &Engine) {
    let running = engine.begin(permit, bytes.as_bytes()).unwrap();
    let outcome = Outcome::Result {
        content: json("\"ok\""),
        is_error: false,
    };
    let _recorded = engine.settle(running, outcome).unwrap();
}

pub(crate) fn is_held(admission: Admission) -> bool {
    matches!(admission, Admission::Hold(hold) if hold.approval.is_ok())
}

#[test]
fn l01_after_the_last_use_people_are_asked_again() {
    let scene = Scene::new(&["olga"], 1);
    let lease = grant(terms(1, &scene), &scene);
    for number in 0..5 {
        let permit = permit(pay(&format!("c{number}"), 100, &scene));
        assert_eq!(permit.mode(), ApprovalMode::BoundedLease);
        assert_eq!(permit.lease(), Some(lease));
        run(r#"{"cents":100,"to":"a"}"#, permit, &scene.engine);
    }
    assert!(is_held(pay("c5", 100, &scene)));
    let standing = &scene.engine.leases("t").unwrap()[0];
    assert_eq!((standing.usage.uses, standing.usage.spent), (5, 500));
    let used: Vec<_> = scene.audit();
    assert_eq!(used.iter().filter(|it| *it == "lease:used").count(), 5);
    assert_eq!(used.first().unwrap(), "lease:granted");
    scene.verify();
}

#[test]
fn l01_the_budget_counts_what_is_spent() {
    let scene = Scene::new(&["olga"], 1);
    grant(terms(1, &scene), &scene);
    for number in 0..4 {
        let _permit = permit(pay(&format!("c{number}"), 500, &scene));
    }
    assert!(is_held(pay("c4", 1, &scene)));
    scene.verify();
}

#[test]
fn l02_of_64_threads_five_are_covered_and_59_ask() {
    let scene = Scene::new(&["olga"], 1);
    grant(terms(1, &scene), &scene);
    let (covered, asked) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|threads| {
        for number in 0..64 {
            let (scene, covered, asked) = (&scene, &covered, &asked);
            threads.spawn(move || match pay(&format!("c{number}"), 1, scene) {
                Admission::Permit(permit) => {
                    covered.fetch_add(1, Ordering::SeqCst);
                    run(r#"{"cents":1,"to":"a"}"#, permit, &scene.engine);
                }
                other => {
                    assert!(is_held(other));
                    asked.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!((covered.into_inner(), asked.into_inner()), (5, 59));
    scene.verify();
}

#[test]
fn l02_two_engines_share_the_uses() {
    let scene = Scene::new(&["olga"], 1);
    grant(terms(1, &scene), &scene);
    let other = engine(scene.folder.path(), &scene.clock);
    let covered = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for number in 0..16 {
            let (scene, other, covered) = (&scene, &other, &covered);
            threads.spawn(move || {
                let engine = if number % 2 == 0 {
                    &scene.engine
                } else {
                    other
                };
                let call = format!("c{number}");
                let admission =
                    engine.admit(scene.proposal(&call, "pay", r#"{"cents":1,"to":"b"}"#));
                match admission {
                    Admission::Permit(_) => drop(covered.fetch_add(1, Ordering::SeqCst)),
                    other => assert!(is_held(other), "{number}"),
                }
            });
        }
    });
    assert_eq!(covered.into_inner(), 5);
    drop(other);
    scene.verify();
}

#[test]
fn l03_what_the_lease_does_not_say_is_not_covered() {
    let scene = Scene::new(&["olga"], 1);
    grant(terms(1, &scene), &scene);
    let check = |call: &str, args: &str| {
        assert!(is_held(scene.admit(call, "pay", args)), "{args}");
    };
    check("c1", r#"{"cents":501,"to":"a"}"#);
    check("c2", r#"{"cents":5,"to":"mallory"}"#);
    check("c3", r#"{"cents":5}"#);
    check("c4", r#"{"cents":5,"to":"a","force":true}"#);
    check("c5", r#"{"cents":5.0,"to":"a"}"#);
    check("c6", r#"{"cents":"5","to":"a"}"#);
    assert!(is_held(scene.admit("c7", "write_file", "{}")));
    let _permit = permit(pay("c8", 5, &scene));
    scene.verify();
}

#[test]
fn l03_a_path_that_leads_elsewhere_and_another_host_are_not_covered() {
    let scene = Scene::new(&["olga"], 1);
    let root = std::fs::canonicalize(scene.folder.path()).unwrap();
    let (inside, outside) = (root.join("in"), root.join("out"));
    std::fs::create_dir(&inside).unwrap();
    std::fs::create_dir(&outside).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
    let mut terms = terms(1, &scene);
    terms.tool.name = "write_file".to_owned();
    terms.budget = None;
    terms.max_uses = NonZeroU64::new(100).unwrap();
    let term = |constraint| Term {
        constraint,
        may_be_absent: true,
    };
    let inside = inside.to_str().unwrap();
    terms.arguments = BTreeMap::from([
        (
            "path".to_owned(),
            term(Constraint::PathUnder(PathRoot::new(inside).unwrap())),
        ),
        (
            "url".to_owned(),
            term(Constraint::HostIn(
                HostSet::new(["api.example.com"]).unwrap(),
            )),
        ),
    ]);
    grant(terms, &scene);
    let mut number = 0;
    let mut check = |args: String, covered: bool| {
        number += 1;
        let admission = scene.admit(&format!("c{number}"), "write_file", &args);
        let permitted = matches!(&admission, Admission::Permit(_));
        assert_eq!(permitted, covered, "{args}: {admission:?}");
    };
    let path = |path: &str| format!(r#"{{"path":"{path}"}}"#);
    check(path(&format!("{inside}/a.txt")), true);
    check(path(&format!("{inside}/./b/../a.txt")), true);
    check(path(&format!("{inside}/../out/a.txt")), false);
    check(path(&format!("{inside}/link/a.txt")), false);
    check(path(&format!("{inside}-else/a.txt")), false);
    check(path("in/a.txt"), false);
    check(
        r#"{"url":"https://API.example.com:8443/v1"}"#.to_owned(),
        true,
    );
    check(r#"{"url":"https://example.com/"}"#.to_owned(), false);
    check(
        r#"{"url":"https://api.example.com@evil.com/"}"#.to_owned(),
        false,
    );
    check(
        r#"{"url":"https://api.example.com.evil.com/"}"#.to_owned(),
        false,
    );
    scene.verify();
}

#[test]
fn l04_a_lease_that_was_taken_back_covers_nothing_more_not_even_its_parts() {
    let scene = Scene::new(&["olga"], 1);
    let whole = Lease::grant(terms(1, &scene), REVERSIBLE).unwrap();
    let part = whole.narrow(terms(2, &scene)).unwrap();
    let (id, part_id) = (whole.id(), part.id());
    scene.engine.grant_lease(&text(whole, &scene)).unwrap();
    scene.engine.grant_lease(&text(part, &scene)).unwrap();
    let _permit = permit(pay("c1", 5, &scene));
    let who = Human::new("olga").unwrap();
    assert!(scene.engine.revoke_lease(id, &who).unwrap());
    assert!(!scene.engine.revoke_lease(id, &who).unwrap());
    assert!(is_held(pay("c2", 5, &scene)));
    let leases = scene.engine.leases("t").unwrap();
    let status = leases.iter().map(|it| (it.lease.id(), it.status));
    assert_eq!(
        status.collect::<Vec<_>>(),
        [(id, LeaseStatus::Revoked), (part_id, LeaseStatus::Revoked)]
    );
    assert_eq!(
        scene
            .audit()
            .iter()
            .filter(|it| *it == "lease:revoked")
            .count(),
        1
    );
    scene.verify();
}

/// The use of the lease is not the last event of its group, and the others are recorded.
#[test]
fn e05_without_an_audit_nothing_runs_by_a_lease() {
    let scene = Scene::new(&["olga"], 1);
    grant(terms(1, &scene), &scene);
    let kept = scene.lose_audit();
    let args = r#"{"cents":5,"to":"a"}"#;
    match scene.engine.start(scene.proposal("c1", "pay", args)) {
        Start::Refusal(refusal) => {
            assert_eq!(refusal.reason(), "runtime_error:audit_write_failed");
        }
        _ => panic!("not refused"),
    }
    scene.mend_audit(&kept);
    assert!(matches!(
        scene.engine.start(scene.proposal("c2", "pay", args)),
        Start::Running(_)
    ));
}

#[test]
fn l05_a_lease_ends_with_its_time() {
    let scene = Scene::new(&["olga"], 1);
    grant(terms(1, &scene), &scene);
    scene.wait(3_599_999);
    let _permit = permit(pay("c1", 5, &scene));
    scene.wait(1);
    assert!(is_held(pay("c2", 5, &scene)));
    scene.verify();
}

#[test]
fn l05_a_lease_ends_with_the_key_the_policies_the_session_and_a_larger_quorum() {
    let scene = Scene::new(&["olga", "max"], 1);
    grant(terms(1, &scene), &scene);

    let other = Policies::new(Capability::new(None).unwrap());
    scene.engine.replace_policies(other);
    assert!(!matches!(pay("c1", 5, &scene), Admission::Permit(_)));
    scene.engine.replace_policies(policies());
    let _permit = permit(pay("c2", 5, &scene));

    let mut approvers = Approvers::load(scene.folder.path()).unwrap();
    approvers
        .require(2, countersign_approval::DenyRule::Veto)
        .unwrap();
    approvers.save(scene.folder.path()).unwrap();
    assert!(is_held(pay("c3", 5, &scene)));
    approvers
        .require(1, countersign_approval::DenyRule::Veto)
        .unwrap();
    approvers.save(scene.folder.path()).unwrap();
    let _permit = permit(pay("c4", 5, &scene));

    let key = approvers.keys()[0].key_id;
    approvers.end(key, KeyStatus::Retired).unwrap();
    approvers.save(scene.folder.path()).unwrap();
    assert!(is_held(pay("c5", 5, &scene)));
    let leases = scene.engine.leases("t").unwrap();
    assert_eq!(leases[0].status, LeaseStatus::KeyRetired);

    let end = Payload::Termination(Termination::default());
    let _recorded = scene
        .engine
        .record(&scene.scope, EventType::Termination, end)
        .unwrap();
    assert!(matches!(pay("c6", 5, &scene), Admission::Refusal(_)));
    let leases = scene.engine.leases("t").unwrap();
    assert_eq!(leases[0].status, LeaseStatus::WorkEnded);
    scene.verify();
}

#[test]
fn l07_nothing_that_cannot_be_undone_is_covered() {
    let scene = Scene::new(&["olga"], 1);
    let text_of_manifest = MANIFEST.replace(r#""pay":{"#, r#""pay":{"irreversible":true,"#);
    let manifest = Manifest::read(text_of_manifest.as_bytes()).unwrap();
    let irreversible = Policies::new(Capability::new(Some(manifest)).unwrap());
    let mut wanted = terms(1, &scene);
    wanted.policy = irreversible.digest();
    scene.engine.replace_policies(irreversible);
    let lease = Lease::grant(wanted, REVERSIBLE).unwrap();
    let refused = scene.engine.grant_lease(&text(lease, &scene));
    assert!(matches!(refused, Err(NotGranted::Lease(_))), "{refused:?}");
    let hold = held(pay("c1", 5, &scene));
    assert!(hold.irreversible);
    scene.verify();
}

#[test]
fn l08_a_preview_lists_which_past_calls_would_have_matched() {
    let scene = Scene::new(&["olga"], 1);
    for (call, cents) in [("c1", 5), ("c2", 900), ("c3", 7)] {
        assert!(is_held(pay(call, cents, &scene)));
    }
    let lease = Lease::grant(terms(1, &scene), REVERSIBLE).unwrap();
    let matches = scene.engine.preview_lease(&lease).unwrap();
    let covered: Vec<bool> = matches.iter().map(|it| it.mismatch.is_none()).collect();
    assert_eq!(covered, [true, false, true]);
    assert!(scene.engine.leases("t").unwrap().is_empty());
    scene.verify();
}

#[test]
fn l09_a_lease_survives_a_restart_with_what_was_used() {
    let scene = Scene::new(&["olga"], 1);
    let lease = grant(terms(1, &scene), &scene);
    let _permit = permit(pay("c1", 5, &scene));
    let scene = scene.restart();
    let leases = scene.engine.leases("t").unwrap();
    assert_eq!((leases[0].lease.id(), leases[0].usage.uses), (lease, 1));
    for number in 2..6 {
        let _permit = permit(pay(&format!("c{number}"), 5, &scene));
    }
    assert!(is_held(pay("c6", 5, &scene)));
    let text = std::fs::read_to_string(scene.folder.path().join("audit/approvals.jsonl")).unwrap();
    let named = text
        .lines()
        .filter(|line| line.contains("lease:used") && line.contains(&lease.to_string()));
    assert_eq!(named.count(), 5);
    scene.verify();
}

#[test]
fn m06_a_lease_of_one_session_or_agent_is_nobody_elses() {
    let mut scene = Scene::new(&["olga"], 1);
    let mut own = terms(1, &scene);
    own.holder.children = false;
    grant(own, &scene);
    let mine = scene.origin.clone();
    scene.origin.lineage = mine
        .lineage
        .clone()
        .spawn(Agent::new("child").unwrap())
        .unwrap();
    assert!(is_held(pay("c1", 5, &scene)));
    scene.origin = mine;
    scene.scope = countersign_event::Scope::new("t", "another").unwrap();
    assert!(is_held(pay("c2", 5, &scene)));
    scene.verify();
}

#[test]
fn m03_content_from_outside_ends_a_lease_that_asks_for_more_trust() {
    let scene = Scene::new(&["olga"], 1);
    let mut trusting = terms(1, &scene);
    trusting.least_trust = Trust::Reduced;
    grant(trusting, &scene);
    let first = permit(pay("c1", 5, &scene));
    let _second = permit(pay("c2", 5, &scene));
    run(r#"{"cents":5,"to":"a"}"#, first, &scene.engine);
    // The agent has read what the tool said.
    assert!(is_held(pay("c3", 5, &scene)));
    let scene = scene.restart();
    assert!(is_held(pay("c4", 5, &scene)));
    scene.verify();
}

#[test]
fn a_lease_that_is_not_signed_by_an_approver_or_granted_twice_is_refused() {
    let scene = Scene::new(&["olga"], 1);
    let lease = Lease::grant(terms(1, &scene), REVERSIBLE).unwrap();
    let good = text(lease.clone(), &scene);
    let stranger = countersign_approval::SigningKey::from_bytes(&[99; 32]);
    let forged = lease.clone().sign(&stranger).to_text();
    let more = String::from_utf8(good.clone())
        .unwrap()
        .replace("\"max_uses\":5", "\"max_uses\":6");
    for bad in [forged, more.into_bytes(), b"{}".to_vec()] {
        let refused = scene.engine.grant_lease(&bad);
        assert!(matches!(refused, Err(NotGranted::Lease(_))), "{refused:?}");
    }
    let mut other = terms(2, &scene);
    other.policy = Digest::of(b"other policies");
    let other = text(Lease::grant(other, REVERSIBLE).unwrap(), &scene);
    assert!(matches!(
        scene.engine.grant_lease(&other),
        Err(NotGranted::Policy)
    ));
    assert!(is_held(pay("c1", 5, &scene)));

    scene.engine.grant_lease(&good).unwrap();
    let twice = scene.engine.grant_lease(&good);
    assert!(matches!(twice, Err(NotGranted::Already)), "{twice:?}");
    let _permit = permit(pay("c2", 5, &scene));
    scene.verify();
}

#[test]
fn what_a_desk_grants_was_asked_about_before_and_can_be_undone() {
    let scene = Scene::new(&["olga"], 1);
    let lease = |number| Lease::grant(terms(number, &scene), REVERSIBLE).unwrap();
    let desk = Desk::new(scene.store(), scene.clock.clone()).unwrap();
    let refused = desk.grant_lease(&text(lease(1), &scene));
    assert!(
        matches!(refused, Err(NotGranted::NeverAsked)),
        "{refused:?}"
    );

    assert!(is_held(pay("c1", 5, &scene)));
    let id = desk.grant_lease(&text(lease(2), &scene)).unwrap();
    assert_eq!(permit(pay("c2", 5, &scene)).lease(), Some(id));

    let stranger = countersign_approval::SigningKey::from_bytes(&[99; 32]);
    let forged = desk.grant_lease(&lease(3).sign(&stranger).to_text());
    assert!(matches!(forged, Err(NotGranted::Lease(_))), "{forged:?}");

    // The same tool, once it is said that it cannot be undone.
    let manifest = MANIFEST.replace(r#""pay":{"#, r#""pay":{"irreversible":true,"#);
    let manifest = Manifest::read(manifest.as_bytes()).unwrap();
    let policies = Policies::new(Capability::new(Some(manifest)).unwrap());
    scene.engine.replace_policies(policies);
    assert!(is_held(pay("c3", 5, &scene)));
    let late = desk.grant_lease(&text(lease(4), &scene));
    assert!(matches!(late, Err(NotGranted::Lease(_))), "{late:?}");

    drop(desk);
    let refusals = scene.audit();
    let refusals = refusals.iter().filter(|it| *it == "lease:refused");
    assert_eq!(refusals.count(), 3);
    scene.verify();
}

#[test]
fn a_lease_whose_session_was_erased_keeps_nobody_from_the_others() {
    let mut scene = Scene::new(&["olga"], 1);
    grant(terms(1, &scene), &scene);
    let erased = scene.scope.clone();
    scene.scope = countersign_event::Scope::new("t", "another").unwrap();
    let standing = grant(terms(2, &scene), &scene);
    let erasure = scene.engine.store().erase(&erased, START).unwrap();
    assert!(erasure.complete);

    let leases = scene.engine.all_leases().unwrap();
    assert_eq!(leases.len(), 1);
    assert_eq!(leases[0].lease.id(), standing);
    assert!(scene.engine.lease(standing).unwrap().is_some());
    let olga = scene.keys[0].0.clone();
    assert!(scene.engine.revoke_lease(standing, &olga).unwrap());
    assert!(is_held(pay("c1", 5, &scene)));
    scene.verify();
}
