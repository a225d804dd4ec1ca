//! Where in its life an agent can be stopped.

use std::fmt;
use std::str::FromStr;

/// One of the eight points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// Before the agent does anything.
    AgentStartup,
    /// Something came in.
    Input,
    /// Before a model is asked.
    PreModelCall,
    /// After a model has answered.
    PostModelCall,
    /// Before a tool is called.
    PreToolCall,
    /// After a tool has answered.
    PostToolCall,
    /// Before something goes out.
    Output,
    /// The agent ends.
    AgentShutdown,
}

impl Point {
    /// Every point, in the order of an agent's life.
    pub const ALL: [Self; 8] = [
        Self::AgentStartup,
        Self::Input,
        Self::PreModelCall,
        Self::PostModelCall,
        Self::PreToolCall,
        Self::PostToolCall,
        Self::Output,
        Self::AgentShutdown,
    ];

    /// The name in manifests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentStartup => "agent_startup",
            Self::Input => "input",
            Self::PreModelCall => "pre_model_call",
            Self::PostModelCall => "post_model_call",
            Self::PreToolCall => "pre_tool_call",
            Self::PostToolCall => "post_tool_call",
            Self::Output => "output",
            Self::AgentShutdown => "agent_shutdown",
        }
    }

    /// Whether a tool is called there.
    pub const fn has_tool(self) -> bool {
        matches!(self, Self::PreToolCall | Self::PostToolCall)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is no point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not one of agent_startup, input, pre_model_call, post_model_call, pre_tool_call, post_tool_call, output, agent_shutdown"
)]
pub struct UnknownPoint;

impl FromStr for Point {
    type Err = UnknownPoint;

    fn from_str(name: &str) -> Result<Self, UnknownPoint> {
        Self::ALL
            .into_iter()
            .find(|point| point.as_str() == name)
            .ok_or(UnknownPoint)
    }
}
