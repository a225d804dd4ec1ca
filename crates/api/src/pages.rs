//! The pages that people see: what they show is gathered here, how they look is in
//! `countersign_console`.
//!
//! Pages pass the same gate as every other request and use the same readings: what a role may not ask
//! of the API it does not see here either.

use std::sync::Arc;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, HeaderValue, LOCATION, REFERRER_POLICY,
};
use axum::http::{StatusCode, Uri};
use bytes::Bytes;
use countersign_approval::State;
use countersign_console::{CSP, Frame, Html, Link, Tab, Who, asset};

use crate::api::{Api, now_unix_ms};
use crate::call::Call;
use crate::caller::Caller;
use crate::problem::{Kind, Problem};
use crate::reply::{Reply, names};
use crate::route::Page;
use crate::{Permission, Role};

pub(crate) mod door;
mod health;
mod inbox;
mod lease;
mod log;
pub(crate) mod policy;
mod sessions;
mod sign_in;

pub(crate) async fn answer(page: Page, call: Call) -> Result<Reply, Problem> {
    match page {
        Page::Home => home(&call).await,
        Page::Enter => door::enter(&call).await,
        Page::SignIn => sign_in::leave(&call).await,
        Page::SignedIn => sign_in::back(&call).await,
        Page::Leave => door::leave(&call),
        Page::Asset => file(&call),
        Page::Inbox => inbox::show(&call, None, None).await,
        Page::Card => {
            let id = call.parameters.path("approval").to_owned();
            inbox::show(&call, Some(id), None).await
        }
        Page::Edit => inbox::edit(&call).await,
        Page::Lease => lease::show(&call).await,
        Page::Sessions => sessions::list(&call).await,
        Page::Session => sessions::show(&call).await,
        Page::Pack => sessions::pack(&call).await,
        Page::Log => log::show(&call).await,
        Page::Policy => policy::show(&call, None).await,
        Page::AcceptTool => policy::accept(&call).await,
        Page::Backtest => policy::backtest(&call).await,
        Page::Replay => policy::replay(&call).await,
        Page::Health => health::show(&call).await,
    }
}

/// What is shown when something is not there, or not allowed.
pub(crate) fn trouble(api: &Api, caller: Option<&Caller>, problem: &Problem, uri: &Uri) -> Reply {
    let kind = problem.kind();
    let who = caller.map(who);
    let frame = Frame {
        who: who.as_ref(),
        here: None,
        now_unix_ms: now_unix_ms().unwrap_or_default(),
        waiting: None,
        follows: None,
    };
    let page = match kind {
        Kind::Unauthenticated => {
            let next = uri.path_and_query().map(|place| place.as_str());
            let next = next.filter(|_| !uri.path().starts_with("/login"));
            // Who has not tried anything has done nothing wrong.
            let text = problem.detail();
            let text = (!text.starts_with("send ")).then_some(text);
            countersign_console::login(&frame, text, next, door::issuer(api))
        }
        _ => countersign_console::trouble(&frame, kind.code(), kind.title(), problem.detail()),
    };
    let mut reply = html(page);
    reply.status = kind.status();
    reply
}

/// The inbox if anything waits, what agents did otherwise.
async fn home(call: &Call) -> Result<Reply, Problem> {
    let tabs = who(&call.caller).tabs;
    let (api, caller) = (Arc::clone(&call.api), call.caller.clone());
    let count = call.api.workers.run(move || waiting(&api, &caller)).await?;
    let waits = count.is_some_and(|count| count > 0);
    let first = match tabs.first() {
        Some(Tab::Inbox) if !waits => tabs.get(1),
        first => first,
    };
    Ok(to(&first.map_or(Link::to(&["docs"]), |tab| tab.link())))
}

fn file(call: &Call) -> Result<Reply, Problem> {
    let none = || Problem::new(Kind::NotFound, "no such file");
    let asset = asset(call.parameters.path("name")).ok_or_else(none)?;
    let mut reply = Reply::bytes(StatusCode::OK, asset.kind, asset.text);
    if call
        .if_none_match()
        .is_some_and(|known| names(known, &asset.tag))
    {
        reply = Reply::bytes(StatusCode::NOT_MODIFIED, asset.kind, Bytes::new());
    }
    let again = HeaderValue::from_static("public, no-cache");
    reply.headers.insert(CACHE_CONTROL, again);
    if let Ok(tag) = HeaderValue::try_from(asset.tag.as_str()) {
        reply.headers.insert(ETAG, tag);
    }
    Ok(reply)
}

/// Who looks, in the words of the console.
fn who(caller: &Caller) -> Who {
    let may = |permission| caller.role.may(permission);
    let tabs = Tab::ALL.into_iter().filter(|tab| {
        may(match tab {
            Tab::Inbox => Permission::ReadApprovals,
            Tab::Sessions => Permission::ReadSessions,
            Tab::Log => Permission::ReadSessions,
            Tab::Policy => Permission::ReadPolicy,
            Tab::Health => Permission::ReadMetrics,
        })
    });
    Who {
        name: caller.name.clone(),
        role: caller.role.as_str(),
        tabs: tabs.collect(),
        decides: may(Permission::Decide),
        changes: may(Permission::ChangePolicy),
        csrf: caller.csrf.clone().unwrap_or_default(),
    }
}

/// How many actions wait for somebody. Blocks.
fn waiting(api: &Api, caller: &Caller) -> Option<usize> {
    if !caller.role.may(Permission::ReadApprovals) {
        return None;
    }
    let rows = api
        .engine
        .store()
        .reader()
        .approvals_in(State::Pending)
        .ok()?;
    let is_seen = |tenant| caller.tenant.as_ref().is_none_or(|own| own == tenant);
    Some(rows.iter().filter(|row| is_seen(&row.scope.tenant)).count())
}

/// What a page needs to be made, on a thread that may wait for the disk.
struct Maker {
    api: Arc<Api>,
    caller: Caller,
    who: Who,
}

impl Maker {
    fn frame<'a>(&'a self, here: Tab, follows: Option<&'a str>) -> Result<Frame<'a>, Problem> {
        Ok(Frame {
            who: Some(&self.who),
            here: Some(here),
            now_unix_ms: now_unix_ms()?,
            waiting: waiting(&self.api, &self.caller),
            follows,
        })
    }
}

/// Makes a page where waiting for the disk hurts nobody.
async fn make(
    call: &Call,
    make: impl FnOnce(&Maker) -> Result<Html, Problem> + Send + 'static,
) -> Result<Reply, Problem> {
    let maker = Maker {
        api: Arc::clone(&call.api),
        caller: call.caller.clone(),
        who: who(&call.caller),
    };
    let page = call.api.workers.run(move || make(&maker)).await??;
    Ok(html(page))
}

fn html(page: Html) -> Reply {
    let text = page.into_string();
    let mut reply = Reply::bytes(StatusCode::OK, "text/html; charset=utf-8", text);
    let headers = &mut reply.headers;
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CSP));
    // Without any, browsers would not say that a form comes from here.
    let own = HeaderValue::from_static("same-origin");
    headers.insert(REFERRER_POLICY, own);
    reply
}

fn to(link: &Link) -> Reply {
    let mut reply = Reply::bytes(StatusCode::SEE_OTHER, "text/plain", "there\n");
    if let Ok(place) = HeaderValue::try_from(link.as_str()) {
        reply.headers.insert(LOCATION, place);
    }
    reply
}

/// A field of a form.
pub(crate) fn field(body: &[u8], name: &str) -> String {
    let found = url::form_urlencoded::parse(body).find(|(known, _)| known == name);
    found
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

/// What the live stream is asked for, as it stands behind its path.
fn follow(query: &[(&'static str, &str)]) -> String {
    let link = Link::to(&[]);
    let link = query
        .iter()
        .fold(link, |link, (name, value)| link.with(name, value));
    link.as_str().trim_start_matches(['/', '?']).to_owned()
}

/// Agents look at one session, and this is about all of them.
fn not_for_agents(call: &Call) -> Result<(), Problem> {
    match call.caller.role {
        Role::Agent => Err(Problem::new(
            Kind::Parameter,
            "an agent looks at one session: open it from the table of sessions",
        )),
        _ => Ok(()),
    }
}
