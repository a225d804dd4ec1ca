//! What every request passes before anybody answers it, and what every answer gets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{RawPathParams, Request};
use axum::http::header::{ACCEPT, ALLOW, HeaderMap, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, Response};
use axum::response::IntoResponse as _;
use axum::{RequestExt as _, Router};
use countersign_web::{Held, Peer, ReadError};

use crate::api::{Api, now_unix_ms};
use crate::call::{Call, Parameters};
use crate::caller::Caller;
use crate::doorkeeper::{check_csrf, check_origin, check_token};
use crate::idempotency::{First, Place};
use crate::observe::{Answered, Observed};
use crate::problem::{Kind, Problem};
use crate::reply::Reply;
use crate::route::{Endpoint, ROUTES, Route};
use crate::{answer, pages, token};

/// The router of the whole table.
pub(crate) fn router(api: &Arc<Api>) -> Router {
    let mut router = Router::new();
    let mut paths: Vec<&'static str> = ROUTES.iter().map(|route| route.path).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        let api = Arc::clone(api);
        let handler = move |request: Request| {
            let api = Arc::clone(&api);
            async move { pass(api, Some(path), request).await }
        };
        router = router.route(&Route::pattern(path), axum::routing::any(handler));
    }
    let api = Arc::clone(api);
    router.fallback(move |request: Request| {
        let api = Arc::clone(&api);
        async move { pass(api, None, request).await }
    })
}

/// A request on its way.
struct Passage<'p> {
    api: &'p Arc<Api>,
    parts: Parts,
    path: Vec<(String, String)>,
    peer: Peer,
    caller: Option<Caller>,
    route: Option<&'static Route>,
}

async fn pass(api: Arc<Api>, path: Option<&'static str>, mut request: Request) -> Response<Body> {
    let began = Instant::now();
    let id = request_id(request.headers());
    let parameters = request.extract_parts::<RawPathParams>().await;
    let parameters = match &parameters {
        Ok(found) => found
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        Err(_) => Vec::new(),
    };
    let peer = request.extensions_mut().remove::<Peer>();
    let (parts, body) = request.into_parts();
    let mut passage = Passage {
        api: &api,
        path: parameters,
        // FAIL-CLOSED: everybody without an address shares one.
        peer: peer.unwrap_or(Peer {
            address: ([0, 0, 0, 0], 0).into(),
            certificate: None,
        }),
        caller: None,
        route: None,
        parts,
    };
    let reply = match passage.answer(path, body).await {
        Ok(reply) => reply,
        Err(problem) if passage.wants_page() => {
            let caller = passage.caller.as_ref();
            pages::trouble(&api, caller, &problem, &passage.parts.uri)
        }
        Err(problem) => problem.into_reply(&id),
    };
    passage.finish(reply, &id, began)
}

/// Whoever asked may be gone before there is an answer, and ask for it again.
async fn answer_into(call: Call, place: Place) -> Result<Reply, Problem> {
    let answered = tokio::spawn(async move {
        let answered = answer::answer(call).await;
        place.keep(&answered);
        answered
    });
    // FAIL-CLOSED: what panicked has no result.
    let lost = |_| Problem::new(Kind::Database, "the work was not finished");
    answered.await.map_err(lost)?
}

impl Passage<'_> {
    async fn answer(&mut self, path: Option<&'static str>, body: Body) -> Result<Reply, Problem> {
        let access = &self.api.settings.access;
        access
            .check(&self.parts.uri, &self.parts.headers)
            .map_err(|stranger| Problem::new(Kind::Host, stranger.to_string()))?;
        let method = &self.parts.method;
        let here = || ROUTES.iter().filter(|route| Some(route.path) == path);
        self.route = here().find(|route| route.method.is(method));
        let is_open = self.route.is_some_and(|route| route.permission.is_open());
        // Who is not known learns nothing about what there is.
        let caller = match is_open {
            true => Caller::nobody(),
            false => self.authenticated().await?,
        };
        self.caller = Some(caller.clone()).filter(|_| !is_open);
        let Some(route) = self.route else {
            let allowed: Vec<&str> = here().map(|route| route.method.as_str()).collect();
            return Err(match allowed.is_empty() {
                true => Problem::new(Kind::NotFound, "no such path"),
                false => Problem::new(Kind::Method, format!("`{method}` is not known here"))
                    .allow(allowed.join(", ")),
            });
        };
        caller.require(route.permission)?;
        let is_safe = matches!(*method, Method::GET | Method::HEAD);
        let is_form = !is_safe && route.is_page();
        match is_form {
            true => check_origin(&self.parts.headers)?,
            false if !is_safe => check_csrf(&caller, &self.parts.headers)?,
            false => {}
        }
        if !is_open {
            self.take(&caller)?;
        }
        let is_new = route.endpoint == Endpoint::ProposeAction;
        if is_new && *self.api.live.closing.borrow() {
            let closing = Problem::new(Kind::Overloaded, "the door closes; nothing new is begun");
            return Err(closing.retry_after(Duration::from_secs(5)));
        }
        let path = std::mem::take(&mut self.path);
        let parameters = Parameters::read(path, self.parts.uri.query(), route)?;
        let held = self.read(route, body).await?;
        if is_form && !is_open {
            check_token(&caller, pages::field(&held.bytes, "csrf").as_bytes())?;
        }
        let call = Call {
            api: Arc::clone(self.api),
            caller,
            route,
            parameters,
            headers: self.parts.headers.clone(),
            body: held.bytes.into(),
            _share: held.share,
            peer: self.peer.clone(),
        };
        if is_safe {
            return answer::answer(call).await;
        }
        match self.api.memory.begin(&call, self.parts.uri.path())? {
            First::No(reply) => Ok(reply),
            First::Nameless => answer::answer(call).await,
            First::Named(place) => answer_into(call, place).await,
        }
    }

    /// Whether a browser asks, for something that people look at.
    fn wants_page(&self) -> bool {
        let accept = self.parts.headers.get(ACCEPT);
        let accept = accept.and_then(|value| value.to_str().ok());
        let is_browser = accept.is_some_and(|accept| accept.contains("text/html"));
        is_browser && self.route.is_none_or(Route::is_page)
    }

    async fn authenticated(&self) -> Result<Caller, Problem> {
        let (api, headers) = (self.api, &self.parts.headers);
        let peer = self.peer.address.ip();
        if !api.settings.no_auth && api.doorkeeper.is_behind(headers, peer) {
            api.learn_tokens().await?;
        }
        api.doorkeeper.caller(headers, peer, now_unix_ms()?)
    }

    fn take(&self, caller: &Caller) -> Result<(), Problem> {
        let now = Instant::now();
        let too_often = |whose: &'static str| {
            move |wait| {
                Problem::new(Kind::RateLimited, format!("the {whose} asks too often"))
                    .retry_after(wait)
            }
        };
        let tokens = &self.api.token_rates;
        tokens
            .take(caller.id.clone(), now)
            .map_err(too_often("token"))?;
        match &caller.tenant {
            None => Ok(()),
            Some(tenant) => {
                let tenants = &self.api.tenant_rates;
                tenants
                    .take(tenant.clone(), now)
                    .map_err(too_often("tenant"))
            }
        }
    }

    async fn read(&self, route: &Route, body: Body) -> Result<Held, Problem> {
        let time = self.api.settings.body_time;
        let held = self.api.room.read(body, route.max_body, time).await;
        held.map_err(|error| {
            let kind = match &error {
                ReadError::TooLarge { .. } => Kind::TooLarge,
                ReadError::NoRoom => Kind::Overloaded,
                ReadError::TooSlow => Kind::Slow,
                ReadError::Broken => Kind::Broken,
            };
            Problem::new(kind, error.to_string())
        })
    }

    fn finish(self, mut reply: Reply, id: &str, began: Instant) -> Response<Body> {
        if let Ok(id) = HeaderValue::try_from(id) {
            reply.headers.insert(REQUEST_ID, id);
        }
        for (name, value) in HARDENING {
            if !reply.headers.contains_key(name) {
                let value = HeaderValue::from_static(value);
                reply.headers.insert(HeaderName::from_static(name), value);
            }
        }
        if let Some(observer) = &self.api.settings.observer {
            observer(&Observed::Request(&Answered {
                id,
                method: self.parts.method.as_str(),
                route: self.route.map(|route| route.path),
                status: reply.status.as_u16(),
                time: began.elapsed(),
                caller: self
                    .caller
                    .as_ref()
                    .map(|caller| (caller.id.as_str(), caller.role)),
                headers: &self.parts.headers,
            }));
        }
        debug_assert!(reply.status != 405 || reply.headers.contains_key(ALLOW));
        reply.into_response().into_response()
    }
}

/// The name that the caller gave the request, if it is one, or a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok());
    let is_plain = |text: &&str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        (1..=128).contains(&text.len()) && text.bytes().all(plain)
    };
    match given.filter(is_plain) {
        Some(id) => id.to_owned(),
        None => format!("req_{}", token::random::<12>().unwrap_or_default()),
    }
}

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Nothing here is to be framed, guessed at or told to others.
const HARDENING: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    (
        "content-security-policy",
        "default-src 'none'; frame-ancestors 'none'",
    ),
];
