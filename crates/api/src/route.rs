//! The one table of routes: the router, the permissions and the description of the API come from it.

use axum::http::Method;
use countersign_canon::Json;

use crate::problem::Problem;
use crate::records::*;
use crate::role::Permission;
use crate::shape::Shape;

/// A place that answers.
#[derive(Debug)]
pub struct Route {
    /// The method.
    pub method: Verb,
    /// The path, with the names of what varies in braces.
    pub path: &'static str,
    /// The one permission that a caller needs.
    pub permission: Permission,
    /// Who answers.
    pub(crate) endpoint: Endpoint,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What may stand behind the path.
    pub(crate) query: &'static [Parameter],
    /// What the body must look like.
    pub(crate) body: Option<Shape>,
    /// The most bytes of a body.
    pub(crate) max_body: usize,
    /// The status and the shape of an answer; `None` for what is not JSON.
    pub(crate) answer: (u16, Option<Shape>),
}

impl Route {
    /// The path as the router knows it: what varies may have several parts where it is itself a path.
    pub(crate) fn pattern(path: &str) -> String {
        path.replace("{tile}", "{*tile}")
    }

    /// Whether an answer with this status is what the description of the API says.
    pub fn fits(&self, status: u16, answer: &Json) -> Result<(), Problem> {
        match self.answer {
            (expected, Some(shape)) if expected == status => shape.check(answer),
            (expected, None) if expected == status => Ok(()),
            _ => PROBLEM.check(answer),
        }
    }
}

/// A parameter behind a path.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
}

/// A method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `GET`, and `HEAD` with it.
    Get,
    /// `POST`
    Post,
    /// `DELETE`
    Delete,
}

impl Verb {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }

    pub(crate) fn is(self, method: &Method) -> bool {
        method.as_str() == self.as_str() || (self == Self::Get && *method == Method::HEAD)
    }
}

/// Who answers a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Healthz,
    Readyz,
    Metrics,
    Login,
    Me,
    AppendEvent,
    ListEvents,
    ListSessions,
    ShowSession,
    ShowSnapshot,
    VerifySession,
    ShowCheckpoint,
    ShowLogKey,
    ShowTile,
    ProveInclusion,
    ProveConsistency,
    StartReplay,
    ShowReplay,
    Decide,
    Listen,
    ProposeAction,
    ShowAction,
    PermitAction,
    SettleAction,
    Intervene,
    ListApprovals,
    ShowApproval,
    Vote,
    EditApproval,
    ListLeases,
    GrantLease,
    RevokeLease,
    ListTools,
    ShowManifest,
    ShowPolicies,
    ValidatePolicies,
    ActivatePolicies,
    ShadowPolicies,
    PromotePolicies,
    RollBackPolicies,
    ListTokens,
    CreateToken,
    RevokeToken,
    OpenApi,
    Docs,
}

const fn parameter(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about }
}

const fn get(
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

const TENANT: Parameter = parameter("tenant_id", "The tenant; the token's own if absent");
const LIMIT: Parameter = parameter("limit", "How many, from 1 to 1000; 100 if absent");
const CURSOR: Parameter = parameter("cursor", "The `next` of the page before");

/// Every route.
pub const ROUTES: &[Route] = &[
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
