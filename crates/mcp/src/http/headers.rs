//! Headers: which of them go on to the other side.

use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, ALT_SVC, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST,
    HeaderMap, HeaderName, HeaderValue, LOCATION, ORIGIN, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    REFRESH, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};

use crate::frame::{Frame, FrameLimits, Kind};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(super) const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
pub(super) const PARAM_PREFIX: &str = "mcp-param-";
/// What a browser says about the page that has it send something.
const FETCH_PREFIX: &str = "sec-fetch-";
/// What browsers and servers say to each other about pages.
const PAGES_PREFIX: &str = "access-control-";

/// What a client's request says to the server. The host is the server's own; the page that called
/// was judged here. Bodies are looked at, so they must come as they are.
pub(super) fn to_server(headers: &HeaderMap) -> HeaderMap {
    let mut passed = end_to_end(headers);
    for name in [HOST, ORIGIN, EXPECT, CONTENT_LENGTH] {
        passed.remove(name);
    }
    // SECURITY: a server that heeds them does something else than what was judged here.
    for name in OVERRIDES {
        passed.remove(name);
    }
    remove(&mut passed, |name| {
        // SECURITY: some servers take `_` for `-`, and would see a name that was not looked at here.
        name.contains('_') || name.starts_with(FETCH_PREFIX) || name.starts_with(PAGES_PREFIX)
    });
    passed.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    // What was read is what is sent, whatever else the client said about it.
    if passed.contains_key(CONTENT_TYPE) {
        passed.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    passed
}

/// What a server's response says to the client. Its length is counted anew, and which pages may see it is said
/// here.
pub(super) fn to_client(headers: &HeaderMap) -> HeaderMap {
    let mut passed = end_to_end(headers);
    // SECURITY: who follows the others leaves by another door.
    for name in [CONTENT_LENGTH, LOCATION, REFRESH, ALT_SVC] {
        passed.remove(name);
    }
    remove(&mut passed, |name| name.starts_with(PAGES_PREFIX));
    passed
}

/// Takes out what has such names. Most have none of it.
fn remove(headers: &mut HeaderMap, goes: impl Fn(&str) -> bool) {
    let names = headers.keys().filter(|name| goes(name.as_str()));
    let names: Vec<HeaderName> = names.cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

/// The headers of a message of ours to the server: those of the client, as far as they are not about
/// the client's own message.
pub(super) fn of_ours(client: &HeaderMap, message: &[u8]) -> HeaderMap {
    let is_ours = |name: &HeaderName| {
        let about_message = *name == METHOD || *name == NAME || *name == LAST_EVENT_ID;
        !about_message && !name.as_str().starts_with(PARAM_PREFIX)
    };
    let headers = client.iter().filter(|(name, _)| is_ours(name));
    let mut ours: HeaderMap = headers
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let both = HeaderValue::from_static("application/json, text/event-stream");
    ours.insert(ACCEPT, both);
    ours.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if client.contains_key(METHOD)
        && let Ok(frame) = Frame::read(message.to_vec(), &FrameLimits::default())
        && let Kind::Request { name, .. } | Kind::Notification { name, .. } = frame.kind()
        && let Some(method) = frame.text(Some(*name))
        && let Ok(method) = HeaderValue::try_from(&*method)
    {
        ours.insert(METHOD, method);
    }
    ours
}

fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers.clone();
    let named = headers.get_all(CONNECTION).iter();
    let named: Vec<HeaderName> = named
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // SECURITY: a client must not make us forget what the server needs.
        .filter(|name: &HeaderName| !name.as_str().starts_with("mcp-"))
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        passed.remove(name);
    }
    passed
}

/// By which some servers let a request have another method or another address than it has.
const OVERRIDES: [HeaderName; 5] = [
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-method-override"),
    HeaderName::from_static("x-original-url"),
    HeaderName::from_static("x-rewrite-url"),
];

const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_one_leg_stays_there() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Hop, Mcp-Session-Id"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("content-length", "7"),
            ("host", "localhost"),
            ("origin", "http://localhost"),
            ("sec-fetch-site", "cross-site"),
            ("access-control-request-method", "POST"),
            ("x-http-method-override", "DELETE"),
            ("x-original-url", "/admin"),
            ("accept-encoding", "br"),
            ("mcp-session-id", "s"),
            ("authorization", "Bearer t"),
            ("x-other", "kept"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let passed = to_server(&headers);
        let mut names: Vec<&str> = passed.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "accept-encoding",
                "authorization",
                "mcp-session-id",
                "x-other"
            ]
        );
        assert_eq!(passed[ACCEPT_ENCODING], "identity");
    }

    #[test]
    fn which_pages_may_see_an_answer_is_not_the_servers_to_say() {
        let mut headers = HeaderMap::new();
        for name in [
            "access-control-allow-origin",
            "access-control-allow-credentials",
            "mcp-session-id",
        ] {
            headers.append(name, "*".parse().unwrap());
            headers.append(name, "true".parse().unwrap());
        }
        let passed = to_client(&headers);
        let names: Vec<&str> = passed.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["mcp-session-id"]);
    }
}
