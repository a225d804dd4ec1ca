//! The calls of a recorded session that ran, with what they were given and what came back.

use std::collections::HashMap;

use countersign_canon::Json;
use countersign_event::payload::Payload;
use countersign_event::{Scope, fetching};
use countersign_store::{Opened, Reader};

use crate::Error;

/// A call that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCall {
    /// The event that proposed it.
    pub seq: u64,
    /// The call.
    pub call_id: String,
    /// The tool; the method, where that fetches something by itself.
    pub tool: String,
    /// Whether it is such a method.
    pub fetches: bool,
    /// The arguments that it was proposed with.
    pub args: Json,
    /// What the decision says that it can change: `read`, `mutate-local`, …
    pub side_effect: Option<String>,
    /// Whether the arguments that ran are not those that were proposed.
    pub rewritten: bool,
    /// What came back; nothing if nobody told.
    pub result: Option<Json>,
}

/// The calls of a session that ran, in the order in which they were proposed.
pub fn calls(scope: &Scope, reader: &Reader) -> Result<Vec<RecordedCall>, Error> {
    let mut found = Found::default();
    reader.history(scope, |event| {
        found.take(&event);
        Ok::<_, Error>(())
    })?;
    if found.events == 0 {
        return Err(Error::NoSession(Box::new(scope.clone())));
    }
    let mut calls: Vec<RecordedCall> = found.ran.into_values().collect();
    calls.sort_by_key(|call| call.seq);
    Ok(calls)
}

#[derive(Default)]
struct Found {
    events: u64,
    proposed: HashMap<String, RecordedCall>,
    ran: HashMap<String, RecordedCall>,
}

impl Found {
    fn take(&mut self, event: &Opened<'_>) {
        self.events += 1;
        let Some(call_id) = event.call_id else {
            return;
        };
        match event.payload {
            Payload::ToolCallProposed(payload) => {
                let tool = payload.tool_name.clone().unwrap_or_default();
                let definition = fetching(&tool).map(|digest| digest.to_string());
                let call = RecordedCall {
                    seq: event.seq,
                    call_id: call_id.to_owned(),
                    fetches: definition.is_some() && definition == payload.definition_digest,
                    tool,
                    args: payload.args.clone().unwrap_or(Json::Null),
                    side_effect: None,
                    rewritten: false,
                    result: None,
                };
                self.proposed.insert(call_id.to_owned(), call);
            }
            Payload::PolicyDecision(decision) => {
                if let Some(call) = self.proposed.get_mut(call_id) {
                    call.side_effect.clone_from(&decision.side_effect);
                    call.rewritten |= decision.verdict.as_deref() == Some("transform");
                }
            }
            Payload::ToolCallExecuted(_) => {
                if let Some(call) = self.proposed.remove(call_id) {
                    self.ran.insert(call_id.to_owned(), call);
                }
            }
            Payload::ToolResult(result) => {
                if let Some(call) = self.ran.get_mut(call_id) {
                    call.result.clone_from(&result.content);
                }
            }
            _ => {}
        }
    }
}
