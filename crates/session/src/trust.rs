//! Hand-offs between agents, and how much trust they leave.

use crate::Name;
use crate::form::{record, words};

/// How far the acting agent is trusted.
///
/// A session starts with full trust. Who takes over cannot be trusted more than who hands over, so a
/// hand-off by an agent that has taken in untrusted content leaves reduced trust. Nothing in the
/// session raises it again: the content has been passed on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// The session was handed over after it had taken in untrusted content.
    Reduced,
    /// No untrusted content came from another agent.
    #[default]
    Full,
}

/// The latest hand-off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handoff {
    /// Whether the other agent has yet to take over.
    pub active: bool,
    /// Who hands over.
    pub from_agent: Option<Name>,
    /// Who takes over.
    pub to_agent: Option<Name>,
    /// The id that ties request and completion together.
    pub context_id: Option<Name>,
    /// The event that asked for it.
    pub seq: u64,
}

record!(Handoff {
    active,
    context_id,
    from_agent,
    seq,
    to_agent
});

words!(Trust { Reduced = "reduced", Full = "full" });
