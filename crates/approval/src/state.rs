//! The life of an envelope: a total function of where it is and what happens.
//!
//! ```text
//! pending ─▶ approved ─▶ consumed ─▶ started ─▶ executed
//!    │          │            │           ├────▶ failed
//!    │          │            │           └────▶ unknown
//!    │          │            └─▶ not_started
//!    │          └─▶ expired_unused │ cancelled │ superseded
//!    └─▶ denied │ expired │ cancelled │ superseded
//! ```

use countersign_canon::Hash;

use crate::ballot::{Granted, Refused};
use crate::envelope::Envelope;
use crate::execution::Verified;
use crate::names::names;
use crate::time::UnixMs;

names! {
    /// Where an envelope is in its life.
    State as "state of an approval" {
        /// People may decide.
        Pending = "pending",
        /// Enough people approved at least one call.
        Approved = "approved",
        /// Every call was denied.
        Denied = "denied",
        /// Nobody decided in time. This is not a denial.
        Expired = "expired",
        /// It was taken back.
        Cancelled = "cancelled",
        /// An edited request took its place.
        Superseded = "superseded",
        /// It was approved, but did not start in time.
        ExpiredUnused = "expired_unused",
        /// Its one use was taken.
        Consumed = "consumed",
        /// It was consumed, and surely nothing ran.
        NotStarted = "not_started",
        /// Something may be running.
        Started = "started",
        /// It ran.
        Executed = "executed",
        /// It ran and failed.
        Failed = "failed",
        /// It was started, and nobody knows what came of it.
        Unknown = "unknown",
    }
}

impl State {
    /// Whether nothing more can happen.
    pub const fn is_final(self) -> bool {
        !matches!(
            self,
            Self::Pending | Self::Approved | Self::Consumed | Self::Started
        )
    }
}

/// What can happen to an envelope. The steps that need people carry the proof of what they did.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Enough people approved.
    Approve(&'a Granted),
    /// Every call was denied.
    Deny(&'a Refused),
    /// Nobody decided in time, or an approved plan did not start in time.
    Expire,
    /// It was taken back.
    Cancel,
    /// An edited request took its place.
    Supersede,
    /// Its one use is taken.
    Consume(&'a Verified),
    /// The first call is about to run.
    Start,
    /// Every approved call ran.
    Execute,
    /// A call failed.
    Fail,
    /// After a restart: it was started, and no outcome was written.
    Lose,
    /// After a restart: it was consumed, and nothing was started.
    NeverStart,
}

impl Step<'_> {
    const fn name(&self) -> &'static str {
        match self {
            Self::Approve(_) => "approve",
            Self::Deny(_) => "deny",
            Self::Expire => "expire",
            Self::Cancel => "cancel",
            Self::Supersede => "supersede",
            Self::Consume(_) => "consume",
            Self::Start => "start",
            Self::Execute => "execute",
            Self::Fail => "fail",
            Self::Lose => "lose",
            Self::NeverStart => "never_start",
        }
    }

    /// The envelope that the step's proof is about.
    const fn proof(&self) -> Option<Hash> {
        match self {
            Self::Approve(granted) => Some(granted.envelope_hash()),
            Self::Deny(refused) => Some(refused.envelope_hash()),
            Self::Consume(verified) => Some(verified.envelope_hash()),
            _ => None,
        }
    }
}

/// One envelope and where it is in its life.
///
/// INVARIANT: `consumed` is reached only from `approved` with a [`Verified`], and `approved` only
/// from `pending` with a [`Granted`], both about this very envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    envelope: Hash,
    state: State,
}

impl Life {
    /// The start of an envelope's life.
    pub const fn begin(envelope: &Envelope) -> Self {
        Self::restored(envelope, State::Pending)
    }

    /// The life of an envelope as a store remembers it.
    pub const fn restored(envelope: &Envelope, state: State) -> Self {
        Self {
            envelope: envelope.hash(),
            state,
        }
    }

    /// Where it is.
    pub const fn state(&self) -> State {
        self.state
    }

    /// The life after this step.
    pub fn after(self, step: &Step<'_>) -> Result<Self, TransitionError> {
        use State::{
            Approved, Cancelled, Consumed, Denied, Executed, Expired, ExpiredUnused, Failed,
            NotStarted, Pending, Started, Superseded, Unknown,
        };
        let refused = TransitionError {
            from: self.state,
            step: step.name(),
        };
        if step
            .proof()
            .is_some_and(|envelope| envelope != self.envelope)
        {
            return Err(refused);
        }
        let state = match (self.state, step) {
            (Pending, Step::Approve(_)) => Approved,
            (Pending, Step::Deny(_)) => Denied,
            (Pending, Step::Expire) => Expired,
            (Approved, Step::Expire) => ExpiredUnused,
            (Pending | Approved, Step::Cancel) => Cancelled,
            (Pending | Approved, Step::Supersede) => Superseded,
            (Approved, Step::Consume(_)) => Consumed,
            (Consumed, Step::Start) => Started,
            (Consumed, Step::NeverStart) => NotStarted,
            (Started, Step::Execute) => Executed,
            (Started, Step::Fail) => Failed,
            (Started, Step::Lose) => Unknown,
            _ => return Err(refused),
        };
        Ok(Self { state, ..self })
    }

    /// The step that time alone brings about, if it is due. `decided_at` matters once approved.
    pub fn due(
        &self,
        envelope: &Envelope,
        decided_at: Option<UnixMs>,
        now: UnixMs,
    ) -> Option<Step<'static>> {
        let clocks = envelope.clocks();
        let over = match (self.state, decided_at) {
            (State::Pending, _) => !clocks.may_decide(now),
            (State::Approved, Some(at)) => !now.is_before(clocks.execution_ends(at)),
            // FAIL-CLOSED: an approval of which nobody knows when it was given.
            (State::Approved, None) => true,
            _ => false,
        };
        over.then_some(Step::Expire)
    }

    /// The step that a restart brings about: what was consumed did not start, what was started may
    /// have run.
    pub const fn recovered(&self) -> Option<Step<'static>> {
        match self.state {
            State::Consumed => Some(Step::NeverStart),
            State::Started => Some(Step::Lose),
            _ => None,
        }
    }
}

/// The step is not possible in this state, or its proof is about another envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an approval that is `{from}` cannot {step}")]
pub struct TransitionError {
    from: State,
    step: &'static str,
}
