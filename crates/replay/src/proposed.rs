//! An action as the log has it.

use std::str::FromStr as _;

use countersign_canon::{Digest, Json};
use countersign_event::payload::ToolCallProposed;
use countersign_policy::matcher::{Link, NormalPath};
use countersign_policy::{Case, Hearing, Policies, Ruling};
use countersign_session::Snapshot;

/// A recorded proposal: what a decision depends on, beside the state before it.
#[derive(Clone)]
pub(crate) struct Proposed {
    pub(crate) seq: u64,
    pub(crate) ts_unix_ms: u64,
    pub(crate) tool_name: String,
    pub(crate) agent_id: Option<String>,
    pub(crate) server: Option<String>,
    definition: Option<Digest>,
    sanitizer_key: Option<String>,
    args: Json,
}

impl Proposed {
    pub(crate) fn new(payload: &ToolCallProposed, seq: u64, ts_unix_ms: u64) -> Self {
        Self {
            seq,
            ts_unix_ms,
            tool_name: payload.tool_name.clone().unwrap_or_default(),
            agent_id: payload.agent_id.clone(),
            server: payload.server.clone(),
            definition: payload
                .definition_digest
                .as_deref()
                .and_then(|digest| Digest::from_str(digest).ok()),
            sanitizer_key: payload.sanitizer_key.clone(),
            args: payload.args.clone().unwrap_or(Json::Null),
        }
    }

    /// The same call with other arguments, at another time: what somebody made of it.
    pub(crate) fn edited(&self, args: Json, seq: u64, ts_unix_ms: u64) -> Self {
        Self {
            seq,
            ts_unix_ms,
            args,
            ..self.clone()
        }
    }

    /// What policies say about it. The links of the file system are those that the first decision met.
    pub(crate) fn decide(
        &self,
        policies: &Policies,
        before: &Snapshot,
        links: Option<&Json>,
        hearing: &Hearing,
    ) -> Result<Ruling, countersign_canon::Error> {
        let case = Case {
            agent: self.agent_id.as_deref(),
            tool_name: &self.tool_name,
            args: &self.args,
            server: self.server.as_deref(),
            definition: self.definition,
            sanitizer_key: self.sanitizer_key.as_deref(),
            seq: before.counters().events,
            now_unix_ms: self.ts_unix_ms,
            snapshot: before,
        };
        policies.decide(&case, &|path| link(path, links), hearing)
    }
}

fn link(path: &NormalPath, links: Option<&Json>) -> Link {
    match links.and_then(|links| links.get(path.as_str())) {
        None => Link::No,
        Some(target) => match target.as_str() {
            Some(target) => Link::To(target.to_owned()),
            None => Link::Unknown,
        },
    }
}
