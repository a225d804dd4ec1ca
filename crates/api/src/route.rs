//! Routes: the router, the permissions and the description of the API come from their one [table](ROUTES).

mod pages;
mod table;

use axum::http::Method;
use countersign_canon::Json;

use crate::problem::Problem;
use crate::records::PROBLEM;
use crate::role::Permission;
use crate::shape::Shape;

pub(crate) use pages::Page;

/// Every route.
pub const ROUTES: &[Route] = &all();

/// A place that answers.
#[derive(Debug, Clone, Copy)]
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
    /// Whether anything else may stand there too, and means nothing.
    pub(crate) takes_any_query: bool,
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

    /// Whether people see it in a browser. Programs have the rest of the table.
    pub const fn is_page(&self) -> bool {
        matches!(self.endpoint, Endpoint::Page(_) | Endpoint::Login)
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
    Page(Page),
}

/// The table of programs, and the one of people after it.
#[expect(
    clippy::indexing_slicing,
    reason = "a constant: a place that is not there does not compile"
)]
const fn all() -> [Route; table::ROUTES.len() + pages::ROUTES.len()] {
    let mut all = [table::ROUTES[0]; table::ROUTES.len() + pages::ROUTES.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = match at < table::ROUTES.len() {
            true => table::ROUTES[at],
            false => pages::ROUTES[at - table::ROUTES.len()],
        };
        at += 1;
    }
    all
}
