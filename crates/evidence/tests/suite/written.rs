//! Records that we write: every rule kept, the same bytes each time.

use countersign_approval::{SideEffect, SigningKey};
use countersign_canon::{Digest, Hash, Json};
use countersign_evidence::aep::{
    Action, Authority, Claim, DenyReason, Drift, Form, Keys, Outcome, Ran, Record, Run,
    StateChange, Surroundings, WriteError, check,
};
use countersign_evidence::state::{Coverage, GitIdentity, GitSelector, GitTree, Nothing};

use crate::corpus::read;

pub(crate) const KEY_ID: &str = "node-1";

pub(crate) fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

pub(crate) fn keys() -> Keys {
    let mut keys = Keys::default();
    let public = key().verifying_key();
    let hex: String = public
        .as_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    keys.add(KEY_ID, &hex).unwrap();
    keys
}

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn action(id: &str, authority: Authority) -> Action {
    Action {
        id: id.to_owned(),
        tool_name: "http_post".to_owned(),
        at_unix_ms: 1_760_000_000_000,
        effect: SideEffect::NetworkEgress,
        claim: Claim {
            capability: "tool.call".to_owned(),
            subject: "agent:main".to_owned(),
            resource: "mcp:shop/http_post".to_owned(),
            reason_code: Some("OK".to_owned()),
        },
        authority,
        arguments: Some(digest("args")),
        precondition: Some(Hash::of(b"snapshot")),
        tool_descriptor: None,
        parent: None,
        evidence: vec!["countersign:event:0".to_owned()],
    }
}

fn surroundings() -> Surroundings {
    Surroundings {
        created_at_ms: 1_760_000_000_500,
        policy_bundle_digest: Some(digest("policy").to_string()),
        subject_id: Some("agent:main".to_owned()),
        user_id: Some("human:dana".to_owned()),
        delegation_chain: vec!["human:dana".to_owned(), "agent:main".to_owned()],
        session_id: Some("ses_1".to_owned()),
    }
}

fn ran() -> Option<Ran> {
    let coverage = Coverage::GitTree(GitTree {
        identity: GitIdentity {
            tree_sha: "4b825dc642cb6eb9a060e54bf8d69288fbee4904".to_owned(),
            tree_root: "/".to_owned(),
        },
        selector: GitSelector {
            path_predicate: None,
            excludes: None,
        },
        boundary: Nothing,
        observed: Nothing,
    });
    Some(Ran {
        outcome: Some(Outcome::Success),
        result: Some(digest("result")),
        labels: vec!["untrusted".to_owned()],
        state: Some(StateChange {
            coverage,
            before: Some(digest("before").to_string()),
            after: Some(digest("after").to_string()),
        }),
    })
}

/// One action for each way in which authority comes about.
pub(crate) fn actions() -> Vec<Action> {
    let (one, other) = (Hash::of(b"plan"), Hash::of(b"other plan"));
    let drift = Drift::between(digest("approved"), digest("observed"), Some(one)).unwrap();
    let mut child = action("allowed-2", Authority::Policy(None));
    child.parent = Some("allowed".to_owned());
    vec![
        action("allowed", Authority::Policy(ran())),
        child,
        action(
            "approved",
            Authority::Approved {
                context: one,
                matched: Some(digest("args")),
                ran: ran(),
            },
        ),
        action("drifted", Authority::Drifted(drift)),
        action(
            "approved-again",
            Authority::ReApproved {
                context: other,
                denied: "drifted".to_owned(),
                ran: ran(),
            },
        ),
        action(
            "leased",
            Authority::Leased {
                lease: "lea_1".to_owned(),
                ran: ran(),
            },
        ),
        action("asked", Authority::Asked { context: Some(one) }),
        action("denied", Authority::Denied(DenyReason::TaintedInput)),
        action("refused", Authority::Refused { context: Some(one) }),
    ]
}

pub(crate) fn written(form: Form) -> Vec<Json> {
    let mut run = Run::new("run-1", form);
    let write = |action: Action| {
        let record = run.record(&action, &surroundings()).unwrap();
        record.sign(&key(), KEY_ID).unwrap()
    };
    actions().into_iter().map(write).collect()
}

#[test]
fn what_is_written_holds_on_every_axis() {
    for form in [Form::Inline, Form::Dsse] {
        let records: Vec<Record> = written(form).into_iter().map(Record::from_json).collect();
        let checked = check(&records, &keys());
        assert!(!checked.fails(), "{checked:?}");
        assert_eq!(checked.chain.continuity.unwrap().as_str(), "intact");
        for record in &checked.records {
            assert!(record.notes.is_empty(), "{:?}", record.notes);
        }
    }
}

/// The bytes are a promise: whoever signed them cannot sign them again in another form.
#[test]
fn the_bytes_stay_the_same() {
    for (form, file) in [
        (Form::Inline, "aep/written-inline.jsonl"),
        (Form::Dsse, "aep/written-dsse.jsonl"),
    ] {
        let mut text = Vec::new();
        for record in written(form) {
            text.extend(record.to_jcs().unwrap());
            text.push(b'\n');
        }
        if std::env::var_os("COUNTERSIGN_BLESS").is_some() {
            let path = format!("{}/../../corpus/{file}", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(path, &text).unwrap();
        }
        assert!(text == read(file), "{file} differs");
    }
}

#[test]
fn what_breaks_a_rule_cannot_be_written() {
    let refused = |actions: Vec<Action>| {
        let mut run = Run::new("run-1", Form::Inline);
        let written = actions
            .iter()
            .map(|action| run.record(action, &surroundings()));
        written.last().unwrap().map(drop).unwrap_err()
    };
    let allowed = || action("a", Authority::Policy(None));
    assert_eq!(
        refused(vec![allowed(), allowed()]),
        WriteError::Twice("a".to_owned())
    );
    let mut orphan = allowed();
    orphan.parent = Some("b".to_owned());
    assert_eq!(refused(vec![orphan]), WriteError::NoParent("a".to_owned()));
    let context = Hash::of(b"plan");
    let again = |denied: &str, context| {
        let denied = denied.to_owned();
        action(
            "c",
            Authority::ReApproved {
                context,
                denied,
                ran: None,
            },
        )
    };
    assert_eq!(
        refused(vec![again("d", context)]),
        WriteError::NoParent("c".to_owned())
    );
    assert_eq!(
        refused(vec![allowed(), again("a", context)]),
        WriteError::NotDenied("c".to_owned())
    );
    let drift = Drift::between(digest("x"), digest("y"), Some(context)).unwrap();
    let drifted = action("d", Authority::Drifted(drift));
    assert_eq!(
        refused(vec![drifted, again("d", context)]),
        WriteError::SameApproval("c".to_owned())
    );
    assert!(Drift::between(digest("x"), digest("x"), None).is_none());
}
