//! Responses of our own making.

use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use tokio::sync::oneshot;

use crate::Id;
use crate::reply::Refused;

use super::body::Sent;
use countersign_web::Stranger;

/// Where the response to a request is waited for. It is closed when the client is gone.
pub(super) type Waiting = oneshot::Sender<Response<Sent>>;

/// A message.
pub(super) fn message(status: StatusCode, bytes: Vec<u8>) -> Response<Sent> {
    let mut response = Response::new(Sent::from(bytes));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    let fresh = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, fresh);
    response
}

/// An error as a message.
pub(super) fn error(status: StatusCode, refused: &Refused, id: Option<&Id>) -> Response<Sent> {
    message(status, refused.to_error(id))
}

/// For somebody whose server does not read what it is sent.
pub(super) fn unread(id: Option<&Id>) -> Response<Sent> {
    let text = "refused: the server does not read what it is sent; try again later";
    let refused = Refused::denied("SERVER_BUSY", text);
    error(StatusCode::SERVICE_UNAVAILABLE, &refused, id)
}

/// For somebody who is not let in.
pub(super) fn stranger(stranger: Stranger) -> Response<Sent> {
    let (status, reason) = match stranger {
        Stranger::Host | Stranger::Origin => (StatusCode::FORBIDDEN, "FORBIDDEN"),
        Stranger::Token => (StatusCode::UNAUTHORIZED, "UNAUTHORIZED"),
    };
    let refused = Refused::denied(reason, format!("refused: {stranger}"));
    let mut response = error(status, &refused, None);
    if stranger == Stranger::Token {
        let bearer = HeaderValue::from_static("Bearer realm=\"countersign\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
    }
    response
}

/// Nothing but a status.
pub(super) fn bare(status: StatusCode) -> Response<Sent> {
    let mut response = Response::new(Sent::Whole(None));
    *response.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        let methods = HeaderValue::from_static("GET, POST, DELETE");
        response.headers_mut().insert(ALLOW, methods);
    }
    response
}

/// What the server said.
pub(super) fn passed(status: StatusCode, headers: HeaderMap, body: Sent) -> Response<Sent> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
