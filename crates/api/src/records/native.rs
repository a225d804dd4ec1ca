//! The objects of actions, approvals, leases, policies and tokens.

use super::member;
use crate::shape::Shape::{Any, Count, Flag, List, Map, Maybe, Object, OneOf, Text};
use crate::shape::{Record, Shape, may, must};

pub(crate) const NEW_ACTION: Shape = Object(&Record {
    name: "NewAction",
    about: "A call that an agent wants to make",
    fields: &[
        member::OWN_TENANT,
        must(
            "session_id",
            Text,
            "The session; a new one begins with its first action",
        ),
        member::TOOL,
        may("server", Text, "The server that offers it"),
        may("args", Any, "The arguments; none if absent"),
        may(
            "call_id",
            Text,
            "The call, by a name that is unique in the session",
        ),
        may(
            "sanitizer_key",
            Text,
            "The key of the sanitised text that the call carries",
        ),
        may(
            "approval_id",
            Text,
            "What people have approved; exactly that runs",
        ),
    ],
});

pub(crate) const ACTION: Shape = Object(&Record {
    name: "Action",
    about: "An action, and what was decided about it",
    fields: &[
        member::ACTION,
        member::TENANT,
        member::SESSION,
        member::TOOL,
        may("call_id", Text, "The call, as the log names it"),
        must(
            "state",
            OneOf(&["running", "held", "denied"]),
            "Where it stands",
        ),
        member::DECISION,
        may("permit", Text, "Shown when its result is told; works once"),
        may("digest", Text, "The digest of the bytes that may run"),
        may("approval_mode", Text, "How it came to be allowed"),
        may(
            "action",
            Map,
            "Exactly what may run: `tool_name` and `args`",
        ),
        may("warning", Maybe(&Text), "Words that go with an allow"),
        member::ASKED,
        member::SHORT_CODE,
        member::FOR_MODEL,
        may("error", Text, "Why nobody can be asked"),
    ],
});

pub(crate) const ACTION_STATE: Shape = Object(&Record {
    name: "ActionState",
    about: "How an action stands",
    fields: &[
        member::ACTION,
        member::TENANT,
        member::SESSION,
        member::TOOL,
        must(
            "state",
            Text,
            "`running`, `held`, or what became of the request for approval",
        ),
        member::ASKED,
    ],
});

pub(crate) const OUTCOME: Shape = Object(&Record {
    name: "Outcome",
    about: "How an action went",
    fields: &[
        must("permit", Text, "The permit that it ran with"),
        may("content", Any, "What the tool said"),
        may("is_error", Flag, "Whether the tool says that it failed"),
        may("failed", Text, "Why there is no answer of the tool"),
    ],
});

pub(crate) const SETTLED: Shape = Object(&Record {
    name: "Settled",
    about: "The result is in the log",
    fields: &[
        must("action_id", Text, "The action"),
        must("hash", Text, "The hash of the event"),
        member::SEQ,
        must(
            "delivery",
            OneOf(&["as_it_came", "changed", "withheld", "held"]),
            "What of the result the agent may see",
        ),
        may("content", Any, "What it sees in the place of the result"),
        may("reason", Text, "Why the result is withheld, or held"),
        may(
            "approval_id",
            Text,
            "What people decide about: at `post_tool_call` it gives the result",
        ),
        may("short_code", Text, "The code that people compare"),
        member::FOR_MODEL,
    ],
});

pub(crate) const NEW_INTERVENTION: Shape = Object(&Record {
    name: "NewIntervention",
    about: "A point that an agent has come to",
    fields: &[
        member::OWN_TENANT,
        member::SESSION,
        must("intervention_point", OneOf(POINTS), "The point"),
        must(
            "snapshot",
            Map,
            "What there is to see; `envelope`, `ifc` and `session` are added. Empty where a result is \
             asked for",
        ),
        may(
            "call_id",
            Text,
            "The model call, at its two points: then the log tells of it too",
        ),
        may("approval_id", Text, "What people have approved"),
    ],
});

pub(crate) const INTERVENTION: Shape = Object(&Record {
    name: "Intervention",
    about: "What was decided at a point",
    fields: &[
        member::TENANT,
        member::SESSION,
        must("intervention_point", Text, "The point"),
        must(
            "state",
            OneOf(&["passed", "held", "denied"]),
            "Whether the agent goes on",
        ),
        member::DECISION,
        must("verdict", Text, "In the words of Agent Control"),
        may("message", Maybe(&Text), "Words that go with it"),
        may(
            "snapshot",
            Map,
            "What to go on with in the place of what there was",
        ),
        may("result_labels", List(&Text), "The labels of what passed"),
        may("input_identity", Maybe(&Text), "Over what was judged"),
        may("enforced_identity", Maybe(&Text), "Over what may be done"),
        may("hash", Text, "The hash of the event"),
        may("seq", Count, "Its place in the session"),
        member::ASKED,
        member::SHORT_CODE,
        member::FOR_MODEL,
    ],
});

/// The points that are decided without a tool call, and the one at which a result is asked for that people
/// have let pass.
const POINTS: &[&str] = &[
    "agent_startup",
    "input",
    "pre_model_call",
    "post_model_call",
    "post_tool_call",
    "output",
    "agent_shutdown",
];

const APPROVAL_RECORD: Record = Record {
    name: "Approval",
    about: "A request for approval",
    fields: &[
        must("approval_id", Text, "Its name"),
        must("state", Text, "Where it is in its life"),
        must("plan_hash", Text, "The hash of what is asked for"),
        must("short_code", Text, "The code that people compare"),
        must("irreversible", Flag, "Whether it cannot be undone"),
        must("tools", List(&Text), "The tools that would be called"),
        must("requester", Text, "Who asks"),
        member::TENANT,
        member::SESSION,
        must("issued_at_ms", Count, "When it was asked"),
        must(
            "decide_by_ms",
            Maybe(&Count),
            "Until when people may decide",
        ),
        must("decided_at_ms", Maybe(&Count), "When it was decided"),
        must("execute_by_ms", Maybe(&Count), "Until when it may start"),
        may(
            "why",
            Maybe(&Text),
            "The reason code of the decision that held it",
        ),
        may(
            "display",
            Text,
            "What people see; lines that begin with │ are the plan",
        ),
        may("display_sha256", Text, "Its hash, which approvers sign"),
        may(
            "agent_says_unverified",
            Maybe(&Text),
            "What the agent says; nobody has checked it",
        ),
        may("votes", List(&Map), "What people have said so far"),
        may("required", Count, "How many must approve"),
        may("envelope", Text, "Everything that is signed, as text"),
    ],
};

pub(crate) const APPROVAL: Shape = Object(&APPROVAL_RECORD);

pub(crate) const APPROVALS: Shape = Object(&Record {
    name: "Approvals",
    about: "Requests for approval",
    fields: &[must(
        "approvals",
        List(&Object(&APPROVAL_RECORD)),
        "The requests",
    )],
});

pub(crate) const EDIT: Shape = Object(&Record {
    name: "Edit",
    about: "Other arguments for a call that is held",
    fields: &[
        must("args", Any, "The arguments in the place of the old ones"),
        may("reason", Text, "Why, for the audit"),
    ],
});

pub(crate) const VOTED: Shape = Object(&Record {
    name: "Voted",
    about: "A decision that was counted",
    fields: &[
        must("approval_id", Text, "What it is about"),
        must("state", Text, "Where that is now"),
        must("approvals", Count, "How many people have approved"),
        must("required", Count, "How many must"),
    ],
});

pub(crate) const LEASES: Shape = Object(&Record {
    name: "Leases",
    about: "What people approved ahead of time",
    fields: &[must(
        "leases",
        List(&Object(&Record {
            name: "Lease",
            about: "What somebody approved ahead of time",
            fields: &[
                member::LEASE,
                must(
                    "status",
                    OneOf(&[
                        "active",
                        "over",
                        "used_up",
                        "spent",
                        "revoked",
                        "work_ended",
                        "key_retired",
                    ]),
                    "Whether it stands",
                ),
                member::TOOL,
                member::SESSION,
                must("granted_by", Text, "Who granted it"),
                must("expires_at_ms", Count, "When it ends"),
                must("max_uses", Count, "How often it covers a call"),
                must("uses", Count, "How often it has"),
                must("spent", Count, "How much it has spent"),
                must("lease", Text, "All of it, as text"),
            ],
        })),
        "The leases",
    )],
});

pub(crate) const GRANTED: Shape = Object(&Record {
    name: "Granted",
    about: "A lease that stands",
    fields: &[member::LEASE],
});

pub(crate) const LEASE_REVOKED: Shape = Object(&Record {
    name: "LeaseRevoked",
    about: "A lease that does not stand any more",
    fields: &[
        member::LEASE,
        must("revoked", Flag, "Whether there was anything to take back"),
    ],
});

const POLICY_FILE: Shape = Object(&Record {
    name: "PolicyFile",
    about: "A file of Rego",
    fields: &[
        must("name", Text, "Its name"),
        must("text", Text, "Its text"),
    ],
});

pub(crate) const POLICY_SET: Shape = Object(&Record {
    name: "PolicySet",
    about: "Everything that decides",
    fields: &[
        may("manifest", Maybe(&Map), "What agents may use"),
        may(
            "policies",
            List(&POLICY_FILE),
            "Rego that has a say beside the manifest",
        ),
        may(
            "shadow",
            List(&POLICY_FILE),
            "Rego whose verdicts are recorded only",
        ),
        may("tests", List(&POLICY_FILE), "Tests, which must pass"),
    ],
});

pub(crate) const SHADOW_SET: Shape = Object(&Record {
    name: "ShadowSet",
    about: "Policies to try",
    fields: &[must(
        "policies",
        List(&POLICY_FILE),
        "Rego whose verdicts are recorded only",
    )],
});

pub(crate) const PROMOTION: Shape = Object(&Record {
    name: "Promotion",
    about: "The policies in the shadow are to decide",
    fields: &[],
});

pub(crate) const BACK_TO: Shape = Object(&Record {
    name: "BackTo",
    about: "Which version to go back to",
    fields: &[may(
        "version",
        Count,
        "The version; the one before if absent",
    )],
});

pub(crate) const POLICIES: Shape = Object(&Record {
    name: "Policies",
    about: "The policies in force, or those that were tried",
    fields: &[
        must("digest", Text, "The digest over everything that decides"),
        must(
            "manifest_digest",
            Maybe(&Text),
            "The digest of the manifest",
        ),
        must("policies", List(&Map), "The policies beside the manifest"),
        must("observing", Flag, "Whether they stop nothing"),
        may("kept_in", OneOf(&["files", "versions"]), "Who keeps them"),
        may("version", Maybe(&Count), "The version in force"),
    ],
});

pub(crate) const MANIFEST: Shape = Object(&Record {
    name: "Manifest",
    about: "What agents may use",
    fields: &[must(
        "manifest",
        Maybe(&Map),
        "The manifest, with every default filled in",
    )],
});

pub(crate) const TOOLS: Shape = Object(&Record {
    name: "Tools",
    about: "The tools that agents may use",
    fields: &[must(
        "tools",
        Any,
        "The tools, as the manifest declares them",
    )],
});

const TOKEN_FIELDS: Record = Record {
    name: "Token",
    about: "A token; its text is shown once",
    fields: &[
        must("id", Text, "Its id"),
        member::NAME,
        member::ROLE,
        member::ONLY_TENANT,
        member::ONLY_SESSION,
        must("created_unix_ms", Count, "When it was made"),
        must("expires_unix_ms", Maybe(&Count), "When it ends by itself"),
        must("revoked_unix_ms", Maybe(&Count), "When it was taken back"),
        may("token", Text, "The text that its bearer shows"),
    ],
};

pub(crate) const TOKEN: Shape = Object(&TOKEN_FIELDS);

pub(crate) const TOKENS: Shape = Object(&Record {
    name: "Tokens",
    about: "Every token, whatever became of it",
    fields: &[must("tokens", List(&Object(&TOKEN_FIELDS)), "The tokens")],
});

pub(crate) const NEW_TOKEN: Shape = Object(&Record {
    name: "NewToken",
    about: "A token to be made",
    fields: &[
        member::NAME,
        member::ROLE,
        may("tenant_id", Text, "The only tenant that it reaches"),
        may("session_id", Text, "The only session that it reaches"),
        may("expires_unix_ms", Count, "When it ends by itself"),
    ],
});

pub(crate) const REVOKED: Shape = Object(&Record {
    name: "Revoked",
    about: "A token that does not work any more",
    fields: &[must("revoked", Text, "Its id")],
});
