//! How far each door reaches: what this daemon was told, and what the newest actions show of the others,
//! which are processes of their own and write the same log.

use std::collections::{BTreeMap, HashMap, HashSet};

use countersign_canon::{Json, Limits};
use countersign_console::{Door, Reach};
use countersign_event::{EventType, Line, Scope};
use countersign_store::{Filter, Reader, Stored};

use crate::api::Api;
use crate::problem::Problem;

/// Every door, and how many actions were looked at. Blocks.
pub(super) fn seen(api: &Api) -> Result<(Vec<Door>, u64), Problem> {
    let reader = api.engine.store().reader();
    let newest = |event_type| {
        let filter = Filter {
            event_type: Some(event_type),
            ..Filter::default()
        };
        reader.last(&filter, NEWEST)
    };
    let observed: HashSet<Call> = newest(EventType::PolicyDecision)?
        .iter()
        .filter_map(observed)
        .collect();
    let proposed = newest(EventType::ToolCallProposed)?;
    let mut traffic: BTreeMap<Way, Traffic> = BTreeMap::new();
    let mut owned = HashMap::new();
    for event in &proposed {
        let Some((call, payload, at)) = read(event) else {
            continue;
        };
        let way = way(&call.0, &payload, reader, &mut owned)?;
        traffic.entry(way).or_default().add(&call, at, &observed);
    }
    let mut command_line = Traffic::default();
    let mut api_calls = Traffic::default();
    let mut doors = Vec::new();
    for (way, found) in traffic {
        match way {
            Way::Mcp(server) => doors.push(found.door(
                format!("MCP server {server}"),
                Reach::Enforcing,
                "the proxy sends nothing without a permit, as long as the server answers nobody else",
            )),
            Way::CommandLine => command_line = found,
            Way::Api => api_calls = found,
        }
    }
    if doors.is_empty() {
        doors.push(Traffic::default().door(
            "MCP servers".to_owned(),
            Reach::NotSeen,
            "connect a client with `countersign connect`, or wrap a server with `countersign mcp`",
        ));
    }
    doors.push(started(command_line));
    doors.push(asked(api, api_calls));
    doors.push(Door {
        name: "POST /v1/events".to_owned(),
        reach: Reach::ObserveOnly,
        why: "what clients tell of themselves is recorded; it has happened already".to_owned(),
        actions: 0,
        newest_unix_ms: None,
    });
    Ok((doors, proposed.len() as u64))
}

/// A call: its session, and its id there.
type Call = (Scope, String);

/// How an action came here.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// Through the proxy, to this server.
    Mcp(String),
    CommandLine,
    Api,
}

/// What came by one door.
#[derive(Default)]
struct Traffic {
    actions: u64,
    newest: Option<u64>,
    /// Whether the newest of them was only observed.
    is_observed: bool,
}

impl Traffic {
    fn add(&mut self, call: &Call, at: u64, observed: &HashSet<Call>) {
        self.actions += 1;
        if self.newest <= Some(at) {
            self.newest = Some(at);
            self.is_observed = observed.contains(call);
        }
    }

    fn door(self, name: String, reach: Reach, why: &str) -> Door {
        let (reach, why) = match self.is_observed {
            true => (
                Reach::ObserveOnly,
                "its newest call went through under --mode observe",
            ),
            false => (reach, why),
        };
        Door {
            name,
            reach,
            why: why.to_owned(),
            actions: self.actions,
            newest_unix_ms: self.newest,
        }
    }
}

/// What the command line runs.
fn started(found: Traffic) -> Door {
    let why = "the command after -- is started by it, with the stored bytes";
    let reach = match found.actions {
        0 => Reach::NotSeen,
        _ => Reach::Enforcing,
    };
    found.door("countersign action run".to_owned(), reach, why)
}

/// The door of this very daemon.
fn asked(api: &Api, found: Traffic) -> Door {
    let is_observing = api.engine.policies().is_observing();
    let (reach, why) = match (is_observing, api.settings.no_auth) {
        (true, _) => (
            Reach::ObserveOnly,
            "the policies in force observe: nothing is refused",
        ),
        (_, true) => (
            Reach::BestEffort,
            "--no-auth: whoever reaches it is the operator; and whoever asks runs the action itself",
        ),
        _ => (
            Reach::BestEffort,
            "whoever asks runs the action itself, and has to keep to the answer",
        ),
    };
    found.door("POST /v1/actions".to_owned(), reach, why)
}

/// A session that came by the API belongs to a token.
fn way(
    scope: &Scope,
    payload: &Json,
    reader: &Reader,
    owned: &mut HashMap<Scope, bool>,
) -> Result<Way, Problem> {
    let is_owned = match owned.get(scope) {
        Some(known) => *known,
        None => {
            let is_owned = reader.session_owner(scope)?.is_some();
            owned.insert(scope.clone(), is_owned);
            is_owned
        }
    };
    let server = payload.get("server").and_then(Json::as_str);
    Ok(match (is_owned, server) {
        (true, _) => Way::Api,
        (false, Some(server)) => Way::Mcp(server.to_owned()),
        (false, None) => Way::CommandLine,
    })
}

/// The call of a decision that let through what it would have stopped.
fn observed(event: &Stored) -> Option<Call> {
    let (call, payload, _) = read(event)?;
    let codes = payload.get("reason_codes")?.as_array()?;
    let is_observed = |code: &Json| {
        code.as_str()
            .is_some_and(|code| code.starts_with("observed="))
    };
    codes.iter().any(is_observed).then_some(call)
}

fn read(event: &Stored) -> Option<(Call, Json, u64)> {
    let line = Line::read(&event.line).ok()?;
    let payload = Json::admit(line.payload, &Limits::event()).ok()?;
    let scope = Scope::new(line.tenant_id, line.session_id).ok()?;
    let call = payload.get("call_id")?.as_str()?.to_owned();
    Some(((scope, call), payload, line.ts_unix_ms))
}

/// As many actions are looked at.
const NEWEST: usize = 1000;
