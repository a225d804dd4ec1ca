//! What goes back to a caller.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue};
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use countersign_canon::{Hash, Json};

/// An answer.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    Whole(Bytes),
    /// It comes piece by piece.
    Stream(Body),
}

impl Reply {
    pub(crate) fn json(status: StatusCode, json: &Json) -> Self {
        // Numbers that a double does not hold can only come from our own counters; the other form
        // keeps them exactly.
        let mut text = json.to_jcs().unwrap_or_else(|_| json.to_sorted_ascii());
        text.push(b'\n');
        Self::bytes(status, "application/json", text)
    }

    pub(crate) fn ok(json: &Json) -> Self {
        Self::json(StatusCode::OK, json)
    }

    pub(crate) fn bytes(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Self {
            status,
            headers,
            content: Content::Whole(text.into()),
        }
    }

    pub(crate) fn stream(kind: &'static str, body: Body) -> Self {
        let mut reply = Self::bytes(StatusCode::OK, kind, Bytes::new());
        reply.content = Content::Stream(body);
        reply
    }

    /// Names what is answered, so that whoever has it already need not get it again.
    pub(crate) fn tagged(mut self, if_none_match: Option<&str>) -> Self {
        let Content::Whole(bytes) = &self.content else {
            return self;
        };
        let tag = tag(bytes);
        if if_none_match.is_some_and(|known| names(known, &tag)) {
            self.status = StatusCode::NOT_MODIFIED;
            self.content = Content::Whole(Bytes::new());
            self.headers.remove(CONTENT_TYPE);
        }
        if let Ok(tag) = HeaderValue::try_from(tag) {
            self.headers.insert(ETAG, tag);
            let private = HeaderValue::from_static("private, no-cache");
            self.headers.insert(CACHE_CONTROL, private);
        }
        self
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let body = match self.content {
            Content::Whole(bytes) => Body::from(bytes),
            Content::Stream(body) => body,
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// The entity tag of some content.
pub(crate) fn tag(bytes: &[u8]) -> String {
    let hash = Hash::of(bytes).to_string();
    format!("\"{}\"", hash.get(..32).unwrap_or(&hash))
}

/// Whether a list of entity tags names this one.
pub(crate) fn names(list: &str, tag: &str) -> bool {
    let mut tags = list.split(',').map(str::trim);
    tags.any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}
