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
];

/// The type of attached files: policies and manifests, by digest.
pub const ATTACHMENT_TYPE: &str = "application/octet-stream";

/// The type of a member that every pack may have.
pub fn usual_type(name: &str) -> Option<&'static str> {
    let known = TYPES.iter().find(|(known, _)| *known == name);
    known.map(|(_, usual)| *usual)
}
