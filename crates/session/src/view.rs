//! What policies see of a snapshot.

use countersign_canon::Json;

use crate::{Call, LoopRules, LoopViolation};

/// What a manifest says about a session.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// When repetition counts as a loop.
    pub loops: &'a LoopRules,
    /// Whether the output of a tool is trusted, by the server that offers it, if one does, and its name.
    pub trusted_tools: &'a dyn Fn(Option<&str>, &str) -> bool,
}

/// A call that is about to be proposed.
#[derive(Debug, Clone, Copy)]
pub struct Next<'a> {
    /// The call.
    pub call: &'a Call,
    /// When it is proposed.
    pub ts_unix_ms: u64,
}

/// The state of a session under the terms of a manifest, with the names that policies use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Model calls and tool calls so far.
    pub steps_consumed: u64,
    /// Tool calls so far.
    pub tool_calls_consumed: u64,
    /// Model calls so far.
    pub model_calls_consumed: u64,
    /// Time since the first event.
    pub wall_time_ms: u64,
    /// The loop that the newest call makes.
    pub loop_violation: Option<LoopViolation>,
    /// Whether untrusted content was taken in.
    pub is_tainted: bool,
    /// The information labels of everything that tools gave, in code point order.
    pub labels: Vec<String>,
    /// Keys of text that was made safe, in code point order. A key that is held by its digest only is
    /// not among them.
    pub sanitized_keys: Vec<String>,
}

impl View {
    /// The flat object that policies get. `loop_violation` is the name of the rule, or empty.
    pub fn to_json(&self) -> Json {
        let loop_violation = self
            .loop_violation
            .as_ref()
            .map_or("", |found| found.kind.as_str());
        Json::object([
            ("is_tainted", self.is_tainted.into()),
            ("labels", texts(&self.labels)),
            ("loop_violation", loop_violation.into()),
            ("model_calls_consumed", self.model_calls_consumed.into()),
            ("sanitized_keys", texts(&self.sanitized_keys)),
            ("steps_consumed", self.steps_consumed.into()),
            ("tool_calls_consumed", self.tool_calls_consumed.into()),
            ("wall_time_ms", self.wall_time_ms.into()),
        ])
    }
}

fn texts(texts: &[String]) -> Json {
    Json::Array(texts.iter().map(|text| Json::from(text.as_str())).collect())
}
