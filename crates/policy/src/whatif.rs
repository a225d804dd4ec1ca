//! The stateless question: what would be decided about this event, in this state, under this
//! manifest? The caller brings all three, so the answer binds nobody.

use countersign_canon::Json;

use crate::capability::{Capability, Constraints};
use crate::facts::{Action, Facts, State, Surroundings};
use crate::manifest::Manifest;
use crate::matcher::Link;

/// The answer, in the words of the decision API.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Answer {
    /// `allow`, `deny` or `require_approval`.
    pub outcome: &'static str,
    /// The reason code.
    pub reason: String,
    /// What an allowed call must keep to.
    pub constraints: Option<Constraints>,
}

/// Answers one `{event, snapshot, manifest}` object.
pub fn decide(request: &Json) -> Answer {
    decide_with(request, &mut |manifest| {
        Capability::new(Some(manifest)).map_err(|_| INVALID_MANIFEST)
    })
}

/// The same, with somebody who keeps compiled manifests.
pub fn decide_with(
    request: &Json,
    compile: &mut dyn FnMut(Manifest) -> Result<Capability, &'static str>,
) -> Answer {
    read(request, compile).unwrap_or_else(|refused| refused)
}

/// Refusals of any kind come back as `Err`.
fn read(
    request: &Json,
    compile: &mut dyn FnMut(Manifest) -> Result<Capability, &'static str>,
) -> Result<Answer, Answer> {
    let event = request.get("event").filter(|event| !event.is_null());
    let event_type = event.and_then(|event| event.get("event_type"));
    match event_type.map(|event_type| event_type.as_str().unwrap_or_default()) {
        Some("TOOL_CALL_PROPOSED") => {}
        Some(other) if other.parse::<countersign_event::EventType>().is_ok() => {
            return Ok(Answer { outcome: "allow", reason: "OK".to_owned(), constraints: None });
        }
        _ => return Err(deny("PERMISSION_UNDECLARED")),
    }
    let payload = event.and_then(|event| event.get("payload"));
    let manifest = request.get("manifest").unwrap_or(&Json::Null);
    let manifest = Manifest::partial(manifest).map_err(|_| deny(INVALID_MANIFEST))?;
    let tool = match payload.and_then(|payload| payload.get("tool_name")) {
        Some(Json::String(tool)) if manifest.tool(tool).is_some() => tool.as_str(),
        _ => return Err(deny("PERMISSION_UNDECLARED")),
    };
    let payload = payload.unwrap_or(&Json::Null);
    let snapshot = request.get("snapshot").unwrap_or(&Json::Null);
    let state = state(snapshot, payload.get("sanitizer_key"))?;
    let action = Action {
        tool_name: tool,
        args: payload.get("args").unwrap_or(&Json::Null),
        sanitizer_key: payload.get("sanitizer_key").and_then(Json::as_str),
    };
    let surroundings = Surroundings { examine: &|_| Link::No, base: None };
    let facts = Facts::of(&action, state, &surroundings, Some(&manifest));
    let judgement = compile(manifest).map_err(deny)?.judge(&facts);
    let decision = judgement.verdict.decision();
    Ok(Answer {
        outcome: decision.outcome(),
        reason: judgement.verdict.reason().unwrap_or_default().to_owned(),
        constraints: judgement.constraints,
    })
}

/// The caller's snapshot, read strictly. One that is absent has used up everything.
fn state(snapshot: &Json, key: Option<&Json>) -> Result<State, Answer> {
    let Json::Object(members) = snapshot else {
        return Err(deny(if snapshot.is_null() { "BUDGET_EXCEEDED" } else { INVALID_SNAPSHOT }));
    };
    let count = |name: &str| match members.get(name) {
        None => Ok(0),
        Some(count) => count.as_u64().ok_or_else(|| deny(INVALID_SNAPSHOT)),
    };
    Ok(State {
        steps: count("steps_consumed")?,
        tool_calls: count("tool_calls_consumed")?,
        model_calls: count("model_calls_consumed")?,
        wall_time_ms: count("wall_time_ms")?,
        loop_violation: loop_violation(members.get("loop_violation")),
        tainted: match members.get("is_tainted") {
            None => false,
            Some(Json::Bool(tainted)) => *tainted,
            Some(_) => return Err(deny(INVALID_SNAPSHOT)),
        },
        sanitized: sanitized(members.get("sanitized_keys"), key),
    })
}

/// Whatever is there and not empty is a violation.
fn loop_violation(given: Option<&Json>) -> String {
    match given {
        None | Some(Json::Null) => String::new(),
        Some(Json::String(name)) => name.clone(),
        Some(_) => "LOOP_DETECTED".to_owned(),
    }
}

fn sanitized(keys: Option<&Json>, key: Option<&Json>) -> bool {
    let key = key.and_then(Json::as_str).filter(|key| !key.is_empty());
    let keys = keys.and_then(Json::as_array).unwrap_or_default();
    key.is_some_and(|key| keys.iter().any(|known| known.as_str() == Some(key)))
}

fn deny(reason: &str) -> Answer {
    Answer { outcome: "deny", reason: reason.to_owned(), constraints: None }
}

const INVALID_MANIFEST: &str = "INVALID_MANIFEST";
const INVALID_SNAPSHOT: &str = "INVALID_SNAPSHOT";
