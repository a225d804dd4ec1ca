//! The order that events of one call, approval or hand-off must follow.
//!
//! Calls run in parallel, so their events interleave; the rules look at one call at a time. A call
//! is tied together by its `call_id`. Events that carry no id are counted instead: such a result
//! needs an execution without an id that has no result yet.
//!
//! ```text
//! tool   PROPOSED ─▶ (APPROVAL_REQUESTED ─▶ APPROVAL_DECIDED)* ─▶ ALLOWED ─▶ EXECUTED ─▶ RESULT
//!            └────────────────────┴───────────────────────────────┴─▶ DENIED
//! model  STARTED ─▶ FINISHED        hand-off  REQUESTED ─▶ COMPLETED
//! ```
//!
//! `POLICY_DECISION` about a call comes after its proposal and before its end; memory, checkpoint,
//! sanitising and error events may come at any time; nothing follows `TERMINATION`.

mod calls;

use std::collections::HashMap;

use calls::Calls;

use crate::{EventType, Refs};

/// What one session has seen so far, as far as order is concerned.
#[derive(Debug, Clone, Default)]
pub struct Order {
    tools: Calls<Tool>,
    models: Calls<Model>,
    handoffs: Calls<Handoff>,
    /// Each approval, with the call it was requested for.
    approvals: HashMap<Box<str>, Option<Box<str>>>,
    approvals_requested: u64,
    terminated: bool,
}

/// Why an event may not come now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// The session is over.
    #[error("{0} after TERMINATION: the session is closed")]
    Terminated(EventType),
    /// The id was used by an earlier call.
    #[error("{event_type} reuses the id `{}`", id.escape_debug())]
    Reused {
        /// The event.
        event_type: EventType,
        /// The id.
        id: String,
    },
    /// The event that must come first has not come, or something else has come since.
    #[error("{event_type}{id} needs {needs} first", id = named(id))]
    Misplaced {
        /// The event.
        event_type: EventType,
        /// The id it carries.
        id: Option<String>,
        /// What must come first.
        needs: &'static str,
    },
}

impl Order {
    /// Takes the event into account, or refuses it and stays as it was.
    pub fn admit(&mut self, event_type: EventType, refs: &Refs<'_>) -> Result<(), OrderError> {
        if self.terminated {
            return Err(OrderError::Terminated(event_type));
        }
        let call = refs.call_id.as_deref();
        match event_type {
            EventType::ModelCallStarted => self.models.begin(Model::Started, event_type, call),
            EventType::ModelCallFinished => self.models.step(
                &[Model::Started],
                Model::Finished,
                event_type,
                call,
                "an open MODEL_CALL_STARTED",
            ),
            EventType::ToolCallProposed => self.tools.begin(Tool::Proposed, event_type, call),
            EventType::ToolCallAllowed => self.tools.step(
                &[Tool::Proposed, Tool::Judged],
                Tool::Allowed,
                event_type,
                call,
                "a TOOL_CALL_PROPOSED that is neither held nor decided",
            ),
            EventType::ToolCallDenied => self.tools.step(
                &[Tool::Proposed, Tool::Held, Tool::Judged, Tool::Allowed],
                Tool::Denied,
                event_type,
                call,
                "a TOOL_CALL_PROPOSED that has not run",
            ),
            EventType::ToolCallExecuted => self.tools.step(
                &[Tool::Allowed],
                Tool::Executed,
                event_type,
                call,
                "a TOOL_CALL_ALLOWED",
            ),
            EventType::ToolResult => self.tools.step(
                &[Tool::Executed],
                Tool::Answered,
                event_type,
                call,
                "a TOOL_CALL_EXECUTED without a result",
            ),
            EventType::PolicyDecision => self.tools.expect(
                // Of a call that has run, the result is decided about before it goes on.
                &[Tool::Proposed, Tool::Held, Tool::Judged, Tool::Executed],
                event_type,
                call,
                "a TOOL_CALL_PROPOSED that is not yet decided",
            ),
            EventType::ApprovalRequested => self.request_approval(refs),
            EventType::ApprovalDecided => self.decide_approval(refs),
            EventType::HandoffRequested => {
                self.handoffs
                    .begin(Handoff::Requested, event_type, refs.context_id.as_deref())
            }
            EventType::HandoffCompleted => self.handoffs.step(
                &[Handoff::Requested],
                Handoff::Completed,
                event_type,
                refs.context_id.as_deref(),
                "an open HANDOFF_REQUESTED",
            ),
            EventType::Termination => {
                self.terminated = true;
                Ok(())
            }
            EventType::MemoryRead
            | EventType::MemoryWrite
            | EventType::CheckpointCreated
            | EventType::ErrorRaised
            | EventType::SanitizedText => Ok(()),
        }
    }

    /// Whether the session is over.
    pub fn is_terminated(&self) -> bool {
        self.terminated
    }

    fn request_approval(&mut self, refs: &Refs<'_>) -> Result<(), OrderError> {
        let event_type = EventType::ApprovalRequested;
        let approval = refs.approval_id.as_deref();
        if let Some(id) = approval.filter(|id| self.approvals.contains_key(*id)) {
            return Err(OrderError::Reused {
                event_type,
                id: id.to_owned(),
            });
        }
        if let Some(call) = refs.call_id.as_deref() {
            self.tools.step(
                &[Tool::Proposed, Tool::Held, Tool::Judged],
                Tool::Held,
                event_type,
                Some(call),
                "a TOOL_CALL_PROPOSED that is not yet decided",
            )?;
        }
        let call = refs.call_id.as_deref().map(Box::from);
        self.approvals
            .extend(approval.map(|id| (Box::from(id), call)));
        self.approvals_requested += 1;
        Ok(())
    }

    fn decide_approval(&mut self, refs: &Refs<'_>) -> Result<(), OrderError> {
        let event_type = EventType::ApprovalDecided;
        let approval = refs.approval_id.as_deref();
        let call = refs.call_id.as_deref();
        let requested_for = match approval {
            Some(id) => self.approvals.get(id).map(Option::as_deref),
            None => (self.approvals_requested > 0).then_some(call),
        };
        let requested_for = requested_for
            .ok_or_else(|| misplaced(event_type, approval, "its APPROVAL_REQUESTED"))?;
        let needs = "an APPROVAL_REQUESTED for this call";
        // SECURITY: what was decided about one call says nothing about another.
        if call.is_some() && call != requested_for {
            return Err(misplaced(event_type, call, needs));
        }
        match requested_for {
            Some(call) => self.tools.step(
                &[Tool::Held, Tool::Judged],
                Tool::Judged,
                event_type,
                Some(call),
                needs,
            ),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Proposed,
    /// An approval was requested.
    Held,
    /// An approval was decided, either way.
    Judged,
    Allowed,
    Denied,
    Executed,
    Answered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Model {
    Started,
    Finished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handoff {
    Requested,
    Completed,
}

fn misplaced(event_type: EventType, id: Option<&str>, needs: &'static str) -> OrderError {
    OrderError::Misplaced {
        event_type,
        id: id.map(str::to_owned),
        needs,
    }
}

fn named(id: &Option<String>) -> String {
    id.as_ref()
        .map(|id| format!(" for `{}`", id.escape_debug()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
