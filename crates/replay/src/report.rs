//! What was found different.

use countersign_canon::Json;
use countersign_event::Scope;

/// How a session went when it was decided again.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Report {
    /// The session.
    pub scope: Scope,
    /// How it was run again.
    pub mode: Mode,
    /// Calls of models and tools.
    pub steps: u64,
    /// Events that were folded.
    pub events: u64,
    /// Decisions that were taken again.
    pub decisions: u64,
    /// Decisions that a door took by itself, which no policy was asked about.
    pub decided_at_the_door: u64,
    /// What came out differently, in the order of the log.
    pub diffs: Vec<Diff>,
    /// What was done again, step by step; the first ten thousand steps.
    pub timeline: Vec<Taken>,
}

/// How a session is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// From the log alone.
    Exact,
    /// Against live servers.
    Live,
}

impl Mode {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Live => "live",
        }
    }
}

/// One step, then and now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The event.
    pub seq: u64,
    /// When it happened.
    pub ts_unix_ms: u64,
    /// The tool.
    pub tool: String,
    /// What was, in a word.
    pub recorded: String,
    /// What is.
    pub replayed: String,
    /// Whether nothing differs.
    pub same: bool,
}

/// Something that came out differently.
#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    /// The event.
    pub seq: u64,
    /// What differs: `snapshot_hash`, `policy_decision` or `tool_result`.
    pub field: &'static str,
    /// Where in it, as a JSON pointer; empty for all of it.
    pub pointer: String,
    /// What the log says.
    pub recorded: Json,
    /// What came out.
    pub replayed: Json,
    /// What may be behind it.
    pub cause: String,
}

impl Report {
    /// Whether everything came out as it was recorded.
    pub fn is_identical(&self) -> bool {
        self.diffs.is_empty()
    }

    /// The report as a document.
    pub fn to_json(&self) -> Json {
        Json::object([
            ("tenant_id", Json::from(self.scope.tenant.as_str())),
            ("session_id", Json::from(self.scope.session.as_str())),
            ("mode", Json::from(self.mode.as_str())),
            ("steps_replayed", Json::from(self.steps)),
            ("events_replayed", Json::from(self.events)),
            ("decisions_replayed", Json::from(self.decisions)),
            ("decided_at_the_door", Json::from(self.decided_at_the_door)),
            ("identical", Json::Bool(self.is_identical())),
            (
                "diffs",
                Json::Array(self.diffs.iter().map(Diff::to_json).collect()),
            ),
            (
                "timeline",
                Json::Array(self.timeline.iter().map(Taken::to_json).collect()),
            ),
        ])
    }

    /// Adds a step to the timeline, as long as there is room.
    pub fn took(&mut self, taken: Taken) {
        if self.timeline.len() < MOST_STEPS {
            self.timeline.push(taken);
        }
    }
}

impl Taken {
    fn to_json(&self) -> Json {
        Json::object([
            ("seq", Json::from(self.seq)),
            ("ts_unix_ms", Json::from(self.ts_unix_ms)),
            ("tool", Json::from(self.tool.as_str())),
            ("recorded", Json::from(self.recorded.as_str())),
            ("replayed", Json::from(self.replayed.as_str())),
            ("same", Json::from(self.same)),
        ])
    }
}

impl Diff {
    fn to_json(&self) -> Json {
        Json::object([
            ("seq", Json::from(self.seq)),
            ("field", Json::from(self.field)),
            ("pointer", Json::from(self.pointer.as_str())),
            ("recorded", self.recorded.clone()),
            ("replayed", self.replayed.clone()),
            ("cause", Json::from(self.cause.as_str())),
        ])
    }
}

const MOST_STEPS: usize = 10_000;
