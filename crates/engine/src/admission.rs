//! What goes into the engine and what comes out.

use std::fmt;

use countersign_approval::{ApprovalMode, Envelope, LeaseId, State};
use countersign_canon::{Digest, Json};
use countersign_event::payload::{ErrorRaised, Payload, ToolResult};
use countersign_event::{EventType, Scope};
use countersign_policy::capability::{Constraints, Explanation, Judgement};
use countersign_policy::{Opinion, Verdict};
use countersign_store::Recorded;

use crate::approval::Used;
use crate::{Delivery, HeldResult, Origin, Precondition, Refusal, Unaskable, Watched};

/// An action that an agent proposes, as a door understood it.
pub struct Proposal<'a> {
    /// The session.
    pub scope: &'a Scope,
    /// The call's id, unique in the session.
    pub call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The server that offers it.
    pub server: Option<String>,
    /// The digest of the tool's definition, if the door knows one.
    pub definition: Option<Digest>,
    /// Where the action comes from.
    pub origin: &'a Origin,
    /// What must still be as it is now when the action runs, if a human has to approve it.
    pub preconditions: Vec<Precondition>,
    /// The arguments.
    pub args: Json,
    /// The key of the sanitised text that the call carries.
    pub sanitizer_key: Option<String>,
    /// The exact bytes that would be forwarded.
    pub bytes: &'a [u8],
    /// The bytes that would be forwarded with other arguments, for when a policy rewrites them.
    pub encode: &'a dyn Fn(&Json) -> Vec<u8>,
}

/// The engine's answer.
#[derive(Debug)]
#[must_use]
pub enum Admission {
    /// It may run.
    Permit(Permit),
    /// A human decides.
    Hold(Hold),
    /// It may not run.
    Refusal(Refusal),
}

/// What became of an action that was to run at once.
#[must_use]
pub enum Start {
    /// It was begun: its bytes, as they were proposed, may be forwarded now.
    Running(Running),
    /// It may run with other bytes; whoever forwards them begins it.
    Permit(Permit),
    /// A human decides.
    Hold(Hold),
    /// It may not run.
    Refusal(Refusal),
}

/// What would be decided about an action, without a decision.
#[derive(Debug, Clone)]
#[must_use]
pub struct Preview {
    /// The verdict and its grounds.
    pub judgement: Judgement,
    /// What each policy beside the capability rules says.
    pub opinions: Vec<Opinion>,
}

/// The right to run one action once: exactly the bytes with this digest.
#[must_use = "a permit that is dropped was given for nothing"]
pub struct Permit {
    pub(crate) scope: Scope,
    pub(crate) call_id: String,
    pub(crate) tool_name: String,
    pub(crate) server: Option<String>,
    pub(crate) digest: Digest,
    pub(crate) rewritten: Option<Vec<u8>>,
    pub(crate) constraints: Constraints,
    /// Whether they stop nothing.
    pub(crate) observed: bool,
    pub(crate) labels: Vec<String>,
    pub(crate) warning: Option<String>,
    // INVARIANT: there is no permit without a durable decision.
    pub(crate) decision: Recorded,
    /// What is done, where somebody looks at the result before the agent does.
    pub(crate) done: Option<Box<Done>>,
    pub(crate) grounds: Option<Box<Grounds>>,
}

/// An action, as those see it who look at its result.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) origin: Origin,
    pub(crate) args: Json,
}

/// What allows an action that policy held.
#[derive(Debug)]
pub(crate) enum Grounds {
    Lease(LeaseId),
    Approval(Used),
}

/// An action that waits for a human. Nothing of it runs meanwhile.
#[derive(Debug)]
#[must_use]
pub struct Hold {
    /// The call.
    pub call_id: String,
    /// The verdict that holds it.
    pub verdict: Verdict,
    /// Whether what it does cannot be undone.
    pub irreversible: bool,
    /// Which rule spoke, and why.
    pub explanation: Explanation,
    /// The durable decision.
    pub decision: Recorded,
    /// The request for approval, durable too; or why nobody can be asked.
    pub approval: Result<Box<Envelope>, Unaskable>,
}

/// An action that was begun and has no outcome yet.
#[must_use = "an action that was begun must be settled"]
pub struct Running {
    /// The permit that it used up.
    pub(crate) permit: Box<Permit>,
    pub(crate) began_unix_ms: u64,
    /// What somebody saw of what it changes.
    pub(crate) state: Option<Json>,
    /// What was seen before it began, by whoever looks again when it is over.
    pub(crate) watched: Option<Box<dyn Watched>>,
}

/// How an action went.
pub enum Outcome {
    /// The tool answered.
    Result {
        /// What it said.
        content: Json,
        /// Whether it says that it failed.
        is_error: bool,
    },
    /// The tool answered that it is not done: it works on, or wants to know more. Nobody can say yet how
    /// it ends.
    Open {
        /// What it said.
        content: Json,
    },
    /// It was sent, and no answer came that can be believed: whether it did anything is not known.
    Lost {
        /// A short name for what went wrong.
        code: String,
        /// What is known about it.
        message: String,
    },
    /// It did not run, or is known to have failed.
    Failed {
        /// A short name for what went wrong.
        code: String,
        /// What is known about it.
        message: String,
    },
}

impl Outcome {
    /// What the tool said, if it said anything, and whether it says that it failed.
    pub(crate) fn said(&self) -> Option<(&Json, bool)> {
        match self {
            Self::Result { content, is_error } => Some((content, *is_error)),
            Self::Open { content } => Some((content, false)),
            Self::Lost { .. } | Self::Failed { .. } => None,
        }
    }

    /// Where the approval of what ended so is then.
    pub(crate) fn ended(&self) -> State {
        match self {
            Self::Result {
                is_error: false, ..
            } => State::Executed,
            Self::Result { .. } | Self::Failed { .. } => State::Failed,
            Self::Open { .. } | Self::Lost { .. } => State::Unknown,
        }
    }
}

impl Permit {
    /// The digest of the bytes that may be forwarded.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The bytes to forward in the place of the proposed ones, when a policy rewrote them.
    pub fn rewritten(&self) -> Option<&[u8]> {
        self.rewritten.as_deref()
    }

    /// What the call must keep to.
    pub fn constraints(&self) -> Constraints {
        self.constraints
    }

    /// Words that go with an allow.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// How the action came to be allowed.
    pub fn mode(&self) -> ApprovalMode {
        match self.grounds.as_deref() {
            None => ApprovalMode::PolicyAllowWithReceipt,
            Some(Grounds::Lease(_)) => ApprovalMode::BoundedLease,
            Some(Grounds::Approval(used)) => used.mode,
        }
    }

    /// The lease that covers it.
    pub fn lease(&self) -> Option<LeaseId> {
        match self.grounds.as_deref() {
            Some(Grounds::Lease(lease)) => Some(*lease),
            Some(Grounds::Approval(_)) | None => None,
        }
    }

    /// The durable decision that it came from.
    pub fn decision(&self) -> Recorded {
        self.decision
    }

    /// INVARIANT: that the action begins is durable.
    pub(crate) fn into_running(self, began_unix_ms: u64) -> Running {
        Running {
            permit: Box::new(self),
            began_unix_ms,
            state: None,
            watched: None,
        }
    }
}

impl Running {
    /// What the call must keep to, unless it is only observed.
    pub fn constraints(&self) -> Constraints {
        self.permit.constraints
    }

    /// Whether policies only observe: the log says what they would have stopped.
    pub fn is_observed(&self) -> bool {
        self.permit.observed
    }

    /// The tool.
    pub fn tool_name(&self) -> &str {
        &self.permit.tool_name
    }

    /// Words that go with an allow.
    pub fn warning(&self) -> Option<&str> {
        self.permit.warning()
    }

    /// What those see of the call who look at its result, if somebody does.
    pub fn seen_with_result(&self) -> Option<Json> {
        let done = self.permit.done.as_ref()?;
        Some(Json::object([
            ("args", done.args.clone()),
            ("id", Json::from(self.permit.call_id.as_str())),
            ("name", Json::from(self.permit.tool_name.as_str())),
        ]))
    }

    /// Adds what somebody saw of what it changed: digests of a state before and after, with their
    /// coverage. It is recorded, sealed, with how it went.
    pub fn with_state(mut self, state: Json) -> Self {
        self.state = Some(state);
        self
    }

    /// Looks at the state again, if somebody looked at it before.
    pub(crate) fn watched(mut self) -> Self {
        if let Some(watched) = self.watched.take() {
            let seen = watched.after();
            self.state.get_or_insert(seen);
        }
        self
    }

    /// Whether these are the bytes that may be forwarded.
    pub fn covers(&self, bytes: &[u8]) -> bool {
        Digest::of(bytes) == self.permit.digest
    }

    /// Whether people approved it.
    pub(crate) fn is_approved(&self) -> bool {
        matches!(self.permit.grounds.as_deref(), Some(Grounds::Approval(_)))
    }

    /// The result as the agent gets it. What is withheld has no labels: it goes nowhere.
    pub(crate) fn told(
        &self,
        delivery: &Delivery,
        (content, is_error): (&Json, bool),
        labels: Vec<String>,
        now: u64,
    ) -> ToolResult {
        let (content, mut labels) = match delivery {
            Delivery::AsItCame => (content.clone(), labels),
            Delivery::Changed(changed) => (changed.clone(), labels),
            Delivery::Withheld(reason) | Delivery::Held(HeldResult { reason, .. }) => {
                let withheld = Json::object([("withheld", Json::from(reason.as_str()))]);
                (withheld, Vec::new())
            }
        };
        if !matches!(delivery, Delivery::Withheld(_) | Delivery::Held(_)) {
            labels.extend(self.permit.labels.iter().cloned());
            labels.sort_unstable();
            labels.dedup();
        }
        ToolResult {
            call_id: Some(self.permit.call_id.clone()),
            tool_name: Some(self.permit.tool_name.clone()),
            is_error: Some(is_error),
            latency_ms: Some(now.saturating_sub(self.began_unix_ms)),
            result_labels: (!labels.is_empty()).then_some(labels),
            content: Some(content),
            other: self.seen().into_iter().collect(),
            ..ToolResult::default()
        }
    }

    /// The member of an event that tells what a call changed.
    fn seen(&self) -> Option<(String, Json)> {
        let state = self.state.clone();
        state.map(|state| (STATE.to_owned(), state))
    }

    /// The event that tells how it went.
    pub(crate) fn event(&self, outcome: Outcome, now: u64) -> (EventType, Payload) {
        let other = self.seen().into_iter().collect();
        let permit = &self.permit;
        let call_id = Some(permit.call_id.clone());
        let (content, is_error) = match outcome {
            Outcome::Result { content, is_error } => (content, is_error),
            Outcome::Open { content } => (content, false),
            Outcome::Failed { code, message } | Outcome::Lost { code, message } => {
                let error = ErrorRaised {
                    call_id,
                    code: Some(code),
                    message: Some(Json::from(message)),
                    other,
                    ..ErrorRaised::default()
                };
                return (EventType::ErrorRaised, Payload::ErrorRaised(error));
            }
        };
        let result = ToolResult {
            call_id,
            tool_name: Some(permit.tool_name.clone()),
            is_error: Some(is_error),
            latency_ms: Some(now.saturating_sub(self.began_unix_ms)),
            result_labels: (!permit.labels.is_empty()).then(|| permit.labels.clone()),
            content: Some(content),
            other,
            ..ToolResult::default()
        };
        (EventType::ToolResult, Payload::ToolResult(result))
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit({} {})", self.call_id, self.digest)
    }
}

/// The member of an event that tells what a call changed.
const STATE: &str = "state";
