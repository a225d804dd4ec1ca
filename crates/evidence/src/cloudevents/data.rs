//! Which members of an event may leave, and how.

use countersign_canon::Json;
use countersign_event::EventType;
use countersign_redact::{Public, Record, Redacted, Redactor, Sensitive};

/// How a member leaves.
enum Class {
    /// As it is, as far as a name holds no secret.
    Public,
    /// As it is, if it is a hash, a digest or an id that we made.
    Made,
    /// Without secrets, generalised.
    Sensitive,
    /// Not at all; only that there was one.
    Forbidden,
}

/// The members of a payload that may leave, and whether one of them may hold something personal.
pub(super) fn of(payload: &Json, redactor: &Redactor) -> (Record, bool) {
    let mut record = Record::default();
    let mut personal = false;
    for (name, class) in MEMBERS {
        let Some(value) = payload.get(name) else {
            continue;
        };
        record = match class {
            Class::Public => match public(value, redactor) {
                Some(value) => record.public(name, value),
                None => record.sensitive(name, Sensitive::json(value, redactor)),
            },
            Class::Made => match made(value) {
                Some(made) => record.public(name, made),
                None => record.sensitive(name, Sensitive::json(value, redactor)),
            },
            Class::Sensitive => {
                personal = true;
                record.sensitive(name, Sensitive::general(value, redactor))
            }
            Class::Forbidden => record.forbidden(name),
        };
    }
    (record, personal)
}

/// A decision, in the form that others know.
pub(super) fn decision(record: Record, tool: &str, payload: &Json, redactor: &Redactor) -> Record {
    let outcome = payload.get("outcome").and_then(Json::as_str);
    let decision = match outcome {
        Some("allow") => "allow",
        Some("require_approval") => "requires_approval",
        // FAIL-CLOSED: whatever is not plainly something else was denied.
        _ => "deny",
    };
    let reason = payload.get("reason").or_else(|| payload.get("reason_code"));
    let reason = reason.and_then(Json::as_str).unwrap_or_default();
    record
        .public("tool", Public::name(tool, redactor))
        .public("decision", Public::word(decision))
        .public("reason_code", Public::name(reason, redactor))
}

/// The start of a run.
pub(super) fn started(name: &str, redactor: &Redactor) -> Record {
    Record::default()
        .public("profile_name", Public::name(name, redactor))
        .public("profile_version", Public::word("1"))
        .public("total_runs_aggregated", Public::count(1))
}

/// The end of a run.
pub(super) fn finished(record: Record, count: u64) -> Record {
    record
        .public("status", Public::word("finished"))
        .public("event_count", Public::count(count))
}

/// The record as data, with the names of what was dropped.
pub(super) fn closed(record: Record, event_type: Option<EventType>) -> Redacted<Json> {
    let dropped = record.dropped().to_vec();
    let record = match event_type {
        Some(event_type) => record.public("event_type", Public::word(event_type.as_str())),
        None => record,
    };
    let record = match dropped.is_empty() {
        true => record,
        false => record.public("dropped", Public::words(&dropped)),
    };
    record.into_json()
}

fn public(value: &Json, redactor: &Redactor) -> Option<Public> {
    match value {
        Json::String(text) => Some(Public::name(text, redactor)),
        Json::Bool(flag) => Some(Public::flag(*flag)),
        Json::Number(number) => number.as_u64().map(Public::count),
        _ => None,
    }
}

fn made(value: &Json) -> Option<Public> {
    let text = value.as_str()?;
    let digest = text.parse().ok().map(|digest| Public::digest(&digest));
    let hash = || text.parse().ok().map(|hash| Public::hash(&hash));
    digest.or_else(hash).or_else(|| Public::id(text))
}

/// Every member that the log knows. What is not in this table does not leave, not even its name.
const MEMBERS: &[(&str, Class)] = &[
    ("action_digest", Class::Made),
    ("agent_id", Class::Public),
    ("approval_id", Class::Made),
    ("approved", Class::Public),
    ("bytes_read", Class::Public),
    ("bytes_written", Class::Public),
    ("call_id", Class::Public),
    ("channel", Class::Public),
    ("checkpoint_id", Class::Public),
    ("code", Class::Public),
    ("completion_tokens", Class::Public),
    ("constraints", Class::Public),
    ("content_bytes", Class::Public),
    ("context_id", Class::Public),
    ("cycle_seqs", Class::Public),
    ("decided_by", Class::Public),
    ("expires_unix_ms", Class::Public),
    ("fatal", Class::Public),
    ("finish_reason", Class::Public),
    ("from_agent", Class::Public),
    ("is_error", Class::Public),
    ("key", Class::Public),
    ("latency_ms", Class::Public),
    ("memory_key", Class::Public),
    ("memory_store", Class::Public),
    ("method", Class::Public),
    ("model_id", Class::Public),
    ("outcome", Class::Public),
    ("parent_call_id", Class::Public),
    ("plan_hash", Class::Made),
    ("policy_digest", Class::Made),
    ("policy_ref", Class::Public),
    ("prompt_tokens", Class::Public),
    ("provider", Class::Public),
    ("reason", Class::Public),
    ("reason_code", Class::Public),
    ("reason_codes", Class::Public),
    ("result_labels", Class::Public),
    ("sanitizer_key", Class::Public),
    ("server", Class::Public),
    ("side_effect", Class::Public),
    ("snapshot_hash", Class::Made),
    ("snapshot_seq", Class::Public),
    ("started_ms", Class::Public),
    ("success", Class::Public),
    ("to_agent", Class::Public),
    ("tool_id", Class::Public),
    ("tool_name", Class::Public),
    ("total_tokens", Class::Public),
    ("verdict", Class::Public),
    ("args", Class::Sensitive),
    ("detail", Class::Sensitive),
    ("edited_args", Class::Sensitive),
    ("message", Class::Sensitive),
    ("approval_token", Class::Forbidden),
    ("content", Class::Forbidden),
    ("context", Class::Forbidden),
    ("envelope", Class::Forbidden),
    ("prompt", Class::Forbidden),
    ("submission", Class::Forbidden),
    ("text", Class::Forbidden),
];
