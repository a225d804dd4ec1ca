//! What a plan hash binds, what an envelope refuses, and what drift looks like.

use countersign_approval::*;
use countersign_canon::Digest;

use crate::desk::*;

/// What changes, by the name that the drift gives it.
type Change = (&'static str, fn(&mut Context));

const CHANGES: &[Change] = &[
    ("tenant_id", |it| {
        it.scope.chain = countersign_event::Scope::new("other", "s1").unwrap();
    }),
    ("session_id", |it| {
        it.scope.chain = countersign_event::Scope::new("default", "s2").unwrap();
    }),
    ("work_item_id", |it| {
        it.scope.work_item = WorkItemId::new("w2").unwrap();
    }),
    ("workspace_root", |it| it.scope.workspace.root.push('2')),
    ("toolset_mode", |it| {
        it.scope.toolset_mode = "none".to_owned()
    }),
    ("agent_name", |it| it.scope.agent_name = "chat2".to_owned()),
    ("trust", |it| it.scope.trust = Trust::Reduced),
    ("policy_digest", |it| it.policy = Digest::of(b"policy 2")),
    ("server", |it| it.tools[1].0.server = None),
    ("tool_name", |it| it.tools[1].0.name = "execute2".to_owned()),
    ("definition_digest", |it| {
        it.tools[0].0.definition = Some(Digest::of(b"other"));
    }),
    ("side_effect_class", |it| it.tools[0].1.irreversible = true),
    ("side_effect_class", |it| {
        it.tools[0].1.effect = SideEffect::Read
    }),
    ("tool_calls", |it| drop(it.tools.pop())),
    ("tool_calls", |it| {
        let extra = it.tools[0].clone();
        it.tools.push(extra);
    }),
];

#[test]
fn a04_each_change_of_context_is_drift_and_costs_the_approval_nothing() {
    for (field, change) in CHANGES {
        let mut desk = Desk::new(draft());
        let submission = desk.submit("dana", "yy");
        let granted = desk.granted("dana", "yy");
        change(&mut desk.context);
        let expect = ("context_drift", "rejected:mismatch");
        assert_eq!(told(desk.verify(&submission)), expect, "{field}");
        desk.state = State::Approved;
        let Err(Refusal::ContextDrift(drift)) = desk.execute(&granted) else {
            panic!("{field}");
        };
        assert_eq!(drift.fields, [*field]);
        assert_eq!(drift.approved, desk.envelope.plan().hash());
        desk.context = desk.envelope.plan().context();
        assert!(desk.verify(&submission).is_ok());
        assert!(desk.execute(&granted).is_ok());
    }
}

#[test]
fn a05_another_folder_under_the_same_path_is_drift() {
    let mut desk = Desk::new(draft());
    let submission = desk.submit("dana", "yy");
    let swapped = FolderIdentity {
        device: 2049,
        inode: 132,
    };
    for identity in [Some(swapped), None] {
        desk.context.scope.workspace.identity = identity;
        let refusal = desk.verify(&submission).unwrap_err();
        let text = "changed since the plan was shown: workspace_identity";
        assert_eq!(refusal.to_string(), text);
    }
}

#[test]
fn a06_a_changed_precondition_stops_the_plan_and_costs_nothing() {
    let mut desk = Desk::new(draft());
    let submission = desk.submit("dana", "yy");
    let granted = desk.granted("dana", "yy");
    let file = subject(SubjectKind::File, "/tmp/workspace/a.txt");
    let head = subject(SubjectKind::GitHead, "/tmp/workspace");
    let before = desk.fingerprints.clone();
    let changed = [
        before
            .clone()
            .with(file.clone(), Some("sha256:new".to_owned())),
        before.clone().with(file, None),
        before.clone().with(head, Some("0123".to_owned())),
        // Nobody looked.
        Fingerprints::default(),
    ];
    let expect = ("precondition_failed", "rejected:precondition");
    for fingerprints in changed {
        desk.fingerprints = fingerprints;
        desk.state = State::Pending;
        assert_eq!(told(desk.verify(&submission)), expect);
        desk.state = State::Approved;
        assert_eq!(told(desk.execute(&granted)), expect);
    }
    desk.fingerprints = before;
    assert!(desk.execute(&granted).is_ok());
}

#[test]
fn a03_what_runs_is_what_was_stored() {
    let mut desk = Desk::new(draft());
    let granted = desk.granted("dana", "yy");
    desk.state = State::Approved;
    let verified = desk.execute(&granted).unwrap();
    // The store gives the envelope back from its text; the conversation has no part in it.
    let stored = Envelope::read(&desk.envelope.to_text()).unwrap();
    let runs = verified.runs(&stored).unwrap();
    assert_eq!(runs[0].args.canonical(), br#"{"path":"a.txt"}"#);
    assert_eq!(
        runs[1].args.canonical(),
        br#"{"command":"echo \u202ehello","n":9007199254740993,"timeout":1.0}"#
    );
    let other = Envelope::create(Draft {
        plan: plan(vec![call("call-1"), call("call-2")]),
        ..draft()
    });
    assert_eq!(verified.runs(&other.unwrap()), None);
}

#[test]
fn a_stored_envelope_that_was_changed_makes_every_signature_invalid() {
    let desk = Desk::new(draft());
    let submission = desk.submit("dana", "yy");
    let text = String::from_utf8(desk.envelope.to_text()).unwrap();
    // The plan hash is stated in the text too, so only a consistent change can be read at all.
    let args = text.replace("a.txt", "b.txt");
    let refused = Envelope::read(args.as_bytes()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "member `plan_hash` is not the hash of the plan"
    );
    let changes: [(&str, &str); 5] = [
        ("\"required\":1", "\"required\":2"),
        ("\"human:lee\"", "\"human:mallory\""),
        ("agent:chat", "agent:other"),
        ("1771117200000", "1771117200001"),
        ("I need to write", "I need to break"),
    ];
    for (from, to) in changes {
        let changed = Envelope::read(text.replace(from, to).as_bytes()).unwrap();
        let (keys, situation) = (&desk.keys, desk.situation());
        let refused = verify_vote(&submission, &changed, keys, &situation);
        assert_eq!(refused, Err(Refusal::InvalidSignature), "{to}");
    }
}

#[test]
fn an_envelope_reads_back_from_its_own_text_only() {
    let text = String::from_utf8(Envelope::create(draft()).unwrap().to_text()).unwrap();
    assert!(Envelope::read(text.as_bytes()).is_ok());
    for (from, to) in [
        ("{\"agent_says\"", "{ \"agent_says\""),
        ("{\"agent_says\"", "{\"agent\":1,\"agent_says\""),
        ("\"agent_says\":\"I need to write a file.\",", ""),
        ("countersign.envelope.v1", "countersign.envelope.v2"),
        ("countersign.plan.v1", "countersign.plan.v2"),
        ("\"execute_within_ms\":null", "\"execute_within_ms\":5"),
        ("\"workspace_inode\":131", "\"workspace_inode\":null"),
        ("\"workspace_inode\":131", "\"workspace_inode\":131.0"),
        (
            "\"issued_at_ms\":1771113600000",
            "\"issued_at_ms\":99999999999999999",
        ),
        (
            "\"human:dana\",\"human:lee\"",
            "\"human:lee\",\"human:dana\"",
        ),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from}");
        assert!(Envelope::read(changed.as_bytes()).is_err(), "{to}");
    }
}

#[test]
fn c05_plans_without_calls_or_with_one_id_twice_are_refused() {
    let make = |calls| Plan::new(scope(), calls, Digest::of(b""), Fingerprints::default());
    assert_eq!(make(vec![]), Err(PlanError::NoCalls));
    let twice = make(vec![call("a"), call("b"), call("a")]);
    assert_eq!(twice, Err(PlanError::DuplicateCall("a".to_owned())));
    let many = (0..257).map(|id| call(&id.to_string())).collect();
    assert_eq!(make(many), Err(PlanError::TooManyCalls(257)));
    let mut unnamed = call("a");
    unnamed.tool.name.clear();
    assert_eq!(
        make(vec![unnamed]),
        Err(PlanError::UnnamedTool("a".to_owned()))
    );
    let mut large = call("a");
    let text = format!("{{\"x\":\"{}\"}}", "x".repeat(3 << 20));
    large.args = Arguments::admit(text.as_bytes()).unwrap();
    let more = ToolCall {
        id: ToolCallId::new("b").unwrap(),
        ..large.clone()
    };
    let third = ToolCall {
        id: ToolCallId::new("c").unwrap(),
        ..large.clone()
    };
    assert!(make(vec![large.clone(), more.clone()]).is_ok());
    assert_eq!(make(vec![large, more, third]), Err(PlanError::TooLarge));
}

#[test]
fn envelopes_that_make_no_sense_are_refused() {
    let create = |change: fn(&mut Draft)| {
        let mut draft = draft();
        change(&mut draft);
        Envelope::create(draft).unwrap_err().to_string()
    };
    let itself = create(|draft| draft.supersedes = Some(draft.id));
    assert_eq!(itself, "an envelope cannot supersede itself");
    let loud = create(|draft| draft.agent_says = Some("x".repeat(70_000)));
    assert_eq!(loud, "what the agent says is longer than 65536 bytes");
    let alone = create(|draft| {
        draft.lineage = lineage(&[]);
        draft.quorum = people(1, &["dana"], DenyRule::Veto);
    });
    assert_eq!(alone, "1 people must approve, but only 0 may");
}

#[test]
fn j06_an_edited_plan_is_another_envelope() {
    let first = Desk::new(draft());
    let submission = first.submit("dana", "yy");
    let second = Desk::new(Draft {
        id: ApprovalId::from_random([2; 16]),
        nonce: Nonce::from_random([2; 16]),
        plan: plan(vec![call("call-1"), call("call-2")]),
        supersedes: Some(first.envelope.id()),
        ..draft()
    });
    assert_eq!(told(second.verify(&submission)).0, "unknown_nonce");
    let life = Life::begin(&first.envelope)
        .after(&Step::Supersede)
        .unwrap();
    let mut old = first;
    old.state = life.state();
    let expect = ("superseded", "rejected:superseded");
    assert_eq!(told(old.verify(&submission)), expect);
}

#[test]
fn changed_arguments_are_recorded_with_both_digests() {
    let approved = write_call();
    let same = ArgumentDrift::between(
        &approved,
        &Arguments::admit(b"{ \"path\":\"a.txt\"}").unwrap(),
    );
    assert!(!same.is_detected());
    let other = Arguments::admit(br#"{"path":"b.txt"}"#).unwrap();
    let drift = ArgumentDrift::between(&approved, &other);
    assert_eq!(drift.resolution.as_str(), "denied");
    assert_eq!(
        drift.approved_args_digest,
        Digest::of(br#"{"path":"a.txt"}"#)
    );
    assert_eq!(
        drift.observed_args_digest,
        Digest::of(br#"{"path":"b.txt"}"#)
    );
    let again = Envelope::create(Draft {
        parent_action: Some(ActionId::from_random([1; 16])),
        ..draft()
    });
    assert_eq!(again.unwrap().mode(), ApprovalMode::ReApprovalOnDrift);
    let first = Envelope::create(draft()).unwrap();
    assert_eq!(first.mode().as_str(), "one-shot-payload");
}

#[test]
fn h08_the_short_hash_is_the_beginning_of_the_hash() {
    let hash = Envelope::create(draft()).unwrap().plan().hash();
    assert!(hash.to_string().starts_with(&hash.typed()));
    assert!(hash.typed().starts_with(&hash.short()));
    assert_eq!((hash.short().len(), hash.typed().len()), (8, 16));
}
