//! The latest of what happened.

use crate::Name;
use crate::form::record;

/// The latest outcomes. With calls in parallel they may belong to different calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastOutcomes {
    /// The model call that was started last.
    pub model_call_id: Option<Name>,
    /// The tool call that was proposed last.
    pub tool_call_id: Option<Name>,
    /// Its tool.
    pub tool_name: Option<Name>,
    /// Whether the last tool result was an error.
    pub tool_was_error: bool,
    /// What policy said last: the `outcome` of a decision, or `deny` for a call that was denied by
    /// whomever.
    pub policy_outcome: Option<Name>,
}

record!(LastOutcomes {
    model_call_id,
    policy_outcome,
    tool_call_id,
    tool_name,
    tool_was_error
});
