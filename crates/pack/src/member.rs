//! The members of a pack. Every text ends in a line end; every JSON text is RFC 8785.

/// The signed statement: what was selected, and the digest of every other member.
pub const STATEMENT: &str = "statement.dsse.json";
/// What this is and how to check it, for a person.
pub const README: &str = "readme.txt";
/// The signed checkpoint, as a note.
pub const CHECKPOINT: &str = "checkpoint";
/// Public keys: `log` (`name+hint+key`), and `people` with their keys.
pub const KEYS: &str = "keys.json";
/// The events, one canonical text a line, in the order of the log.
pub const EVENTS: &str = "events.jsonl";
/// `indices` of the events in the log, in the same order, and the `hashes` of one proof for all of them.
pub const INCLUSION: &str = "inclusion.json";
/// The sessions of the events: their `heads` at the checkpoint, and the `hashes` of one proof for them.
pub const SESSIONS: &str = "sessions.json";
/// Sealed values that are disclosed, one a line.
pub const OPENINGS: &str = "openings.jsonl";
/// Entries of the audit about approvals of these events, one canonical text a line.
pub const AUDIT: &str = "audit.jsonl";

/// Records of the Agent Evidence Protocol about these events, one a line: session by session, each signed
/// and linked to the one before it. They tell what the events and the disclosed values tell, and no more.
pub const RECORDS: &str = "records.jsonl";
/// The decision envelopes of the records, one canonical text a line.
pub const ENVELOPES: &str = "envelopes.jsonl";
/// The events as CloudEvents 1.0, one a line, session by session.
pub const CLOUD_EVENTS: &str = "cloudevents.ndjson";
/// Who made the records: `producer` (the attributes of its CloudEvents), `key_id` and `key` (of the
/// records), and `redaction` (the rules by which values were made fit to leave).
pub const PRODUCER: &str = "producer.json";
/// Policies that decided something here, each in a member of this folder that is named by the digest
/// that the decisions state.
pub const POLICIES: &str = "policies/";

/// The types of members, as the statement names them. A reader that does not know a type checks its
/// digest and says that it did not look inside.
pub const TYPES: &[(&str, &str)] = &[
    (README, "text/plain"),
    (CHECKPOINT, "c2sp.org/tlog-checkpoint"),
    (KEYS, "countersign/keys/v1"),
    (EVENTS, "countersign/events/v1"),
    (INCLUSION, "countersign/inclusion/v1"),
    (SESSIONS, "countersign/sessions/v1"),
    (OPENINGS, "countersign/openings/v1"),
    (AUDIT, "countersign/audit/v1"),
    (PRODUCER, "countersign/producer/v1"),
    (RECORDS, "countersign/aep-records/v1"),
    (ENVELOPES, "countersign/decision-envelopes/v1"),
    (CLOUD_EVENTS, "countersign/cloudevents/v1"),
];

/// The type of the members of [`POLICIES`].
pub const POLICIES_TYPE: &str = "countersign/policies/v1";

/// The type of attached files.
pub const ATTACHMENT_TYPE: &str = "application/octet-stream";

/// The type of a member that every pack may have.
pub fn usual_type(name: &str) -> Option<&'static str> {
    let known = TYPES.iter().find(|(known, _)| *known == name);
    let policies = || name.starts_with(POLICIES).then_some(POLICIES_TYPE);
    known.map(|(_, usual)| *usual).or_else(policies)
}
