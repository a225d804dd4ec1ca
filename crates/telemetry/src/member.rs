//! Which members of events may leave, under which names and of which class.

use countersign_canon::{Digest, Hash, Json};
use countersign_redact::{Public, Record, Redactor, Sensitive};

/// How a member is told.
#[derive(Clone, Copy)]
enum Class {
    /// A number or a truth.
    Plain,
    /// A name that somebody gave.
    Name,
    /// An id, which is ours or somebody's.
    Id,
    /// A digest of ours.
    Digest,
    /// Several names.
    Names,
    /// Words of any kind.
    Text,
}

/// Adds a member of a payload to the record, if it has a class and is what it should be.
pub(crate) fn add(record: Record, member: &str, value: &Json, redactor: &Redactor) -> Record {
    let Some((_, attribute, class)) = CLASSES.iter().find(|(known, _, _)| *known == member) else {
        return record;
    };
    let public = match (class, value) {
        (Class::Plain, Json::Bool(flag)) => Some(Public::flag(*flag)),
        (Class::Plain, value) => value.as_u64().map(Public::count),
        (Class::Name, Json::String(name)) => Some(Public::name(name, redactor)),
        (Class::Id, Json::String(id)) => Some(self::id(id, redactor)),
        (Class::Digest, Json::String(text)) => digest(text),
        (Class::Names, value @ Json::Array(_)) => {
            return record.sensitive(attribute, Sensitive::json(value, redactor));
        }
        (Class::Text, Json::String(text)) => {
            return record.sensitive(attribute, Sensitive::text(text, redactor));
        }
        _ => None,
    };
    match public {
        Some(public) => record.public(attribute, public),
        None => record,
    }
}

/// An id that we made is public; any other is public as far as it holds no secret.
pub(crate) fn id(id: &str, redactor: &Redactor) -> Public {
    let is_ours = id
        .split_once('_')
        .is_some_and(|(prefix, _)| PREFIXES.contains(&prefix));
    let ours = Some(id).filter(|_| is_ours).and_then(Public::id);
    ours.unwrap_or_else(|| Public::name(id, redactor))
}

fn digest(text: &str) -> Option<Public> {
    let digest = text.parse::<Digest>().ok().map(|it| Public::digest(&it));
    digest.or_else(|| text.parse::<Hash>().ok().map(|it| Public::hash(&it)))
}

/// What we name by ids of our own.
const PREFIXES: &[&str] = &["act", "apr", "lea", "ses"];

/// Every member that is stored in clear. One that is not here does not leave; a test compares them.
const CLASSES: &[(&str, &str, Class)] = &[
    (
        "action_digest",
        "countersign.payload.action_digest",
        Class::Digest,
    ),
    ("agent_id", "gen_ai.agent.id", Class::Name),
    ("approval_id", "countersign.payload.approval_id", Class::Id),
    ("approved", "countersign.payload.approved", Class::Plain),
    ("bytes_read", "countersign.payload.bytes_read", Class::Plain),
    (
        "bytes_written",
        "countersign.payload.bytes_written",
        Class::Plain,
    ),
    ("call_id", "gen_ai.tool.call.id", Class::Id),
    ("channel", "countersign.payload.channel", Class::Name),
    (
        "checkpoint_id",
        "countersign.payload.checkpoint_id",
        Class::Id,
    ),
    ("code", "countersign.payload.code", Class::Name),
    (
        "completion_tokens",
        "gen_ai.usage.output_tokens",
        Class::Plain,
    ),
    (
        "constraints",
        "countersign.payload.constraints",
        Class::Names,
    ),
    (
        "content_bytes",
        "countersign.payload.content_bytes",
        Class::Plain,
    ),
    ("context_id", "countersign.payload.context_id", Class::Id),
    ("cycle_seqs", "countersign.payload.cycle_seqs", Class::Names),
    ("decided_by", "countersign.payload.decided_by", Class::Text),
    (
        "definition_digest",
        "countersign.payload.definition_digest",
        Class::Digest,
    ),
    (
        "enforced_identity",
        "countersign.payload.enforced_identity",
        Class::Digest,
    ),
    (
        "expires_unix_ms",
        "countersign.payload.expires_unix_ms",
        Class::Plain,
    ),
    ("fatal", "countersign.payload.fatal", Class::Plain),
    (
        "finish_reason",
        "countersign.payload.finish_reason",
        Class::Name,
    ),
    ("from_agent", "countersign.payload.from_agent", Class::Name),
    (
        "input_identity",
        "countersign.payload.input_identity",
        Class::Digest,
    ),
    (
        "intervention_point",
        "countersign.payload.intervention_point",
        Class::Name,
    ),
    ("is_error", "countersign.payload.is_error", Class::Plain),
    ("key", "countersign.payload.key", Class::Name),
    ("latency_ms", "countersign.payload.latency_ms", Class::Plain),
    ("memory_key", "countersign.payload.memory_key", Class::Text),
    (
        "memory_store",
        "countersign.payload.memory_store",
        Class::Text,
    ),
    ("method", "countersign.payload.method", Class::Name),
    ("model_id", "gen_ai.request.model", Class::Name),
    ("outcome", "countersign.decision.outcome", Class::Name),
    (
        "parent_call_id",
        "countersign.payload.parent_call_id",
        Class::Id,
    ),
    ("plan_hash", "countersign.payload.plan_hash", Class::Digest),
    ("policy_digest", "countersign.policy.digest", Class::Digest),
    ("policy_ref", "countersign.policy.ref", Class::Text),
    ("prompt_tokens", "gen_ai.usage.input_tokens", Class::Plain),
    ("provider", "gen_ai.provider.name", Class::Name),
    ("reason", "countersign.decision.reason", Class::Text),
    (
        "reason_code",
        "countersign.decision.reason_code",
        Class::Name,
    ),
    (
        "reason_codes",
        "countersign.decision.reason_codes",
        Class::Names,
    ),
    (
        "result_labels",
        "countersign.payload.result_labels",
        Class::Names,
    ),
    (
        "sanitizer_key",
        "countersign.payload.sanitizer_key",
        Class::Name,
    ),
    ("server", "countersign.server", Class::Name),
    (
        "side_effect",
        "countersign.payload.side_effect",
        Class::Name,
    ),
    (
        "snapshot_hash",
        "countersign.payload.snapshot_hash",
        Class::Digest,
    ),
    (
        "snapshot_seq",
        "countersign.payload.snapshot_seq",
        Class::Plain,
    ),
    ("started_ms", "countersign.payload.started_ms", Class::Plain),
    ("success", "countersign.payload.success", Class::Plain),
    ("to_agent", "countersign.payload.to_agent", Class::Name),
    ("tool_id", "countersign.payload.tool_id", Class::Name),
    ("tool_name", "gen_ai.tool.name", Class::Name),
    (
        "total_tokens",
        "countersign.payload.total_tokens",
        Class::Plain,
    ),
    ("verdict", "countersign.decision.verdict", Class::Name),
];

/// Members that are stored in clear and told in another way.
#[cfg(test)]
const ELSEWHERE: &[&str] = &["traceparent"];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use countersign_event::EventType;

    use super::*;

    #[test]
    fn every_member_that_is_stored_in_clear_has_a_class() {
        let all = EventType::ALL.iter();
        let stored: BTreeSet<&str> = all.flat_map(|kind| kind.public_members()).collect();
        let classified = CLASSES.iter().map(|(member, _, _)| *member);
        let known: BTreeSet<&str> = classified.chain(ELSEWHERE.iter().copied()).collect();
        assert_eq!(stored, known);
        assert!(CLASSES.is_sorted_by_key(|(member, _, _)| *member));
    }

    #[test]
    fn what_is_not_of_its_class_does_not_leave() {
        let redactor = Redactor::default();
        let told = |member: &str, value: Json| {
            let record = add(Record::default(), member, &value, &redactor);
            record.fields().map(|(_, value)| value.clone()).next()
        };
        assert_eq!(told("unheard_of", Json::from("x")), None);
        assert_eq!(told("plan_hash", Json::from("hunter2")), None);
        assert_eq!(told("latency_ms", Json::from("hunter2")), None);
        let hash = "0123456789abcdef0123456789abcdef";
        let ours = Json::from(format!("apr_{hash}"));
        assert_eq!(told("approval_id", ours.clone()), Some(ours));
        let theirs = told("approval_id", Json::from(format!("key_{hash}")));
        assert!(!theirs.unwrap().as_str().unwrap().contains(hash));
    }
}
