//! A call that differs from what was approved; and a call that is exactly what was approved.

use countersign_approval::ArgumentDrift;
use countersign_event::payload::ErrorRaised;
use countersign_store::Filter;

use super::ask::random;
use super::*;
use crate::Engine;

/// A call that was denied because it differs from what was approved. When somebody asks for it later,
/// that is an action of its own, and this one is its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drifted {
    /// The denied action.
    pub action: ActionId,
    /// What was approved, and what was asked for.
    pub drift: ArgumentDrift,
    /// The event that tells of it.
    pub event: Hash,
}

/// The difference between what is wanted and what was approved, if there is one.
pub(super) fn between(wanted: Option<&Arguments>, envelope: &Envelope) -> Option<ArgumentDrift> {
    let call = envelope.plan().calls().first()?;
    let drift = ArgumentDrift::between(call, wanted?);
    drift.is_detected().then_some(drift)
}

impl Engine {
    /// An approval of this session that is approved, in time and unused, for exactly this tool and
    /// these arguments: for doors that refuse at first and let the agent try again. `others` are waited for by
    /// somebody else.
    pub fn matching(
        &self,
        scope: &countersign_event::Scope,
        tool: &Tool,
        args: &Arguments,
        others: &[ApprovalId],
    ) -> Result<Option<ApprovalId>, crate::Refusal> {
        Ok(self.try_matching(scope, tool, args, others)?)
    }

    fn try_matching(
        &self,
        scope: &countersign_event::Scope,
        tool: &Tool,
        args: &Arguments,
        others: &[ApprovalId],
    ) -> Result<Option<ApprovalId>, Fault> {
        let reader = self.store().reader();
        let now = self.now()?;
        for row in reader.open_approvals(scope)? {
            let usable = row.state == State::Approved && row.ends.is_some_and(|end| now < end);
            if !usable || others.contains(&row.id) {
                continue;
            }
            let standing = standing(row, reader)?;
            if let [call] = standing.envelope.plan().calls()
                && call.tool == *tool
                && (call.args.digest() == args.digest() || self.is_as_proposed(args, &standing)?)
            {
                return Ok(Some(standing.row.id));
            }
        }
        Ok(None)
    }

    /// Denies the changed call, with both digests in the log and in the audit. The approval stays as
    /// it is.
    pub(super) fn deny_drift(
        &self,
        drift: ArgumentDrift,
        standing: &Standing,
        now: UnixMs,
    ) -> Result<Drifted, Fault> {
        let random = random().map_err(|error| history(&error.to_string()))?;
        let action = ActionId::from_random(random);
        let (approved, observed) = (
            drift.approved_args_digest.to_string(),
            drift.observed_args_digest.to_string(),
        );
        let call = standing.envelope.plan().calls().first();
        let mut entry = Entry::new(now, Outcome::RejectedMismatch);
        entry.about = Some(About::envelope(&standing.envelope));
        entry.call = call.map(|call| call.id.as_str().to_owned());
        entry.detail = Some(format!(
            "{action} asked for arguments {observed}, approved are {approved}"
        ));
        let message = Json::object([
            ("action_id", Json::from(action.to_string())),
            ("approved_args_digest", Json::from(approved)),
            ("observed_args_digest", Json::from(observed)),
            ("resolution", Json::from(drift.resolution.as_str())),
            (
                "tool_name",
                Json::from(call.map(|call| call.tool.name.as_str())),
            ),
        ]);
        let error = ErrorRaised {
            call_id: call.map(|call| call.id.as_str().to_owned()),
            code: Some(ARGUMENT_DRIFT.to_owned()),
            message: Some(message),
            ..ErrorRaised::default()
        };
        let event = (EventType::ErrorRaised, Payload::ErrorRaised(error));
        let change = Change::note(entry, now);
        let recorded = self.record_events(&standing.row.scope, now, vec![event], change)?;
        Ok(Drifted {
            action,
            drift,
            event: recorded.hash(),
        })
    }

    /// The denied action that a proposal takes up again: the same tool, with the arguments that
    /// differed from what was approved.
    pub(crate) fn drifted_action(
        &self,
        proposal: &Proposal<'_>,
    ) -> Result<Option<ActionId>, Fault> {
        let reader = self.store().reader();
        let mut open = reader.open_approvals(proposal.scope)?.into_iter();
        // The approval that a call differed from stays unused. Where there is none, nothing drifted.
        if !open.any(|row| row.state == State::Approved) {
            return Ok(None);
        }
        let Ok(args) = Arguments::new(proposal.args.clone()) else {
            return Ok(None);
        };
        let filter = Filter {
            event_type: Some(EventType::ErrorRaised),
            ..Filter::session(proposal.scope)
        };
        let observed = args.digest().to_string();
        for event in reader.last(&filter, MOST_ERRORS)?.iter().rev() {
            let line = Line::read(&event.line).map_err(|error| history(&error.to_string()))?;
            if !line
                .payload
                .windows(ARGUMENT_DRIFT.len())
                .any(|part| part == ARGUMENT_DRIFT.as_bytes())
            {
                continue;
            }
            let payload = reader.open_payload(event)?;
            let text = |member: &str| payload.get("message")?.get(member)?.as_str();
            if text("observed_args_digest") == Some(&observed)
                && text("tool_name") == Some(&proposal.tool_name)
            {
                return Ok(text("action_id").and_then(|id| id.parse().ok()));
            }
        }
        Ok(None)
    }
}

const ARGUMENT_DRIFT: &str = "approval:argument_drift";
/// How far back a denied action is looked for.
const MOST_ERRORS: usize = 64;
