//! Event types and what their payloads hold.
//!
//! One table declares, for each event type, the members that the log understands, their types, and
//! whether a member is stored in clear (`public`) or encrypted (`sealed`). Members that the table
//! does not name are kept, and sealed. A declared member may be absent, but not of another type.

use std::fmt;

use countersign_canon::{Json, Object};

mod field;
mod keys;
mod split;

pub use field::Counters;
use field::Field;
pub use split::{OTHER, Split, WHOLE, join};

macro_rules! payloads {
    ($(
        $(#[$doc:meta])*
        $name:ident = $text:literal {
            $( $visibility:ident $member:ident: $type:ty ),* $(,)?
        }
    )*) => {
        /// What happened. The names are those on the wire.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum EventType { $( $(#[$doc])* $name ),* }

        impl EventType {
            /// Every event type.
            pub const ALL: &'static [Self] = &[ $( Self::$name ),* ];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$name => $text ),* }
            }

            fn named(text: &str) -> Option<Self> {
                match text {
                    $( $text => Some(Self::$name), )*
                    _ => None,
                }
            }

            /// The declared members of a payload of this type that are stored in clear.
            pub fn public_members(self) -> impl Iterator<Item = &'static str> {
                let members: &[(&str, &str)] = match self {
                    $( Self::$name => &[ $( (stringify!($visibility), stringify!($member)), )* ], )*
                };
                let public = members.iter().filter(|(visibility, _)| *visibility == "public");
                public.map(|(_, member)| *member)
            }

            /// The keys that a stored payload of this type may have, written as `"key":`, in
            /// canonical order. There may be others.
            pub(crate) const fn stored_keys(self) -> &'static [&'static str] {
                match self {
                    $( Self::$name => {
                        const KEYS: &[&str] = &keys::sorted([
                            concat!("\"", "sealed", "\":"),
                            $( concat!("\"", stringify!($member), "\":"), )*
                        ]);
                        KEYS
                    } )*
                }
            }
        }

        /// A payload whose declared members have their declared types.
        #[derive(Clone, PartialEq)]
        #[expect(
            clippy::large_enum_variant,
            reason = "the largest one tells of decisions, and nearly every call has one"
        )]
        pub enum Payload {
            $( $(#[$doc])* $name($name), )*
            /// A payload that is not an object; the log keeps it whole, and sealed.
            Opaque(Json),
        }

        impl Payload {
            /// Checks the declared members of a payload of this event type.
            pub fn admit(event_type: EventType, payload: Json) -> Result<Self, PayloadError> {
                let members = match payload {
                    Json::Object(members) => members,
                    other => return Ok(Self::Opaque(other)),
                };
                Ok(match event_type { $( EventType::$name => Self::$name($name::admit(members)?) ),* })
            }

            /// Parts the members that may be stored in clear from those that may not.
            pub fn split(self) -> Split {
                let mut split = Split::default();
                match self {
                    $( Self::$name(payload) => payload.split(&mut split), )*
                    Self::Opaque(value) => split.whole(value),
                }
                split
            }
        }

        $(
            $(#[$doc])*
            #[derive(Clone, PartialEq, Default)]
            #[allow(missing_docs, reason = "the member names are the documentation")]
            pub struct $name {
                $( pub $member: Option<$type>, )*
                /// Members that the table does not name.
                pub other: Object,
            }

            impl $name {
                fn admit(mut members: Object) -> Result<Self, PayloadError> {
                    Ok(Self {
                        $( $member: take(&mut members, stringify!($member))?, )*
                        other: members,
                    })
                }

                fn split(self, split: &mut Split) {
                    $( if let Some(value) = self.$member {
                        split.$visibility(concat!("/", stringify!($member)), value.into_json());
                    } )*
                    split.other(self.other);
                }
            }
        )*
    };
}

payloads! {
    /// The agent sends a prompt to a model.
    ModelCallStarted = "MODEL_CALL_STARTED" {
        public call_id: String,
        public model_id: String,
        public provider: String,
        public agent_id: String,
        public prompt_tokens: u64,
        public traceparent: String,
        sealed prompt: Json,
    }
    /// The model answered.
    ModelCallFinished = "MODEL_CALL_FINISHED" {
        public call_id: String,
        public model_id: String,
        public completion_tokens: u64,
        public total_tokens: u64,
        public finish_reason: String,
        public latency_ms: u64,
        sealed content: Json,
    }
    /// The agent wants to call a tool; policy decides.
    ToolCallProposed = "TOOL_CALL_PROPOSED" {
        public call_id: String,
        public tool_name: String,
        public tool_id: String,
        public server: String,
        public agent_id: String,
        public parent_call_id: String,
        public definition_digest: String,
        public sanitizer_key: String,
        public traceparent: String,
        sealed args: Json,
    }
    /// The call may run.
    ToolCallAllowed = "TOOL_CALL_ALLOWED" {
        public call_id: String,
        public policy_ref: String,
        public approval_id: String,
        public action_digest: String,
    }
    /// The call may not run.
    ToolCallDenied = "TOOL_CALL_DENIED" {
        public call_id: String,
        public policy_ref: String,
        public approval_id: String,
        public reason_code: String,
        public reason: String,
        sealed message: Json,
    }
    /// The call was forwarded to the tool.
    ToolCallExecuted = "TOOL_CALL_EXECUTED" {
        public call_id: String,
        public started_ms: u64,
        public action_digest: String,
    }
    /// The tool answered; its output is untrusted.
    ToolResult = "TOOL_RESULT" {
        public call_id: String,
        public tool_name: String,
        public is_error: bool,
        public latency_ms: u64,
        public content_bytes: u64,
        public result_labels: Vec<String>,
        sealed content: Json,
    }
    /// What policy said, and from which state.
    PolicyDecision = "POLICY_DECISION" {
        public call_id: String,
        public outcome: String,
        public verdict: String,
        public reason: String,
        public reason_code: String,
        public reason_codes: Vec<String>,
        public policy_ref: String,
        public policy_digest: String,
        public snapshot_hash: String,
        public side_effect: String,
        public constraints: Counters,
        public intervention_point: String,
        public agent_id: String,
        public input_identity: String,
        public enforced_identity: String,
        public result_labels: Vec<String>,
        sealed links: Json,
        sealed heard: Json,
        sealed subject: Json,
        sealed session: Json,
        sealed evidence: Json,
    }
    /// A human must decide before the call goes on.
    ApprovalRequested = "APPROVAL_REQUESTED" {
        public call_id: String,
        public approval_id: String,
        public channel: String,
        public plan_hash: String,
        public expires_unix_ms: u64,
        sealed approval_token: Json,
        sealed envelope: Json,
    }
    /// A human decided.
    ApprovalDecided = "APPROVAL_DECIDED" {
        public call_id: String,
        public approval_id: String,
        public approved: bool,
        public decided_by: String,
        public plan_hash: String,
        public reason_code: String,
        sealed approval_token: Json,
        sealed edited_args: Json,
        sealed message: Json,
        sealed submission: Json,
    }
    /// The agent read from memory; what it read is untrusted.
    MemoryRead = "MEMORY_READ" {
        public memory_key: String,
        public memory_store: String,
        public bytes_read: u64,
        sealed content: Json,
    }
    /// The agent wrote to memory.
    MemoryWrite = "MEMORY_WRITE" {
        public memory_key: String,
        public memory_store: String,
        public bytes_written: u64,
        sealed content: Json,
    }
    /// One agent asks another to take over.
    HandoffRequested = "HANDOFF_REQUESTED" {
        public from_agent: String,
        public to_agent: String,
        public context_id: String,
        sealed context: Json,
    }
    /// The other agent took over, or did not.
    HandoffCompleted = "HANDOFF_COMPLETED" {
        public from_agent: String,
        public to_agent: String,
        public context_id: String,
        public success: bool,
    }
    /// The session state was saved.
    CheckpointCreated = "CHECKPOINT_CREATED" {
        public checkpoint_id: String,
        public snapshot_hash: String,
        public snapshot_seq: u64,
    }
    /// The session ended; nothing follows.
    Termination = "TERMINATION" {
        public reason_code: String,
        public cycle_seqs: Vec<u64>,
        sealed detail: Json,
    }
    /// Something failed.
    ErrorRaised = "ERROR_RAISED" {
        public call_id: String,
        public code: String,
        public fatal: bool,
        sealed message: Json,
    }
    /// A piece of untrusted text was made safe under a key.
    SanitizedText = "SANITIZED_TEXT" {
        public key: String,
        public method: String,
        sealed text: Json,
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is no event type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown event type `{}`", .0.escape_debug())]
pub struct UnknownEventType(String);

impl std::str::FromStr for EventType {
    type Err = UnknownEventType;

    fn from_str(text: &str) -> Result<Self, UnknownEventType> {
        Self::named(text).ok_or_else(|| UnknownEventType(text.to_owned()))
    }
}

/// A declared member of another type than the table says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} at `{pointer}`, found {found}")]
pub struct PayloadError {
    pointer: String,
    expected: &'static str,
    found: &'static str,
}

impl PayloadError {
    /// Where the member is, from the root of the payload.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }
}

// SECURITY: sealed members must not reach a log line through a derived `Debug`.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Payload(not shown)")
    }
}

fn take<T: Field>(members: &mut Object, name: &str) -> Result<Option<T>, PayloadError> {
    let Some(value) = members.remove(name) else {
        return Ok(None);
    };
    let found = kind(&value);
    T::from_json(value).map(Some).ok_or_else(|| PayloadError {
        pointer: format!("/{name}"),
        expected: T::EXPECTED,
        found,
    })
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
