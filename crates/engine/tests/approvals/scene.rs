//! A folder with an engine, a clock that a test moves, and people who can sign.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use countersign_approval::{
    ApprovalId, BallotPaper, CallDecision, Decision, DenyRule, Envelope, Human, SigningKey, State,
    ToolCall, UnixMs,
};
use countersign_canon::{Json, Limits};
use countersign_engine::{
    Admission, Approvers, Clock, ClockError, Engine, Hold, NotCounted, Origin, Outcome, Permit,
    Precondition, Proposal, Redeemed, Voted, Wanted,
};
use countersign_event::Scope;
use countersign_policy::Policies;
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_store::{Folder, Options, Store};
use countersign_verify::{Expectation, Selection, database::verify_database};

use crate::replayed;

pub(crate) const START: u64 = 1_760_000_000_000;

/// A clock that a test moves.
#[derive(Clone)]
pub(crate) struct Hands(pub(crate) Arc<AtomicU64>);

impl Clock for Hands {
    fn now_unix_ms(&self) -> Result<u64, ClockError> {
        Ok(self.0.load(Ordering::SeqCst))
    }

    fn monotonic_ms(&self) -> u64 {
        0
    }
}

/// A folder, which goes away with the scene that made it.
pub(crate) enum Place {
    Own(replayed::Kept),
    Another(PathBuf),
}

impl Place {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Own(folder) => folder.path(),
            Self::Another(folder) => folder,
        }
    }
}

pub(crate) struct Scene {
    pub(crate) clock: Hands,
    pub(crate) engine: Engine,
    pub(crate) scope: Scope,
    pub(crate) origin: Origin,
    pub(crate) keys: Vec<(Human, SigningKey)>,
    /// Goes last: what was recorded is looked at when nobody writes any more.
    pub(crate) folder: Place,
}

/// Tools that people are asked about, as often as a test calls them.
pub(crate) const MANIFEST: &str = r#"{"schema":"countersign/manifest/v1","name":"n","version":"1",
    "publisher":"p","permissions":{"tools":{
        "pay":{"side_effect":"mutate-external","approval":"required"},
        "send":{"side_effect":"network-egress","approval":"required","arguments":{"host":"/url"}},
        "write_file":{"side_effect":"mutate-local","approval":"required"}},
    "net":{"domains":["api.example.com"]},
    "budgets":{"max_wall_time_ms":1000000000,"max_steps":100000,"max_tool_calls":100000}},
    "sandbox":{"required":true},
    "loops":{"polling_tools":["pay","send","write_file"]}}"#;

pub(crate) fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

pub(crate) fn policies() -> Policies {
    let manifest = Manifest::read(MANIFEST.as_bytes()).unwrap();
    Policies::new(Capability::new(Some(manifest)).unwrap())
}

pub(crate) fn engine(folder: &Path, clock: &Hands) -> Engine {
    Engine::new(store(folder), policies(), clock.clone())
}

fn store(folder: &Path) -> Store {
    Store::open(&Folder::new(folder), Options::default()).unwrap()
}

impl Scene {
    /// `people` who may decide, of whom `required` must agree.
    pub(crate) fn new(people: &[&str], required: usize) -> Self {
        let folder = replayed::folder();
        let clock = Hands(Arc::new(AtomicU64::new(START)));
        let mut approvers = Approvers::default();
        let mut keys = Vec::new();
        for (number, name) in people.iter().enumerate() {
            let person = Human::new(*name).unwrap();
            let key = SigningKey::from_bytes(&[number as u8 + 1; 32]);
            approvers.add(person.clone(), &key.verifying_key()).unwrap();
            keys.push((person, key));
        }
        if !people.is_empty() {
            approvers.require(required, DenyRule::Veto).unwrap();
        }
        approvers.save(folder.path()).unwrap();
        Self {
            engine: engine(folder.path(), &clock),
            origin: Origin::new("root", "agent", folder.path()).unwrap(),
            folder: Place::Own(folder),
            clock,
            scope: Scope::new("t", "s").unwrap(),
            keys,
        }
    }

    /// The same scene in another process, or after one: its folder, its time, its first approver.
    pub(crate) fn join(folder: &Path) -> Self {
        let clock = Hands(Arc::new(AtomicU64::new(START)));
        Self {
            engine: engine(folder, &clock),
            origin: Origin::new("root", "agent", folder).unwrap(),
            folder: Place::Another(folder.to_owned()),
            clock,
            scope: Scope::new("t", "s").unwrap(),
            keys: vec![(
                Human::new("olga").unwrap(),
                SigningKey::from_bytes(&[1; 32]),
            )],
        }
    }

    pub(crate) fn restart(mut self) -> Self {
        drop(self.engine);
        self.engine = engine(self.folder.path(), &self.clock);
        self
    }

    /// The store of another process.
    pub(crate) fn store(&self) -> Store {
        store(self.folder.path())
    }

    pub(crate) fn wait(&self, ms: u64) {
        self.clock.0.fetch_add(ms, Ordering::SeqCst);
    }

    pub(crate) fn hold(&self, call_id: &str, tool: &str, args: &str) -> Hold {
        self.hold_if(call_id, tool, args, Vec::new())
    }

    pub(crate) fn hold_if(
        &self,
        call_id: &str,
        tool: &str,
        args: &str,
        preconditions: Vec<Precondition>,
    ) -> Hold {
        let proposal = Proposal {
            preconditions,
            ..self.proposal(call_id, tool, args)
        };
        held(self.engine.admit(proposal))
    }

    pub(crate) fn admit(&self, call_id: &str, tool: &str, args: &str) -> Admission {
        self.engine.admit(self.proposal(call_id, tool, args))
    }

    pub(crate) fn proposal<'a>(&'a self, call_id: &str, tool: &str, args: &'a str) -> Proposal<'a> {
        Proposal {
            scope: &self.scope,
            call_id: call_id.to_owned(),
            tool_name: tool.to_owned(),
            server: None,
            definition: None,
            origin: &self.origin,
            preconditions: Vec::new(),
            args: json(args),
            sanitizer_key: None,
            bytes: args.as_bytes(),
            encode: &|args| args.to_jcs().unwrap(),
        }
    }

    pub(crate) fn ask(&self, call_id: &str) -> Envelope {
        let args = format!(r#"{{"cents":500,"to":"{call_id}"}}"#);
        *self.hold(call_id, "pay", &args).approval.unwrap()
    }

    pub(crate) fn submission(
        &self,
        who: usize,
        envelope: &Envelope,
        decision: Decision,
    ) -> Vec<u8> {
        let standing = self.engine.approval(envelope.id()).unwrap().unwrap();
        let (person, key) = &self.keys[who];
        let paper = BallotPaper {
            decisions: vec![CallDecision {
                call: envelope.plan().calls()[0].id.clone(),
                decision,
            }],
            approver: person.clone(),
            display: standing.rendering.display_sha256(),
            signed_at: UnixMs::new(self.clock.now_unix_ms().unwrap()),
        };
        paper.sign(envelope, key).to_text()
    }

    pub(crate) fn vote(
        &self,
        who: usize,
        envelope: &Envelope,
        decision: Decision,
    ) -> Result<Voted, NotCounted> {
        self.engine.vote(&self.submission(who, envelope, decision))
    }

    pub(crate) fn approve(&self, who: usize, envelope: &Envelope) -> Voted {
        self.vote(who, envelope, Decision::Approved).unwrap()
    }

    pub(crate) fn redeem(&self, id: ApprovalId) -> Redeemed {
        self.engine.redeem(id, Wanted::default(), &bytes_of)
    }

    pub(crate) fn state(&self, id: ApprovalId) -> State {
        self.engine.approval(id).unwrap().unwrap().row.state
    }

    pub(crate) fn run(&self, permit: Permit) -> Vec<u8> {
        let bytes = permit.rewritten().unwrap().to_vec();
        let running = self.engine.begin(permit, &bytes).unwrap();
        let outcome = Outcome::Result {
            content: json("\"ok\""),
            is_error: false,
        };
        let _recorded = self.engine.settle(running, outcome).unwrap();
        bytes
    }

    /// A folder where the file was: it cannot be written, whoever asks. Gives what was in it.
    pub(crate) fn lose_audit(&self) -> Vec<u8> {
        let file = self.audit_lines();
        let kept = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        kept
    }

    pub(crate) fn mend_audit(&self, kept: &[u8]) {
        let file = self.audit_lines();
        std::fs::remove_dir(&file).unwrap();
        std::fs::write(&file, kept).unwrap();
    }

    fn audit_lines(&self) -> std::path::PathBuf {
        self.folder.path().join("audit/approvals.jsonl")
    }

    pub(crate) fn audit(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("audit/approvals.jsonl"));
        let lines = text.unwrap_or_default();
        let outcome = |line: &str| {
            json(line)
                .get("outcome")
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned()
        };
        lines.lines().map(outcome).collect()
    }

    /// The log holds together, and nothing of the arguments is in it in clear.
    pub(crate) fn verify(self) {
        let Self { folder, engine, .. } = self;
        drop(engine);
        let path = Folder::new(folder.path()).database();
        let (selection, expectation) = (Selection::default(), Expectation::default());
        let report = verify_database(&path, &selection, &expectation, None, &mut |_| {});
        assert!(report.is_good(), "{:?}", report.failure);
    }
}

pub(crate) fn held(admission: Admission) -> Hold {
    match admission {
        Admission::Hold(hold) => hold,
        other => panic!("not held: {other:?}"),
    }
}

pub(crate) fn bytes_of(call: &ToolCall) -> Vec<u8> {
    call.args.canonical().to_vec()
}

pub(crate) fn refusal(redeemed: Redeemed) -> &'static str {
    match redeemed {
        Redeemed::Refused(refusal) => refusal.code(),
        Redeemed::Replayed(_) => "replayed",
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) fn permit(redeemed: Redeemed) -> Permit {
    match redeemed {
        Redeemed::Permit(permit) => permit,
        other => panic!("not permitted: {other:?}"),
    }
}

pub(crate) fn code(counted: Result<Voted, NotCounted>) -> &'static str {
    match counted {
        Err(NotCounted::Refused(refusal)) => refusal.code(),
        other => panic!("not refused: {other:?}"),
    }
}
