//! Parts of leases: within the whole, charged to it, and all that their holder has.

use std::num::NonZeroU64;

use countersign_approval::lease::{Constraint, Lease, Term, Terms};
use countersign_approval::{Agent, Human, Lineage};
use countersign_engine::NotGranted;

use crate::leases::{REVERSIBLE, grant, is_held, pay, permit, terms, text};
use crate::scene::Scene;

#[test]
fn l06_a_part_that_is_more_than_the_whole_is_refused_and_a_part_charges_the_whole() {
    let scene = Scene::new(&["olga"], 1);
    let whole = Lease::grant(terms(1, &scene), REVERSIBLE).unwrap();
    let narrow = |change: &dyn Fn(&mut Terms)| {
        let mut part = terms(2, &scene);
        change(&mut part);
        whole.narrow(part)
    };
    assert!(narrow(&|part| part.max_uses = NonZeroU64::new(6).unwrap()).is_err());
    let mut small = terms(2, &scene);
    small.max_uses = NonZeroU64::new(2).unwrap();
    small.arguments.insert(
        "to".to_owned(),
        Term {
            constraint: Constraint::Exact("b".into()),
            may_be_absent: false,
        },
    );
    let part = whole.narrow(small).unwrap();
    // Nobody has granted the whole yet.
    let refused = scene.engine.grant_lease(&text(part.clone(), &scene));
    assert!(matches!(refused, Err(NotGranted::Parent)), "{refused:?}");

    let mut used_up = terms(1, &scene);
    used_up.max_uses = NonZeroU64::new(1).unwrap();
    grant(used_up, &scene);
    // Another lease of the same name allows less than the part does.
    let refused = scene.engine.grant_lease(&text(part, &scene));
    assert!(matches!(refused, Err(NotGranted::Lease(_))), "{refused:?}");
    scene.verify();
}

#[test]
fn l06_a_use_of_a_part_is_a_use_of_the_whole_or_of_neither() {
    let scene = Scene::new(&["olga"], 1);
    let mut whole = terms(1, &scene);
    whole.max_uses = NonZeroU64::new(2).unwrap();
    whole.holder.children = true;
    let whole = Lease::grant(whole, REVERSIBLE).unwrap();
    let mut part = terms(2, &scene);
    part.max_uses = NonZeroU64::new(2).unwrap();
    let child = scene
        .origin
        .lineage
        .clone()
        .spawn(Agent::new("child").unwrap())
        .unwrap();
    part.holder.lineage = child.clone();
    let part = whole.narrow(part).unwrap();
    scene.engine.grant_lease(&text(whole, &scene)).unwrap();
    scene.engine.grant_lease(&text(part, &scene)).unwrap();
    let _own = permit(pay("c1", 5, &scene));

    let mut origin = scene.origin.clone();
    origin.lineage = child;
    let args = r#"{"cents":5,"to":"a"}"#;
    let admit = |call: &str| {
        let mut proposal = scene.proposal(call, "pay", args);
        proposal.origin = &origin;
        scene.engine.admit(proposal)
    };
    let _part = permit(admit("c2"));
    assert!(is_held(admit("c3")));
    let leases = scene.engine.leases("t").unwrap();
    assert_eq!((leases[0].usage.uses, leases[1].usage.uses), (2, 1));
    scene.verify();
}

#[test]
fn l06_who_has_a_part_of_a_lease_has_no_more_of_it() {
    let scene = Scene::new(&["olga"], 1);
    let child = scene.origin.lineage.clone();
    let child = child.spawn(Agent::new("child").unwrap()).unwrap();
    let whole = Lease::grant(terms(1, &scene), REVERSIBLE).unwrap();
    let mut part = terms(2, &scene);
    part.holder.lineage = child.clone();
    part.max_uses = NonZeroU64::new(2).unwrap();
    let part = whole.narrow(part).unwrap();
    let part_id = part.id();
    scene.engine.grant_lease(&text(whole, &scene)).unwrap();
    scene.engine.grant_lease(&text(part, &scene)).unwrap();
    let admit = |call: &str, lineage: &Lineage| {
        let mut origin = scene.origin.clone();
        origin.lineage = lineage.clone();
        let mut proposal = scene.proposal(call, "pay", r#"{"cents":100,"to":"a"}"#);
        proposal.origin = &origin;
        scene.engine.admit(proposal)
    };
    let grandchild = child.clone().spawn(Agent::new("grandchild").unwrap());
    assert_eq!(permit(admit("c1", &child)).lease(), Some(part_id));
    assert_eq!(
        permit(admit("c2", &grandchild.clone().unwrap())).lease(),
        Some(part_id)
    );
    let usage = || -> Vec<(u64, u64)> {
        let leases = scene.engine.leases("t").unwrap();
        let usage = leases.iter().map(|it| (it.usage.uses, it.usage.spent));
        usage.collect()
    };
    assert_eq!(usage(), [(2, 200), (2, 200)]);
    assert!(is_held(admit("c3", &child)));
    assert!(is_held(admit("c4", &grandchild.unwrap())));
    let who = Human::new("olga").unwrap();
    assert!(scene.engine.revoke_lease(part_id, &who).unwrap());
    assert!(is_held(admit("c5", &child)));
    let _own = permit(pay("c6", 100, &scene));
    assert_eq!(usage(), [(3, 300), (2, 200)]);
    scene.verify();
}
