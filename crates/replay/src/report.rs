//! What was found different.

use countersign_canon::Json;
use countersign_event::Scope;

/// How a session went when it was decided again.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Report {
    /// The session.
    pub scope: Scope,
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
}

/// Something that came out differently.
#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    /// The event.
    pub seq: u64,
    /// What differs: `snapshot_hash` or `policy_decision`.
    pub field: &'static str,
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
            ("mode", Json::from("exact")),
            ("steps_replayed", Json::from(self.steps)),
            ("events_replayed", Json::from(self.events)),
            ("decisions_replayed", Json::from(self.decisions)),
            ("decided_at_the_door", Json::from(self.decided_at_the_door)),
            ("identical", Json::Bool(self.is_identical())),
            (
                "diffs",
                Json::Array(self.diffs.iter().map(Diff::to_json).collect()),
            ),
        ])
    }
}

impl Diff {
    fn to_json(&self) -> Json {
        Json::object([
            ("seq", Json::from(self.seq)),
            ("field", Json::from(self.field)),
            ("recorded", self.recorded.clone()),
            ("replayed", self.replayed.clone()),
            ("cause", Json::from(self.cause.as_str())),
        ])
    }
}
