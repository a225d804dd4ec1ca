//! A desk on which requests for approval lie: people with keys, and a world to look at.

use countersign_approval::*;
use countersign_canon::{Digest, Hash};
use countersign_event::Scope as Chain;

pub(crate) const ISSUED: u64 = 1_771_113_600_000;
pub(crate) const DISPLAY: &[u8] = b"display";

/// One envelope and the world as it is when somebody decides.
pub(crate) struct Desk {
    pub(crate) envelope: Envelope,
    pub(crate) keys: Keyring,
    pub(crate) context: Context,
    pub(crate) fingerprints: Fingerprints,
    pub(crate) quorum: Quorum,
    pub(crate) display: Hash,
    pub(crate) state: State,
    pub(crate) now: UnixMs,
}

impl Desk {
    pub(crate) fn new(draft: Draft) -> Self {
        let envelope = Envelope::create(draft).unwrap();
        Self {
            keys: keyring(),
            context: envelope.plan().context(),
            fingerprints: envelope.plan().preconditions().clone(),
            quorum: envelope.quorum().clone(),
            display: Hash::of(DISPLAY),
            state: State::Pending,
            now: at(30_000),
            envelope,
        }
    }

    pub(crate) fn situation(&self) -> Situation<'_> {
        Situation {
            state: self.state,
            context: &self.context,
            fingerprints: &self.fingerprints,
            quorum: &self.quorum,
            display: self.display,
            now: self.now,
            skew_ms: DEFAULT_SKEW_MS,
        }
    }

    pub(crate) fn paper(&self, approver: &str, decisions: Vec<CallDecision>) -> BallotPaper {
        BallotPaper {
            decisions,
            approver: human(approver),
            display: self.display,
            signed_at: self.now,
        }
    }

    /// One verdict for each call of the plan, `y` or `n`.
    pub(crate) fn verdicts(&self, verdicts: &str) -> Vec<CallDecision> {
        let calls = self.envelope.plan().calls().iter().zip(verdicts.chars());
        calls
            .map(|(call, verdict)| decision(call.id.as_str(), verdict))
            .collect()
    }

    pub(crate) fn submit(&self, approver: &str, verdicts: &str) -> Submission {
        let paper = self.paper(approver, self.verdicts(verdicts));
        paper.sign(&self.envelope, &signing_key(approver))
    }

    pub(crate) fn verify(&self, submission: &Submission) -> Result<Vote, Refusal> {
        // What is sent and stored is text.
        let submission = Submission::parse(&submission.to_text())?;
        verify_vote(&submission, &self.envelope, &self.keys, &self.situation())
    }

    pub(crate) fn vote(&self, approver: &str, verdicts: &str) -> Vote {
        self.verify(&self.submit(approver, verdicts)).unwrap()
    }

    pub(crate) fn granted(&self, approver: &str, verdicts: &str) -> Granted {
        let mut ballot = Ballot::new(&self.envelope);
        ballot.cast(self.vote(approver, verdicts)).unwrap();
        match ballot.into_resolved() {
            Some(Resolved::Granted(granted)) => granted,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn execute(&self, granted: &Granted) -> Result<Verified, Refusal> {
        verify_execution(granted, &self.envelope, &self.keys, &self.situation())
    }
}

/// A refusal's code and what the audit would say.
pub(crate) fn told<T: std::fmt::Debug>(result: Result<T, Refusal>) -> (&'static str, &'static str) {
    let refusal = result.unwrap_err();
    (refusal.code(), refusal.outcome().as_str())
}

pub(crate) fn decision(call: &str, verdict: char) -> CallDecision {
    CallDecision {
        call: ToolCallId::new(call).unwrap(),
        decision: match verdict {
            'y' => Decision::Approved,
            _ => Decision::Denied(Some(Reason::new(format!("no to {call}")).unwrap())),
        },
    }
}

/// Two calls, one of which cannot be undone; one of two people must approve.
pub(crate) fn draft() -> Draft {
    Draft {
        id: "apr_11111111111141118111111111111111".parse().unwrap(),
        nonce: "00112233445566778899aabbccddeeff".parse().unwrap(),
        plan: plan(vec![write_call(), shell_call()]),
        clocks: Clocks::new(at(0), Some(at(3_600_000)), ExecuteBy::At(at(7_200_000))).unwrap(),
        quorum: people(1, &["dana", "lee"], DenyRule::Veto),
        lineage: lineage(&["chat"]),
        parent_action: None,
        supersedes: None,
        agent_says: Some("I need to write a file.".to_owned()),
    }
}

pub(crate) fn plan(calls: Vec<ToolCall>) -> Plan {
    let old = Digest::of(b"old content").to_string();
    let preconditions = Fingerprints::default()
        .with(subject(SubjectKind::GitHead, "/tmp/workspace"), None)
        .with(
            subject(SubjectKind::File, "/tmp/workspace/a.txt"),
            Some(old),
        );
    Plan::new(scope(), calls, Digest::of(b"policy"), preconditions).unwrap()
}

pub(crate) fn subject(kind: SubjectKind, name: &str) -> Subject {
    Subject {
        kind,
        name: name.to_owned(),
    }
}

pub(crate) fn scope() -> Scope {
    Scope {
        chain: chain(),
        work_item: WorkItemId::new("w1").unwrap(),
        workspace: Workspace {
            root: "/tmp/workspace".to_owned(),
            identity: Some(FolderIdentity {
                device: 2049,
                inode: 131,
            }),
        },
        toolset_mode: "require_write_approval".to_owned(),
        agent_name: "chat".to_owned(),
        trust: Trust::Full,
    }
}

pub(crate) fn chain() -> Chain {
    Chain::new("default", "s1").unwrap()
}

pub(crate) fn write_call() -> ToolCall {
    ToolCall {
        id: ToolCallId::new("call-1").unwrap(),
        tool: Tool {
            server: None,
            name: "write_file".to_owned(),
            definition: Some(Digest::of(br#"{"name":"write_file"}"#)),
        },
        args: Arguments::admit(br#"{"path":"a.txt"}"#).unwrap(),
        class: Class {
            effect: SideEffect::MutateLocal,
            irreversible: false,
        },
    }
}

pub(crate) fn shell_call() -> ToolCall {
    let args = "{\"command\":\"echo \u{202e}hello\",\"n\":9007199254740993,\"timeout\":1.0}";
    ToolCall {
        id: ToolCallId::new("call-2").unwrap(),
        tool: Tool {
            server: Some("shell".to_owned()),
            name: "execute".to_owned(),
            definition: None,
        },
        args: Arguments::admit(args.as_bytes()).unwrap(),
        class: Class::UNKNOWN,
    }
}

pub(crate) fn call(id: &str) -> ToolCall {
    ToolCall {
        id: ToolCallId::new(id).unwrap(),
        ..write_call()
    }
}

pub(crate) fn people(required: usize, roster: &[&str], deny: DenyRule) -> Quorum {
    Quorum::new(required, roster.iter().map(|name| human(name)), deny).unwrap()
}

pub(crate) fn lineage(agents: &[&str]) -> Lineage {
    let agents = agents.iter().map(|name| Agent::new(*name).unwrap());
    agents.fold(Lineage::of(human("dana")), |chain, agent| {
        chain.spawn(agent).unwrap()
    })
}

pub(crate) fn human(name: &str) -> Human {
    Human::new(name).unwrap()
}

pub(crate) fn at(after_issue: u64) -> UnixMs {
    UnixMs::new(ISSUED + after_issue)
}

/// Dana's is the key of the published vectors.
pub(crate) fn signing_key(person: &str) -> SigningKey {
    match person {
        "dana" => SigningKey::from_bytes(&std::array::from_fn(|place| place as u8)),
        _ => SigningKey::from_bytes(Hash::of(person.as_bytes()).as_bytes()),
    }
}

pub(crate) fn keyring() -> Keyring {
    let mut keys = Keyring::default();
    for person in ["dana", "lee", "kim", "ana", "mallory"] {
        let key = signing_key(person).verifying_key();
        let id = KeyId::of(&key);
        keys.add(id, key.as_bytes(), human(person), KeyStatus::Active)
            .unwrap();
    }
    keys
}
