//! From a submission to a vote: every check that changes nothing, in one fixed order.

use countersign_canon::Hash;

use crate::bijection;
use crate::decision::CallDecision;
use crate::envelope::Envelope;
use crate::key::{KeyId, Keyring};
use crate::plan::Context;
use crate::precondition::Fingerprints;
use crate::principal::{Human, Principal};
use crate::quorum::Quorum;
use crate::refusal::Refusal;
use crate::signed::Signed;
use crate::state::State;
use crate::submission::Submission;
use crate::time::UnixMs;

/// How things are at the moment of a check. The caller looks; this crate compares.
#[derive(Clone, Debug)]
pub struct Situation<'a> {
    /// The stored state of the envelope.
    pub state: State,
    /// The place, the policies and the tools as they are now.
    pub context: &'a Context,
    /// The fingerprints as they are now.
    pub fingerprints: &'a Fingerprints,
    /// The quorum that the configuration asks for now.
    pub quorum: &'a Quorum,
    /// The hash of what this envelope looks like when it is shown.
    pub display: Hash,
    /// The time, from [`crate::HighWater::observe`].
    pub now: UnixMs,
    /// How far an approver's clock may be off; [`DEFAULT_SKEW_MS`] unless configured.
    pub skew_ms: u64,
}

/// How far an approver's clock may be off, unless configured.
pub const DEFAULT_SKEW_MS: u64 = 60_000;

/// A checked submission: this person decided this about exactly this envelope, in time.
///
/// Only [`verify_vote`] and [`verify_signed`] make one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vote {
    envelope: Hash,
    approver: Human,
    key: KeyId,
    decisions: Vec<CallDecision>,
    received_at: UnixMs,
}

impl Vote {
    /// Who decided.
    pub const fn approver(&self) -> &Human {
        &self.approver
    }

    /// The key that proves it.
    pub const fn key_id(&self) -> KeyId {
        self.key
    }

    /// What was decided, one verdict for each call, in order.
    pub fn decisions(&self) -> &[CallDecision] {
        &self.decisions
    }

    /// When it came.
    pub const fn received_at(&self) -> UnixMs {
        self.received_at
    }

    /// The hash of the envelope it is about.
    pub const fn envelope_hash(&self) -> Hash {
        self.envelope
    }
}

/// Checks a submission against the stored envelope: signature, then time and state, then drift,
/// then bijection, then preconditions. Nothing changes, so a failure costs the approval nothing.
///
/// To check a stored submission again, pass the time at which it came as `now`.
pub fn verify_vote(
    submission: &Submission,
    envelope: &Envelope,
    keys: &Keyring,
    situation: &Situation<'_>,
) -> Result<Vote, Refusal> {
    let signed = Signed::check(submission.clone(), envelope, keys)?;
    verify_signed(&signed, envelope, keys, situation)
}

/// The same for a submission whose signature was checked before.
///
/// SECURITY: the key must still decide for the person, and the envelope must be the one that was signed.
pub fn verify_signed(
    signed: &Signed,
    envelope: &Envelope,
    keys: &Keyring,
    situation: &Situation<'_>,
) -> Result<Vote, Refusal> {
    signed.holds(envelope, keys)?;
    let submission = signed.submission();
    check_approver(&submission.claims().approver, envelope)?;
    check_time(submission, envelope, situation)?;
    check_situation(envelope, situation)?;
    if submission.claims().display != situation.display {
        return Err(Refusal::DisplayMismatch);
    }
    bijection::check(envelope.plan().calls(), &submission.claims().decisions)?;
    envelope
        .plan()
        .preconditions()
        .check(situation.fingerprints)?;
    Ok(Vote {
        envelope: envelope.hash(),
        approver: submission.claims().approver.clone(),
        key: submission.key_id(),
        decisions: submission.claims().decisions.clone(),
        received_at: situation.now,
    })
}

fn check_approver(approver: &Human, envelope: &Envelope) -> Result<(), Refusal> {
    if envelope.lineage().requester() == Principal::Human(approver.clone()) {
        return Err(Refusal::RequesterDecides);
    }
    match envelope.quorum().roster().contains(approver) {
        true => Ok(()),
        false => Err(Refusal::NotOnRoster),
    }
}

fn check_time(
    submission: &Submission,
    envelope: &Envelope,
    situation: &Situation<'_>,
) -> Result<(), Refusal> {
    // A decided envelope may get further votes; they are recorded and change nothing.
    match situation.state {
        State::Pending | State::Approved | State::Denied => {}
        state => return Err(over(state)),
    }
    if !envelope.clocks().may_decide(situation.now) {
        return Err(Refusal::Expired);
    }
    let off_ms = submission.claims().signed_at.distance(situation.now);
    match off_ms <= situation.skew_ms {
        true => Ok(()),
        false => Err(Refusal::ClockSkew { off_ms }),
    }
}

/// What must not have changed, at the decision and at the execution alike.
pub(crate) fn check_situation(
    envelope: &Envelope,
    situation: &Situation<'_>,
) -> Result<(), Refusal> {
    if situation.quorum != envelope.quorum() {
        return Err(Refusal::ConfigurationChanged);
    }
    Ok(envelope.plan().check_drift(situation.context)?)
}

/// Why an envelope in this state takes no vote and starts nothing.
pub(crate) const fn over(state: State) -> Refusal {
    match state {
        State::Pending => Refusal::NotApproved,
        State::Denied => Refusal::Denied,
        State::Expired => Refusal::Expired,
        State::ExpiredUnused => Refusal::ExpiredUnused,
        State::Cancelled => Refusal::Cancelled,
        State::Superseded => Refusal::Superseded,
        State::Approved
        | State::Consumed
        | State::NotStarted
        | State::Started
        | State::Executed
        | State::Failed
        | State::Unknown => Refusal::Replayed(state),
    }
}
