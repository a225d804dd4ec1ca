//! Web pages that the operator has named: what their browsers ask before they send a message, and what they have
//! to hear with the answer before the page may see it.
//!
//! SECURITY: only pages that were named. Others of this machine may send what a browser sends without asking, and
//! see no answer.

use countersign_web::Access;
use hyper::body::Incoming;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use hyper::{Method as Verb, Request, Response, StatusCode};

use super::body::Sent;
use super::reply;

/// A page that was named.
pub(super) struct Page(HeaderValue);

impl Page {
    /// The one that has a browser send this.
    pub(super) fn of(access: &Access, request: &Request<Incoming>) -> Option<Self> {
        let origin = request.headers().get(ORIGIN)?;
        let is_named = origin.to_str().is_ok_and(|origin| access.is_named(origin));
        is_named.then(|| Self(origin.clone()))
    }

    /// The answer to a browser that asks for leave. It brings no token yet.
    pub(super) fn leave(&self, access: &Access, request: &Request<Incoming>) -> Response<Sent> {
        let asked = request.headers();
        if let Err(stranger) = access.check_names(request.uri(), asked) {
            return reply::stranger(stranger);
        }
        let mut response = reply::bare(StatusCode::NO_CONTENT);
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        if let Some(wanted) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        response
    }

    /// From now on the page may see the answer.
    fn show(self, response: &mut Response<Sent>) {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.0);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, SEEN);
    }
}

/// The same answer, which the page may see that has asked. Whoever keeps it has to know that others may not.
pub(super) fn told(
    access: &Access,
    page: Option<Page>,
    mut response: Response<Sent>,
) -> Response<Sent> {
    if let Some(page) = page {
        page.show(&mut response);
    }
    if access.names_pages() {
        let origin = HeaderValue::from_static("origin");
        response.headers_mut().append(VARY, origin);
    }
    response
}

/// Whether a browser asks whether it may send something.
pub(super) fn asks_for_leave(request: &Request<Incoming>) -> bool {
    let is_asked = request
        .headers()
        .contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    is_asked && *request.method() == Verb::OPTIONS
}

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// What a client of the protocol looks at.
const SEEN: HeaderValue =
    HeaderValue::from_static("mcp-session-id, mcp-protocol-version, www-authenticate");
