//! What a lease covers, what it does not, and that a part is never more than the whole.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use countersign_approval::lease::*;
use countersign_approval::*;
use countersign_canon::{Digest, Json};

use crate::desk::*;

/// Resolves paths like a shell would, without links, and knows one link.
pub(crate) struct World;

impl Places for World {
    fn path(&self, _: &str, value: &str) -> Option<String> {
        let mut parts: Vec<&str> = Vec::new();
        let absolute = value.strip_prefix('/')?;
        for part in absolute.split('/').filter(|part| !part.is_empty()) {
            match part {
                "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let path = format!("/{}", parts.join("/"));
        Some(path.replace("/w/out/link", "/etc"))
    }

    fn host(&self, _: &str, value: &str) -> Option<String> {
        let host = value.strip_prefix("https://")?.split('/').next()?;
        Some(host.to_lowercase())
    }
}

/// A caller that forgets to resolve.
struct Careless;

impl Places for Careless {
    fn path(&self, _: &str, value: &str) -> Option<String> {
        Some(value.to_owned())
    }

    fn host(&self, _: &str, _: &str) -> Option<String> {
        None
    }
}

pub(crate) const REVERSIBLE: Class = Class {
    effect: SideEffect::MutateExternal,
    irreversible: false,
};

pub(crate) const CALL: &str = r#"{"amount":20,"branch":"feature-x","mode":"fast","path":"/w/out/a","url":"https://api.example.com/v1"}"#;

fn tool() -> Tool {
    Tool {
        server: Some("bank".to_owned()),
        name: "pay".to_owned(),
        definition: Some(Digest::of(b"definition")),
    }
}

pub(crate) fn terms() -> Terms {
    let required = |constraint| Term {
        constraint,
        may_be_absent: false,
    };
    let arguments = [
        (
            "amount",
            required(Constraint::Range(IntegerRange::new(1, 50).unwrap())),
        ),
        (
            "branch",
            required(Constraint::Prefix(SafePrefix::new("feature-").unwrap())),
        ),
        (
            "dry_run",
            Term {
                constraint: Constraint::Exact(Json::from(true)),
                may_be_absent: true,
            },
        ),
        (
            "mode",
            required(Constraint::OneOf(vec![
                Json::from("fast"),
                Json::from("slow"),
            ])),
        ),
        (
            "path",
            required(Constraint::PathUnder(PathRoot::new("/w/out").unwrap())),
        ),
        (
            "url",
            required(Constraint::HostIn(
                HostSet::new(["api.example.com", "b.example.com"]).unwrap(),
            )),
        ),
    ];
    Terms {
        id: LeaseId::from_random([1; 16]),
        tool: tool(),
        arguments: BTreeMap::from(arguments.map(|(name, term)| (name.to_owned(), term))),
        max_uses: NonZeroU64::new(3).unwrap(),
        budget: Some(Budget {
            argument: "amount".to_owned(),
            limit: 70,
        }),
        valid: Validity {
            granted_at: at(0),
            expires_at: at(60_000),
        },
        holder: Holder {
            chain: chain(),
            work_item: WorkItemId::new("w1").unwrap(),
            lineage: lineage(&["chat"]),
            children: true,
        },
        least_trust: Trust::Reduced,
        policy: Digest::of(b"policy"),
        granted_by: human("dana"),
    }
}

pub(crate) fn lease() -> Lease {
    Lease::grant(terms(), REVERSIBLE).unwrap()
}

/// A call, with everything that it needs to own.
pub(crate) struct Caller {
    tool: Tool,
    args: Arguments,
    class: Class,
    chain: countersign_event::Scope,
    work_item: WorkItemId,
    lineage: Lineage,
    trust: Trust,
    policy: Digest,
    now: UnixMs,
}

impl Caller {
    pub(crate) fn new(args: &str) -> Self {
        Self {
            tool: tool(),
            args: Arguments::admit(args.as_bytes()).unwrap(),
            class: REVERSIBLE,
            chain: chain(),
            work_item: WorkItemId::new("w1").unwrap(),
            lineage: lineage(&["chat"]),
            trust: Trust::Reduced,
            policy: Digest::of(b"policy"),
            now: at(10),
        }
    }

    pub(crate) fn call(&self) -> Use<'_> {
        Use {
            tool: &self.tool,
            args: &self.args,
            class: self.class,
            chain: &self.chain,
            work_item: &self.work_item,
            lineage: &self.lineage,
            trust: self.trust,
            policy: self.policy,
            now: self.now,
        }
    }

    fn covered_by(&self, lease: &Lease, usage: Usage) -> Result<Usage, Mismatch> {
        let standing = standing(lease, usage);
        match covered(&[standing], &self.call()) {
            Ok(charges) => Ok(charges[0].after()),
            Err(refused) => Err(refused.mismatch),
        }
    }
}

/// Signs the last of the chain and asks whether the first covers the call.
pub(crate) fn covered(chain: &[Standing<'_>], call: &Use<'_>) -> Result<Vec<Charge>, NotCovered> {
    let root = chain
        .last()
        .unwrap()
        .lease
        .clone()
        .sign(&signing_key("dana"));
    cover(chain, &root.verify(&keyring()).unwrap(), call, &World)
}

pub(crate) fn standing(lease: &Lease, usage: Usage) -> Standing<'_> {
    Standing {
        lease,
        status: LeaseStatus::Active,
        usage,
    }
}

#[test]
fn l01_uses_and_budget_run_out() {
    let (lease, caller) = (lease(), Caller::new(CALL));
    let mut usage = Usage::default();
    for uses in 1..=3 {
        usage = caller.covered_by(&lease, usage).unwrap();
        assert_eq!(
            usage,
            Usage {
                uses,
                spent: uses * 20
            }
        );
    }
    assert_eq!(caller.covered_by(&lease, usage), Err(Mismatch::UsedUp));
    let spent = Usage { uses: 1, spent: 51 };
    assert_eq!(
        caller.covered_by(&lease, spent),
        Err(Mismatch::Budget { left: 19 })
    );
    let exactly = Usage { uses: 1, spent: 50 };
    assert_eq!(
        caller.covered_by(&lease, exactly),
        Ok(Usage { uses: 2, spent: 70 })
    );
}

#[test]
fn l03_arguments_outside_their_constraints_are_not_covered() {
    let lease = lease();
    let argument = |name: &str| Mismatch::Argument(name.to_owned());
    for (from, to, expect) in [
        ("/w/out/a", "/w/out/../secret", argument("path")),
        ("/w/out/a", "/w/outside", argument("path")),
        ("/w/out/a", "/w/out/link/passwd", argument("path")),
        ("/w/out/a", "a", argument("path")),
        ("api.example.com", "evil.com", argument("url")),
        (
            "api.example.com",
            "api.example.com.evil.com",
            argument("url"),
        ),
        ("api.example.com", "x.api.example.com", argument("url")),
        ("https://", "ftp://", argument("url")),
        ("\"fast\"", "\"faster\"", argument("mode")),
        ("\"fast\"", "[\"fast\"]", argument("mode")),
        ("20", "0", argument("amount")),
        ("20", "51", argument("amount")),
        ("20", "-1", argument("amount")),
        ("20", "20.0", argument("amount")),
        ("20", "\"20\"", argument("amount")),
        ("20", "18446744073709551636", argument("amount")),
        ("feature-x", "main", argument("branch")),
        ("feature-x", "feature-x --force", argument("branch")),
        ("feature-x", "feature-/../main", argument("branch")),
        ("feature-x", "feature-\u{e9}", argument("branch")),
        (
            "{\"amount\"",
            "{\"dry_run\":false,\"amount\"",
            argument("dry_run"),
        ),
        (
            "{\"amount\"",
            "{\"force\":true,\"amount\"",
            Mismatch::Unnamed("force".to_owned()),
        ),
        (
            "{\"amount\"",
            "{\"force\":null,\"amount\"",
            Mismatch::Unnamed("force".to_owned()),
        ),
        (
            "\"mode\":\"fast\",",
            "",
            Mismatch::Missing("mode".to_owned()),
        ),
        ("\"amount\":20,", "", Mismatch::Missing("amount".to_owned())),
    ] {
        let args = CALL.replace(from, to);
        assert_ne!(args, CALL);
        let result = Caller::new(&args).covered_by(&lease, Usage::default());
        assert_eq!(result, Err(expect), "{args}");
    }
    for (from, to) in [
        ("/w/out/a", "/w/out"),
        ("/w/out/a", "/w/./x/../out/deep/er"),
        ("api.example.com", "API.example.com"),
        ("{\"amount\"", "{\"dry_run\":true,\"amount\""),
        ("feature-x", "feature-"),
    ] {
        let args = CALL.replace(from, to);
        let result = Caller::new(&args).covered_by(&lease, Usage::default());
        assert!(result.is_ok(), "{args}");
    }
}

#[test]
fn l03_a_path_that_was_not_resolved_is_not_believed() {
    let root = Constraint::PathUnder(PathRoot::new("/w/out").unwrap());
    for (path, allowed) in [
        ("/w/out/a", true),
        ("/w/out/../secret", false),
        ("/w/out//a", false),
        ("/w/out/", false),
        ("/w/out/./a", false),
        ("w/out/a", false),
        ("/w/out/a\0b", false),
    ] {
        assert_eq!(
            root.allows("path", &Json::from(path), &Careless),
            allowed,
            "{path}"
        );
    }
    let top = Constraint::PathUnder(PathRoot::new("/").unwrap());
    assert!(top.allows("path", &Json::from("/a"), &Careless));
    assert!(!top.allows("path", &Json::from("/a/../b"), &Careless));
    let host = Constraint::HostIn(HostSet::new(["a"]).unwrap());
    assert!(!host.allows("host", &Json::from("a"), &Careless));
}

#[test]
fn a_lease_covers_its_tool_its_holder_its_time_and_its_policies_only() {
    let lease = lease();
    let check = |change: fn(&mut Caller), expect: Mismatch| {
        let mut caller = Caller::new(CALL);
        change(&mut caller);
        assert_eq!(caller.covered_by(&lease, Usage::default()), Err(expect));
    };
    check(|it| it.tool.name = "pay2".to_owned(), Mismatch::Tool);
    check(|it| it.tool.server = None, Mismatch::Tool);
    check(|it| it.tool.definition = None, Mismatch::Definition);
    check(|it| it.policy = Digest::of(b"other"), Mismatch::Policy);
    check(|it| it.trust = Trust::Untrusted, Mismatch::Trust);
    check(
        |it| it.work_item = WorkItemId::new("w2").unwrap(),
        Mismatch::Holder,
    );
    check(|it| it.lineage = lineage(&["other"]), Mismatch::Holder);
    check(|it| it.lineage = lineage(&[]), Mismatch::Holder);
    check(
        |it| it.chain = countersign_event::Scope::new("default", "s2").unwrap(),
        Mismatch::Holder,
    );
    check(|it| it.now = at(60_000), Mismatch::Time);
    check(|it| it.now = UnixMs::new(ISSUED - 1), Mismatch::Time);
    let mut caller = Caller::new(CALL);
    caller.now = at(59_999);
    assert!(caller.covered_by(&lease, Usage::default()).is_ok());
}

#[test]
fn l04_l05_a_lease_that_has_ended_covers_nothing() {
    let (lease, caller) = (lease(), Caller::new(CALL));
    for &status in LeaseStatus::ALL {
        let ended = Standing {
            status,
            ..standing(&lease, Usage::default())
        };
        let result = covered(&[ended], &caller.call());
        match status {
            LeaseStatus::Active => assert!(result.is_ok()),
            status => assert_eq!(result.unwrap_err().mismatch, Mismatch::Ended(status)),
        }
    }
    // A key that was replaced takes the leases with it.
    let mut keys = keyring();
    let signed = lease.sign(&signing_key("dana"));
    assert!(signed.verify(&keys).is_ok());
    keys.set_status(signed.key_id(), KeyStatus::Retired)
        .unwrap();
    assert_eq!(signed.verify(&keys), Err(LeaseError::Signature));
}

#[test]
fn a_lease_covers_nothing_without_the_proof_of_its_own_signature() {
    let (mine, caller) = (lease(), Caller::new(CALL));
    let mut other = terms();
    other.max_uses = NonZeroU64::new(9).unwrap();
    let other = Lease::grant(other, REVERSIBLE).unwrap();
    let other = other.sign(&signing_key("dana"));
    let (keys, call) = (keyring(), caller.call());
    let proof = other.verify(&keys).unwrap();
    let standings = [standing(&mine, Usage::default())];
    for chain in [&standings[..], &[]] {
        let refused = cover(chain, &proof, &call, &World).unwrap_err();
        assert_eq!(refused.mismatch, Mismatch::Parent);
    }
}

#[test]
fn l07_what_cannot_be_undone_is_never_covered() {
    assert_eq!(
        Lease::grant(terms(), Class::UNKNOWN),
        Err(LeaseError::Irreversible)
    );
    let mut caller = Caller::new(CALL);
    caller.class.irreversible = true;
    let result = caller.covered_by(&lease(), Usage::default());
    assert_eq!(result, Err(Mismatch::Irreversible));
}

#[test]
fn m06_a_child_uses_a_lease_only_if_the_lease_says_so() {
    let mut caller = Caller::new(CALL);
    caller.lineage = lineage(&["chat", "helper"]);
    assert!(caller.covered_by(&lease(), Usage::default()).is_ok());
    let mut terms = terms();
    terms.holder.children = false;
    let own = Lease::grant(terms, REVERSIBLE).unwrap();
    assert_eq!(
        caller.covered_by(&own, Usage::default()),
        Err(Mismatch::Holder)
    );
}

#[test]
fn a_lease_that_was_changed_after_signing_is_refused() {
    let signed = lease().sign(&signing_key("dana"));
    let text = String::from_utf8(signed.to_text()).unwrap();
    for (from, to) in [
        ("\"max_uses\":3", "\"max_uses\":4"),
        ("/w/out", "/w"),
        ("human:dana\",\"key_id", "human:lee\",\"key_id"),
        ("\"children\":true", "\"children\":false"),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from}");
        let changed = SignedLease::read(changed.as_bytes()).unwrap();
        assert_eq!(
            changed.verify(&keyring()),
            Err(LeaseError::Signature),
            "{to}"
        );
    }
    assert!(SignedLease::read(text.replace("countersign.lease.v1", "x").as_bytes()).is_err());
    assert!(SignedLease::read(text.replace("\"budget\"", "\"budgets\"").as_bytes()).is_err());
}

#[test]
fn l08_a_preview_lists_what_would_have_been_covered() {
    let (good, path) = (Caller::new(CALL), CALL.replace("/w/out/a", "/w/b"));
    let (bad, dear) = (Caller::new(&path), Caller::new(&CALL.replace("20", "40")));
    let past = [&good, &bad, &dear, &dear, &good].map(Caller::call);
    let preview = preview(&lease(), &past, &World);
    assert_eq!(preview.covered, [0, 2]);
    let path = Mismatch::Argument("path".to_owned());
    let left = || Mismatch::Budget { left: 10 };
    assert_eq!(preview.not_covered, [(1, path), (3, left()), (4, left())]);
    assert_eq!(preview.usage, Usage { uses: 2, spent: 60 });
}

#[test]
fn leases_that_make_no_sense_are_refused() {
    let grant = |change: fn(&mut Terms)| {
        let mut terms = terms();
        change(&mut terms);
        Lease::grant(terms, REVERSIBLE).unwrap_err().to_string()
    };
    let ends = grant(|terms| terms.valid.expires_at = terms.valid.granted_at);
    assert_eq!(ends, "the lease would end before it begins");
    let loose = grant(|terms| terms.budget.as_mut().unwrap().argument = "dry_run".to_owned());
    assert_eq!(
        loose,
        "the budget counts `dry_run`, which a call need not have"
    );
    for root in ["", "w", "/w/", "/w/../x", "//", "/w/."] {
        assert!(PathRoot::new(root).is_err(), "{root}");
    }
    for host in ["", "A.com", "a.com.", "*.a.com", "a b"] {
        assert!(HostSet::new([host]).is_err(), "{host}");
    }
    assert!(IntegerRange::new(2, 1).is_err());
    assert!(SafePrefix::new("").is_err());
}
