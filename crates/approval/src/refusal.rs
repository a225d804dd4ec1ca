//! Why a submission was not counted or a plan does not run. Each reason is told apart.

use crate::audit::Outcome;
use crate::bijection::BijectionError;
use crate::form::FormError;
use crate::key::KeyRefusal;
use crate::plan::Drift;
use crate::precondition::PreconditionFailed;
use crate::principal::Agent;
use crate::state::State;

/// Why a submission was not counted, or an approved plan does not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It is not of the form that is asked for.
    #[error("invalid submission: {0}")]
    InvalidSubmission(#[from] FormError),
    /// It is for no envelope that is known, or for another one.
    #[error("no envelope has this nonce")]
    UnknownNonce,
    /// An agent cannot decide, whatever the door.
    #[error("{0} is an agent; only people decide")]
    AgentDecides(Agent),
    /// The key may not decide.
    #[error(transparent)]
    Key(#[from] KeyRefusal),
    /// The envelope or the submission was changed after signing, or somebody else signed.
    #[error("the signature does not fit the envelope and the decisions")]
    InvalidSignature,
    /// The approver was not asked.
    #[error("the approver is not on the roster")]
    NotOnRoster,
    /// Nobody approves what he asks for himself.
    #[error("the requester cannot decide")]
    RequesterDecides,
    /// The clocks of the approver and of this machine disagree.
    #[error("the approver's clock is {off_ms} ms off")]
    ClockSkew {
        /// By how much.
        off_ms: u64,
    },
    /// Nobody decided in time, or the decision came too late.
    #[error("the time to decide is over")]
    Expired,
    /// It was approved, but did not start in time.
    #[error("the time to execute is over")]
    ExpiredUnused,
    /// It was used already.
    #[error("the approval was used already; its state is `{0}`")]
    Replayed(State),
    /// The requester took it back.
    #[error("the request was cancelled")]
    Cancelled,
    /// Nothing of it can run any more.
    #[error("the session that asked is over")]
    SessionOver,
    /// An edited request took its place.
    #[error("the request was superseded by an edited one")]
    Superseded,
    /// It was denied.
    #[error("the request was denied")]
    Denied,
    /// Too few people have decided so far.
    #[error("the request is not approved")]
    NotApproved,
    /// Who must agree is not what it was when the request was made.
    #[error("who must agree has changed since the request was made")]
    ConfigurationChanged,
    /// The place, the tools or the policies have changed.
    #[error(transparent)]
    ContextDrift(#[from] Drift),
    /// The approver saw something else than what is stored.
    #[error("what was shown is not what is stored")]
    DisplayMismatch,
    /// The decisions are not one for each call, in order.
    #[error(transparent)]
    Bijection(#[from] BijectionError),
    /// What the plan acts on has changed.
    #[error(transparent)]
    Precondition(#[from] PreconditionFailed),
}

impl Refusal {
    /// Why nothing more can be done with an envelope in this state.
    pub const fn of_state(state: State) -> Self {
        crate::vote::over(state)
    }

    /// The code for machines.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidSubmission(_) => "invalid_submission",
            Self::UnknownNonce => "unknown_nonce",
            Self::AgentDecides(_) => "agent_decides",
            Self::Key(KeyRefusal::Unknown(_)) => "unknown_key_id",
            Self::Key(KeyRefusal::NotYours(_)) => "key_of_another",
            Self::Key(KeyRefusal::NotActive { .. }) => "key_not_active",
            Self::InvalidSignature => "invalid_signature",
            Self::NotOnRoster => "not_on_roster",
            Self::RequesterDecides => "requester_decides",
            Self::ClockSkew { .. } => "clock_skew",
            Self::Expired => "expired",
            Self::ExpiredUnused => "expired_unused",
            Self::Replayed(_) => "replayed",
            Self::Cancelled => "cancelled",
            Self::SessionOver => "session_over",
            Self::Superseded => "superseded",
            Self::Denied => "denied",
            Self::NotApproved => "not_approved",
            Self::ConfigurationChanged => "configuration_changed",
            Self::ContextDrift(_) => "context_drift",
            Self::DisplayMismatch => "display_mismatch",
            Self::Bijection(_) => "bijection_mismatch",
            Self::Precondition(_) => "precondition_failed",
        }
    }

    /// What the audit says.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::InvalidSubmission(_) => Outcome::RejectedInvalidSubmission,
            Self::UnknownNonce => Outcome::RejectedUnknownNonce,
            Self::AgentDecides(_) => Outcome::RejectedAgent,
            Self::Key(_) => Outcome::RejectedKey,
            Self::InvalidSignature => Outcome::RejectedTampered,
            Self::NotOnRoster => Outcome::RejectedNotOnRoster,
            Self::RequesterDecides => Outcome::RejectedRequester,
            Self::ClockSkew { .. } => Outcome::RejectedClockSkew,
            Self::Expired | Self::ExpiredUnused => Outcome::RejectedExpired,
            Self::Replayed(_) => Outcome::RejectedReplayed,
            Self::Cancelled | Self::SessionOver => Outcome::RejectedCancelled,
            Self::Superseded => Outcome::RejectedSuperseded,
            Self::Denied => Outcome::RejectedDenied,
            Self::NotApproved => Outcome::RejectedNotApproved,
            Self::ConfigurationChanged => Outcome::RejectedConfigurationChanged,
            Self::ContextDrift(_) | Self::DisplayMismatch => Outcome::RejectedMismatch,
            Self::Bijection(_) => Outcome::RejectedBijection,
            Self::Precondition(_) => Outcome::RejectedPrecondition,
        }
    }
}
