//! One session under other policies.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use countersign_event::payload::{Payload, PolicyDecision, ToolCallAllowed, ToolCallDenied};
use countersign_event::{EventType, Scope};
use countersign_policy::{Decision, Hearing, Ruling};
use countersign_session::{Fact, Snapshot};
use countersign_store::{Opened, Reader};

use super::tally::{Change, Changes};
use super::{Progress, Question, Reading, RecordedAction};
use crate::Error;
use crate::proposed::Proposed;

pub(super) struct Walked {
    pub(super) actions: u64,
    pub(super) changes: Changes,
}

pub(super) fn session(
    scope: &Scope,
    question: &Question<'_>,
    reader: &Reader,
    progress: &Progress,
) -> Result<Walked, Error> {
    let mut walk = Walk {
        scope,
        question,
        snapshot: Snapshot::default(),
        waiting: HashMap::new(),
        fates: HashMap::new(),
        walked: Walked {
            actions: 0,
            changes: Changes::default(),
        },
    };
    let walked = reader.history(scope, |event| {
        if progress.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        walk.step(&event)
    });
    // What was found before somebody stopped it is still true.
    match walked {
        Ok(_) | Err(Error::Interrupted) => {}
        Err(error) => return Err(error),
    }
    progress
        .actions
        .fetch_add(walk.walked.actions, Ordering::Relaxed);
    Ok(walk.walked)
}

struct Walk<'a> {
    scope: &'a Scope,
    question: &'a Question<'a>,
    /// The recorded state, or the one that the new verdicts have led to.
    snapshot: Snapshot,
    waiting: HashMap<String, (Proposed, Snapshot)>,
    /// What becomes of the later events of a call that was judged differently.
    fates: HashMap<String, Fate>,
    walked: Walked,
}

/// What the new verdict does to the rest of a call's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// They do not happen.
    Gone,
    /// It runs without anybody being asked: its result happens, the asking does not.
    Unasked,
}

impl Walk<'_> {
    fn step(&mut self, event: &Opened<'_>) -> Result<(), Error> {
        match event.payload {
            Payload::ToolCallProposed(payload) => {
                let proposed = Proposed::new(payload, event.seq, event.ts_unix_ms);
                let call_id = event.call_id.unwrap_or_default().to_owned();
                self.waiting
                    .insert(call_id, (proposed, self.snapshot.clone()));
                self.fold(event.event_type, event.payload, event)
            }
            Payload::PolicyDecision(decision) if is_about_a_call(decision) => {
                self.decided(decision, event)
            }
            _ => match event.call_id.and_then(|call_id| self.fates.get(call_id)) {
                Some(Fate::Gone) => Ok(()),
                Some(Fate::Unasked) if is_asking(event.event_type) => Ok(()),
                _ => self.fold(event.event_type, event.payload, event),
            },
        }
    }

    fn decided(&mut self, decision: &PolicyDecision, event: &Opened<'_>) -> Result<(), Error> {
        let call_id = event.call_id.unwrap_or_default();
        let Some((proposed, before)) = self.waiting.remove(call_id) else {
            // About an edited call: people have looked at it, and the arguments are theirs.
            return self.fold(event.event_type, event.payload, event);
        };
        let ruling = proposed
            .decide(
                self.question.policies,
                &before,
                decision.links.as_ref(),
                // What was heard under other policies says nothing about these.
                &Hearing::again(None),
            )
            .map_err(|_| Error::Incomplete {
                seq: event.seq,
                problem: "its arguments have no canonical form",
            })?;
        if self.is_asked_for(&proposed, call_id, decision) {
            self.walked.actions += 1;
            self.count(&proposed, decision, &ruling);
        }
        match self.question.reading {
            Reading::Independent => self.fold(event.event_type, event.payload, event),
            Reading::FeedForward => self.carry_on(call_id, decision, &ruling, event),
        }
    }

    fn is_asked_for(&self, proposed: &Proposed, call: &str, decision: &PolicyDecision) -> bool {
        let Question {
            since_unix_ms,
            until_unix_ms,
            tool,
            wanted,
            ..
        } = self.question;
        let action = RecordedAction {
            scope: self.scope,
            ts_unix_ms: proposed.ts_unix_ms,
            tool: &proposed.tool_name,
            server: proposed.server.as_deref(),
            call,
            agent: proposed.agent_id.as_deref(),
            outcome: decision.outcome.as_deref().unwrap_or_default(),
            reason: decision.reason.as_deref(),
        };
        since_unix_ms.is_none_or(|since| proposed.ts_unix_ms >= since)
            && until_unix_ms.is_none_or(|until| proposed.ts_unix_ms < until)
            && tool.as_ref().is_none_or(|tool| *tool == proposed.tool_name)
            && wanted.is_none_or(|wanted| wanted(&action))
    }

    fn count(&mut self, proposed: &Proposed, decision: &PolicyDecision, ruling: &Ruling) {
        let from = decision.verdict.clone().unwrap_or_default();
        let to = ruling.judgement.verdict.decision().as_str();
        if from == to {
            return;
        }
        let rule = decision.policy_ref.as_deref().unwrap_or_default();
        let change = Change {
            from,
            to: to.to_owned(),
            from_rule: rule.split(' ').next().unwrap_or_default().to_owned(),
            to_rule: ruling.judgement.explanation.rule.clone(),
            tool: proposed.tool_name.clone(),
            agent: proposed.agent_id.clone().unwrap_or_default(),
        };
        self.walked.changes.add(change, self.scope, proposed.seq);
    }

    /// Goes on as if the new verdict had been given.
    fn carry_on(
        &mut self,
        call_id: &str,
        decision: &PolicyDecision,
        ruling: &Ruling,
        event: &Opened<'_>,
    ) -> Result<(), Error> {
        let was = decision.outcome.as_deref().unwrap_or_default();
        let now = ruling.judgement.verdict.decision();
        self.fold(event.event_type, event.payload, event)?;
        if now.outcome() == was {
            return Ok(());
        }
        let call = Some(call_id.to_owned());
        let (fate, consequence) = match now {
            Decision::Deny => {
                let denied = ToolCallDenied {
                    call_id: call,
                    ..ToolCallDenied::default()
                };
                let denied = Payload::ToolCallDenied(denied);
                (Fate::Gone, Some((EventType::ToolCallDenied, denied)))
            }
            // Nobody knows what people would have said.
            Decision::Escalate => (Fate::Gone, None),
            Decision::Allow | Decision::Warn | Decision::Transform => {
                let allowed = ToolCallAllowed {
                    call_id: call,
                    ..ToolCallAllowed::default()
                };
                let allowed = Payload::ToolCallAllowed(allowed);
                (Fate::Unasked, Some((EventType::ToolCallAllowed, allowed)))
            }
        };
        self.fates.insert(call_id.to_owned(), fate);
        match consequence {
            Some((event_type, payload)) => self.fold(event_type, &payload, event),
            None => Ok(()),
        }
    }

    /// Folds an event as the next one, whatever its place in the log was.
    fn fold(
        &mut self,
        event_type: EventType,
        payload: &Payload,
        at: &Opened<'_>,
    ) -> Result<(), Error> {
        let fact = Fact {
            seq: self.snapshot.counters().events,
            ts_unix_ms: at.ts_unix_ms,
            event_type,
            payload,
        };
        let seq = at.seq;
        self.snapshot
            .apply(&fact)
            .map_err(|error| Error::Fold { seq, error })
    }
}

/// Decisions at other points of an agent's life stand as they are.
fn is_about_a_call(decision: &PolicyDecision) -> bool {
    let point = decision.intervention_point.as_deref();
    decision.policy_digest.is_some() && point.is_none_or(|point| point == "pre_tool_call")
}

/// Events that belong to asking people, or to the denial that did not come.
fn is_asking(event_type: EventType) -> bool {
    matches!(
        event_type,
        EventType::ApprovalRequested
            | EventType::ApprovalDecided
            | EventType::ToolCallAllowed
            | EventType::ToolCallDenied
    )
}
