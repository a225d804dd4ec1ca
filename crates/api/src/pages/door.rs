//! Coming in and going.

use axum::http::StatusCode;
use axum::http::header::{ACCEPT, HeaderValue, LOCATION, SET_COOKIE};
use countersign_console::{Frame, Link};

use crate::api::{Api, now_unix_ms};
use crate::call::Call;
use crate::problem::{Kind, Problem};
use crate::reply::Reply;

/// A link that works once; without its code, the page where a token can be given.
pub(crate) fn link(call: &Call) -> Result<Reply, Problem> {
    let Some(code) = call.parameters.query("code") else {
        let accept = call.headers.get(ACCEPT).and_then(|text| text.to_str().ok());
        if !accept.is_some_and(|accept| accept.contains("text/html")) {
            let text = "the link has no code";
            return Err(Problem::new(Kind::Unauthenticated, text));
        }
        let frame = Frame {
            who: None,
            here: None,
            now_unix_ms: now_unix_ms()?,
            waiting: None,
            follows: None,
        };
        let page = countersign_console::login(&frame, None, None, issuer(&call.api));
        return Ok(super::html(page));
    };
    let cookie = call.api.doorkeeper.enter(code, call.peer.address.ip())?;
    come_in(call, Some(&cookie), &Link::to(&[]))
}

/// A token, given in a form.
pub(crate) async fn enter(call: &Call) -> Result<Reply, Problem> {
    let token = super::field(&call.body, "token");
    if token.trim().is_empty() {
        // Nobody guesses with nothing.
        return Err(Problem::new(Kind::Unauthenticated, "give a token"));
    }
    let peer = call.peer.address.ip();
    let doorkeeper = &call.api.doorkeeper;
    if doorkeeper.is_new(token.trim(), peer) {
        call.api.learn_tokens().await?;
    }
    let cookie = doorkeeper.trade(token.trim(), peer, now_unix_ms()?)?;
    come_in(
        call,
        Some(&cookie),
        &wanted(&super::field(&call.body, "next")),
    )
}

pub(crate) fn leave(call: &Call) -> Result<Reply, Problem> {
    call.api.doorkeeper.leave(&call.headers);
    come_in(call, None, &Link::to(&["login"]))
}

/// Where people can sign in, if they can.
pub(super) fn issuer(api: &Api) -> Option<&str> {
    let oidc = api.settings.oidc.as_ref()?;
    api.settings.sign_in.as_ref().map(|_| oidc.issuer())
}

fn come_in(call: &Call, cookie: Option<&str>, link: &Link) -> Result<Reply, Problem> {
    let mut reply = Reply::bytes(StatusCode::SEE_OTHER, "text/plain", "come in\n");
    let cookie = call.api.doorkeeper.set_cookie(cookie);
    let no_header = |_| Problem::new(Kind::Overloaded, "no cookie could be made");
    let cookie = HeaderValue::try_from(cookie).map_err(no_header)?;
    let place = HeaderValue::try_from(link.as_str()).map_err(no_header)?;
    reply.headers.insert(SET_COOKIE, cookie);
    reply.headers.insert(LOCATION, place);
    Ok(reply)
}

/// The page that somebody wanted to see.
///
/// SECURITY: it is taken apart and put together again, so it leads nowhere else.
pub(super) fn wanted(next: &str) -> Link {
    let path = next.split(['?', '#']).next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let is_plain = |part: &&str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        part.bytes().all(plain)
    };
    match parts.len() <= 2 && parts.iter().all(is_plain) {
        true => Link::to(&parts),
        false => Link::to(&[]),
    }
}
