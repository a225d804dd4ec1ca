//! A lease as people see it, the same in every command.

use countersign_approval::UnixMs;
use countersign_approval::lease::{Constraint, Lease, LeaseStatus, Term};
use countersign_canon::{Json, Limits};
use countersign_display::quote;
use countersign_engine::{LeaseCondition, StandingLease};

use crate::clock;
use crate::command::approval::duration;
use crate::output;

/// Whether a lease still covers anything, in words.
pub(super) fn word(condition: LeaseCondition) -> &'static str {
    match condition {
        LeaseCondition::Stands | LeaseCondition::Ended(LeaseStatus::Active) => "STANDS ✓",
        LeaseCondition::Over => "OVER ⌛",
        LeaseCondition::UsedUp => "USED UP –",
        LeaseCondition::Spent => "SPENT –",
        LeaseCondition::Ended(LeaseStatus::Revoked) => "REVOKED ✗",
        LeaseCondition::Ended(LeaseStatus::WorkEnded) => "SESSION ENDED –",
        LeaseCondition::Ended(LeaseStatus::KeyRetired) => "KEY REPLACED ✗",
    }
}

/// What it covers, a line each. Every text that is not ours is quoted.
pub(super) fn lines(lease: &Lease, now: UnixMs) -> Vec<String> {
    let terms = lease.terms();
    let server = terms.tool.server.as_deref();
    let server = server.map_or(String::new(), |server| format!(" of {}", quote(server)));
    let mut lines = vec![
        format!("lease       {}", lease.id()),
        format!("covers      {}{server}, with", quote(&terms.tool.name)),
    ];
    for (name, term) in &terms.arguments {
        lines.push(format!("              {}: {}", quote(name), allowed(term)));
    }
    lines.push("            and no other argument".to_owned());
    lines.push(format!("uses        at most {}", terms.max_uses));
    if let Some(budget) = &terms.budget {
        let argument = quote(&budget.argument);
        lines.push(format!(
            "budget      {argument} adds up to {} at most",
            budget.limit
        ));
    }
    let end = terms.valid.expires_at;
    let left = match now.is_before(end) {
        true => format!("in {}", duration(now.distance(end))),
        false => "over".to_owned(),
    };
    lines.push(format!("until       {} ({left})", clock::text(end.get())));
    lines.push(format!("for         {}", holder(lease)));
    lines.push(format!(
        "session     {}/{}, work {}, trust {} or more",
        quote(terms.holder.chain.tenant.as_str()),
        quote(terms.holder.chain.session.as_str()),
        quote(terms.holder.work_item.as_str()),
        terms.least_trust
    ));
    if let Some(whole) = lease.parent() {
        lines.push(format!("part of     {whole}"));
    }
    lines.push(format!(
        "granted by  {}",
        quote(&terms.granted_by.to_string())
    ));
    lines
}

fn holder(lease: &Lease) -> String {
    let holder = &lease.terms().holder;
    let agents = holder.lineage.agents().iter();
    let mut names = vec![quote(&holder.lineage.root().to_string())];
    names.extend(agents.map(|agent| quote(&agent.to_string())));
    let children = match holder.children {
        true => ", and the agents that it starts",
        false => "",
    };
    format!("{}{children}", names.join(" ▸ "))
}

fn allowed(term: &Term) -> String {
    let value = |value: &Json| match value.as_str() {
        Some(text) => quote(text),
        None => String::from_utf8_lossy(&value.to_sorted_ascii()).into_owned(),
    };
    let list = |values: Vec<String>| values.join(", ");
    let rule = match &term.constraint {
        Constraint::Exact(exact) => format!("exactly {}", value(exact)),
        Constraint::OneOf(values) => {
            format!("one of {}", list(values.iter().map(value).collect()))
        }
        Constraint::PathUnder(root) => format!("a path at or under {}", quote(root.as_str())),
        Constraint::HostIn(hosts) => format!("one of {}", list(hosts.iter().map(quote).collect())),
        Constraint::Range(range) => {
            format!("a whole number from {} to {}", range.min(), range.max())
        }
        Constraint::Prefix(prefix) => {
            let prefix = quote(prefix.as_str());
            format!("{prefix} and then letters, digits, - and _")
        }
    };
    match term.may_be_absent {
        true => format!("{rule}, or absent"),
        false => rule,
    }
}

/// Prints JSON with its numbers as they are signed.
pub(super) fn print(json: &Json) -> std::io::Result<()> {
    output::text(&String::from_utf8_lossy(&json.to_sorted_ascii()))
}

/// The terms, as they are signed.
pub(super) fn terms(lease: &Lease) -> Json {
    // A lease's own text is JSON.
    Json::admit(&lease.to_text(), &Limits::plan()).unwrap_or(Json::Null)
}

pub(super) fn json(standing: &StandingLease) -> Json {
    let usage = standing.usage;
    Json::object([
        ("lease", terms(&standing.lease)),
        ("status", Json::from(standing.status.as_str())),
        ("uses", Json::from(usage.uses)),
        ("spent", Json::from(usage.spent)),
    ])
}
