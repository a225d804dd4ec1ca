//! A part of a lease is never more than the whole.

use std::num::NonZeroU64;

use countersign_approval::lease::*;
use countersign_approval::*;
use countersign_canon::{Digest, Json};

use crate::desk::*;
use crate::lease::{CALL, Caller, REVERSIBLE, World, lease, standing, terms};

type Change<'a> = &'a dyn Fn(&mut Terms);

#[test]
fn l06_a_part_wider_in_any_field_is_refused() {
    let whole = lease();
    let part = |change: Change<'_>| {
        let mut terms = terms();
        terms.id = LeaseId::from_random([2; 16]);
        change(&mut terms);
        whole.narrow(terms)
    };
    assert!(part(&|_| {}).is_ok());
    let set = |name: &'static str, constraint: Constraint| {
        move |terms: &mut Terms| {
            terms.arguments.get_mut(name).unwrap().constraint = constraint.clone();
        }
    };
    let narrower: [Change<'_>; 10] = [
        &|terms| terms.max_uses = NonZeroU64::MIN,
        &|terms| terms.budget.as_mut().unwrap().limit = 5,
        &|terms| terms.valid.expires_at = at(5),
        &|terms| terms.holder.lineage = lineage(&["chat", "helper"]),
        &|terms| drop(terms.arguments.remove("dry_run")),
        &set(
            "path",
            Constraint::PathUnder(PathRoot::new("/w/out/deep").unwrap()),
        ),
        &set(
            "url",
            Constraint::HostIn(HostSet::new(["b.example.com"]).unwrap()),
        ),
        &set(
            "amount",
            Constraint::Range(IntegerRange::new(2, 3).unwrap()),
        ),
        &set("amount", Constraint::Exact(Json::from(7_u32))),
        &set(
            "branch",
            Constraint::Prefix(SafePrefix::new("feature-a").unwrap()),
        ),
    ];
    for (place, change) in narrower.into_iter().enumerate() {
        assert!(part(change).is_ok(), "{place}");
    }
    let wider: [(&str, Change<'_>); 26] = [
        ("tool", &|terms| terms.tool.name = "pay2".to_owned()),
        ("tool", &|terms| terms.tool.definition = None),
        ("max_uses", &|terms| {
            terms.max_uses = NonZeroU64::new(4).unwrap()
        }),
        ("budget", &|terms| terms.budget = None),
        ("budget", &|terms| terms.budget.as_mut().unwrap().limit = 71),
        ("budget", &|terms| {
            terms.budget.as_mut().unwrap().argument = "mode".to_owned()
        }),
        ("granted_at_ms", &|terms| {
            terms.valid.granted_at = UnixMs::new(ISSUED - 1)
        }),
        ("expires_at_ms", &|terms| {
            terms.valid.expires_at = at(60_001)
        }),
        ("chain", &|terms| {
            terms.holder.chain = countersign_event::Scope::new("default", "s2").unwrap();
        }),
        ("work_item_id", &|terms| {
            terms.holder.work_item = WorkItemId::new("w2").unwrap()
        }),
        ("lineage", &|terms| terms.holder.lineage = lineage(&[])),
        ("lineage", &|terms| {
            terms.holder.lineage = lineage(&["other"])
        }),
        ("least_trust", &|terms| terms.least_trust = Trust::Untrusted),
        ("policy_digest", &|terms| {
            terms.policy = Digest::of(b"other")
        }),
        ("arguments", &|terms| {
            let term = Term {
                constraint: Constraint::Exact(Json::from(true)),
                may_be_absent: true,
            };
            terms.arguments.insert("force".to_owned(), term);
        }),
        ("arguments", &|terms| drop(terms.arguments.remove("mode"))),
        ("arguments", &|terms| {
            terms.arguments.get_mut("mode").unwrap().may_be_absent = true
        }),
        (
            "arguments",
            &set("path", Constraint::PathUnder(PathRoot::new("/w").unwrap())),
        ),
        (
            "arguments",
            &set(
                "path",
                Constraint::PathUnder(PathRoot::new("/w/outer").unwrap()),
            ),
        ),
        (
            "arguments",
            &set("path", Constraint::Exact(Json::from("/w/out/a"))),
        ),
        (
            "arguments",
            &set(
                "url",
                Constraint::HostIn(HostSet::new(["c.example.com"]).unwrap()),
            ),
        ),
        (
            "arguments",
            &set(
                "amount",
                Constraint::Range(IntegerRange::new(0, 3).unwrap()),
            ),
        ),
        (
            "arguments",
            &set(
                "amount",
                Constraint::OneOf(vec![Json::from(1_u32), Json::from(51_u32)]),
            ),
        ),
        (
            "arguments",
            &set(
                "branch",
                Constraint::Prefix(SafePrefix::new("feature").unwrap()),
            ),
        ),
        (
            "arguments",
            &set(
                "branch",
                Constraint::Prefix(SafePrefix::new("feature-/").unwrap()),
            ),
        ),
        (
            "arguments",
            &set("mode", Constraint::Prefix(SafePrefix::new("fast").unwrap())),
        ),
    ];
    for (field, change) in wider {
        match part(change) {
            Err(LeaseError::Wider(wider)) => assert_eq!(wider.field(), field),
            other => panic!("{field}: {other:?}"),
        }
    }
}

#[test]
fn a_use_of_a_part_is_a_use_of_the_whole() {
    let whole = lease();
    let mut narrowed = terms();
    narrowed.id = LeaseId::from_random([2; 16]);
    let part = whole.narrow(narrowed).unwrap();
    let caller = Caller::new(CALL);
    let used = |lease, uses| standing(lease, Usage { uses, spent: 0 });
    let covered = |chain: &[Standing<'_>]| {
        let root = whole.clone().sign(&signing_key("dana"));
        let keys = keyring();
        let proof = root.verify(&keys).unwrap();
        let result = cover(chain, &proof, &caller.call(), &World);
        result.map(|charges| charges.len())
    };
    assert_eq!(covered(&[used(&part, 0), used(&whole, 2)]), Ok(2));
    let refused = covered(&[used(&part, 0), used(&whole, 3)]).unwrap_err();
    assert_eq!(
        (refused.lease, refused.mismatch),
        (whole.id(), Mismatch::UsedUp)
    );
    // Without its parent a part is nothing, and neither is a whole with a stranger.
    for chain in [
        &[used(&part, 0)][..],
        &[used(&whole, 0), used(&part, 0)],
        &[used(&part, 0), used(&part, 0)],
    ] {
        assert_eq!(covered(chain).unwrap_err().mismatch, Mismatch::Parent);
    }
    // A stored part that was made wider is noticed when it is used.
    let text = String::from_utf8(part.to_text()).unwrap();
    let forged = text.replace("\"max_uses\":3", "\"max_uses\":9");
    let forged = Lease::read(forged.as_bytes()).unwrap();
    let refused = covered(&[used(&forged, 0), used(&whole, 0)]).unwrap_err();
    assert!(matches!(refused.mismatch, Mismatch::Wider(wider) if wider.field() == "max_uses"));
}

#[test]
fn a_part_of_a_lease_for_one_agent_is_for_that_agent() {
    let mut own = terms();
    own.holder.children = false;
    let whole = Lease::grant(own.clone(), REVERSIBLE).unwrap();
    assert!(whole.narrow(own.clone()).is_ok());
    let mut children = own.clone();
    children.holder.children = true;
    let mut child = own;
    child.holder.lineage = lineage(&["chat", "helper"]);
    for part in [children, child] {
        match whole.narrow(part) {
            Err(LeaseError::Wider(wider)) => assert_eq!(wider.field(), "lineage"),
            other => panic!("{other:?}"),
        }
    }
}
