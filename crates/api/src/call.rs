//! One request, as the places that answer it see it.

use std::sync::Arc;

use axum::http::header::{HeaderMap, HeaderName, IF_NONE_MATCH};
use bytes::Bytes;
use countersign_canon::{Json, Limits, Object};
use countersign_event::{Scope, TraceParent};
use countersign_web::{Peer, Share};

use crate::api::Api;
use crate::caller::Caller;
use crate::problem::{Kind, Problem};
use crate::route::Route;

/// A request whose caller may make it.
pub(crate) struct Call {
    pub(crate) api: Arc<Api>,
    pub(crate) caller: Caller,
    pub(crate) route: &'static Route,
    pub(crate) parameters: Parameters,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The room that the body takes.
    pub(crate) _share: Share,
    pub(crate) peer: Peer,
}

/// What stands in the path and behind it.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
}

impl Parameters {
    /// Each parameter once, and only those that the route knows.
    pub(crate) fn read(
        path: Vec<(String, String)>,
        query: Option<&str>,
        route: &Route,
    ) -> Result<Self, Problem> {
        let mut found: Vec<(String, String)> = Vec::new();
        for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if !route.query.iter().any(|known| known.name == name) {
                if route.takes_any_query {
                    continue;
                }
                let known: Vec<&str> = route.query.iter().map(|known| known.name).collect();
                let known = match known.is_empty() {
                    true => "none".to_owned(),
                    false => known.join(", "),
                };
                let text = format!("unknown parameter `{name}`; there are: {known}");
                return Err(Problem::new(Kind::Parameter, text));
            }
            if found.iter().any(|(before, _)| *before == name) {
                let text = format!("the parameter `{name}` is there twice");
                return Err(Problem::new(Kind::Parameter, text));
            }
            found.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self { path, query: found })
    }

    pub(crate) fn path(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// How many are wanted.
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        let Some(text) = self.query("limit") else {
            return Ok(100);
        };
        let limit = text.parse().ok().filter(|limit| (1..=1000).contains(limit));
        limit.ok_or_else(|| Problem::new(Kind::Parameter, "`limit` is a number from 1 to 1000"))
    }
}

impl Call {
    /// The body, which must be an object of the shape that the route declares.
    pub(crate) fn object(&self) -> Result<Object, Problem> {
        let json = Json::admit(&self.body, &LIMITS)?;
        if let Some(shape) = self.route.body {
            shape.check(&json)?;
        }
        json.into_object()
            .ok_or_else(|| Problem::new(Kind::Member, "expected an object"))
    }

    /// The session of the path, if the caller may look at it.
    pub(crate) async fn session(&self) -> Result<Scope, Problem> {
        let tenant = self.parameters.query("tenant_id");
        let scope = self.caller.scope(tenant, self.parameters.path("session"))?;
        self.api.check_owner(&self.caller, &scope).await?;
        Ok(scope)
    }

    /// The trace that the request is a part of (W3C Trace Context).
    pub(crate) fn trace(&self) -> Option<TraceParent> {
        self.header(&TRACEPARENT)?.parse().ok()
    }

    pub(crate) fn if_none_match(&self) -> Option<&str> {
        self.header(&IF_NONE_MATCH)
    }

    pub(crate) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The envelope around a payload has a few levels of its own.
pub(crate) const LIMITS: Limits = Limits {
    max_bytes: usize::MAX,
    max_depth: Limits::event().max_depth + 2,
    ..Limits::event()
};
