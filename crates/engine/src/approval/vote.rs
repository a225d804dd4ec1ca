//! Counting what people say. Every attempt is recorded, whatever comes of it.

use std::time::Duration;

use countersign_approval::{
    Ballot, CallDecision, Cast, Refusal, Resolved, Submission, Vote, verify_signed,
};
use countersign_event::payload::{ApprovalDecided, ErrorRaised, ToolCallDenied};
use countersign_store::ChangeRefused;

use super::look::Under;
use super::sweep::{is_open, takes_nothing};
use super::*;
use crate::Engine;

/// What a submission led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voted {
    /// Which approval.
    pub id: ApprovalId,
    /// What became of the vote.
    pub cast: Cast,
    /// Where the approval is now.
    pub state: State,
    /// How many people have approved so far, and how many must.
    pub counted: (usize, usize),
}

/// That somebody denied a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// What they said, as they said it.
    pub reason: Option<String>,
    /// The event that tells of it.
    pub event: Hash,
}

/// Why a submission was not counted.
#[derive(Debug, thiserror::Error)]
pub enum NotCounted {
    /// The rules refuse it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Something failed on the way; nothing was decided.
    #[error("{0}")]
    Failed(String),
}

impl From<Fault> for NotCounted {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Approval(refusal) => Self::Refused(refusal),
            other => Self::Failed(crate::Refusal::from(other).message().to_owned()),
        }
    }
}

impl Engine {
    /// Takes a signed decision. Whatever comes of it is in the audit.
    pub fn vote(&self, submission: &[u8]) -> Result<Voted, NotCounted> {
        let submission = match Submission::parse(submission) {
            Ok(submission) => submission,
            Err(refusal) => {
                self.note_stray(&refusal, None)?;
                return Err(refusal.into());
            }
        };
        let mut overtaken = 0;
        for _ in 0..ATTEMPTS {
            match self.try_vote(&submission) {
                Err(Fault::Store(error)) if is_race(&error) => {}
                // Another vote that decides is on its way to the disk: it can be read soon.
                Err(Fault::Store(error)) if is_misplaced(&error) && overtaken < PATIENCE => {
                    overtaken += 1;
                    std::thread::sleep(Duration::from_millis(overtaken));
                }
                result => return Ok(result?),
            }
        }
        Err(NotCounted::Failed("others decide too fast".to_owned()))
    }

    /// What the last of those said who denied a request.
    pub fn denial(&self, standing: &Standing) -> Option<Denial> {
        let reader = self.store().reader();
        let votes = reader.votes(standing.row.id).ok()?;
        let denials = votes.iter().filter_map(|event| {
            let (submission, _) = recorded(event, reader).ok()?;
            let mut decisions = submission.claims().decisions.iter();
            let denied = decisions.find(|it| !it.decision.is_approved())?;
            Some(Denial {
                event: Line::read(&event.line).ok()?.hash,
                reason: denied.decision.reason().map(|it| it.as_str().to_owned()),
            })
        });
        denials.last()
    }

    fn try_vote(&self, submission: &Submission) -> Result<Voted, Fault> {
        let asked = self.store().reader().asked_by_nonce(submission.nonce())?;
        let Some(asked) = asked else {
            let refusal = Refusal::UnknownNonce;
            self.note_stray(&refusal, Some(submission))?;
            return Err(Fault::Approval(refusal));
        };
        let standing = self.standing(asked)?;
        let now = self.now()?;
        let counted = self
            .checked(submission, &standing, now)
            .and_then(|(vote, keys)| self.cast(submission, vote, &keys, &standing, now));
        let refusal = match counted {
            Ok(voted) => return Ok(voted),
            Err(Fault::Approval(refusal)) => refusal,
            Err(fault) => self.closed(&standing, fault)?,
        };
        let entry = rejected(&refusal, submission, &standing, now);
        self.note(&standing, entry, &refusal, now)?;
        Err(Fault::Approval(refusal))
    }

    fn checked(
        &self,
        submission: &Submission,
        standing: &Standing,
        now: UnixMs,
    ) -> Result<(Vote, Approvers), Fault> {
        let approvers = self.approver_list()?;
        let envelope = &standing.envelope;
        // The policies that the action runs under are compared where it runs.
        let under = Under {
            policy: envelope.plan().policy(),
            tools: None,
            folder: None,
            preconditions: None,
        };
        let vote = self.look(standing, &approvers, under, now, |situation, keys| {
            let signed = self.recent.signed(submission, envelope, keys)?;
            verify_signed(&signed, envelope, keys, situation)
        })?;
        Ok((vote, approvers))
    }

    fn cast(
        &self,
        submission: &Submission,
        vote: Vote,
        approvers: &Approvers,
        standing: &Standing,
        now: UnixMs,
    ) -> Result<Voted, Fault> {
        let votes = self.store().reader().votes(standing.row.id)?;
        let after = votes.len();
        let mut ballot = self.recount(&votes, standing, approvers)?;
        let cast = ballot.cast(vote).map_err(Fault::Approval)?;
        let counted = (
            ballot.counted().len(),
            standing.envelope.quorum().required(),
        );
        let mut entry = Entry::new(now, cast.into());
        entry.about = Some(About::envelope(&standing.envelope));
        entry.actor = Some(submission.claims().approver.to_string());
        entry.key = Some(submission.key_id());
        entry.display = Some(submission.claims().display);
        entry.decisions = submission.claims().decisions.clone();
        let pending = standing.row.state == State::Pending;
        let state = match ballot.resolved().filter(|_| pending) {
            Some(resolved) => {
                let events = resolution(submission, resolved, &standing.envelope);
                let state = state_after(resolved);
                let mut outcome = Entry::new(now, state.into());
                outcome.about = entry.about.clone();
                outcome.decisions = resolved.decisions().to_vec();
                let entries = vec![entry, outcome];
                let change = Change::resolve(resolved, &standing.envelope, after, entries, now);
                let _durable = self.record_events(&standing.row.scope, now, events, change)?;
                state
            }
            // The call is over, so the log takes no more decisions about it.
            None if standing.row.state == State::Denied => {
                self.record_apart(&late(submission), &entry, now)?;
                standing.row.state
            }
            None => {
                let id = standing.envelope.id();
                let event = decided(submission, &standing.envelope, None);
                let change = Change::vote(id, after, entry.clone(), now);
                let event = (EventType::ApprovalDecided, event);
                match self.record_events(&standing.row.scope, now, vec![event], change) {
                    Err(fault) if takes_nothing(&fault) && !is_open(standing.row.state) => {
                        self.record_apart(&late(submission), &entry, now)?;
                    }
                    result => drop(result?),
                }
                standing.row.state
            }
        };
        Ok(Voted {
            id: standing.envelope.id(),
            cast,
            state,
            counted,
        })
    }

    /// The votes that were recorded, each checked again as of the time when it came.
    pub(crate) fn ballot<'e>(
        &self,
        standing: &'e Standing,
        approvers: &Approvers,
    ) -> Result<Ballot<'e>, Fault> {
        let votes = self.store().reader().votes(standing.row.id)?;
        self.recount(&votes, standing, approvers)
    }

    fn recount<'e>(
        &self,
        votes: &[Stored],
        standing: &'e Standing,
        approvers: &Approvers,
    ) -> Result<Ballot<'e>, Fault> {
        let envelope = &standing.envelope;
        let keys = approvers
            .keyring()
            .map_err(|error| history(&error.to_string()))?;
        let mut ballot = Ballot::new(envelope);
        for event in votes {
            let (submission, at) = recorded(event, self.store().reader())?;
            let seen = fingerprints_as_asked(envelope);
            let situation = Situation {
                state: State::Pending,
                context: &envelope.plan().context(),
                fingerprints: &seen,
                quorum: envelope.quorum(),
                display: standing.rendering.display_sha256(),
                now: at,
                skew_ms: u64::MAX,
            };
            // A key that was ended since takes its vote with it.
            let signed = self.recent.signed(&submission, envelope, keys);
            let vote = signed.and_then(|it| verify_signed(&it, envelope, keys, &situation));
            if let Ok(vote) = vote {
                let _effect = ballot.cast(vote).map_err(Fault::Approval)?;
            }
        }
        Ok(ballot)
    }

    /// Adds an attempt that is about no request of ours to the audit and to the log.
    fn note_stray(&self, refusal: &Refusal, submission: Option<&Submission>) -> Result<(), Fault> {
        let now = self.now()?;
        let mut entry = Entry::new(now, refusal.outcome());
        entry.actor = submission.map(|it| it.claims().approver.to_string());
        entry.key = submission.map(Submission::key_id);
        entry.detail = Some(refusal.to_string());
        self.record_apart(&raised(refusal), &entry, now)
    }

    /// Adds a refused attempt to the audit and to the log.
    pub(crate) fn note(
        &self,
        standing: &Standing,
        entry: Entry,
        refusal: &Refusal,
        now: UnixMs,
    ) -> Result<(), Fault> {
        let event = raised(refusal);
        let change = Change::note(entry.clone(), now);
        match self.record_events(&standing.row.scope, now, vec![event.clone()], change) {
            Err(fault) if takes_nothing(&fault) => self.record_apart(&event, &entry, now),
            result => result.map(drop),
        }
    }
}

/// The events of a decision: the vote that made it, and each call that was denied.
fn resolution(
    submission: &Submission,
    resolved: &Resolved,
    envelope: &Envelope,
) -> Vec<(EventType, Payload)> {
    let approved = state_after(resolved) == State::Approved;
    let vote = decided(submission, envelope, Some(approved));
    let denials = resolved.decisions().iter();
    let denials = denials.filter_map(|it| denial(it, envelope));
    let vote = (EventType::ApprovalDecided, vote);
    std::iter::once(vote).chain(denials).collect()
}

fn state_after(resolved: &Resolved) -> State {
    match resolved {
        Resolved::Granted(_) => State::Approved,
        Resolved::Refused(_) => State::Denied,
    }
}

fn late(submission: &Submission) -> (EventType, Payload) {
    let text = String::from_utf8_lossy(&submission.to_text()).into_owned();
    let error = ErrorRaised {
        code: Some("approval:late".to_owned()),
        message: Some(Json::from(text)),
        ..ErrorRaised::default()
    };
    (EventType::ErrorRaised, Payload::ErrorRaised(error))
}

fn raised(refusal: &Refusal) -> (EventType, Payload) {
    let error = ErrorRaised {
        code: Some(format!("approval:{}", refusal.code())),
        message: Some(Json::from(refusal.to_string())),
        ..ErrorRaised::default()
    };
    (EventType::ErrorRaised, Payload::ErrorRaised(error))
}

/// The log has this call further on than its approval.
pub(crate) fn is_misplaced(error: &countersign_store::Error) -> bool {
    matches!(error.root(), countersign_store::Error::Order(_))
}

/// Whether somebody else was faster, so that looking again helps.
pub(crate) fn is_race(error: &countersign_store::Error) -> bool {
    let is_overtaken = matches!(
        refused_change(error),
        Some(ChangeRefused::State(_) | ChangeRefused::Outpaced)
    );
    is_overtaken || error.is_retryable()
}

/// Why the store did not make a change, if that is what it says.
pub(crate) fn refused_change(error: &countersign_store::Error) -> Option<&ChangeRefused> {
    match error.root() {
        countersign_store::Error::Approval(refused) => Some(refused),
        _ => None,
    }
}

fn fingerprints_as_asked(envelope: &Envelope) -> Fingerprints {
    envelope.plan().preconditions().clone()
}

/// The submission in an event, and when it came.
fn recorded(event: &Stored, reader: &Reader) -> Result<(Submission, UnixMs), Fault> {
    let line = Line::read(&event.line).map_err(|error| history(&error.to_string()))?;
    let payload = reader.open_payload(event)?;
    let text = payload.get("submission").and_then(Json::as_str);
    let text = text.ok_or_else(|| history("a vote without its submission"))?;
    let submission = Submission::parse(text.as_bytes()).map_err(Fault::Approval)?;
    Ok((submission, UnixMs::new(line.ts_unix_ms)))
}

fn decided(submission: &Submission, envelope: &Envelope, approved: Option<bool>) -> Payload {
    let text = String::from_utf8_lossy(&submission.to_text()).into_owned();
    let call = envelope.plan().calls().first();
    Payload::ApprovalDecided(ApprovalDecided {
        call_id: call.map(|call| call.id.as_str().to_owned()),
        approval_id: Some(envelope.id().to_string()),
        approved,
        decided_by: Some(submission.claims().approver.to_string()),
        plan_hash: Some(envelope.plan().hash().to_string()),
        submission: Some(Json::from(text)),
        ..ApprovalDecided::default()
    })
}

fn denial(decision: &CallDecision, envelope: &Envelope) -> Option<(EventType, Payload)> {
    if decision.decision.is_approved() {
        return None;
    }
    let reason = decision.decision.reason().map(|reason| reason.as_str());
    let denied = ToolCallDenied {
        call_id: Some(decision.call.as_str().to_owned()),
        approval_id: Some(envelope.id().to_string()),
        reason_code: Some(APPROVAL_DENIED.to_owned()),
        message: reason.map(Json::from),
        ..ToolCallDenied::default()
    };
    Some((EventType::ToolCallDenied, Payload::ToolCallDenied(denied)))
}

fn rejected(refusal: &Refusal, submission: &Submission, standing: &Standing, now: UnixMs) -> Entry {
    let mut entry = Entry::new(now, refusal.outcome());
    entry.about = Some(About::envelope(&standing.envelope));
    // What an unchecked submission claims is worth noting, not believing.
    entry.actor = Some(submission.claims().approver.to_string());
    entry.key = Some(submission.key_id());
    entry.detail = Some(refusal.to_string());
    entry
}

/// How often to look again, each time waiting a millisecond longer.
pub(crate) const PATIENCE: u64 = 40;
/// Each lost race means that somebody else made progress.
pub(crate) const ATTEMPTS: usize = 1000;
const APPROVAL_DENIED: &str = "APPROVAL_DENIED";
