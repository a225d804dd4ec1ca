//! The capability rules as plain code: what evaluating them costs at least.

use countersign_policy::facts::Facts;
use countersign_policy::manifest::{Manifest, SideEffect};

/// The reason that the rules give.
pub(crate) fn judge(facts: &Facts, manifest: Option<&Manifest>) -> Option<&'static str> {
    let permissions = manifest?.permissions();
    let budgets = &permissions.budgets;
    let state = &facts.state;
    let known = |name: &String| permissions.tools.contains_key(name);
    let domains = || {
        facts.hosts_clear
            && !facts.hosts.is_empty()
            && facts.hosts.iter().all(|host| {
                permissions
                    .net
                    .domains
                    .patterns()
                    .any(|pattern| pattern.covers(host))
            })
    };
    let programs = || {
        facts.command_clear
            && !facts.programs.is_empty()
            && facts
                .programs
                .iter()
                .all(|program| permissions.exec.allowed_bins.contains(program))
    };
    Some(if !facts.names.iter().any(known) {
        "PERMISSION_UNDECLARED"
    } else if facts.network && !domains() {
        "EGRESS_DENY"
    } else if state.steps >= budgets.max_steps
        || state.tool_calls >= budgets.max_tool_calls
        || state.wall_time_ms >= budgets.max_wall_time_ms
        || budgets
            .max_model_calls
            .is_some_and(|limit| state.model_calls >= limit)
    {
        "BUDGET_EXCEEDED"
    } else if !state.loop_violation.is_empty() {
        "LOOP_DETECTED"
    } else if facts.sink && state.tainted && !state.sanitized {
        "TAINTED_TO_HIGH_RISK"
    } else if !facts.uncleared.is_empty() {
        "CLEARANCE_EXCEEDED"
    } else if facts.exec && !programs() {
        "EXEC_DENY"
    } else if !facts.paths_outside.is_empty() {
        "PATH_DENY"
    } else if facts
        .names
        .iter()
        .any(|name| permissions.approval_required.contains(name))
    {
        "APPROVAL_REQUIRED"
    } else if facts.side_effect == SideEffect::Unknown {
        "SIDE_EFFECT_UNKNOWN"
    } else {
        "OK"
    })
}
