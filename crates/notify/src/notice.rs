//! What is told.

use countersign_canon::Json;

/// That something happened to an approval. Whoever wants to know more has to ask, and may have to say
/// who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Which approval.
    pub approval: String,
    /// The beginning of its plan hash, as every channel shows it.
    pub short_code: String,
    /// The tool.
    pub tool: String,
    /// Where it is in its life now.
    pub state: String,
    /// When this was, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Until when people may decide.
    pub decide_by_unix_ms: Option<u64>,
    /// Until when it may start, once that is known.
    pub execute_by_unix_ms: Option<u64>,
}

impl Notice {
    /// The body of the request. `id` tells one delivery from another.
    pub(crate) fn to_body(&self, id: &str) -> Vec<u8> {
        Json::object([
            ("approval_id", Json::from(self.approval.as_str())),
            ("at_ms", Json::from(self.at_unix_ms)),
            ("decide_by_ms", Json::from(self.decide_by_unix_ms)),
            ("execute_by_ms", Json::from(self.execute_by_unix_ms)),
            ("notice_id", Json::from(id)),
            ("plan_short_code", Json::from(self.short_code.as_str())),
            ("state", Json::from(self.state.as_str())),
            ("tool_name", Json::from(self.tool.as_str())),
        ])
        .to_sorted_ascii()
    }
}
