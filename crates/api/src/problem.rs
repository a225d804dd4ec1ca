//! Problem details (RFC 9457): every error has a code that stays the same, and the same code that the
//! command line uses.

use std::time::Duration;

use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use countersign_canon::Json;
use countersign_engine::Refusal;
use countersign_store as store;

use crate::reply::Reply;

macro_rules! kinds {
    ($( $name:ident = $code:literal, $status:ident, $title:literal; )*) => {
        /// What is wrong with a request, or with us.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the titles are the documentation")]
        pub enum Kind { $( $name ),* }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[ $( Self::$name ),* ];

            /// The code, as `countersign explain` knows it.
            pub const fn code(self) -> &'static str {
                match self { $( Self::$name => $code ),* }
            }

            /// The status that goes with it.
            pub const fn status(self) -> StatusCode {
                match self { $( Self::$name => StatusCode::$status ),* }
            }

            /// What it is, in words that are the same for all of its kind.
            pub const fn title(self) -> &'static str {
                match self { $( Self::$name => $title ),* }
            }
        }
    };
}

kinds! {
    Json = "C0101", BAD_REQUEST, "the body is not one strict JSON value";
    Member = "C0102", BAD_REQUEST, "a member is missing, unknown or of another type";
    TooLarge = "C0103", PAYLOAD_TOO_LARGE, "the body is too large";
    EventType = "C0104", BAD_REQUEST, "there is no such event type";
    Id = "C0105", BAD_REQUEST, "an id cannot be used";
    Cursor = "C0107", BAD_REQUEST, "the cursor is not of this listing";
    Query = "C0110", BAD_REQUEST, "the query cannot be read";
    Conflict = "C0201", CONFLICT, "the chain has another head";
    Order = "C0202", CONFLICT, "the event may not come now";
    Erased = "C0203", GONE, "the content of the session was erased";
    NoSession = "C0204", NOT_FOUND, "there is no such session";
    Damaged = "C0206", INTERNAL_SERVER_ERROR, "the stored history does not hold together";
    Unpublished = "C0208", NOT_FOUND, "no checkpoint covers it";
    Reserved = "C0209", FORBIDDEN, "the session is not for events of others";
    Full = "C0401", INSUFFICIENT_STORAGE, "the disk is full";
    Busy = "C0403", SERVICE_UNAVAILABLE, "the database is busy";
    Database = "C0406", INTERNAL_SERVER_ERROR, "the event was not recorded";
    Clock = "C0407", INTERNAL_SERVER_ERROR, "the clock cannot be used";
    Audit = "C0409", INTERNAL_SERVER_ERROR, "the audit cannot be written";
    Manifest = "C0701", UNPROCESSABLE_ENTITY, "the manifest is not valid";
    Policy = "C0702", UNPROCESSABLE_ENTITY, "the policies cannot be put in force";
    Approval = "C0801", CONFLICT, "the approval does not allow it";
    NoApproval = "C0802", NOT_FOUND, "there is no such approval";
    Unauthenticated = "C0901", UNAUTHORIZED, "there is no valid token";
    Forbidden = "C0902", FORBIDDEN, "the token does not allow it";
    NotFound = "C0903", NOT_FOUND, "there is nothing here";
    Method = "C0904", METHOD_NOT_ALLOWED, "the method is not for this place";
    RateLimited = "C0905", TOO_MANY_REQUESTS, "too many requests";
    Overloaded = "C0906", SERVICE_UNAVAILABLE, "too much is on its way";
    Parameter = "C0907", BAD_REQUEST, "a parameter cannot be used";
    Host = "C0908", FORBIDDEN, "the request was made for another place";
    Csrf = "C0909", FORBIDDEN, "the page may not ask for this";
    EngineOnly = "C0910", UNPROCESSABLE_ENTITY, "only the engine records this";
    NoAction = "C0911", NOT_FOUND, "there is no such action";
    Permit = "C0912", CONFLICT, "there is no permit to use";
    Idempotency = "C0913", UNPROCESSABLE_ENTITY, "the idempotency key was used for another request";
    Slow = "C0914", REQUEST_TIMEOUT, "the body did not come in time";
    Broken = "C0915", BAD_REQUEST, "the body broke off";
    InFiles = "C0916", CONFLICT, "the policies are kept in files";
    InProgress = "C0918", CONFLICT, "the same request is being answered";
    Changed = "C0917", PRECONDITION_FAILED, "it is not what it was";
}

/// A request that is not answered as its caller hopes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    kind: Kind,
    detail: String,
    pointer: Option<String>,
    retry_after: Option<Duration>,
    allow: Option<String>,
}

impl Problem {
    /// A problem, and what happened this time.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            pointer: None,
            retry_after: None,
            allow: None,
        }
    }

    /// Where in the body it is.
    #[must_use = "gives the changed problem back"]
    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// When to try again.
    #[must_use = "gives the changed problem back"]
    pub fn retry_after(mut self, time: Duration) -> Self {
        self.retry_after = Some(time);
        self
    }

    pub(crate) fn allow(mut self, methods: String) -> Self {
        self.allow = Some(methods);
        self
    }

    /// What kind of problem it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What happened.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    pub(crate) fn into_reply(self, request_id: &str) -> Reply {
        let mut members = vec![
            (
                "type",
                Json::from(format!("urn:countersign:error:{}", self.kind.code())),
            ),
            ("title", Json::from(self.kind.title())),
            ("status", Json::from(u64::from(self.kind.status().as_u16()))),
            ("detail", Json::from(self.detail)),
            ("code", Json::from(self.kind.code())),
            ("request_id", Json::from(request_id)),
            // What clients of older APIs look for.
            ("error", Json::from(self.kind.title())),
        ];
        if let Some(pointer) = self.pointer {
            members.push(("pointer", Json::from(pointer)));
        }
        let mut reply = Reply::json(self.kind.status(), &Json::object(members));
        let headers = &mut reply.headers;
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(time) = self.retry_after {
            let seconds = time
                .as_secs()
                .saturating_add(u64::from(time.subsec_nanos() > 0));
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        if let Some(allow) = self.allow.and_then(|allow| allow.try_into().ok()) {
            headers.insert(ALLOW, allow);
        }
        if self.kind == Kind::Unauthenticated {
            let challenge = HeaderValue::from_static("Bearer realm=\"countersign\"");
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        reply
    }
}

impl From<countersign_canon::Error> for Problem {
    fn from(error: countersign_canon::Error) -> Self {
        Self::new(Kind::Json, error.to_string())
    }
}

impl From<countersign_event::IdError> for Problem {
    fn from(error: countersign_event::IdError) -> Self {
        Self::new(Kind::Id, error.to_string())
    }
}

impl From<countersign_event::PayloadError> for Problem {
    fn from(error: countersign_event::PayloadError) -> Self {
        let pointer = format!("/payload{}", error.pointer());
        Self::new(Kind::Member, error.to_string()).at(pointer)
    }
}

/// SECURITY: what went wrong inside is for the operator; callers get the kind and no paths.
impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        use store::Error as E;
        let (kind, detail) = match error.root() {
            E::Conflict(conflict) => (Kind::Conflict, conflict.to_string()),
            E::Rotated => (
                Kind::Conflict,
                "the master key was replaced meanwhile".to_owned(),
            ),
            E::Order(order) => (Kind::Order, order.to_string()),
            E::Seal(_) | E::Envelope(_) => (Kind::Json, error.root().to_string()),
            E::Erased => (Kind::Erased, error.root().to_string()),
            E::NoSession(_) | E::NoLog(_) => (Kind::NoSession, "no such session".to_owned()),
            E::Damaged { .. } | E::Unreadable(_) | E::Open(_) => (
                Kind::Damaged,
                "the operator has to verify the log".to_owned(),
            ),
            E::Full => (Kind::Full, error.root().to_string()),
            E::Busy => (Kind::Busy, error.root().to_string()),
            E::Approval(refused) => (Kind::Approval, refused.to_string()),
            E::Audit(_) => (Kind::Audit, "nothing was done".to_owned()),
            _ => (Kind::Database, "nothing was recorded".to_owned()),
        };
        Self::new(kind, detail)
    }
}

impl From<store::PageError> for Problem {
    fn from(error: store::PageError) -> Self {
        match error {
            store::PageError::Cursor(error) => error.into(),
            store::PageError::Store(error) => error.into(),
        }
    }
}

impl From<store::CursorError> for Problem {
    fn from(error: store::CursorError) -> Self {
        Self::new(Kind::Cursor, error.to_string())
    }
}

/// Something failed on the way to a decision or to the disk.
impl From<&Refusal> for Problem {
    fn from(refusal: &Refusal) -> Self {
        let kind = match refusal.reason() {
            "runtime_error:conflict" => Kind::Conflict,
            "runtime_error:order" => Kind::Order,
            "runtime_error:erased" => Kind::Erased,
            "runtime_error:history" => Kind::Damaged,
            "runtime_error:approval" => Kind::Approval,
            "runtime_error:approval_action_mismatch" => {
                let text = format!("{}: {}", refusal.reason(), refusal.message());
                return Self::new(Kind::Approval, text);
            }
            "runtime_error:intervention_point_unknown" => Kind::Member,
            "runtime_error:audit_write_failed" => Kind::Audit,
            "runtime_error:clock" => Kind::Clock,
            "runtime_error:invalid_action" => Kind::Json,
            _ => Kind::Database,
        };
        match kind {
            Kind::Damaged | Kind::Database | Kind::Audit => Self::new(kind, "nothing was recorded"),
            _ => Self::new(kind, refusal.message()),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::from(&refusal)
    }
}
