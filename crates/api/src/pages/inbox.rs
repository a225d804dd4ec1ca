//! The inbox.

use countersign_approval::{Human, Reason, SideEffect, State};
use countersign_canon::{Json, Limits};
use countersign_console::{Card, Html, Inbox, Link, Tab};
use countersign_engine::Standing;
use countersign_event::TenantId;
use countersign_store::Approval;

use super::{Maker, field, follow, make, to};
use crate::api::{Api, lock};
use crate::approvals::summary;
use crate::call::Call;
use crate::problem::{Kind, Problem};
use crate::reply::Reply;
use crate::{events, sessions};

/// The inbox with one request open: the one that is named, or the first.
pub(super) async fn show(
    call: &Call,
    id: Option<String>,
    trouble: Option<String>,
) -> Result<Reply, Problem> {
    make(call, move |maker| {
        page(maker, id.as_deref(), trouble.as_deref())
    })
    .await
}

/// Asks for the same call with other arguments; shows the request that takes its place.
pub(super) async fn edit(call: &Call) -> Result<Reply, Problem> {
    let id = call.parameters.path("approval").to_owned();
    let (args, reason) = (field(&call.body, "args"), field(&call.body, "reason"));
    let (api, caller) = (std::sync::Arc::clone(&call.api), call.caller.clone());
    let wanted = id.clone();
    let edited = move || {
        let args = Json::admit(args.as_bytes(), &Limits::plan())?;
        let reason = Some(reason).filter(|reason| !reason.trim().is_empty());
        let reason = reason.map(Reason::new).transpose();
        let reason = reason.map_err(|error| Problem::new(Kind::Member, error.to_string()))?;
        api.edit(&wanted, args, reason.as_ref(), &caller)
    };
    match call.api.workers.run(edited).await? {
        Ok(new) => Ok(to(&Link::to(&["inbox", &new.to_string()]))),
        Err(problem) => {
            let mut reply = show(call, Some(id), Some(problem.detail().to_owned())).await?;
            reply.status = problem.kind().status();
            Ok(reply)
        }
    }
}

fn page(maker: &Maker, id: Option<&str>, trouble: Option<&str>) -> Result<Html, Problem> {
    let api = &maker.api;
    let reader = api.engine.store().reader();
    let own = maker.caller.tenant.as_ref();
    let is_seen = |tenant: &TenantId| own.is_none_or(|own| own == tenant);
    let mut waiting: Vec<Standing> = reader
        .approvals_in(State::Pending)?
        .into_iter()
        .filter(|row| is_seen(&row.scope.tenant))
        .take(MOST)
        // One that cannot be read keeps nobody from the others.
        .filter_map(|row| api.engine.approval(row.id).ok().flatten())
        .collect();
    waiting.sort_by_key(|standing| {
        let plan = standing.envelope.plan();
        let undone = !plan.is_irreversible();
        (
            undone,
            std::cmp::Reverse(effect(standing)),
            standing.row.issued.get(),
        )
    });
    let decided = reader.newest_approvals(LATELY * 4)?;
    let decided: Vec<Json> = decided
        .into_iter()
        .filter(|row| row.state != State::Pending && is_seen(&row.scope.tenant))
        .take(LATELY)
        .filter_map(|row| decided_row(&row, api))
        .collect();
    let rows: Vec<Json> = waiting.iter().map(row).collect();
    let open = match id {
        Some(id) => Some(api.visible(id, &maker.caller)?),
        None => match waiting.into_iter().next() {
            None => None,
            // As it is now, and not as it was when the list was read.
            Some(first) => api.engine.approval(first.row.id)?,
        },
    };
    if let Some(standing) = &open {
        maker.note_view(standing)?;
    }
    let open = open.map(|standing| Open::read(standing, api)).transpose()?;
    let follows = match own {
        None => follow(&[("q", APPROVALS)]),
        Some(own) => follow(&[("q", APPROVALS), ("tenant_id", own.as_str())]),
    };
    let frame = maker.frame(Tab::Inbox, Some(&follows))?;
    Ok(countersign_console::inbox(
        &frame,
        &Inbox {
            waiting: &rows,
            decided: &decided,
            card: open.as_ref().map(|open| open.card(trouble)),
        },
    ))
}

impl Maker {
    /// That somebody who may decide was shown what is held is in the audit, once for each who was.
    ///
    /// FAIL-CLOSED: what cannot be noted is not shown.
    fn note_view(&self, standing: &Standing) -> Result<(), Problem> {
        if standing.row.state != State::Pending || !self.who.decides {
            return Ok(());
        }
        let Ok(person) = Human::new(self.caller.name.clone()) else {
            return Ok(());
        };
        let way = format!("console, as {}", self.caller.id);
        // One after the other: two pages that are opened at once are one view.
        let mut seen = lock(&self.api.seen);
        let view = (standing.row.id, way);
        if seen.contains(&view) {
            return Ok(());
        }
        self.api
            .engine
            .note_first_view(standing, &person, &view.1)?;
        if seen.len() >= MAX_SEEN {
            seen.clear();
        }
        seen.insert(view);
        Ok(())
    }
}

/// Everything that there is to see of a request.
struct Open {
    standing: Standing,
    json: Json,
    code: String,
    decision: Option<Json>,
    before: Vec<Json>,
    snapshot: Option<Json>,
    people: Json,
}

impl Open {
    fn read(standing: Standing, api: &Api) -> Result<Self, Problem> {
        let reader = api.engine.store().reader();
        let scope = &standing.row.scope;
        let event = |seq: u64| -> Result<Option<Json>, Problem> {
            let event = reader.event(scope, seq)?;
            event.map(|event| events::json(&event)).transpose()
        };
        let decided = standing.row.seq.checked_sub(1);
        let decision = decided.map(event).transpose()?.flatten();
        let first = decided.unwrap_or_default().saturating_sub(BEFORE);
        let before = (first..decided.unwrap_or_default()).filter_map(|seq| event(seq).ok()?);
        let hash = standing.envelope.plan().hash();
        Ok(Self {
            json: api.card_of(&standing)?,
            code: match standing.envelope.plan().is_irreversible() {
                true => hash.typed(),
                false => hash.short(),
            },
            before: before.collect(),
            decision,
            snapshot: sessions::snapshot_json(scope, &api.engine).ok(),
            people: people(api)?,
            standing,
        })
    }

    fn card<'a>(&'a self, trouble: Option<&'a str>) -> Card<'a> {
        Card {
            json: &self.json,
            sheet: self.standing.rendering.sheet(),
            code: &self.code,
            decision: self.decision.as_ref(),
            before: &self.before,
            snapshot: self.snapshot.as_ref(),
            people: &self.people,
            trouble,
        }
    }
}

/// Who may decide, with the names of their keys. Both are public.
pub(super) fn people(api: &Api) -> Result<Json, Problem> {
    let approvers = api.engine.approvers()?;
    let active = approvers
        .keys()
        .iter()
        .filter(|key| key.status == countersign_approval::KeyStatus::Active);
    let people = active.map(|key| {
        Json::object([
            ("key_id", Json::from(key.key_id.to_string())),
            ("person", Json::from(key.person.to_string())),
        ])
    });
    Ok(Json::Array(people.collect()))
}

fn row(standing: &Standing) -> Json {
    let mut json = summary(standing);
    if let Some(members) = json.as_object_mut() {
        let risk = effect(standing).map_or("unknown", SideEffect::as_str);
        members.insert("risk".to_owned(), Json::from(risk));
    }
    json
}

/// A request that is over, and who decided it.
fn decided_row(row: &Approval, api: &Api) -> Option<Json> {
    let standing = api.engine.approval(row.id).ok()??;
    let tally = api.engine.tally(&standing).ok()?;
    let by: Vec<String> = tally
        .votes
        .iter()
        .map(|vote| vote.approver.to_string())
        .collect();
    let mut json = self::row(&standing);
    if let (Some(members), false) = (json.as_object_mut(), by.is_empty()) {
        members.insert("by".to_owned(), Json::from(by.join(", ")));
    }
    Some(json)
}

/// The worst that it does.
fn effect(standing: &Standing) -> Option<SideEffect> {
    let calls = standing.envelope.plan().calls().iter();
    calls.map(|call| call.class.effect).max()
}

const APPROVALS: &str =
    "type:APPROVAL_* type:TOOL_CALL_EXECUTED type:TOOL_RESULT type:TOOL_CALL_DENIED";
/// As many are listed; there is no deciding more in a day.
const MOST: usize = 500;
const LATELY: usize = 12;
/// As many views are known without looking into the audit.
const MAX_SEEN: usize = 100_000;
/// How many events before the request are shown with it.
const BEFORE: u64 = 8;
