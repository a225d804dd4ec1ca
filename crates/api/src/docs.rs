//! The description of the API, for programs and for people. The page needs nothing from anywhere else.

use std::sync::LazyLock;

use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use bytes::Bytes;

use crate::call::Call;
use crate::reply::Reply;

pub(crate) fn openapi(call: &Call) -> Reply {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| {
        let text = crate::openapi::openapi().to_sorted_ascii();
        Bytes::from(text)
    });
    Reply::bytes(StatusCode::OK, "application/json", TEXT.clone()).tagged(call.if_none_match())
}

pub(crate) fn page(call: &Call) -> Reply {
    let mut reply = Reply::bytes(StatusCode::OK, "text/html; charset=utf-8", PAGE);
    // SECURITY: the page may read this API and run its own lines, and nothing else.
    let policy = HeaderValue::from_static(
        "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    );
    reply.headers.insert(CONTENT_SECURITY_POLICY, policy);
    reply.tagged(call.if_none_match())
}

const PAGE: &str = include_str!("docs.html");
