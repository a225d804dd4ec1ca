//! From an approval to its one use.

use countersign_canon::Hash;

use crate::ballot::Granted;
use crate::call::ToolCall;
use crate::decision::CallDecision;
use crate::envelope::Envelope;
use crate::id::{ApprovalId, Nonce};
use crate::key::Keyring;
use crate::plan::PlanHash;
use crate::refusal::Refusal;
use crate::state::State;
use crate::time::UnixMs;
use crate::vote::{Situation, check_situation, over};

/// Proof that an approved plan may be consumed now: quorum, keys, time, context and preconditions
/// were all checked against the stored envelope. Only [`verify_execution`] makes one, and it is
/// moved, never copied; the store takes it for its one conditional update.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Verified {
    id: ApprovalId,
    nonce: Nonce,
    plan_hash: PlanHash,
    envelope: Hash,
    ends: UnixMs,
    decisions: Vec<CallDecision>,
}

impl Verified {
    /// Which envelope.
    pub const fn id(&self) -> ApprovalId {
        self.id
    }

    /// The token to consume.
    pub const fn nonce(&self) -> Nonce {
        self.nonce
    }

    /// The hash of the plan, as stored and as worked out again just now.
    pub const fn plan_hash(&self) -> PlanHash {
        self.plan_hash
    }

    /// The hash of the envelope it is about.
    pub const fn envelope_hash(&self) -> Hash {
        self.envelope
    }

    /// The update must also ask that this time has not come yet.
    pub const fn ends(&self) -> UnixMs {
        self.ends
    }

    /// One verdict for each call, in order.
    pub fn decisions(&self) -> &[CallDecision] {
        &self.decisions
    }

    /// The calls to run, in order, with the arguments that were stored. `None` for another envelope.
    pub fn runs<'e>(&self, envelope: &'e Envelope) -> Option<Vec<&'e ToolCall>> {
        let calls = envelope.plan().calls().iter().zip(&self.decisions);
        let approved = calls.filter(|(_, it)| it.decision.is_approved());
        (envelope.hash() == self.envelope).then(|| approved.map(|(call, _)| call).collect())
    }
}

/// Checks that an approved plan may start now: state, keys, time, drift, preconditions. Nothing
/// changes, so a failure costs the approval nothing.
pub fn verify_execution(
    granted: &Granted,
    envelope: &Envelope,
    keys: &Keyring,
    situation: &Situation<'_>,
) -> Result<Verified, Refusal> {
    if granted.envelope_hash() != envelope.hash() {
        return Err(Refusal::UnknownNonce);
    }
    if situation.state != State::Approved {
        return Err(over(situation.state));
    }
    // SECURITY: a key that was lost since the vote takes its vote with it.
    for vote in granted.votes() {
        keys.deciding(vote.key_id(), vote.approver())?;
    }
    let ends = envelope.clocks().execution_ends(granted.decided_at());
    if !situation.now.is_before(ends) {
        return Err(Refusal::ExpiredUnused);
    }
    check_situation(envelope, situation)?;
    envelope
        .plan()
        .preconditions()
        .check(situation.fingerprints)?;
    Ok(Verified {
        id: envelope.id(),
        nonce: envelope.nonce(),
        plan_hash: envelope.plan().hash(),
        envelope: envelope.hash(),
        ends,
        decisions: granted.decisions().to_vec(),
    })
}
