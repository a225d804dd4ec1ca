//! Events of one call, put together.

use std::collections::HashMap;

use countersign_canon::Json;

use crate::look::Look;

/// What an agent wanted, and what came of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Action<'a> {
    pub(crate) seq: u64,
    pub(crate) kind: &'a str,
    pub(crate) title: &'a str,
    pub(crate) server: Option<&'a str>,
    pub(crate) began: u64,
    pub(crate) ended: Option<u64>,
    pub(crate) last: u64,
    pub(crate) outcome: Option<&'a str>,
    pub(crate) reason: Option<&'a str>,
    pub(crate) side_effect: Option<&'a str>,
    pub(crate) approval: Option<&'a str>,
    pub(crate) asked: Option<u64>,
    pub(crate) answered: Option<u64>,
    pub(crate) approved: Option<bool>,
    pub(crate) decided_by: Option<&'a str>,
    pub(crate) is_error: Option<bool>,
}

impl Action<'_> {
    pub(crate) fn took(&self) -> u64 {
        self.last.saturating_sub(self.began)
    }
}

/// One entry a call, in the order in which they came; what belongs to no call stands alone.
pub(crate) fn actions(events: &[Json]) -> Vec<Action<'_>> {
    let mut all: Vec<Action<'_>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for event in events {
        let look = Look::at(event);
        let payload = look.get("payload");
        let call = payload.maybe_text("call_id");
        let known = call.and_then(|call| places.get(call).copied());
        let place = known.unwrap_or_else(|| {
            all.push(begun(look));
            let place = all.len() - 1;
            if let Some(call) = call {
                places.insert(call, place);
            }
            place
        });
        if let Some(action) = all.get_mut(place) {
            follow(action, look);
        }
    }
    all
}

fn begun(look: Look<'_>) -> Action<'_> {
    let payload = look.get("payload");
    let members = [
        "tool_name",
        "model_id",
        "memory_key",
        "to_agent",
        "checkpoint_id",
        "reason_code",
        "code",
        "intervention_point",
    ];
    let title = members
        .iter()
        .find_map(|member| payload.maybe_text(member))
        .unwrap_or_else(|| look.text("event_type"));
    let began = look.number("ts_unix_ms").unwrap_or_default();
    Action {
        seq: look.number("seq").unwrap_or_default(),
        kind: look.text("event_type"),
        title,
        server: payload.maybe_text("server"),
        began,
        last: began,
        ..Action::default()
    }
}

fn follow<'a>(action: &mut Action<'a>, look: Look<'a>) {
    let payload = look.get("payload");
    let at = look.number("ts_unix_ms").unwrap_or_default();
    action.last = action.last.max(at);
    match look.text("event_type") {
        "POLICY_DECISION" => {
            action.outcome = payload.maybe_text("outcome");
            action.reason = payload
                .maybe_text("reason")
                .or(payload.maybe_text("reason_code"));
            action.side_effect = payload.maybe_text("side_effect");
        }
        "TOOL_CALL_DENIED" => {
            action.reason = payload.maybe_text("reason_code").or(action.reason);
            action.ended = Some(at);
        }
        "APPROVAL_REQUESTED" => {
            action.approval = payload.maybe_text("approval_id");
            action.asked = Some(at);
        }
        "APPROVAL_DECIDED" => {
            action.approved = payload.get("approved").0.and_then(Json::as_bool);
            action.decided_by = payload.maybe_text("decided_by");
            action.answered = Some(at);
        }
        "TOOL_RESULT" => {
            action.is_error = payload.get("is_error").0.and_then(Json::as_bool);
            action.ended = Some(at);
        }
        "MODEL_CALL_FINISHED" => action.ended = Some(at),
        _ => {}
    }
}
