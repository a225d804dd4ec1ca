//! Sessions: the table, one of them, one event, a pack of evidence.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, HeaderValue};
use countersign_canon::Json;
use countersign_console::{Html, SessionPage, SessionsPage, Tab, View};
use countersign_event::{Line, Scope};
use countersign_policy::manifest::Manifest;
use countersign_store::{Cursor, Filter, Reader, SessionFilter, SessionSummary};

use super::{Maker, follow, make};
use crate::api::now_unix_ms;
use crate::call::Call;
use crate::problem::{Kind, Problem};
use crate::query::{About, Asked, Query};
use crate::reply::Reply;
use crate::{Permission, Role};
use crate::{events, log, sessions};

pub(super) async fn list(call: &Call) -> Result<Reply, Problem> {
    let query = call.parameters.query("q").unwrap_or_default().to_owned();
    let cursor = call
        .parameters
        .query("cursor")
        .map(str::parse)
        .transpose()?;
    make(call, move |maker| table(maker, &query, cursor.as_ref())).await
}

fn table(maker: &Maker, query: &str, cursor: Option<&Cursor>) -> Result<Html, Problem> {
    let caller = &maker.caller;
    let filter = SessionFilter {
        tenant: caller.tenant.clone(),
        session: caller.session.clone(),
        owner: (caller.role == Role::Agent).then(|| caller.id.clone()),
    };
    let reader = maker.api.engine.store().reader();
    let read: Result<Query, _> = query.parse();
    let (mut found, mut next, mut looked_at, mut wrong) = (Vec::new(), None, None, None);
    match &read {
        Ok(query) if query.at(0).is_everything() => {
            let page = reader.newest_sessions(&filter, cursor, PAGE)?;
            next = page.next.map(|next| next.to_string());
            found = page.sessions;
        }
        Ok(query) => {
            let (sessions, looked) = fitting(reader, &filter, &query.at(now_unix_ms()?))?;
            (found, looked_at) = (sessions, looked);
        }
        Err(error) => wrong = Some(error.to_string()),
    }
    let rows: Vec<Json> = found.iter().map(sessions::json).collect();
    let follows = match (&caller.role, &caller.tenant) {
        (Role::Agent, _) => None,
        (_, None) => Some(String::new()),
        (_, Some(tenant)) => Some(follow(&[("tenant_id", tenant.as_str())])),
    };
    let frame = maker.frame(Tab::Sessions, follows.as_deref())?;
    Ok(countersign_console::sessions(
        &frame,
        &SessionsPage {
            sessions: &rows,
            query,
            trouble: wrong.as_deref(),
            looked_at,
            next: next.as_deref(),
        },
    ))
}

/// Sessions that have an event which fits, the newest event first.
fn fitting(
    reader: &Reader,
    filter: &SessionFilter,
    asked: &Asked,
) -> Result<(Vec<SessionSummary>, Option<u64>), Problem> {
    let events = Filter {
        tenant: filter.tenant.clone(),
        session: filter.session.clone(),
        ..Filter::default()
    };
    let newest = reader.last(&events, LOOKED)?;
    let is_all = newest.len() < LOOKED;
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for event in newest.iter().rev() {
        let line = Line::read(&event.line).map_err(countersign_store::Error::from)?;
        if !asked.fits(&About::of(&line)) {
            continue;
        }
        let scope = Scope::new(line.tenant_id.as_ref(), line.session_id.as_ref())?;
        let is_own = match &filter.owner {
            None => true,
            Some(owner) => reader.session_owner(&scope)?.as_ref() == Some(owner),
        };
        if is_own && found.len() < PAGE && seen.insert(scope.clone()) {
            found.extend(reader.session(&scope)?);
        }
    }
    Ok((found, (!is_all).then_some(newest.len() as u64)))
}

pub(super) async fn show(call: &Call) -> Result<Reply, Problem> {
    let scope = call.session().await?;
    if let Some(seq) = call.parameters.query("seq") {
        let number = |_| Problem::new(Kind::Parameter, "`seq` is a number");
        let seq: u64 = seq.parse().map_err(number)?;
        return make(call, move |maker| event(maker, &scope, seq)).await;
    }
    let view = call.parameters.query("view").unwrap_or("compact");
    let view = View::named(view)
        .ok_or_else(|| Problem::new(Kind::Parameter, "`view` is `compact`, `timeline` or `raw`"))?;
    let cursor = call.parameters.query("cursor").map(str::to_owned);
    let verifies = call.parameters.query("verify").is_some();
    make(call, move |maker| {
        page(maker, &scope, view, cursor.as_deref(), verifies)
    })
    .await
}

fn page(
    maker: &Maker,
    scope: &Scope,
    view: View,
    cursor: Option<&str>,
    verifies: bool,
) -> Result<Html, Problem> {
    let engine = &maker.api.engine;
    let reader = engine.store().reader();
    let session = reader.session(scope)?;
    let session = session.ok_or_else(|| Problem::new(Kind::NoSession, "no such session"))?;
    let after = cursor.map(str::parse::<Cursor>).transpose()?;
    let page = reader.page(&Filter::session(scope), after.as_ref(), EVENTS)?;
    let events: Vec<Json> = page
        .events
        .iter()
        .map(events::json)
        .collect::<Result<_, _>>()?;
    let verified = match verifies {
        true => Some(sessions::verified(&sessions::recompute(scope, engine)?)),
        false => None,
    };
    let snapshot = match session.erased_unix_ms {
        None => Some(sessions::snapshot_json(scope, engine)?),
        Some(_) => None,
    };
    let policies = engine.policies();
    let manifest = policies.capability().manifest().map(Manifest::to_json);
    let budgets = manifest
        .as_ref()
        .and_then(|manifest| manifest.get("permissions")?.get("budgets"));
    let next = page.next.map(|next| next.to_string());
    let covered = covered(reader, scope, session.events)?;
    let summary = sessions::json(&session);
    let follows = follow(&[
        ("tenant_id", scope.tenant.as_str()),
        ("session_id", scope.session.as_str()),
    ]);
    // A page that is checked stays as it was checked.
    let frame = maker.frame(Tab::Sessions, (!verifies).then_some(&follows))?;
    Ok(countersign_console::session(
        &frame,
        &SessionPage {
            session: &summary,
            events: &events,
            view,
            cursor: (cursor, next.as_deref()),
            snapshot: snapshot.as_ref(),
            budgets,
            verified: verified.as_ref(),
            covered,
            has_pack: maker.api.settings.house.is_some()
                && maker.caller.role.may(Permission::ReadPolicy),
        },
    ))
}

/// How many events of a session the newest checkpoint covers.
fn covered(reader: &Reader, scope: &Scope, events: u64) -> Result<Option<u64>, Problem> {
    let Some(published) = reader.last_checkpoint()? else {
        return Ok(None);
    };
    // Places in the log grow with places in the session.
    let (mut low, mut high) = (0, events);
    while low < high {
        let middle = low + (high - low) / 2;
        let event = reader.event(scope, middle)?;
        match event.is_some_and(|event| event.id <= published.checkpoint.size) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    Ok(Some(low))
}

fn event(maker: &Maker, scope: &Scope, seq: u64) -> Result<Html, Problem> {
    let reader = maker.api.engine.store().reader();
    let event = reader.event(scope, seq)?;
    let event = event.ok_or_else(|| Problem::new(Kind::NoSession, "no such event"))?;
    let json = events::json(&event)?;
    let proof = log::prove(event.id.saturating_sub(1), reader);
    let why = match &proof {
        Err(problem) if problem.kind() == Kind::Unpublished => {
            format!("{}; until then there is no proof", problem.detail())
        }
        Err(problem) => problem.detail().to_owned(),
        Ok(_) => String::new(),
    };
    let frame = maker.frame(Tab::Log, None)?;
    let proof = proof.as_ref().map_err(|_| why.as_str());
    Ok(countersign_console::event(&frame, &json, proof, None))
}

pub(super) async fn pack(call: &Call) -> Result<Reply, Problem> {
    let scope = call.session().await?;
    let none = || Problem::new(Kind::NotFound, "there are no packs here");
    let house = call.api.settings.house.as_ref().map(Arc::clone);
    let house = house.ok_or_else(none)?;
    let bytes = call.api.workers.run(move || house.pack(&scope)).await?;
    let bytes = bytes.map_err(|error| Problem::new(Kind::Unpublished, error))?;
    let mut reply = Reply::bytes(StatusCode::OK, "application/x-tar", bytes);
    let kept = HeaderValue::from_static("attachment; filename=\"evidence.tar\"");
    reply.headers.insert(CONTENT_DISPOSITION, kept);
    Ok(reply)
}

const PAGE: usize = 100;
/// As many events stand on one page.
const EVENTS: usize = 500;
/// As many events are looked at for a filter.
const LOOKED: usize = 20_000;
