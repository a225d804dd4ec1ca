//! What decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_console::{Html, PolicyPage, Tab};
use countersign_event::EventType;
use countersign_policy::manifest::Manifest;
use countersign_store::Filter;

use super::{Maker, field, make, to};
use crate::call::Call;
use crate::observe::Observed;
use crate::problem::{Kind, Problem};
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
    let accepted = move || house.accept_tool(&server, &tool, &digest);
    match call.api.workers.run(accepted).await? {
        Ok(()) => Ok(to(&Tab::Policy.link())),
        Err(error) => {
            let mut reply = show(call, Some(error)).await?;
            reply.status = Kind::Changed.status();
            Ok(reply)
        }
    }
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
    let tests = house.map(|house| house.tests()).transpose();
    let backtests = house.map(|house| house.backtests()).transpose();
    let tools = tools.unwrap_or_else(|error| tell(&mut wrong, error));
    let tests = tests.unwrap_or_else(|error| tell(&mut wrong, error));
    let backtests = backtests.unwrap_or_else(|error| tell(&mut wrong, error));
    let (shadow, decisions) = shadow(maker)?;
    let trouble = (!wrong.is_empty()).then(|| wrong.join("; "));
    let frame = maker.frame(Tab::Policy, None)?;
    Ok(countersign_console::policy(
        &frame,
        &PolicyPage {
            in_force: &in_force,
            manifest: manifest.as_ref(),
            tests: tests.as_ref().and_then(Option::as_ref),
            shadow: &shadow,
            decisions,
            backtests: &backtests.unwrap_or_default(),
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
