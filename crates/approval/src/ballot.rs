//! From votes to a decision: who counts, when it is enough, and what comes too late.

use crate::decision::{CallDecision, Decision};
use crate::envelope::Envelope;
use crate::names::names;
use crate::quorum::DenyRule;
use crate::refusal::Refusal;
use crate::time::UnixMs;
use crate::vote::Vote;

/// The votes on one envelope, in the order in which they came.
#[derive(Clone, Debug)]
pub struct Ballot<'e> {
    envelope: &'e Envelope,
    /// INVARIANT: one for each person; none after the ballot was decided.
    counted: Vec<Vote>,
    decided: Option<Resolved>,
}

/// What the votes have led to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Resolved {
    /// At least one call may run.
    Granted(Granted),
    /// No call may run.
    Refused(Refused),
}

/// Proof that enough people have approved at least one call of an envelope. Only a [`Ballot`] makes
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted(Decided);

/// Proof that every call of an envelope was denied. Only a [`Ballot`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(Decided);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Decided {
    envelope: countersign_canon::Hash,
    decisions: Vec<CallDecision>,
    votes: Vec<Vote>,
    at: UnixMs,
}

macro_rules! decided {
    ($name:ident) => {
        impl $name {
            /// The hash of the envelope it is about.
            pub const fn envelope_hash(&self) -> countersign_canon::Hash {
                self.0.envelope
            }

            /// One verdict for each call, in order.
            pub fn decisions(&self) -> &[CallDecision] {
                &self.0.decisions
            }

            /// The votes that led to it.
            pub fn votes(&self) -> &[Vote] {
                &self.0.votes
            }

            /// When the last of them came.
            pub const fn decided_at(&self) -> UnixMs {
                self.0.at
            }
        }
    };
}
decided!(Granted);
decided!(Refused);

names! {
    /// What became of a vote. Each is recorded.
    Cast as "effect of a vote" {
        /// It counts.
        Counted = "counted",
        /// The same person said the same before.
        Repeated = "repeated",
        /// The ballot was decided, and it agrees.
        Late = "late",
        /// The first decision stands: the same person said something else before, or the ballot was
        /// decided otherwise.
        AlreadyDecided = "already_decided",
    }
}

impl<'e> Ballot<'e> {
    /// An empty ballot.
    pub const fn new(envelope: &'e Envelope) -> Self {
        Self {
            envelope,
            counted: Vec::new(),
            decided: None,
        }
    }

    /// Adds a vote. A vote for another envelope is refused.
    pub fn cast(&mut self, vote: Vote) -> Result<Cast, Refusal> {
        if vote.envelope_hash() != self.envelope.hash() {
            return Err(Refusal::UnknownNonce);
        }
        let before = self
            .counted
            .iter()
            .find(|it| it.approver() == vote.approver());
        if let Some(before) = before {
            return Ok(match before.decisions() == vote.decisions() {
                true => Cast::Repeated,
                false => Cast::AlreadyDecided,
            });
        }
        if let Some(decided) = &self.decided {
            let verdicts = |decisions: &[CallDecision]| -> Vec<bool> {
                let verdicts = decisions.iter().map(|it| it.decision.is_approved());
                verdicts.collect()
            };
            return Ok(
                match verdicts(decided.decisions()) == verdicts(vote.decisions()) {
                    true => Cast::Late,
                    false => Cast::AlreadyDecided,
                },
            );
        }
        self.counted.push(vote);
        self.decided = self.count();
        Ok(Cast::Counted)
    }

    /// What the votes have led to, if they have.
    pub const fn resolved(&self) -> Option<&Resolved> {
        self.decided.as_ref()
    }

    /// What the votes have led to, if they have.
    pub fn into_resolved(self) -> Option<Resolved> {
        self.decided
    }

    /// The votes that count.
    pub fn counted(&self) -> &[Vote] {
        &self.counted
    }

    fn count(&self) -> Option<Resolved> {
        let calls = self.envelope.plan().calls().iter().enumerate();
        let decisions: Option<Vec<CallDecision>> = calls
            .map(|(place, call)| {
                Some(CallDecision {
                    call: call.id.clone(),
                    decision: self.count_call(place)?,
                })
            })
            .collect();
        let decisions = decisions?;
        let granted = decisions.iter().any(|it| it.decision.is_approved());
        let decided = Decided {
            envelope: self.envelope.hash(),
            decisions,
            votes: self.counted.clone(),
            at: self.counted.last()?.received_at(),
        };
        Some(match granted {
            true => Resolved::Granted(Granted(decided)),
            false => Resolved::Refused(Refused(decided)),
        })
    }

    /// The verdict on one call, if there is one yet.
    fn count_call(&self, place: usize) -> Option<Decision> {
        let verdicts = self
            .counted
            .iter()
            .filter_map(|vote| vote.decisions().get(place));
        let (approvals, denials): (Vec<_>, Vec<_>) = verdicts
            .map(|it| &it.decision)
            .partition(|it| it.is_approved());
        let quorum = self.envelope.quorum();
        let eligible = quorum.eligible(&self.envelope.lineage().requester());
        let approved = approvals.len() >= quorum.required();
        let denied = match quorum.deny() {
            DenyRule::Veto => !denials.is_empty(),
            DenyRule::Outvoted => eligible.saturating_sub(denials.len()) < quorum.required(),
        };
        match (denied, approved) {
            // The first reason that was given is the one the agent is told.
            (true, _) => {
                let reason = denials.iter().find_map(|it| it.reason()).cloned();
                Some(Decision::Denied(reason))
            }
            (false, true) => Some(Decision::Approved),
            (false, false) => None,
        }
    }
}

impl Resolved {
    /// One verdict for each call, in order.
    pub fn decisions(&self) -> &[CallDecision] {
        match self {
            Self::Granted(granted) => granted.decisions(),
            Self::Refused(refused) => refused.decisions(),
        }
    }
}
