//! How a request stands: who said what, and why it was held.

use countersign_approval::{Decision, Human};
use countersign_event::payload::CheckpointCreated;

use super::*;
use crate::Engine;

/// What people have said about a request so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// The votes that count, in the order in which they came.
    pub votes: Vec<TallyVote>,
    /// How many people must approve.
    pub required: usize,
}

/// What one person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TallyVote {
    /// Who.
    pub approver: Human,
    /// What, about each call in turn.
    pub decisions: Vec<Decision>,
    /// When it came.
    pub at: UnixMs,
}

impl Tally {
    /// How many people have approved every call.
    pub fn approvals(&self) -> usize {
        let all = |vote: &&TallyVote| vote.decisions.iter().all(Decision::is_approved);
        self.votes.iter().filter(all).count()
    }
}

impl Engine {
    /// What people have said about a request so far. Each signature is checked again.
    pub fn tally(&self, standing: &Standing) -> Result<Tally, crate::Refusal> {
        let ballot = self.ballot(standing, &self.approver_list()?)?;
        let votes = ballot.counted().iter().map(|vote| TallyVote {
            approver: vote.approver().clone(),
            decisions: vote
                .decisions()
                .iter()
                .map(|it| it.decision.clone())
                .collect(),
            at: vote.received_at(),
        });
        Ok(Tally {
            votes: votes.collect(),
            required: standing.envelope.quorum().required(),
        })
    }

    /// Notes in the audit that somebody was shown a request.
    pub fn note_view(&self, standing: &Standing, who: &Human) -> Result<(), crate::Refusal> {
        self.note_shown(standing, who, None)
    }

    /// Notes in the audit that somebody was shown a request, and in which way, unless it is there already.
    /// Says whether it was not. Whoever calls this twice at once for one person has two entries.
    pub fn note_first_view(
        &self,
        standing: &Standing,
        who: &Human,
        way: &str,
    ) -> Result<bool, crate::Refusal> {
        let is_new = !self.has_viewed(standing, who, way)?;
        if is_new {
            self.note_shown(standing, who, Some(way))?;
        }
        Ok(is_new)
    }

    /// Looks back from the newest entry of the audit to the one that asked.
    fn has_viewed(&self, standing: &Standing, who: &Human, way: &str) -> Result<bool, Fault> {
        let (id, actor) = (standing.envelope.id().to_string(), who.to_string());
        let mut found = false;
        self.store().reader().audit_back(|line| {
            let Ok((entry, _)) = Entry::read(line) else {
                return true;
            };
            if entry
                .about
                .as_ref()
                .is_none_or(|about| about.envelope != id)
            {
                return true;
            }
            found = entry.outcome == Outcome::Viewed
                && entry.actor.as_deref() == Some(&actor)
                && entry.detail.as_deref() == Some(way);
            !found && entry.outcome != Outcome::Requested
        })?;
        Ok(found)
    }

    fn note_shown(
        &self,
        standing: &Standing,
        who: &Human,
        way: Option<&str>,
    ) -> Result<(), crate::Refusal> {
        let now = self.now()?;
        let display = standing.rendering.display_sha256();
        let mut entry = Entry::new(now, Outcome::Viewed);
        entry.about = Some(About::envelope(&standing.envelope));
        entry.actor = Some(who.to_string());
        entry.display = Some(display);
        entry.detail = way.map(str::to_owned);
        let checkpoint = CheckpointCreated {
            checkpoint_id: Some(format!("viewed {}", standing.envelope.id())),
            snapshot_hash: Some(display.to_string()),
            ..CheckpointCreated::default()
        };
        let event = (
            EventType::CheckpointCreated,
            Payload::CheckpointCreated(checkpoint),
        );
        Ok(self.record_apart(&event, &entry, now)?)
    }

    /// The reason code of the decision that held the action, as the log has it.
    pub fn why_held(&self, standing: &Standing) -> Result<Option<String>, crate::Refusal> {
        Ok(self.recorded_reason(standing)?)
    }

    fn recorded_reason(&self, standing: &Standing) -> Result<Option<String>, Fault> {
        // The decision is the event before the one that asks: `admit` puts them on their way together.
        let reader = self.store().reader();
        let Some(seq) = standing.row.seq.checked_sub(1) else {
            return Ok(None);
        };
        let Some(event) = reader.event(&standing.row.scope, seq)? else {
            return Ok(None);
        };
        let line = Line::read(&event.line).map_err(|error| history(&error.to_string()))?;
        if line.event_type != EventType::PolicyDecision {
            return Ok(None);
        }
        let payload = reader.open_payload(&event)?;
        let reason = payload.get("reason").and_then(Json::as_str);
        Ok(reason.map(str::to_owned))
    }
}
