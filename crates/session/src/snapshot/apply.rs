//! What each event does to the snapshot.
//!
//! INVARIANT: everything that can fail comes before the first change, so an event is taken in full
//! or not at all.

use std::borrow::Cow;

use countersign_canon::{Error, Hash, Json};
use countersign_event::{EventType, Payload, payload};

use super::Snapshot;
use crate::calls::OpenCall;
use crate::progress::Outcome;
use crate::taint::Origin;
use crate::{Call, Fact, FactError, Handoff, Label, Name, Trust};

/// The declared members of a payload; none if it is not an object.
macro_rules! members {
    ($fact:expr, $name:ident) => {
        Cow::as_ref(&match $fact.payload {
            Payload::$name(members) => Cow::Borrowed(members),
            Payload::Opaque(_) => Cow::Owned(payload::$name::default()),
            _ => {
                let Fact {
                    seq, event_type, ..
                } = *$fact;
                return Err(FactError::Mismatch { seq, event_type });
            }
        })
    };
}

impl Snapshot {
    /// Takes the next event of the session into account.
    pub fn apply(&mut self, fact: &Fact<'_>) -> Result<(), FactError> {
        self.expects(fact)?;
        let seq = fact.seq;
        match fact.event_type {
            EventType::ModelCallStarted => self.start_model(members!(fact, ModelCallStarted)),
            EventType::ModelCallFinished => {
                self.finish_model(seq, members!(fact, ModelCallFinished))?;
            }
            EventType::ToolCallProposed => self.propose(seq, members!(fact, ToolCallProposed))?,
            EventType::ToolCallDenied => self.deny(seq, members!(fact, ToolCallDenied)),
            EventType::ToolResult => self.answer(seq, members!(fact, ToolResult))?,
            EventType::ErrorRaised => self.fail(seq, members!(fact, ErrorRaised))?,
            EventType::PolicyDecision => self.decide(seq, members!(fact, PolicyDecision)),
            EventType::MemoryRead => self.recall(seq, members!(fact, MemoryRead)),
            EventType::HandoffRequested => self.hand_over(seq, members!(fact, HandoffRequested)),
            EventType::HandoffCompleted => self.take_over(seq, members!(fact, HandoffCompleted)),
            EventType::SanitizedText => self.sanitize(seq, members!(fact, SanitizedText)),
            EventType::Termination => self.close(),
            EventType::ToolCallAllowed
            | EventType::ToolCallExecuted
            | EventType::ApprovalRequested
            | EventType::ApprovalDecided
            | EventType::MemoryWrite
            | EventType::CheckpointCreated => {}
        }
        self.counters.count_event(fact.ts_unix_ms);
        Ok(())
    }

    fn start_model(&mut self, started: &payload::ModelCallStarted) {
        self.counters.model_calls_consumed += 1;
        self.last.model_call_id = Name::of_option(started.call_id.as_deref());
    }

    fn finish_model(
        &mut self,
        seq: u64,
        finished: &payload::ModelCallFinished,
    ) -> Result<(), FactError> {
        let content = digest(finished.content.as_ref())?;
        self.progress.model_finished(seq, content);
        Ok(())
    }

    fn propose(&mut self, seq: u64, proposed: &payload::ToolCallProposed) -> Result<(), FactError> {
        let call = |tool: &String| Call::new(seq, tool, proposed.args.as_ref());
        let call = proposed.tool_name.as_ref().map(call).transpose()?;
        let call_id = Name::of_option(proposed.call_id.as_deref());

        self.counters.tool_calls_consumed += 1;
        self.last.tool_call_id = call_id.clone();
        self.last.tool_name = call.as_ref().map(|call| call.tool_name.clone());
        self.progress.tool_proposed();
        // A call without a tool is no repetition of anything.
        if let Some(call) = call {
            self.recent_calls.push(call.clone());
            if let Some(call_id) = call_id {
                let server = Name::of_option(proposed.server.as_deref());
                self.open_calls.open(call_id, OpenCall { call, server });
            }
        }
        Ok(())
    }

    fn deny(&mut self, seq: u64, denied: &payload::ToolCallDenied) {
        let call = self.open_calls.close(denied.call_id.as_deref());
        let reason = denied
            .reason_code
            .as_ref()
            .map(|code| Hash::of(code.as_bytes()));
        self.last.policy_outcome = Some(Name::of(DENY));
        self.progress
            .tool_finished(seq, call.map(|open| open.call), reason.map(Outcome::Denied));
    }

    fn answer(&mut self, seq: u64, result: &payload::ToolResult) -> Result<(), FactError> {
        let content = digest(result.content.as_ref())?;
        let call = self.open_calls.close(result.call_id.as_deref());
        let is_error = result.is_error.unwrap_or(false);

        self.take_in(origin(call.as_ref(), result.tool_name.as_deref()), seq);
        if self
            .labels
            .add(result.result_labels.as_deref().unwrap_or_default())
        {
            self.progress.changed(seq);
        }
        self.last.tool_was_error = is_error;
        let outcome = if is_error {
            Outcome::Error
        } else {
            Outcome::Content
        };
        let call = call.map(|open| open.call);
        self.progress.tool_finished(seq, call, content.map(outcome));
        Ok(())
    }

    /// A call that has no result. What went wrong is told in words that the tool may have chosen.
    fn fail(&mut self, seq: u64, error: &payload::ErrorRaised) -> Result<(), FactError> {
        let message = digest(error.message.as_ref())?;
        // One that concerns no call came from nobody but the recorder.
        if error.call_id.is_none() {
            return Ok(());
        }
        let call = self.open_calls.close(error.call_id.as_deref());
        self.take_in(origin(call.as_ref(), None), seq);
        self.last.tool_was_error = true;
        let call = call.map(|open| open.call);
        self.progress
            .tool_finished(seq, call, message.map(Outcome::Error));
        Ok(())
    }

    fn decide(&mut self, seq: u64, decision: &payload::PolicyDecision) {
        self.last.policy_outcome = Name::of_option(decision.outcome.as_deref());
        // What passed a point that is no tool call; the labels of a call come with its result.
        let labels = decision.result_labels.as_deref().unwrap_or_default();
        if self.labels.add(labels) {
            self.progress.changed(seq);
        }
    }

    fn recall(&mut self, seq: u64, read: &payload::MemoryRead) {
        let origin = Origin {
            label: Label::MemoryRead,
            name: Name::of_option(read.memory_key.as_deref()),
            server: None,
        };
        self.take_in(origin, seq);
    }

    fn take_in(&mut self, origin: Origin, seq: u64) {
        if self.taint.see(origin, seq) {
            self.progress.changed(seq);
        }
    }

    fn hand_over(&mut self, seq: u64, requested: &payload::HandoffRequested) {
        if self.taint.is_tainted() {
            self.trust = Trust::Reduced;
        }
        self.handoff = Some(Handoff {
            active: true,
            from_agent: Name::of_option(requested.from_agent.as_deref()),
            to_agent: Name::of_option(requested.to_agent.as_deref()),
            context_id: Name::of_option(requested.context_id.as_deref()),
            seq,
        });
        self.progress.changed(seq);
    }

    /// Ends the latest hand-off; earlier ones are not remembered.
    fn take_over(&mut self, seq: u64, completed: &payload::HandoffCompleted) {
        let context_id = Name::of_option(completed.context_id.as_deref());
        if let Some(handoff) = self
            .handoff
            .as_mut()
            .filter(|one| one.context_id == context_id)
        {
            handoff.active = false;
            self.progress.changed(seq);
        }
    }

    fn sanitize(&mut self, seq: u64, sanitized: &payload::SanitizedText) {
        // FAIL-CLOSED: an empty key would stand for every text.
        let key = sanitized.key.as_deref().filter(|key| !key.is_empty());
        if key.is_some_and(|key| self.sanitized_keys.register(Name::of(key), seq)) {
            self.progress.changed(seq);
        }
    }

    fn close(&mut self) {
        self.taint = Default::default();
        self.labels = Default::default();
        self.sanitized_keys = Default::default();
        self.closed = true;
    }
}

/// The tool that a result came from.
///
/// SECURITY: a result does not choose the tool it is trusted as. It is the tool that was proposed
/// under its call id, and unknown if there is none or if the result names another.
fn origin(open: Option<&OpenCall>, named: Option<&str>) -> Origin {
    let agrees = |open: &&OpenCall| named.is_none_or(|name| Name::of(name) == open.call.tool_name);
    let open = open.filter(agrees);
    Origin {
        label: Label::ToolOutput,
        name: open.map(|open| open.call.tool_name.clone()),
        server: open.and_then(|open| open.server.clone()),
    }
}

fn digest(content: Option<&Json>) -> Result<Option<Hash>, Error> {
    content
        .map(|content| Ok(Hash::of(&content.to_jcs()?)))
        .transpose()
}

/// The outcome of a decision that denies.
const DENY: &str = "deny";
