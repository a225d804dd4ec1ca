//! Every route once, with its permission and its bodies.

use super::{Endpoint, Parameter, Route, Verb};
use crate::records::*;
use crate::role::Permission;
use crate::shape::Shape;

pub(super) const fn parameter(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about }
}

pub(super) const fn get(
    path: &'static str,
    permission: Permission,
    endpoint: Endpoint,
    summary: &'static str,
    answer: Shape,
) -> Route {
    Route {
        method: Verb::Get,
        path,
        permission,
        endpoint,
        summary,
        query: &[],
        takes_any_query: false,
        body: None,
        max_body: 0,
        answer: (200, Some(answer)),
    }
}

const fn post(
    path: &'static str,
    permission: Permission,
    endpoint: Endpoint,
    summary: &'static str,
    body: Shape,
    answer: Shape,
) -> Route {
    Route {
        method: Verb::Post,
        body: Some(body),
        max_body: BODY,
        answer: (201, Some(answer)),
        ..get(path, permission, endpoint, summary, answer)
    }
}

pub(super) const TENANT: Parameter =
    parameter("tenant_id", "The tenant; the token's own if absent");
const LIMIT: Parameter = parameter("limit", "How many, from 1 to 1000; 100 if absent");
pub(super) const CURSOR: Parameter = parameter("cursor", "The `next` of the page before");

/// Every route that programs use.
pub(super) const ROUTES: &[Route] = &[
    get(
        "/healthz",
        Permission::Knock,
        Endpoint::Healthz,
        "Is anybody here?",
        STATUS,
    ),
    get(
        "/readyz",
        Permission::Knock,
        Endpoint::Readyz,
        "Can events be recorded?",
        STATUS,
    ),
    Route {
        answer: (200, None),
        ..get(
            "/metrics",
            Permission::ReadMetrics,
            Endpoint::Metrics,
            "Counters and latencies, in the text format of Prometheus",
            STATUS,
        )
    },
    Route {
        query: &[parameter("code", "The code that works once")],
        answer: (303, None),
        ..get(
            "/login",
            Permission::Enter,
            Endpoint::Login,
            "Let a browser in, once",
            STATUS,
        )
    },
    get(
        "/v1/me",
        Permission::Look,
        Endpoint::Me,
        "Who am I, and what may I do?",
        ME,
    ),
    Route {
        method: Verb::Post,
        body: Some(NEW_EVENT),
        max_body: EVENT_BODY,
        answer: (201, Some(RECORDED)),
        ..get(
            "/v1/events",
            Permission::Propose,
            Endpoint::AppendEvent,
            "Record an event; a proposed call is decided, and the decision recorded with it",
            RECORDED,
        )
    },
    Route {
        query: &[
            TENANT,
            parameter("session_id", "Only events of this session"),
            parameter("event_type", "Only events of this type"),
            parameter("tool_name", "Only events about this tool"),
            parameter("since_unix_ms", "Only events from this time on"),
            parameter("until_unix_ms", "Only events before this time"),
            LIMIT,
            CURSOR,
            parameter("page_token", "The same as `cursor`"),
        ],
        ..get(
            "/v1/events",
            Permission::ReadSessions,
            Endpoint::ListEvents,
            "List events in the order in which they were recorded",
            EVENTS,
        )
    },
    Route {
        query: &[TENANT, LIMIT, CURSOR],
        ..get(
            "/v1/sessions",
            Permission::ReadSessions,
            Endpoint::ListSessions,
            "List sessions in the order in which they began",
            SESSIONS,
        )
    },
    Route {
        query: &[TENANT],
        ..get(
            "/v1/sessions/{session}",
            Permission::ReadSessions,
            Endpoint::ShowSession,
            "Show a session in a few numbers",
            SESSION,
        )
    },
    Route {
        query: &[TENANT],
        ..get(
            "/v1/sessions/{session}/snapshot",
            Permission::ReadSessions,
            Endpoint::ShowSnapshot,
            "Show the state of a session that the next decision starts from",
            SNAPSHOT,
        )
    },
    Route {
        query: &[TENANT],
        ..get(
            "/v1/sessions/{session}/verify",
            Permission::ReadSessions,
            Endpoint::VerifySession,
            "Recompute every hash, link and rule of order of a session",
            VERIFIED,
        )
    },
    post(
        "/v1/replays",
        Permission::ReadSessions,
        Endpoint::StartReplay,
        "Take every decision of a recorded session again, as a job",
        NEW_REPLAY,
        REPLAY,
    ),
    Route {
        query: &[parameter(
            "wait_ms",
            "How long to wait for its end, at most 60000",
        )],
        ..get(
            "/v1/replays/{replay}",
            Permission::ReadSessions,
            Endpoint::ShowReplay,
            "Show how a replay stands, and its report",
            REPLAY,
        )
    },
    Route {
        answer: (200, None),
        ..get(
            "/v1/log/checkpoint",
            Permission::ReadLog,
            Endpoint::ShowCheckpoint,
            "The newest signed checkpoint of the log, as a note (C2SP tlog-checkpoint)",
            Shape::Map,
        )
    },
    Route {
        answer: (200, None),
        ..get(
            "/v1/log/key",
            Permission::ReadLog,
            Endpoint::ShowLogKey,
            "The public keys that have signed checkpoints of the log, the one in use first",
            Shape::Map,
        )
    },
    Route {
        answer: (200, None),
        ..get(
            "/v1/log/tile/{tile}",
            Permission::ReadLog,
            Endpoint::ShowTile,
            "A tile of hashes or a bundle of entries (C2SP tlog-tiles): `0/000.p/5`, `entries/x001/234`",
            Shape::Map,
        )
    },
    Route {
        query: &[
            TENANT,
            parameter("session_id", "The session of the event"),
            parameter("seq", "Its place in the session"),
            parameter("index", "Instead of both, its place in the log"),
        ],
        ..get(
            "/v1/log/inclusion",
            Permission::ReadLog,
            Endpoint::ProveInclusion,
            "Prove that an event is in the log of the newest checkpoint",
            INCLUSION,
        )
    },
    Route {
        query: &[
            parameter("old", "How many events the log had first"),
            parameter(
                "new",
                "How many it had later; those of the newest checkpoint if absent",
            ),
        ],
        ..get(
            "/v1/log/consistency",
            Permission::ReadLog,
            Endpoint::ProveConsistency,
            "Prove that the log has only grown between two sizes",
            CONSISTENCY,
        )
    },
    Route {
        method: Verb::Post,
        body: Some(QUESTION),
        max_body: EVENT_BODY,
        ..get(
            "/v1/policy/decide",
            Permission::Look,
            Endpoint::Decide,
            "Ask what would be decided; nothing is recorded and nobody may run anything",
            ANSWER,
        )
    },
    Route {
        query: &[
            TENANT,
            parameter("session_id", "Only events of this session"),
            parameter(
                "q",
                "Only events that fit, such as `decision:deny tool:mcp.* since:1h`",
            ),
            parameter(
                "after",
                "Go on after this event; so does the header `Last-Event-ID`",
            ),
        ],
        answer: (200, None),
        ..get(
            "/v1/stream",
            Permission::ReadSessions,
            Endpoint::Listen,
            "Hear of events as they are recorded (server-sent events)",
            EVENTS,
        )
    },
    Route {
        max_body: EVENT_BODY,
        ..post(
            "/v1/actions",
            Permission::Propose,
            Endpoint::ProposeAction,
            "Propose an action; it gets a permit, is held for people, or is denied",
            NEW_ACTION,
            ACTION,
        )
    },
    Route {
        query: &[parameter(
            "wait_ms",
            "How long to wait for people to decide, at most 60000",
        )],
        ..get(
            "/v1/actions/{action}",
            Permission::Propose,
            Endpoint::ShowAction,
            "Show how an action stands",
            ACTION_STATE,
        )
    },
    Route {
        body: None,
        max_body: 0,
        ..post(
            "/v1/actions/{action}/permit",
            Permission::Propose,
            Endpoint::PermitAction,
            "Take the permit of an action that people have approved",
            NEW_ACTION,
            ACTION,
        )
    },
    Route {
        max_body: EVENT_BODY,
        ..post(
            "/v1/actions/{action}/result",
            Permission::Propose,
            Endpoint::SettleAction,
            "Tell how an action went; the answer says what of its result the agent may see",
            OUTCOME,
            SETTLED,
        )
    },
    Route {
        max_body: EVENT_BODY,
        ..post(
            "/v1/interventions",
            Permission::Propose,
            Endpoint::Intervene,
            "Ask whether an agent may begin, take something in, ask its model, answer, or end",
            NEW_INTERVENTION,
            INTERVENTION,
        )
    },
    Route {
        query: &[
            parameter("state", "`pending`, or `all` for the newest thousand"),
            LIMIT,
        ],
        ..get(
            "/v1/approvals",
            Permission::ReadApprovals,
            Endpoint::ListApprovals,
            "List what is held",
            APPROVALS,
        )
    },
    get(
        "/v1/approvals/{approval}",
        Permission::ReadApprovals,
        Endpoint::ShowApproval,
        "Show a request with the lines that approvers sign",
        APPROVAL,
    ),
    post(
        "/v1/approvals/{approval}/votes",
        Permission::Decide,
        Endpoint::Vote,
        "Hand in a signed decision, byte for byte as it was signed",
        Shape::Map,
        VOTED,
    ),
    Route {
        max_body: EVENT_BODY,
        ..post(
            "/v1/approvals/{approval}/edit",
            Permission::Decide,
            Endpoint::EditApproval,
            "Ask for the same call with other arguments, in the place of a request",
            EDIT,
            APPROVAL,
        )
    },
    Route {
        query: &[TENANT],
        ..get(
            "/v1/leases",
            Permission::ReadApprovals,
            Endpoint::ListLeases,
            "List leases, whatever became of them",
            LEASES,
        )
    },
    post(
        "/v1/leases",
        Permission::Decide,
        Endpoint::GrantLease,
        "Hand in a signed lease, byte for byte as it was signed",
        Shape::Map,
        GRANTED,
    ),
    Route {
        method: Verb::Delete,
        ..get(
            "/v1/leases/{lease}",
            Permission::Decide,
            Endpoint::RevokeLease,
            "Take a lease back, and those that are a part of it",
            LEASE_REVOKED,
        )
    },
    get(
        "/v1/tools",
        Permission::ReadPolicy,
        Endpoint::ListTools,
        "List the tools that the manifest declares",
        TOOLS,
    ),
    get(
        "/v1/manifest",
        Permission::ReadPolicy,
        Endpoint::ShowManifest,
        "Show the manifest in force",
        MANIFEST,
    ),
    get(
        "/v1/policies",
        Permission::ReadPolicy,
        Endpoint::ShowPolicies,
        "Show which policies are in force",
        POLICIES,
    ),
    Route {
        max_body: POLICY_BODY,
        answer: (200, Some(POLICIES)),
        ..post(
            "/v1/policies/validate",
            Permission::ReadPolicy,
            Endpoint::ValidatePolicies,
            "Compile policies and run their tests; nothing changes",
            POLICY_SET,
            POLICIES,
        )
    },
    Route {
        max_body: POLICY_BODY,
        ..post(
            "/v1/policies/activate",
            Permission::ChangePolicy,
            Endpoint::ActivatePolicies,
            "Put policies in force; `If-Match` with the quoted digest guards against a lost change",
            POLICY_SET,
            POLICIES,
        )
    },
    Route {
        max_body: POLICY_BODY,
        ..post(
            "/v1/policies/shadow",
            Permission::ChangePolicy,
            Endpoint::ShadowPolicies,
            "Try policies beside those in force: their verdicts are recorded only",
            SHADOW_SET,
            POLICIES,
        )
    },
    post(
        "/v1/policies/promote",
        Permission::ChangePolicy,
        Endpoint::PromotePolicies,
        "Let the policies in the shadow decide, as a new version; `If-Match` guards as for activate",
        PROMOTION,
        POLICIES,
    ),
    post(
        "/v1/policies/rollback",
        Permission::ChangePolicy,
        Endpoint::RollBackPolicies,
        "Put an earlier version in force again, as a new version",
        BACK_TO,
        POLICIES,
    ),
    get(
        "/v1/tokens",
        Permission::ManageTokens,
        Endpoint::ListTokens,
        "List tokens, whatever became of them",
        TOKENS,
    ),
    post(
        "/v1/tokens",
        Permission::ManageTokens,
        Endpoint::CreateToken,
        "Make a token; its text is shown once",
        NEW_TOKEN,
        TOKEN,
    ),
    Route {
        method: Verb::Delete,
        ..get(
            "/v1/tokens/{token}",
            Permission::ManageTokens,
            Endpoint::RevokeToken,
            "Take a token back",
            REVOKED,
        )
    },
    get(
        "/v1/openapi.json",
        Permission::Look,
        Endpoint::OpenApi,
        "The description of this API (OpenAPI 3.1)",
        Shape::Map,
    ),
    Route {
        answer: (200, None),
        ..get(
            "/docs",
            Permission::Look,
            Endpoint::Docs,
            "The same, for people",
            Shape::Map,
        )
    },
];

/// Enough for what people write.
const BODY: usize = 1 << 20;
/// Policies of a large organisation, all in one.
const POLICY_BODY: usize = 16 << 20;
/// A payload may have four MiB; the envelope around it needs a little more.
const EVENT_BODY: usize = (4 << 20) + (64 << 10);
