//! Where a server's tokens come from (RFC 9728): the server's own words, under the address that the
//! client knows.
//!
//! A client compares the address in the metadata with the one it calls; so the one is put in the place
//! of the other, and nothing else changes.

use std::sync::Arc;

use bytes::Bytes;
use countersign_canon::{Json, Limits};
use hyper::header::{ACCEPT, HOST, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method as Verb, Response, StatusCode};

use super::body::Sent;
use super::lobby::Lobby;
use super::reply;
use super::upstream::{Idle, Remote, Upstream};
use countersign_web::only;

/// Where metadata are found, with the path of the server behind it.
pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The metadata of the server at `path`.
pub(super) async fn answer(lobby: &Arc<Lobby>, path: &str, headers: &HeaderMap) -> Response<Sent> {
    let found = match (&lobby.upstream, address(headers, path)) {
        (Upstream::Http(remote), Some(ours)) => fetch(lobby, remote, &ours).await,
        _ => None,
    };
    match found {
        Some(bytes) => reply::message(StatusCode::OK, bytes),
        None => reply::bare(StatusCode::NOT_FOUND),
    }
}

/// How the client calls the server at `path`.
pub(super) fn address(headers: &HeaderMap, path: &str) -> Option<String> {
    let host = only(headers, &HOST).ok().flatten()?;
    Some(format!("http://{host}{path}"))
}

async fn fetch(lobby: &Arc<Lobby>, remote: &Remote, ours: &str) -> Option<Vec<u8>> {
    let own = remote.address().path().trim_end_matches('/').to_owned();
    // For the path first, then for all of the server.
    for path in [format!("{WELL_KNOWN}{own}"), WELL_KNOWN.to_owned()] {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let remote = remote.at(&path)?;
        let time = lobby.limits.response_time;
        let sending = remote.send(Idle::default(), Verb::GET, headers, Bytes::new());
        let response = tokio::time::timeout(time, sending).await.ok()?.ok()?;
        if !response.status().is_success() {
            continue;
        }
        let read = lobby.room.read(response.into_body(), LARGEST, time).await;
        return rewritten(&read.ok()?.bytes, ours);
    }
    None
}

/// The metadata with our address as that of the resource.
fn rewritten(bytes: &[u8], ours: &str) -> Option<Vec<u8>> {
    let Json::Object(_) = Json::admit(bytes, &Limits::event()).ok()? else {
        return None;
    };
    let whole = crate::Span::from(0..bytes.len());
    let resource = crate::frame::member(bytes, whole, "resource")?;
    let text = Json::from(ours).to_sorted_ascii();
    crate::splice::replace(bytes, resource, &[&text])
}

/// A challenge that names our metadata in the place of the server's.
pub(super) fn challenge(headers: &mut HeaderMap, ours: Option<&str>) {
    let Some((origin, path)) = ours.and_then(split) else {
        return;
    };
    let ours = format!("{origin}{WELL_KNOWN}{path}");
    let said: Vec<HeaderValue> = headers.get_all(WWW_AUTHENTICATE).iter().cloned().collect();
    headers.remove(WWW_AUTHENTICATE);
    for one in said {
        let led = led_to(&one, &ours).unwrap_or(one);
        headers.append(WWW_AUTHENTICATE, led);
    }
}

/// The same challenge with this address of metadata; `None` if it names none.
fn led_to(said: &HeaderValue, ours: &str) -> Option<HeaderValue> {
    let said = said.to_str().ok()?;
    // The names of parameters have no case.
    let at = said.to_ascii_lowercase().find(PARAMETER)? + PARAMETER.len();
    let (before, rest) = said.split_at_checked(at)?;
    let (_, after) = rest.split_once('"')?;
    HeaderValue::try_from(format!("{before}{ours}\"{after}")).ok()
}

fn split(address: &str) -> Option<(&str, &str)> {
    let host = address.find("://")? + 3;
    let path = address.get(host..)?.find('/')? + host;
    address.split_at_checked(path)
}

const PARAMETER: &str = "resource_metadata=\"";
const LARGEST: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_changes() {
        let metadata = br#"{ "resource" : "https://up.example/mcp","authorization_servers":["https://as.example"],"resource_name":"x" }"#;
        let ours = rewritten(metadata, "http://localhost:7300/mcp/web").unwrap();
        assert_eq!(
            String::from_utf8(ours).unwrap(),
            r#"{ "resource" : "http://localhost:7300/mcp/web","authorization_servers":["https://as.example"],"resource_name":"x" }"#
        );
        for odd in ["[]", "{}", r#"{"resource":"a","resource":"b"}"#, "<html>"] {
            assert_eq!(
                rewritten(odd.as_bytes(), "http://localhost/mcp"),
                None,
                "{odd}"
            );
        }
    }

    #[test]
    fn a_challenge_leads_to_us() {
        let check = |said: &str, expect: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(WWW_AUTHENTICATE, said.parse().unwrap());
            challenge(&mut headers, Some("http://localhost:7300/mcp"));
            assert_eq!(headers[WWW_AUTHENTICATE], expect);
        };
        check(
            r#"Bearer realm="r", resource_metadata="https://up.example/.well-known/x", scope="s""#,
            r#"Bearer realm="r", resource_metadata="http://localhost:7300/.well-known/oauth-protected-resource/mcp", scope="s""#,
        );
        check("Bearer", "Bearer");
        let mut headers = HeaderMap::new();
        headers.append(WWW_AUTHENTICATE, r#"Basic realm="r""#.parse().unwrap());
        headers.append(
            WWW_AUTHENTICATE,
            r#"Bearer Resource_Metadata="https://up.example/x""#
                .parse()
                .unwrap(),
        );
        challenge(&mut headers, Some("http://localhost:7300/mcp"));
        let told: Vec<_> = headers.get_all(WWW_AUTHENTICATE).iter().collect();
        assert_eq!(told[0], r#"Basic realm="r""#);
        assert_eq!(
            told[1],
            r#"Bearer Resource_Metadata="http://localhost:7300/.well-known/oauth-protected-resource/mcp""#
        );
        check(
            r#"Bearer resource_metadata="x"#,
            r#"Bearer resource_metadata="x"#,
        );
    }
}
