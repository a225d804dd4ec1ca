//! What an entry says happened.

use crate::ballot::Cast;
use crate::names::names;
use crate::state::State;

names! {
    /// What happened. The first six are the words of the audit format that others read too.
    Outcome as "outcome" {
        /// Every approved call ran.
        Executed = "executed",
        /// The signature did not fit.
        RejectedTampered = "rejected:tampered",
        /// It came too late.
        RejectedExpired = "rejected:expired",
        /// It was used already.
        RejectedReplayed = "rejected:replayed",
        /// The context, the tools, the policies or the display had changed.
        RejectedMismatch = "rejected:mismatch",
        /// The decisions were not one for each call, in order.
        RejectedBijection = "rejected:bijection",

        /// It was not of the form that is asked for.
        RejectedInvalidSubmission = "rejected:invalid_submission",
        /// No envelope had this nonce.
        RejectedUnknownNonce = "rejected:unknown_nonce",
        /// An agent tried to decide.
        RejectedAgent = "rejected:agent",
        /// The key was unknown, somebody else's, retired or revoked.
        RejectedKey = "rejected:key",
        /// The approver was not asked.
        RejectedNotOnRoster = "rejected:not_on_roster",
        /// The requester tried to decide.
        RejectedRequester = "rejected:requester",
        /// The approver's clock was off.
        RejectedClockSkew = "rejected:clock_skew",
        /// What the plan acts on had changed.
        RejectedPrecondition = "rejected:precondition",
        /// Another decision had come first.
        RejectedAlreadyDecided = "rejected:already_decided",
        /// Who must agree had changed.
        RejectedConfigurationChanged = "rejected:configuration_changed",
        /// The request had been taken back.
        RejectedCancelled = "rejected:cancelled",
        /// An edited request had taken its place.
        RejectedSuperseded = "rejected:superseded",
        /// It was to run although it was denied.
        RejectedDenied = "rejected:denied",
        /// It was to run before enough people had approved.
        RejectedNotApproved = "rejected:not_approved",
        /// The audit could not be written, so nothing ran.
        RejectedAuditWriteFailed = "rejected:audit_write_failed",

        /// An envelope was made.
        Requested = "requested",
        /// Somebody was shown it.
        Viewed = "viewed",
        /// Nobody could be asked.
        Unavailable = "approval_unavailable",
        /// A vote counts.
        VoteCounted = "vote:counted",
        /// A vote was sent again.
        VoteRepeated = "vote:repeated",
        /// A vote came after the decision.
        VoteLate = "vote:late",
        /// Enough people approved.
        Approved = "approved",
        /// Every call was denied.
        Denied = "denied",
        /// Nobody decided in time.
        Expired = "expired",
        /// It was approved, but did not start in time.
        ExpiredUnused = "expired_unused",
        /// It was taken back.
        Cancelled = "cancelled",
        /// An edited request took its place.
        Superseded = "superseded",
        /// Its one use was taken.
        Consumed = "consumed",
        /// A call is about to run.
        Started = "started",
        /// A call failed.
        Failed = "failed",
        /// Nobody knows what came of it.
        Unknown = "unknown",
        /// It surely did not run.
        NotStarted = "not_started",

        /// A lease was granted.
        LeaseGranted = "lease:granted",
        /// A lease was not granted.
        LeaseRefused = "lease:refused",
        /// A lease covered a call.
        LeaseUsed = "lease:used",
        /// A lease was taken back.
        LeaseRevoked = "lease:revoked",
        /// A lease ended by itself.
        LeaseEnded = "lease:ended",
        /// A key was added.
        KeyAdded = "key:added",
        /// A key was replaced.
        KeyRetired = "key:retired",
        /// A key was lost.
        KeyRevoked = "key:revoked",
        /// Who must agree was changed.
        ConfigurationChanged = "configuration:changed",
        /// The file had lost its end, or was gone; what was missing came from the database.
        Recovered = "audit:recovered",
    }
}

impl From<Cast> for Outcome {
    fn from(cast: Cast) -> Self {
        match cast {
            Cast::Counted => Self::VoteCounted,
            Cast::Repeated => Self::VoteRepeated,
            Cast::Late => Self::VoteLate,
            Cast::AlreadyDecided => Self::RejectedAlreadyDecided,
        }
    }
}

/// What is written when an envelope enters this state.
impl From<State> for Outcome {
    fn from(state: State) -> Self {
        match state {
            State::Pending => Self::Requested,
            State::Approved => Self::Approved,
            State::Denied => Self::Denied,
            State::Expired => Self::Expired,
            State::ExpiredUnused => Self::ExpiredUnused,
            State::Cancelled => Self::Cancelled,
            State::Superseded => Self::Superseded,
            State::Consumed => Self::Consumed,
            State::NotStarted => Self::NotStarted,
            State::Started => Self::Started,
            State::Executed => Self::Executed,
            State::Failed => Self::Failed,
            State::Unknown => Self::Unknown,
        }
    }
}
