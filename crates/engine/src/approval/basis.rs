//! What a request for approval rests on: the decision that held the action, and the action as it was
//! proposed.

use countersign_event::payload::ErrorRaised;
use countersign_policy::{Asked, Hearing, Point};

use super::ask::enforced_identity;
use super::*;
use crate::Engine;

/// What was decided, and about what.
struct Basis {
    point: Point,
    agent: String,
    /// The arguments before a policy changed them.
    proposed: Option<Json>,
    session: Json,
    heard: Option<Json>,
    /// What the action beneath was labelled with, where people are asked about its result.
    labels: Vec<String>,
}

/// Whether an action is the one that was approved.
pub(crate) enum Bound {
    /// Nothing was bound.
    No,
    /// It is, and its result has these labels.
    Same(Vec<String>),
    /// It is another one.
    Other,
}

impl Standing {
    /// Whether people are asked about the result of a call that has run.
    pub fn is_about_a_result(&self) -> bool {
        crate::review::kept(&self.envelope).is_some()
    }

    /// Whether people are asked about a point that is no tool call.
    pub(super) fn is_at_a_point(&self) -> bool {
        let call = self.envelope.plan().calls().first();
        call.is_some_and(|call| {
            call.tool.server.is_none() && call.tool.name.starts_with(POINT_TOOL)
        })
    }
}

impl Engine {
    /// What an action comes to now, compared with what people approved. `wanted` are the arguments that
    /// the agent brings; without them, those that were proposed.
    pub(crate) fn bound(
        &self,
        standing: &Standing,
        wanted: Wanted<'_>,
        policies: &Policies,
    ) -> Result<Bound, Fault> {
        let mut preconditions = standing.envelope.plan().preconditions().iter();
        let identity = preconditions.find(|(subject, _)| **subject == enforced_identity());
        let Some((_, Some(identity))) = identity else {
            return Ok(Bound::No);
        };
        let [call] = standing.envelope.plan().calls() else {
            return Err(history("an approval of this door has one call"));
        };
        let Some(basis) = self.basis(standing)? else {
            return Ok(Bound::Other);
        };
        let tool_name = wanted
            .tool
            .map_or(call.tool.name.as_str(), |tool| &tool.name);
        let approved = call.args.value();
        let proposed = basis.proposed.as_ref().unwrap_or(approved);
        let subject = wanted.args.map_or(proposed, Arguments::value);
        let asked = Asked {
            point: basis.point,
            agent: Some(&basis.agent),
            tool_name,
            subject,
        };
        let hearing = Hearing::again(basis.heard.as_ref());
        let found = policies.identify(asked, &basis.session, &hearing);
        Ok(match found {
            Some((now, mut labels)) if now.to_string() == identity => {
                labels.extend(basis.labels);
                Bound::Same(labels)
            }
            _ => Bound::Other,
        })
    }

    /// Whether the agent wants the action that was proposed, which a policy then changed.
    pub(super) fn is_as_proposed(
        &self,
        wanted: &Arguments,
        standing: &Standing,
    ) -> Result<bool, Fault> {
        let basis = self.basis(standing)?;
        let proposed = basis.and_then(|basis| basis.proposed);
        let proposed = proposed.and_then(|args| Arguments::new(args).ok());
        Ok(proposed.is_some_and(|proposed| proposed.digest() == wanted.digest()))
    }

    /// Notes that something else is wanted than what was approved, and refuses it.
    pub(super) fn deny_mismatch(&self, standing: &Standing, now: UnixMs) -> Result<Fault, Fault> {
        let mut entry = Entry::new(now, Outcome::RejectedMismatch);
        entry.about = Some(About::envelope(&standing.envelope));
        entry.detail = Some("the enforced identity differs".to_owned());
        let fault = Fault::ActionMismatch;
        let error = ErrorRaised {
            code: Some("approval_action_mismatch".to_owned()),
            message: Some(Json::from(fault.to_string())),
            ..ErrorRaised::default()
        };
        let event = (EventType::ErrorRaised, Payload::ErrorRaised(error));
        let change = Change::note(entry, now);
        let _recorded = self.record_events(&standing.row.scope, now, vec![event], change)?;
        Ok(fault)
    }

    /// The decision stands right before the request, and the proposal before that; an edited request
    /// has no proposal of its own.
    fn basis(&self, standing: &Standing) -> Result<Option<Basis>, Fault> {
        let (reader, scope) = (self.store().reader(), &standing.row.scope);
        let mut decision: Option<Json> = None;
        let mut proposed = None;
        for back in 1..=MOST_EVENTS_BACK {
            let Some(seq) = standing.row.seq.checked_sub(back) else {
                break;
            };
            let Some(event) = reader.event(scope, seq)? else {
                break;
            };
            let line = Line::read(&event.line).map_err(|error| history(&error.to_string()))?;
            match line.event_type {
                EventType::PolicyDecision if decision.is_none() => {
                    decision = Some(reader.open_payload(&event)?);
                }
                EventType::ToolCallProposed => {
                    proposed = Some(reader.open_payload(&event)?);
                    break;
                }
                EventType::ErrorRaised => {}
                _ => break,
            }
        }
        let Some(decision) = decision else {
            return Ok(None);
        };
        let word = |member: &str| decision.get(member).and_then(Json::as_str);
        let point = word("intervention_point").and_then(|point| point.parse().ok());
        let session = word("session").and_then(|text| Json::admit(text.as_bytes(), &RECORDED).ok());
        let (Some(point), Some(session)) = (point, session) else {
            return Ok(None);
        };
        // INVARIANT: both events tell of the call that the envelope names.
        let call = standing.envelope.plan().calls().first();
        let call_id = call.map(|call| call.id.as_str());
        let is_ours = |payload: &Json| payload.get("call_id").and_then(Json::as_str) == call_id;
        if !is_ours(&decision) {
            return Ok(None);
        }
        let proposed = proposed.filter(is_ours);
        let labels = proposed.as_ref().and_then(|payload| payload.get(LABELS));
        let labels = labels.and_then(Json::as_array).into_iter().flatten();
        let labels = labels.filter_map(|label| label.as_str().map(str::to_owned));
        let agent = standing.envelope.plan().scope().agent_name.clone();
        Ok(Some(Basis {
            point,
            agent,
            labels: labels.collect(),
            proposed: proposed.and_then(|payload| payload.get("args").cloned()),
            session,
            heard: decision.get("heard").cloned(),
        }))
    }
}

/// Where a proposal says what the action beneath was labelled with.
pub(crate) const LABELS: &str = "result_labels";
/// How a point is named where people see a tool.
pub(crate) const POINT_TOOL: &str = "agent_control.";
/// The decision, the proposal, and that two evaluators disagree.
const MOST_EVENTS_BACK: u64 = 4;
const RECORDED: countersign_canon::Limits = countersign_canon::Limits {
    max_bytes: 4 << 20,
    max_depth: 128,
    ..countersign_canon::Limits::plan()
};
