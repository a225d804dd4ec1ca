//! What decides.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use countersign_canon::Json;
use countersign_console::{Html, PolicyPage, Tab};
use countersign_event::EventType;
use countersign_policy::manifest::Manifest;
use countersign_replay::{self as replay, Progress, Question, Reading};
use countersign_store::Filter;

use super::{Maker, field, make, to};
use crate::api::{Api, lock, now_unix_ms};
use crate::call::Call;
use crate::observe::Observed;
use crate::policies::load;
use crate::problem::{Kind, Problem};
use crate::replays;
use crate::reply::Reply;

pub(super) async fn show(call: &Call, trouble: Option<String>) -> Result<Reply, Problem> {
    make(call, move |maker| page(maker, trouble.as_deref())).await
}

/// Accepts what a tool says it is.
pub(super) async fn accept(call: &Call) -> Result<Reply, Problem> {
    let none = || Problem::new(Kind::NotFound, "there are no tools here");
    let house = call.api.settings.house.as_ref().map(Arc::clone);
    let house = house.ok_or_else(none)?;
    let [server, tool, digest] = ["server", "tool", "digest"].map(|name| field(&call.body, name));
    let by = call.caller.id.clone();
    let accepted = move || house.accept_tool(&by, &server, &tool, &digest);
    match call.api.workers.run(accepted).await? {
        Ok(()) => Ok(to(&Tab::Policy.link())),
        Err(error) => {
            let mut reply = show(call, Some(error)).await?;
            reply.status = Kind::Changed.status();
            Ok(reply)
        }
    }
}

/// Asks what a policy would have decided about recorded actions, beside the manifest in force.
pub(super) async fn backtest(call: &Call) -> Result<Reply, Problem> {
    let (name, text) = (field(&call.body, "name"), field(&call.body, "text"));
    let api = Arc::clone(&call.api);
    let tried = call.api.workers.run(move || try_policy(&api, &name, &text));
    answered(call, tried.await?).await
}

/// Decides a recorded session again.
pub(super) async fn replay(call: &Call) -> Result<Reply, Problem> {
    let (tenant, session) = (field(&call.body, "tenant"), field(&call.body, "session"));
    let begun = replays::begin(call, Some(&tenant), &session).await;
    answered(call, begun.map(drop)).await
}

/// The page, with what went wrong.
async fn answered(call: &Call, done: Result<(), Problem>) -> Result<Reply, Problem> {
    match done {
        Ok(()) => Ok(to(&Tab::Policy.link())),
        Err(problem) => {
            let mut reply = show(call, Some(problem.detail().to_owned())).await?;
            reply.status = problem.kind().status();
            Ok(reply)
        }
    }
}

/// The newest backtests. They last as long as the process.
#[derive(Default)]
pub(crate) struct Backtests {
    kept: Mutex<VecDeque<Json>>,
    running: Mutex<()>,
}

fn try_policy(api: &Api, name: &str, text: &str) -> Result<(), Problem> {
    let Ok(_one_at_a_time) = api.backtests.running.try_lock() else {
        let text = "another backtest is running; try again";
        return Err(Problem::new(Kind::Overloaded, text));
    };
    let in_force = api.engine.policies();
    let manifest = in_force.capability().manifest().map(Manifest::to_json);
    let policy = Json::object([("name", Json::from(name)), ("text", Json::from(text))]);
    let set = Json::object([
        ("manifest", Json::from(manifest)),
        ("policies", Json::Array(vec![policy])),
    ]);
    let policies = load(&set)?;
    let progress = Progress::default();
    let stop = Arc::clone(&progress.stop);
    let (done, waits) = mpsc::channel::<()>();
    let timer = std::thread::spawn(move || {
        if waits.recv_timeout(TIME).is_err() {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let question = Question {
        policies: &policies,
        reading: Reading::Independent,
        since_unix_ms: None,
        until_unix_ms: None,
        tool: None,
        scope: None,
        wanted: None,
    };
    let outcome = replay::backtest(&question, api.engine.store().reader(), &progress);
    let _ = done.send(());
    drop(timer.join());
    let outcome = outcome.map_err(|error| Problem::new(Kind::Database, error.to_string()))?;
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (change, count, _) in outcome.changes.iter() {
        *counts.entry((&change.from, &change.to)).or_default() += count;
    }
    let tools = outcome.changes.by(|change| change.tool.clone());
    let mut tools: Vec<(String, u64)> = tools.into_iter().collect();
    tools.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let tools = tools.into_iter().take(TOOLS).map(|(tool, count)| {
        Json::object([("tool", Json::from(tool)), ("count", Json::from(count))])
    });
    let changes = counts.into_iter().map(|((from, to), count)| {
        Json::object([
            ("from", Json::from(from)),
            ("to", Json::from(to)),
            ("count", Json::from(count)),
        ])
    });
    let run = Json::object([
        ("name", Json::from(name)),
        ("at_unix_ms", Json::from(now_unix_ms()?)),
        ("sessions", Json::from(outcome.sessions)),
        ("unread_sessions", Json::from(outcome.unread_sessions)),
        ("actions", Json::from(outcome.actions)),
        (
            "same",
            Json::from(outcome.actions.saturating_sub(outcome.changes.total())),
        ),
        ("interrupted", Json::from(outcome.interrupted)),
        ("changes", Json::Array(changes.collect())),
        ("tools", Json::Array(tools.collect())),
    ]);
    let mut kept = lock(&api.backtests.kept);
    kept.push_front(run);
    kept.truncate(KEPT);
    Ok(())
}

fn page(maker: &Maker, trouble: Option<&str>) -> Result<Html, Problem> {
    let api = &maker.api;
    let in_force = api.in_force()?;
    let policies = api.engine.policies();
    let manifest = policies.capability().manifest().map(Manifest::to_json);
    let house = api.settings.house.as_ref();
    // What cannot be read is told, and hides nothing else.
    let mut wrong: Vec<String> = trouble.map(str::to_owned).into_iter().collect();
    let tools = house.map(|house| house.tools()).transpose();
    let in_files = house.map(|house| house.tests()).transpose();
    let tools = tools.unwrap_or_else(|error| tell(&mut wrong, error));
    let in_files = in_files.unwrap_or_else(|error| tell(&mut wrong, error));
    let tests = match in_files.flatten() {
        Some(tests) => Some(tests),
        None => api
            .tested()
            .unwrap_or_else(|problem| tell(&mut wrong, problem.detail().to_owned())),
    };
    let backtests: Vec<Json> = lock(&api.backtests.kept).iter().cloned().collect();
    let (shadow, decisions) = shadow(maker)?;
    let trouble = (!wrong.is_empty()).then(|| wrong.join("; "));
    let frame = maker.frame(Tab::Policy, None)?;
    Ok(countersign_console::policy(
        &frame,
        &PolicyPage {
            in_force: &in_force,
            manifest: manifest.as_ref(),
            tests: tests.as_ref(),
            shadow: &shadow,
            decisions,
            backtests: &backtests,
            replays: &api.replays.of(&maker.caller.id),
            tools: tools.as_ref(),
            trouble: trouble.as_deref(),
        },
    ))
}

fn tell<T>(wrong: &mut Vec<String>, error: String) -> Option<T> {
    wrong.push(error);
    None
}

type Difference = (String, String, String, u64);

/// How often policies in the shadow would have decided otherwise, and of how many decisions.
fn shadow(maker: &Maker) -> Result<(Vec<Difference>, u64), Problem> {
    let filter = Filter {
        tenant: maker.caller.tenant.clone(),
        event_type: Some(EventType::PolicyDecision),
        ..Filter::default()
    };
    let newest = maker.api.engine.store().reader().last(&filter, DECISIONS)?;
    let mut counts: BTreeMap<(String, String, String), u64> = BTreeMap::new();
    for event in &newest {
        for one in Observed::Event(event).shadow_differences() {
            *counts
                .entry((one.policy, one.decided, one.would))
                .or_default() += 1;
        }
    }
    let mut all: Vec<Difference> = counts
        .into_iter()
        .map(|((policy, decided, would), count)| (policy, decided, would, count))
        .collect();
    all.sort_by_key(|(.., count)| std::cmp::Reverse(*count));
    Ok((all, newest.len() as u64))
}

const DECISIONS: usize = 2000;
/// As many tools are named in a backtest.
const TOOLS: usize = 10;
/// As many backtests are remembered.
const KEPT: usize = 10;
/// A backtest on the page has so long; the command line has as long as it takes.
const TIME: Duration = Duration::from_secs(20);
