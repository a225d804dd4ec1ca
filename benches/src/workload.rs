//! Events as an agent makes them: a model call, a tool call, its decision and its result, again and
//! again. Lines have 400 to 750 bytes; four of seven events have sealed content.

use countersign_canon::Json;
use countersign_event::payload::{
    ModelCallFinished, ModelCallStarted, PolicyDecision, ToolCallAllowed, ToolCallExecuted,
    ToolCallProposed, ToolResult,
};
use countersign_event::{EventType, Payload, Scope};
use countersign_store::Draft;

use crate::measure::Result;

/// Sessions that take turns, each going on where it was.
pub(crate) struct Workload {
    scopes: Vec<Scope>,
    /// How many events were made so far.
    made: usize,
}

impl Workload {
    pub(crate) fn new(sessions: usize) -> Result<Self> {
        let scope = |number| Scope::new("acme-support", format!("ses_{number:024x}"));
        let scopes = (0..sessions)
            .map(scope)
            .collect::<std::result::Result<_, _>>()?;
        Ok(Self { scopes, made: 0 })
    }
}

impl Iterator for Workload {
    type Item = Draft;

    fn next(&mut self) -> Option<Draft> {
        let sessions = self.scopes.len();
        let scope = self.scopes.get(self.made % sessions)?.clone();
        let (event_type, payload) = event(self.made / sessions);
        self.made += 1;
        Some(Draft {
            scope,
            ts_unix_ms: 1_760_000_000_000 + self.made as u64,
            event_type,
            payload,
        })
    }
}

/// One event of a session, by its number.
fn event(number: usize) -> (EventType, Payload) {
    let turn = number / 7;
    let call_id = Some(format!("call_{turn:020x}"));
    let model_id = Some("sample-model-2026-10-01".to_owned());
    let tool_name = Some("tickets.search".to_owned());
    match number % 7 {
        0 => (
            EventType::ModelCallStarted,
            Payload::ModelCallStarted(ModelCallStarted {
                call_id,
                model_id,
                provider: Some("example".to_owned()),
                agent_id: Some("support-agent".to_owned()),
                prompt_tokens: Some(1200 + turn as u64 % 400),
                prompt: Some(Json::from(PROSE.repeat(4))),
                ..Default::default()
            }),
        ),
        1 => (
            EventType::ModelCallFinished,
            Payload::ModelCallFinished(ModelCallFinished {
                call_id,
                model_id,
                completion_tokens: Some(86),
                total_tokens: Some(1286),
                finish_reason: Some("tool_use".to_owned()),
                latency_ms: Some(740),
                content: Some(Json::from(PROSE.repeat(2))),
                ..Default::default()
            }),
        ),
        2 => (
            EventType::ToolCallProposed,
            Payload::ToolCallProposed(ToolCallProposed {
                call_id,
                tool_name,
                server: Some("tickets".to_owned()),
                agent_id: Some("support-agent".to_owned()),
                args: Some(Json::object([
                    ("query", Json::from(format!("status:open customer:{turn}"))),
                    ("limit", Json::from(25u32)),
                    (
                        "fields",
                        Json::from(vec![Json::from("id"), Json::from("subject")]),
                    ),
                ])),
                ..Default::default()
            }),
        ),
        3 => (
            EventType::PolicyDecision,
            Payload::PolicyDecision(PolicyDecision {
                call_id,
                outcome: Some("allow".to_owned()),
                reason_code: Some("OK".to_owned()),
                policy_ref: Some("default@4".to_owned()),
                policy_digest: Some(DIGEST.to_owned()),
                snapshot_hash: Some(DIGEST.to_owned()),
                constraints: Some([("max_bytes".to_owned(), 65_536)].into()),
                ..Default::default()
            }),
        ),
        4 => (
            EventType::ToolCallAllowed,
            Payload::ToolCallAllowed(ToolCallAllowed {
                call_id,
                policy_ref: Some("default@4".to_owned()),
                action_digest: Some(DIGEST.to_owned()),
                ..Default::default()
            }),
        ),
        5 => (
            EventType::ToolCallExecuted,
            Payload::ToolCallExecuted(ToolCallExecuted {
                call_id,
                started_ms: Some(1_760_000_000_000),
                action_digest: Some(DIGEST.to_owned()),
                ..Default::default()
            }),
        ),
        _ => (
            EventType::ToolResult,
            Payload::ToolResult(ToolResult {
                call_id,
                tool_name,
                is_error: Some(false),
                latency_ms: Some(31),
                content_bytes: Some(520),
                content: Some(Json::object([
                    ("count", Json::from(2u32)),
                    (
                        "first",
                        Json::object([
                            ("id", Json::from(turn as u64)),
                            ("subject", Json::from(PROSE)),
                        ]),
                    ),
                    (
                        "second",
                        Json::object([("id", Json::from(7u32)), ("subject", Json::from(PROSE))]),
                    ),
                ])),
                ..Default::default()
            }),
        ),
    }
}

const PROSE: &str = "The customer says that \"order 1042\" arrived broken, and asks for a refund or a \
    replacement before Friday; both parcels were checked in Zürich.\n";
const DIGEST: &str = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
