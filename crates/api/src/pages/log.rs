//! The log, and the one box that finds anything in it.

use countersign_canon::Json;
use countersign_console::{Found, Html, Link, LogPage, Tab};
use countersign_event::{Line, Scope};
use countersign_store::{Filter, Stored};

use super::{Maker, follow, make, not_for_agents};
use crate::Permission;
use crate::api::now_unix_ms;
use crate::call::Call;
use crate::events;
use crate::problem::Problem;
use crate::query::{About, Query};
use crate::reply::Reply;

pub(super) async fn show(call: &Call) -> Result<Reply, Problem> {
    not_for_agents(call)?;
    let query = call
        .parameters
        .query("q")
        .unwrap_or_default()
        .trim()
        .to_owned();
    make(call, move |maker| page(maker, &query)).await
}

fn page(maker: &Maker, query: &str) -> Result<Html, Problem> {
    let reader = maker.api.engine.store().reader();
    let filter = Filter {
        tenant: maker.caller.tenant.clone(),
        ..Filter::default()
    };
    let mut wrong = None;
    let (wanted, most) = match Wanted::of(query) {
        Ok(Wanted::Everything) => (Wanted::Everything, SHOWN),
        Ok(wanted) => (wanted, LOOKED),
        Err(error) => {
            wrong = Some(error);
            (Wanted::Everything, 0)
        }
    };
    let newest = match most {
        0 => Vec::new(),
        most => reader.last(&filter, most)?,
    };
    let is_all = newest.len() < most || matches!(wanted, Wanted::Everything);
    let events: Vec<Json> = newest
        .iter()
        .rev()
        .filter(|event| wanted.fits(event))
        .take(SHOWN)
        .map(events::json)
        .collect::<Result<_, _>>()?;
    let found = found(maker, query);
    let checkpoint = reader.last_checkpoint()?.map(|published| {
        let checkpoint = published.checkpoint;
        (checkpoint.size, checkpoint.root.to_string())
    });
    let follows = match &maker.caller.tenant {
        None => String::new(),
        Some(tenant) => follow(&[("tenant_id", tenant.as_str())]),
    };
    let frame = maker.frame(Tab::Log, Some(&follows))?;
    Ok(countersign_console::log(
        &frame,
        &LogPage {
            query,
            trouble: wrong.as_deref(),
            events: &events,
            looked_at: (!is_all).then_some(newest.len() as u64),
            found: &found,
            checkpoint,
        },
    ))
}

/// What somebody looks for.
enum Wanted {
    Everything,
    /// The beginning of a hash.
    Hash(String),
    /// Any name in an event.
    Word(String),
    Asked(crate::query::Asked),
}

impl Wanted {
    fn of(query: &str) -> Result<Self, String> {
        let is_hash =
            (8..=64).contains(&query.len()) && query.bytes().all(|byte| byte.is_ascii_hexdigit());
        if query.is_empty() {
            return Ok(Self::Everything);
        }
        if is_hash {
            return Ok(Self::Hash(query.to_ascii_lowercase()));
        }
        let is_id = query.starts_with("human:") || query.starts_with("agent:");
        if is_id || (!query.contains(':') && !query.contains('"')) {
            return Ok(Self::Word(query.to_ascii_lowercase()));
        }
        let read: Query = query
            .parse()
            .map_err(|error: crate::query::QueryError| error.to_string())?;
        let now = now_unix_ms().map_err(|problem| problem.detail().to_owned())?;
        Ok(Self::Asked(read.at(now)))
    }

    fn fits(&self, event: &Stored) -> bool {
        match self {
            Self::Everything => true,
            Self::Asked(asked) => {
                Line::read(&event.line).is_ok_and(|line| asked.fits(&About::of(&line)))
            }
            Self::Hash(start) => Line::read(&event.line)
                .is_ok_and(|line| line.hash.to_string().starts_with(start.as_str())),
            // Names stand in the text of an event as they are; only what is sealed does not.
            Self::Word(word) => {
                let text = String::from_utf8_lossy(&event.line).to_ascii_lowercase();
                text.contains(word.as_str())
            }
        }
    }
}

/// What the words name that is no event.
fn found(maker: &Maker, query: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let may = maker.caller.role.may(Permission::ReadApprovals);
    if may && maker.api.visible(query, &maker.caller).is_ok() {
        found.push(Found {
            what: "approval",
            name: query.to_owned(),
            link: Link::to(&["inbox", query]),
        });
    }
    let tenant = maker.caller.tenant.as_ref();
    let tenant = tenant.map_or("default", |tenant| tenant.as_str());
    let reader = maker.api.engine.store().reader();
    let scope = Scope::new(tenant, query).ok();
    if scope.is_some_and(|scope| reader.session(&scope).is_ok_and(|found| found.is_some())) {
        found.push(Found {
            what: "session",
            name: query.to_owned(),
            link: Link::to(&["sessions", query]).with("tenant_id", tenant),
        });
    }
    found
}

const SHOWN: usize = 200;
/// As many events are looked at.
const LOOKED: usize = 50_000;
