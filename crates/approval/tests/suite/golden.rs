//! Exact texts, hashes and signatures, against values that another program worked out.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::Command;

use countersign_approval::audit::{About, Anchor, Entry, Head, Outcome, SignedHead};
use countersign_approval::lease::{
    Budget, Constraint, Holder, HostSet, IntegerRange, Lease, PathRoot, SafePrefix, SignedLease,
    Term, Terms, Validity,
};
use countersign_approval::*;
use countersign_canon::{Digest, Hash, Json};
use serde_json::Value;

use crate::desk::*;

#[test]
fn a_plan_and_its_envelope_have_their_golden_texts() {
    let (golden, envelope) = (golden(), Envelope::create(draft()).unwrap());
    let plan = String::from_utf8(envelope.plan().payload().to_sorted_ascii()).unwrap();
    assert_eq!(plan, text(&golden["plan"]));
    assert_eq!(
        envelope.plan().hash().to_string(),
        text(&golden["plan_hash"])
    );
    assert_eq!(envelope.to_text(), text(&golden["envelope"]).as_bytes());
    assert_eq!(envelope.hash().to_string(), text(&golden["envelope_hash"]));
    assert_eq!(Envelope::read(&envelope.to_text()), Ok(envelope));
}

#[test]
fn k01_a_decision_has_its_golden_signature() {
    let (golden, desk) = (golden(), Desk::new(draft()));
    let mut decisions = desk.verdicts("yn");
    let reason = Reason::new("not the shell, please: use caf\u{e9}.txt").unwrap();
    decisions[1].decision = Decision::Denied(Some(reason));
    let paper = desk.paper("dana", decisions);
    let key = signing_key("dana");
    let id = KeyId::of(&key.verifying_key());
    assert_eq!(id.to_string(), text(&golden["key_id"]));
    let signed = String::from_utf8(paper.signed_text(&desk.envelope, id)).unwrap();
    assert_eq!(signed, text(&golden["signed_text"]));
    let submission = paper.sign(&desk.envelope, &key);
    assert_eq!(submission.to_text(), text(&golden["submission"]).as_bytes());
    assert!(desk.verify(&submission).is_ok());
}

#[test]
fn a_lease_has_its_golden_text_and_signature() {
    let golden = golden();
    let class = Class {
        effect: SideEffect::MutateExternal,
        irreversible: false,
    };
    let signed = Lease::grant(terms(), class)
        .unwrap()
        .sign(&signing_key("dana"));
    let stored = String::from_utf8(signed.to_text()).unwrap();
    assert_eq!(stored, text(&golden["lease"]));
    let read = SignedLease::read(stored.as_bytes()).unwrap();
    assert_eq!(read, signed);
    let lease = read.verify(&keyring()).unwrap().lease();
    assert_eq!(Lease::read(&lease.to_text()).unwrap(), *lease);
}

#[test]
fn audit_entries_have_their_golden_lines() {
    let golden = golden();
    let mut head = Head::genesis();
    for (entry, line) in entries().iter().zip(golden["audit"].as_array().unwrap()) {
        let (written, next) = head.append(entry);
        assert_eq!(String::from_utf8(written.clone()).unwrap(), text(line));
        assert_eq!(Entry::read(&written), Ok((entry.clone(), head.hash)));
        head = next;
    }
    let signed = head.sign(&signing_key("dana"));
    assert_eq!(signed.to_text(), text(&golden["head"]).as_bytes());
    let read = SignedHead::read(&signed.to_text()).unwrap();
    assert_eq!(
        read.verify(&signing_key("dana").verifying_key()),
        Some(head)
    );
    assert_eq!(read.verify(&signing_key("lee").verifying_key()), None);
    let written_at = "2026-02-15T00:01:00Z".parse().unwrap();
    let anchor = Anchor { head, written_at };
    assert_eq!(anchor.to_text(), text(&golden["anchor"]).as_bytes());
    assert_eq!(Anchor::read(&anchor.to_text()), Ok(anchor));
}

#[test]
fn the_golden_file_is_what_its_generator_writes() {
    let output = Command::new("python3")
        .arg(corpus("approval/make_golden.py"))
        .arg("--check")
        .output()
        .expect("this test runs the generator: `python3` must be installed");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
}

#[test]
fn the_document_shows_every_golden_value() {
    let document = fs::read_to_string(corpus("../docs/approval-format.md")).unwrap();
    for (name, value) in golden().as_object().unwrap() {
        let single = std::slice::from_ref(value);
        for value in value.as_array().map_or(single, Vec::as_slice) {
            assert!(document.contains(text(value)), "{name}: {value}");
        }
    }
    let genesis = Head::genesis().hash.to_string();
    assert!(document.contains(&genesis));
    for code in Outcome::ALL {
        assert!(document.contains(&format!("`{code}`")), "{code}");
    }
    for state in State::ALL {
        assert!(document.contains(&format!("`{state}`")), "{state}");
    }
}

/// Plans in the shape of the reference program, whose hashes it published.
#[test]
fn plans_in_the_shape_of_the_reference_have_its_hashes() {
    let vectors = read("canon/approvals.json");
    let check = |plan: &Plan, expect: &Value| {
        let hash = Hash::of(&reference_shape(plan).to_sorted_ascii());
        assert_eq!(hash.to_string(), text(expect));
    };
    let one = plan(vec![write_call()]);
    check(&one, &vectors["plan_hash_repo_v3"]["sha256"]);
    let two = plan(vec![write_call(), shell_call()]);
    check(&two, &vectors["plan_hash_repo_v3_two_calls"]["sha256"]);
    let swapped = plan(vec![shell_call(), write_call()]);
    let order = &vectors["plan_hash_order_sensitivity"];
    check(&swapped, &order["sha256_swapped_order"]);
    let drifted = vectors["plan_hash_drift_each_field_changes_hash"].as_object();
    for (change, hash) in drifted.unwrap() {
        let mut scope = scope();
        match change.split_once('=').unwrap() {
            ("work_item_id", it) => scope.work_item = WorkItemId::new(it).unwrap(),
            ("workspace_root", it) => scope.workspace.root = it.to_owned(),
            ("agent_name", it) => scope.agent_name = it.to_owned(),
            ("toolset_mode", it) => scope.toolset_mode = it.to_owned(),
            other => panic!("{other:?}"),
        }
        let changed = Plan::new(
            scope,
            vec![write_call()],
            one.policy(),
            Fingerprints::default(),
        );
        check(&changed.unwrap(), hash);
    }
}

#[test]
fn g01_the_seed_chain_reads_and_writes_alike() {
    let vectors = read("canon/approvals.json");
    let chain = &vectors["audit_chain_seed_R4"];
    let mut head = Head::genesis();
    assert_eq!(head.hash.to_string(), text(&chain["genesis_sha256"]));
    for entry in chain["entries"].as_array().unwrap() {
        let (read, prev) = Entry::read(text(&entry["entry_canon"]).as_bytes()).unwrap();
        assert_eq!(prev, head.hash);
        let (line, next) = head.append(&read);
        assert_eq!(line, text(&entry["entry_canon"]).as_bytes());
        assert_eq!(next.hash.to_string(), text(&entry["entry_sha256"]));
        head = next;
    }
    assert_eq!(head.hash.to_string(), text(&chain["head"]));
    assert_eq!(head.count, 3);
}

fn reference_shape(plan: &Plan) -> Json {
    let scope = plan.scope();
    let ids = plan.calls().iter().map(|call| Json::from(call.id.as_str()));
    let calls = plan.calls().iter().map(|call| {
        Json::object([
            ("args", call.args.value().clone()),
            ("tool_call_id", Json::from(call.id.as_str())),
            ("tool_name", Json::from(call.tool.name.as_str())),
        ])
    });
    Json::object([
        (
            "scope",
            Json::object([
                ("agent_name", Json::from(scope.agent_name.as_str())),
                ("allowed_paths", Json::Null),
                ("child_scope", Json::Null),
                ("max_cost_cents", Json::Null),
                ("parent_envelope_id", Json::Null),
                ("scope_schema_version", Json::from(1_u32)),
                ("scope_tags", Json::Null),
                ("session_id", Json::Null),
                ("tool_call_ids", Json::Array(ids.collect())),
                ("toolset_mode", Json::from(scope.toolset_mode.as_str())),
                ("work_item_id", Json::from(scope.work_item.as_str())),
                ("workspace_root", Json::from(scope.workspace.root.as_str())),
            ]),
        ),
        ("tool_calls", Json::Array(calls.collect())),
    ])
}

fn terms() -> Terms {
    let term = |constraint, may_be_absent| Term {
        constraint,
        may_be_absent,
    };
    let hosts = HostSet::new(["example.com", "api.example.com"]).unwrap();
    let one_of = Constraint::OneOf(vec![Json::from("fast"), Json::from(1_u32)]);
    let root = PathRoot::new("/tmp/workspace/out").unwrap();
    let range = IntegerRange::new(1, 500).unwrap();
    let prefix = SafePrefix::new("feature/").unwrap();
    let arguments = [
        ("amount", term(Constraint::Range(range), false)),
        ("host", term(Constraint::HostIn(hosts), true)),
        ("mode", term(one_of, false)),
        ("name", term(Constraint::Prefix(prefix), true)),
        ("path", term(Constraint::PathUnder(root), false)),
        ("unit", term(Constraint::Exact(Json::from("eur")), false)),
    ];
    let arguments = arguments.map(|(name, term)| (name.to_owned(), term));
    Terms {
        id: "lse_22222222222242228222222222222222".parse().unwrap(),
        tool: Tool {
            server: Some("bank".to_owned()),
            name: "pay".to_owned(),
            definition: Some(Digest::of(br#"{"name":"pay"}"#)),
        },
        arguments: BTreeMap::from(arguments),
        max_uses: NonZeroU64::new(5).unwrap(),
        budget: Some(Budget {
            argument: "amount".to_owned(),
            limit: 1000,
        }),
        valid: Validity {
            granted_at: at(0),
            expires_at: at(900_000),
        },
        holder: Holder {
            chain: chain(),
            work_item: WorkItemId::new("w1").unwrap(),
            lineage: lineage(&["chat"]),
            children: false,
        },
        least_trust: Trust::Reduced,
        policy: Digest::of(b"policy"),
        granted_by: human("dana"),
    }
}

fn entries() -> Vec<Entry> {
    let desk = Desk::new(draft());
    let about = Some(About::envelope(&desk.envelope));
    let hash = Some(desk.envelope.plan().hash());
    let mut decisions = desk.verdicts("yn");
    let reason = Reason::new("not the shell, please: use caf\u{e9}.txt").unwrap();
    decisions[1].decision = Decision::Denied(Some(reason));
    vec![
        Entry {
            about: about.clone(),
            actor: Some("agent:chat".to_owned()),
            ..Entry::new(at(0), Outcome::Requested)
        },
        Entry {
            about: about.clone(),
            decisions,
            computed_plan_hash: hash,
            actor: Some("human:dana".to_owned()),
            key: Some(KeyId::of(&signing_key("dana").verifying_key())),
            display: Some(desk.display),
            ..Entry::new(at(1_000), Outcome::VoteCounted)
        },
        Entry {
            about,
            computed_plan_hash: hash,
            call: Some("call-1".to_owned()),
            ..Entry::new(at(2_000), Outcome::Executed)
        },
        Entry {
            lease: Some("lse_22222222222242228222222222222222".to_owned()),
            detail: Some("amount 20".to_owned()),
            ..Entry::new(at(3_250), Outcome::LeaseUsed)
        },
    ]
}

pub(crate) fn golden() -> Value {
    read("approval/golden.json")
}

fn read(file: &str) -> Value {
    serde_json::from_slice(&fs::read(corpus(file)).unwrap()).unwrap()
}

fn corpus(file: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../../corpus").join(file)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
