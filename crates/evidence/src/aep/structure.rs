//! Whether a record is well formed: which members it has, and of which types.

use std::collections::BTreeSet;

use countersign_approval::{ApprovalMode, SideEffect};
use countersign_canon::{Json, Object};

use super::finding::{Code, Finding, Judged, segment};
use super::version::Version::{self, V01, V02, V03, V04, V05};
use super::words::{
    Backing, Decision, DenyReason, Gate, IdentitySource, Origin, RecordingMode, Resolution,
};
use crate::state::Kind;
use crate::word::Word;

/// Checks the types of all members that are known; notes those that are not.
pub(super) fn check(record: &Object, notes: &mut Vec<Finding>) -> (Option<Version>, Judged) {
    let mut check = Check {
        version: None,
        against: Vec::new(),
        notes,
    };
    check.version = check.version_of(record);
    check.object(record, RECORD, "");
    (
        check.version,
        Judged {
            against: check.against,
        },
    )
}

struct Check<'a> {
    version: Option<Version>,
    against: Vec<Finding>,
    notes: &'a mut Vec<Finding>,
}

impl Check<'_> {
    fn version_of(&mut self, record: &Object) -> Option<Version> {
        let text = record.get("schema_version")?.as_str()?;
        let version = Version::named(text);
        if version.is_none() {
            self.against.push(Finding::new(
                Code::UnknownVersion,
                "/schema_version",
                format!("`{}` is not a version that is known", text.escape_debug()),
            ));
        }
        version
    }

    fn object(&mut self, object: &Object, members: &[Member], at: &str) {
        for member in members {
            let pointer = format!("{at}{}", segment(member.name));
            match object.get(member.name) {
                Some(value) => {
                    self.value(value, &member.shape, &pointer);
                    if self.version.is_some_and(|version| version < member.since) {
                        self.notes.push(Finding::new(
                            Code::LaterVersion,
                            pointer,
                            format!("a member of `{}`", member.since),
                        ));
                    }
                }
                None if member.required => {
                    self.fail(Code::MissingMember, &pointer, "has to be there");
                }
                None => {}
            }
        }
        for (name, _) in object.iter() {
            if !members.iter().any(|member| member.name == name) {
                self.notes.push(Finding::new(
                    Code::UnknownMember,
                    format!("{at}{}", segment(name)),
                    "kept as it is",
                ));
            }
        }
    }

    fn value(&mut self, value: &Json, shape: &Shape, at: &str) {
        match (shape, value) {
            (Shape::Text, Json::String(_))
            | (Shape::TextOrNull, Json::String(_) | Json::Null)
            | (Shape::Number, Json::Number(_))
            | (Shape::Flag, Json::Bool(_))
            | (Shape::Open, Json::Object(_)) => {}
            (Shape::Version, Json::String(_)) => {}
            (Shape::Word(is_known), Json::String(text)) => {
                if !is_known(text) {
                    let message = format!("`{}` is not one of its words", text.escape_debug());
                    self.fail(Code::UnknownWord, at, &message);
                }
            }
            (Shape::Whole, Json::Number(number)) => {
                if number.as_i64().is_none() {
                    self.fail(Code::OutOfRange, at, "is not a whole number");
                }
            }
            (Shape::Count, Json::Number(number)) => {
                if number.as_u64().is_none() {
                    self.fail(Code::OutOfRange, at, "is not a whole number from 0 on");
                }
            }
            (Shape::Object(members), Json::Object(object)) => self.object(object, members, at),
            (Shape::List(item), Json::Array(items)) => self.items(items, item, at),
            (Shape::Set(item), Json::Array(items)) => {
                self.items(items, item, at);
                let mut seen = BTreeSet::new();
                for (index, value) in items.iter().enumerate() {
                    if value.as_str().is_some_and(|text| !seen.insert(text)) {
                        let at = format!("{at}/{index}");
                        self.fail(Code::DuplicateItem, &at, "stands twice");
                    }
                }
            }
            (Shape::Some(item), Json::Array(items)) => {
                if items.is_empty() {
                    self.fail(Code::MissingMember, at, "has to have an item");
                }
                self.items(items, item, at);
            }
            (shape, _) => {
                let message = format!("is not {}", shape.name());
                self.fail(Code::WrongType, at, &message);
            }
        }
    }

    fn items(&mut self, items: &[Json], shape: &Shape, at: &str) {
        for (index, item) in items.iter().enumerate() {
            self.value(item, shape, &format!("{at}/{index}"));
        }
    }

    fn fail(&mut self, code: Code, at: &str, message: &str) {
        self.against.push(Finding::new(code, at, message));
    }
}

struct Member {
    name: &'static str,
    shape: Shape,
    required: bool,
    since: Version,
}

enum Shape {
    Text,
    TextOrNull,
    Version,
    Number,
    Whole,
    Count,
    Flag,
    /// An object whose members are its own affair here.
    Open,
    Word(fn(&str) -> bool),
    Object(&'static [Member]),
    List(&'static Shape),
    /// A list without duplicates.
    Set(&'static Shape),
    /// A list that is not empty.
    Some(&'static Shape),
}

impl Shape {
    fn name(&self) -> &'static str {
        match self {
            Self::Text | Self::Version | Self::Word(_) => "a string",
            Self::TextOrNull => "a string or null",
            Self::Number | Self::Whole | Self::Count => "a number",
            Self::Flag => "a boolean",
            Self::Open | Self::Object(_) => "an object",
            Self::List(_) | Self::Set(_) | Self::Some(_) => "a list",
        }
    }
}

const fn need(name: &'static str, shape: Shape, since: Version) -> Member {
    Member {
        name,
        shape,
        required: true,
        since,
    }
}

const fn may(name: &'static str, shape: Shape, since: Version) -> Member {
    Member {
        name,
        shape,
        required: false,
        since,
    }
}

fn is<W: Word>(text: &str) -> bool {
    W::named(text).is_some()
}

const RECORD: &[Member] = &[
    need("schema_version", Shape::Version, V01),
    need("run_id", Shape::Text, V01),
    need("created_at_ms", Shape::Number, V01),
    may("trace_id", Shape::Text, V01),
    may("parent_trace_id", Shape::TextOrNull, V01),
    may("repo_commit", Shape::Text, V01),
    may("runtime_version", Shape::Text, V01),
    may("model_provider", Shape::Text, V01),
    may("model_id", Shape::Text, V01),
    may("policy_bundle_digest", Shape::Text, V01),
    may("tool_manifest_digest", Shape::Text, V01),
    may("mcp_server_card_digest", Shape::TextOrNull, V01),
    may("input_refs", Shape::List(&Shape::Object(INPUT)), V01),
    may("output_refs", Shape::List(&Shape::Object(OUTPUT)), V01),
    may(
        "capability_decisions",
        Shape::List(&Shape::Object(DECISION)),
        V01,
    ),
    may("actions", Shape::List(&Shape::Object(ACTION)), V01),
    may(
        "verifier_results",
        Shape::List(&Shape::Object(VERIFIER)),
        V01,
    ),
    may("budget_ledger", Shape::Object(BUDGETS), V01),
    may("run_context", Shape::Object(CONTEXT), V02),
    may("user_id", Shape::Text, V02),
    may("subject_id", Shape::Text, V02),
    // Emitters write the link since 0.3, but nothing keeps older records from having one.
    may("prev_record_hash", Shape::TextOrNull, V01),
    may(
        "run_side_effect_class_max",
        Shape::Word(is::<SideEffect>),
        V03,
    ),
    may("timestamp_proof", Shape::Object(TIMESTAMP), V03),
    may("dsse_envelope", Shape::Object(ENVELOPE), V04),
    // A second dialect has these beside the actions. They are other members than those of an action.
    may("side_effect_class", Shape::Word(is::<SideEffect>), V03),
    may("recording_mode", Shape::Word(is::<RecordingMode>), V03),
    may("argument_drift", Shape::Open, V03),
    may("authorized_by", Shape::Text, V05),
    may("authority_origin", Shape::Word(is::<Origin>), V05),
    may("identity_source", Shape::Word(is::<IdentitySource>), V05),
    may("attribution_backing", Shape::Word(is::<Backing>), V05),
    may(
        "run_attribution_backing_floor",
        Shape::Word(is::<Backing>),
        V05,
    ),
    may(
        "run_attribution_backing_observed",
        Shape::Set(&Shape::Word(is::<Backing>)),
        V05,
    ),
    may("authorization_evidence_count", Shape::Count, V05),
    may("signature", Shape::Object(SIGNATURE), V01),
];

const ACTION: &[Member] = &[
    need("action_id", Shape::Text, V01),
    need("tool_name", Shape::Text, V01),
    need("state_changing", Shape::Flag, V01),
    need("timestamp_ms", Shape::Number, V01),
    may("precondition_digest", Shape::Text, V01),
    may("result_digest", Shape::Text, V01),
    may("outcome", Shape::Text, V01),
    may("exit_code", Shape::Whole, V01),
    may("arguments_digest", Shape::Text, V01),
    may("evidence_refs", Shape::List(&Shape::Text), V01),
    may("capability_decision", Shape::Object(DECISION), V01),
    may("parent_action_id", Shape::Text, V02),
    may("causal_chain_id", Shape::Text, V02),
    may("tool_descriptor_digest", Shape::Text, V02),
    may("server_card_digest", Shape::Text, V02),
    may("scope_lease_id", Shape::Text, V02),
    may("approval_context_hash", Shape::Text, V02),
    may("input_taint_labels", Shape::List(&Shape::Text), V02),
    may("output_taint_labels", Shape::List(&Shape::Text), V02),
    may("memory_read_refs", Shape::List(&Shape::Text), V02),
    may("memory_write_refs", Shape::List(&Shape::Text), V02),
    may("pre_state_digest", Shape::Text, V02),
    may("post_state_digest", Shape::Text, V02),
    may("permission_gate", Shape::Object(GATE), V02),
    may("recording_mode", Shape::Word(is::<RecordingMode>), V03),
    may("delta_ref", Shape::Text, V03),
    may("side_effect_class", Shape::Word(is::<SideEffect>), V03),
    may("state_digest_kind", Shape::Word(is::<Kind>), V03),
    may("state_digest_coverage", Shape::Open, V03),
    may("argument_drift", Shape::Object(DRIFT), V03),
];

const DECISION: &[Member] = &[
    need("capability", Shape::Text, V01),
    need("subject", Shape::Text, V01),
    need("resource", Shape::Text, V01),
    need("decision", Shape::Word(is::<Decision>), V01),
    may("reason_code", Shape::Text, V01),
    may("approval_mode", Shape::Word(is::<ApprovalMode>), V03),
    may("approval_extension", Shape::Object(EXTENSION), V03),
    may("deny_reason_class", Shape::Word(is::<DenyReason>), V03),
];

const EXTENSION: &[Member] = &[
    need("namespace", Shape::Text, V03),
    need("mode", Shape::Text, V03),
    need("evidence_digest", Shape::Text, V03),
];

const DRIFT: &[Member] = &[
    need("detected", Shape::Flag, V03),
    need("approved_args_digest", Shape::Text, V03),
    need("observed_args_digest", Shape::Text, V03),
    need("resolution", Shape::Word(is::<Resolution>), V03),
];

const GATE: &[Member] = &[
    need("decision", Shape::Word(is::<Gate>), V02),
    need("gate", Shape::Text, V02),
    may("reason", Shape::Text, V02),
];

const INPUT: &[Member] = &[
    need("uri", Shape::Text, V01),
    may("digest", Shape::Text, V01),
    may("taint_labels", Shape::List(&Shape::Text), V01),
];

const OUTPUT: &[Member] = &[
    need("uri", Shape::Text, V01),
    may("digest", Shape::Text, V01),
    may("redaction_profile", Shape::Text, V01),
];

const VERIFIER: &[Member] = &[
    need("verifier_id", Shape::Text, V01),
    need("passed", Shape::Flag, V01),
    may("score", Shape::Number, V01),
    may("claim_ids", Shape::List(&Shape::Text), V01),
];

const BUDGETS: &[Member] = &[
    may("token_budget", Shape::Object(BUDGET), V01),
    may("latency_budget", Shape::Object(LATENCY), V01),
    may("tool_budget", Shape::Object(BUDGET), V01),
    may("risk_budget", Shape::Object(BUDGET), V01),
    may("retry_budget", Shape::Object(BUDGET), V01),
    may("human_approval_budget", Shape::Object(BUDGET), V01),
];

const BUDGET: &[Member] = &[
    may("limit", Shape::Number, V01),
    need("spent", Shape::Number, V01),
];

const LATENCY: &[Member] = &[
    may("limit_ms", Shape::Number, V01),
    need("actual_ms", Shape::Number, V01),
];

const CONTEXT: &[Member] = &[
    may("agent_id", Shape::Text, V02),
    may("agent_version", Shape::Text, V02),
    may("subagent_id", Shape::Text, V02),
    may("delegation_chain", Shape::List(&Shape::Text), V02),
    may("environment_digest", Shape::Text, V02),
    may("dependency_lock_digest", Shape::Text, V02),
    may("session_id", Shape::Text, V02),
    may("turn_index", Shape::Count, V02),
];

const TIMESTAMP: &[Member] = &[
    need("timestamp", Shape::Text, V03),
    need("authority", Shape::Text, V03),
    need("proof", Shape::Text, V03),
    may("logIndex", Shape::Number, V03),
];

const ENVELOPE: &[Member] = &[
    need("payloadType", Shape::Text, V04),
    need("payload", Shape::Text, V04),
    need(
        "signatures",
        Shape::Some(&Shape::Object(ENVELOPE_SIGNATURE)),
        V04,
    ),
];

const ENVELOPE_SIGNATURE: &[Member] = &[
    need("keyid", Shape::Text, V04),
    need("sig", Shape::Text, V04),
];

const SIGNATURE: &[Member] = &[
    need("alg", Shape::Text, V01),
    need("key_id", Shape::Text, V01),
    need("sig", Shape::Text, V01),
    may("bundle", Shape::Open, V01),
    may("transparency_log_ref", Shape::Text, V01),
];
