//! The objects that go in and out.

mod member;
mod native;

pub(crate) use native::*;

use crate::shape::Shape::{Any, Count, Flag, List, Map, Maybe, Object, OneOf, Text};
use crate::shape::{Record, Shape, may, must};

/// What `POST /v1/events` takes.
pub(crate) const NEW_EVENT: Shape = Object(&Record {
    name: "NewEvent",
    about: "Something that happened in a session",
    fields: &[
        member::OWN_TENANT,
        must(
            "session_id",
            Text,
            "The session; a new one begins with its first event",
        ),
        must("event_type", OneOf(EVENT_TYPES), "What happened"),
        may("payload", Any, "Its content"),
        may(
            "seq",
            Maybe(&Count),
            "Append only if this is the next sequence number",
        ),
        may(
            "prev_hash",
            Maybe(&Text),
            "Append only after the event with this hash",
        ),
        may(
            "ts_unix_ms",
            Maybe(&Count),
            "When it happened; now if absent or 0",
        ),
        may("user_id", Maybe(&Text), "Kept, sealed, with the payload"),
    ],
});

pub(crate) const INCLUSION: Shape = Object(&Record {
    name: "Inclusion",
    about: "That an event is in the log of a checkpoint",
    fields: &[
        must(
            "event",
            Text,
            "The hash of the event: the entry of the log is its 32 bytes",
        ),
        must("index", Count, "Its place in the log"),
        must("size", Count, "How many events the checkpoint covers"),
        must("root", Text, "The root of their tree"),
        must(
            "path",
            List(&Text),
            "The hashes beside the way to the root (RFC 9162)",
        ),
        must("checkpoint", Text, "The signed note"),
        must("proof", Text, "All of it as one text (C2SP tlog-proof)"),
    ],
});

pub(crate) const CONSISTENCY: Shape = Object(&Record {
    name: "Consistency",
    about: "That the log has only grown",
    fields: &[
        must("old_size", Count, "How many events it had"),
        must("old_root", Text, "The root of their tree"),
        must("new_size", Count, "How many it had later"),
        must("new_root", Text, "The root of their tree"),
        must("hashes", List(&Text), "The proof (RFC 9162)"),
    ],
});

pub(crate) const RECORDED: Shape = Object(&Record {
    name: "Recorded",
    about: "An event that is durable",
    fields: &[
        must("hash", Text, "Its hash"),
        member::SEQ,
        must(
            "head",
            Object(&HEAD),
            "What the next event of the session follows",
        ),
        may(
            "decision",
            Object(&VERDICT),
            "What was decided about a proposed call",
        ),
        may(
            "approval_id",
            Text,
            "What a person has to decide about first",
        ),
    ],
});

const HEAD: Record = Record {
    name: "Head",
    about: "The head of a session's chain",
    fields: &[
        must("seq", Count, "The next sequence number"),
        must("prev_hash", Maybe(&Text), "The hash of the last event"),
    ],
};

/// What `POST /v1/policy/decide` answers.
pub(crate) const VERDICT: Record = Record {
    name: "Verdict",
    about: "What the policies say",
    fields: &[
        must(
            "outcome",
            OneOf(&["allow", "deny", "require_approval"]),
            "The decision",
        ),
        must("reason", Text, "The reason code"),
        must("constraints", Map, "What an allowed call must keep to"),
    ],
};

pub(crate) const ANSWER: Shape = Object(&VERDICT);

/// What `POST /v1/policy/decide` takes.
pub(crate) const QUESTION: Shape = Object(&Record {
    name: "Question",
    about: "What would be decided? Nobody is bound by the answer.",
    fields: &[
        may("event", Maybe(&Map), "The proposed call, as an event"),
        may("snapshot", Maybe(&Map), "The state of the session"),
        may(
            "manifest",
            Maybe(&Map),
            "What the agent may use, where the operator has not said so",
        ),
    ],
});

pub(crate) const EVENTS: Shape = Object(&Record {
    name: "Events",
    about: "Some events",
    fields: &[
        must(
            "events",
            List(&Map),
            "The events, as they are stored, with their place among all",
        ),
        member::NEXT,
    ],
});

pub(crate) const SNAPSHOT: Shape = Object(&Record {
    name: "Snapshot",
    about: "The state of a session",
    fields: &[
        member::TENANT,
        member::SESSION,
        must("last_seq", Count, "The last event that it takes in"),
        must("head", Text, "The hash of that event"),
        must("state", Map, "What policies see"),
        must("snapshot", Map, "All of it"),
        must("snapshot_hash", Text, "Its hash, which decisions name"),
    ],
});

pub(crate) const VERIFIED: Shape = Object(&Record {
    name: "Verified",
    about: "What recomputing every hash of a session found",
    fields: &[
        must("valid", Flag, "Whether everything holds"),
        must("events", Count, "How many events were found good"),
        must("head", Maybe(&Text), "The hash of the last one"),
        must("checked", List(&Text), "What was checked"),
        must("not_checked", List(&Text), "What was not"),
        may("first_bad_seq", Count, "The first event that does not hold"),
        may("error", Text, "What is wrong with it"),
    ],
});

pub(crate) const NEW_REPLAY: Shape = Object(&Record {
    name: "NewReplay",
    about: "A recorded session that is to be decided again",
    fields: &[member::OWN_TENANT, member::SESSION],
});

pub(crate) const REPLAY: Shape = Object(&Record {
    name: "Replay",
    about: "A session that is decided again",
    fields: &[
        must("replay_id", Text, "Its name here"),
        member::TENANT,
        member::SESSION,
        must("state", OneOf(&["running", "done", "failed"]), "How it is"),
        may(
            "report",
            Map,
            "What came out: `identical`, and what differs and why",
        ),
        may("error", Text, "Why there is no report"),
    ],
});

const SESSION_RECORD: Record = Record {
    name: "Session",
    about: "A session, in a few numbers",
    fields: &[
        member::TENANT,
        member::SESSION,
        must("events", Count, "How many events it has"),
        must("head", Text, "The hash of the last one"),
        must("first_unix_ms", Count, "When the first happened"),
        must("last_unix_ms", Count, "When the last happened"),
        must("terminated", Flag, "Whether it has ended"),
        must(
            "erased_unix_ms",
            Maybe(&Count),
            "When its content was erased",
        ),
    ],
};

pub(crate) const SESSION: Shape = Object(&SESSION_RECORD);

pub(crate) const SESSIONS: Shape = Object(&Record {
    name: "Sessions",
    about: "Some sessions",
    fields: &[
        must(
            "sessions",
            List(&Object(&SESSION_RECORD)),
            "The sessions, as they began",
        ),
        member::NEXT,
    ],
});

pub(crate) const STATUS: Shape = Object(&Record {
    name: "Status",
    about: "How it is",
    fields: &[
        must("status", Text, "In a word"),
        may("error", Text, "What is wrong"),
    ],
});

pub(crate) const ME: Shape = Object(&Record {
    name: "Me",
    about: "Who calls",
    fields: &[
        must("id", Text, "The id of the token"),
        member::NAME,
        member::ROLE,
        member::ONLY_TENANT,
        member::ONLY_SESSION,
        must("permissions", List(&Text), "What its role allows"),
        may(
            "csrf_token",
            Text,
            "What a page sends in the header `countersign-csrf`",
        ),
    ],
});

pub(crate) const PROBLEM: Shape = Object(&Record {
    name: "Problem",
    about: "Problem details (RFC 9457)",
    fields: &[
        must("type", Text, "What kind of problem it is"),
        must("title", Text, "The same in words"),
        must("status", Count, "The status of the response"),
        must("detail", Text, "What happened this time"),
        must("code", Text, "The code that `countersign explain` explains"),
        must(
            "request_id",
            Text,
            "The request, as the log of the daemon names it",
        ),
        must("error", Text, "The title again, for older clients"),
        may("pointer", Text, "Where in the body it is"),
    ],
});

pub(crate) const ROLES: &[&str] = &["agent", "approver", "auditor", "operator"];

/// A test compares them with the event types that there are.
pub(crate) const EVENT_TYPES: &[&str] = &[
    "MODEL_CALL_STARTED",
    "MODEL_CALL_FINISHED",
    "TOOL_CALL_PROPOSED",
    "TOOL_CALL_ALLOWED",
    "TOOL_CALL_DENIED",
    "TOOL_CALL_EXECUTED",
    "TOOL_RESULT",
    "POLICY_DECISION",
    "APPROVAL_REQUESTED",
    "APPROVAL_DECIDED",
    "MEMORY_READ",
    "MEMORY_WRITE",
    "HANDOFF_REQUESTED",
    "HANDOFF_COMPLETED",
    "CHECKPOINT_CREATED",
    "TERMINATION",
    "ERROR_RAISED",
    "SANITIZED_TEXT",
];
