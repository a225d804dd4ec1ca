//! What would be decided? Binds nobody.

use std::sync::Arc;

use countersign_canon::Json;
use countersign_event::EventType;
use countersign_policy::facts::Action;
use countersign_policy::{Policies, whatif};

use crate::Role;
use crate::call::Call;
use crate::events::verdict;
use crate::problem::Problem;
use crate::reply::Reply;

/// The operator's manifest decides wherever there is one; a caller's own is looked at if there is
/// none, or if it is the operator who asks.
pub(crate) async fn decide(call: Call) -> Result<Reply, Problem> {
    let question = Json::Object(call.object()?);
    let policies = call.api.engine.policies();
    let brings_own = question
        .get("manifest")
        .is_some_and(|manifest| !manifest.is_null());
    let is_loaded = policies.capability().manifest().is_some();
    let uses_own = brings_own && call.caller.role == Role::Operator;
    if is_loaded && !uses_own {
        return Ok(Reply::ok(&under(&question, &policies)));
    }
    // A manifest that was not seen before is compiled, which takes a while.
    let api = Arc::clone(&call.api);
    let ask = move || api.with_desk(|desk| desk.decide(&question).to_json());
    Ok(Reply::ok(&call.api.workers.run(ask).await?))
}

/// What the policies in force say.
fn under(question: &Json, policies: &Policies) -> Json {
    let null = Json::Null;
    let event = question.get("event").unwrap_or(&null);
    let event_type = event.get("event_type").and_then(Json::as_str);
    match event_type.and_then(|name| name.parse().ok()) {
        Some(EventType::ToolCallProposed) => {}
        Some(_) => return verdict("allow", "OK", None),
        None => return verdict("deny", UNDECLARED, None),
    }
    let payload = event.get("payload").unwrap_or(&null);
    let Some(tool_name) = payload.get("tool_name").and_then(Json::as_str) else {
        return verdict("deny", UNDECLARED, None);
    };
    let action = Action {
        tool_name,
        args: payload.get("args").unwrap_or(&null),
        sanitizer_key: payload.get("sanitizer_key").and_then(Json::as_str),
    };
    let snapshot = question.get("snapshot").unwrap_or(&null);
    whatif::answer(&action, snapshot, policies).to_json()
}

const UNDECLARED: &str = "PERMISSION_UNDECLARED";
