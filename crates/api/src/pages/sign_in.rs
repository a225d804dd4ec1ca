//! Signing in at the issuer, as a browser goes through it.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::{HOST, HeaderName, HeaderValue, LOCATION, SET_COOKIE};
use countersign_console::Frame;

use super::door::wanted;
use crate::api::now_unix_ms;
use crate::call::Call;
use crate::oidc::Oidc;
use crate::problem::{Kind, Problem};
use crate::reply::Reply;
use crate::sign_in::{Errand, SignIn};

/// Sends the browser to the issuer.
pub(super) async fn leave(call: &Call) -> Result<Reply, Problem> {
    let (sign_in, _) = settings(call)?;
    let errands = &call.api.errands;
    errands.take(call.peer.address.ip()).map_err(|wait| {
        let text = "too many sign-ins began at this address";
        Problem::new(Kind::RateLimited, text).retry_after(wait)
    })?;
    let issuer = Arc::clone(&sign_in.issuer);
    let asked = errands.workers.run(move || issuer.authorize_url()).await;
    let page = asked
        .map_err(|_| busy())?
        .map_err(|error| unreachable(&error))?;
    let next = call.parameters.query("next").unwrap_or_default().to_owned();
    let no_randomness = || Problem::new(Kind::Overloaded, "the system gave no randomness");
    let errand = Errand::new(back_url(call, &sign_in)?, next).ok_or_else(no_randomness)?;
    let place = errand.question(&sign_in, &page);
    let place = place.ok_or_else(|| unreachable("its address cannot be read"))?;
    let cookie = errands.begin(errand).ok_or_else(no_randomness)?;
    let mut reply = Reply::bytes(StatusCode::SEE_OTHER, "text/plain", "to the issuer\n");
    let headers = &mut reply.headers;
    headers.insert(
        SET_COOKIE,
        header(&call.api.doorkeeper.set_errand(Some(&cookie)))?,
    );
    headers.insert(LOCATION, header(&place)?);
    Ok(reply)
}

/// Lets the browser in that the issuer has sent back.
///
/// SECURITY: the code counts only with the cookie of the browser that asked for it, with the state of
/// its question, and once; so nobody is let in by somebody else's link.
pub(super) async fn back(call: &Call) -> Result<Reply, Problem> {
    let (sign_in, oidc) = settings(call)?;
    let doorkeeper = &call.api.doorkeeper;
    let peer = call.peer.address.ip();
    let wrong = |text: &str| doorkeeper.wrong(peer, text);
    let given = |name: &str| call.parameters.query(name).unwrap_or_default();
    let errand = doorkeeper.errand(&call.headers);
    let errand = errand.and_then(|cookie| call.api.errands.end(cookie));
    let errand = errand.ok_or_else(|| {
        wrong("this browser has not begun to sign in, or too long ago: begin again")
    })?;
    if !errand.is_state(given("state")) {
        return Err(wrong("the answer is for another browser: begin again"));
    }
    if call
        .parameters
        .query("iss")
        .is_some_and(|issuer| issuer != oidc.issuer())
    {
        return Err(wrong("the answer is of another issuer"));
    }
    if let Some(error) = call.parameters.query("error") {
        return Err(wrong(&format!("the issuer did not let you in: {error}")));
    }
    let code = given("code").to_owned();
    if code.is_empty() {
        return Err(wrong("the issuer gave no code"));
    }
    let (visit, now) = (sign_in.visit, now_unix_ms()?);
    let next = wanted(&errand.next);
    let asked = move || errand.answer(&code, &sign_in, &oidc, now);
    let asked = call.api.errands.workers.run(asked).await;
    let caller = asked.map_err(|_| busy())?;
    let caller = caller.map_err(|error| wrong(&format!("nobody was let in: {error}")))?;
    let frame = Frame {
        who: None,
        here: None,
        now_unix_ms: now,
        waiting: None,
        follows: None,
    };
    let page = countersign_console::came_in(&frame, &caller.name, &next);
    let cookie = doorkeeper.welcome(caller, visit)?;
    let mut reply = super::html(page);
    let headers = &mut reply.headers;
    headers.append(SET_COOKIE, header(&doorkeeper.set_cookie(Some(&cookie)))?);
    headers.append(SET_COOKIE, header(&doorkeeper.set_errand(None))?);
    // A browser that is led here by another site does not show its new cookie; led on by this page it does.
    headers.insert(REFRESH, header(&format!("0; url={}", next.as_str()))?);
    Ok(reply)
}

fn settings(call: &Call) -> Result<(SignIn, Arc<Oidc>), Problem> {
    let settings = &call.api.settings;
    match (&settings.sign_in, &settings.oidc) {
        (Some(sign_in), Some(oidc)) => Ok((sign_in.clone(), Arc::clone(oidc))),
        _ => Err(Problem::new(
            Kind::Unauthenticated,
            "nobody signs in at an issuer here: `oidc.client_id` is not set",
        )),
    }
}

/// Where the issuer sends browsers to. Its own list says whether that is one of ours.
fn back_url(call: &Call, sign_in: &SignIn) -> Result<String, Problem> {
    let place = match &sign_in.public_url {
        Some(place) => place.trim_end_matches('/').to_owned(),
        None => {
            let scheme = match call.api.settings.is_secure {
                true => "https",
                false => "http",
            };
            let none = || Problem::new(Kind::Host, "the request names no host");
            let host = call.header(&HOST).ok_or_else(none)?;
            format!("{scheme}://{host}")
        }
    };
    Ok(format!("{place}/login/back"))
}

fn header(text: &str) -> Result<HeaderValue, Problem> {
    let no_header = |_| Problem::new(Kind::Overloaded, "no header could be made");
    HeaderValue::try_from(text).map_err(no_header)
}

fn unreachable(error: &str) -> Problem {
    let text = format!("the issuer cannot be asked: {error}");
    Problem::new(Kind::Overloaded, text)
}

fn busy() -> Problem {
    let text = "too many wait for the issuer; try again";
    Problem::new(Kind::Overloaded, text).retry_after(std::time::Duration::from_secs(1))
}

const REFRESH: HeaderName = HeaderName::from_static("refresh");
