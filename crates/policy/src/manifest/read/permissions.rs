//! The section `permissions`.

use std::collections::BTreeSet;

use super::super::model::{Budgets, Exec, Fs, Net, Permissions, Schema};
use super::super::section::Section;
use super::{Extent, names, tools};
use crate::matcher::{ArgPatterns, HostPattern, NormalPath};
use countersign_canon::Quoted;

pub(super) fn read(section: Section<'_, '_>, schema: Schema, extent: Extent) -> Permissions {
    let mut section = section.only(known(schema));
    Permissions {
        tools: tools::read(&mut section, schema),
        fs: fs(section.section("fs"), extent),
        net: net(section.section("net"), extent),
        secrets: names(&mut section, "secrets"),
        exec: exec(section.section("exec")),
        approval_required: match schema {
            Schema::Aegis => names(&mut section, "approval_required"),
            Schema::Countersign => BTreeSet::new(),
        },
        budgets: budgets(section.section("budgets")),
    }
}

fn known(schema: Schema) -> &'static [&'static str] {
    match schema {
        Schema::Aegis => &[
            "tools",
            "fs",
            "net",
            "secrets",
            "exec",
            "approval_required",
            "budgets",
        ],
        Schema::Countersign => &["tools", "fs", "net", "secrets", "exec", "budgets"],
    }
}

fn fs(section: Section<'_, '_>, extent: Extent) -> Fs {
    let mut section = section.only(&["read_roots", "write_roots"]);
    let mut roots = |name| {
        let roots = section.each(name, |text| granted(root(text), extent))?;
        Some(roots.into_iter().flatten().collect())
    };
    Fs {
        read_roots: roots("read_roots"),
        write_roots: roots("write_roots"),
    }
}

fn root(text: &str) -> Result<NormalPath, String> {
    match NormalPath::from_argument(text) {
        Ok(path) if path.as_str() == text => Ok(path),
        Ok(path) => Err(format!(
            "{} is not normalised, write {}",
            Quoted(text),
            Quoted(path.as_str())
        )),
        Err(error) => Err(format!("{} is not a root: {error}", Quoted(text))),
    }
}

fn net(section: Section<'_, '_>, extent: Extent) -> Net {
    let mut section = section.only(&["domains"]);
    let domains = section.each("domains", |text| granted(domain(text), extent));
    Net {
        domains: domains.into_iter().flatten().flatten().collect(),
    }
}

fn domain(text: &str) -> Result<HostPattern, String> {
    HostPattern::parse(text)
        .map_err(|error| format!("{} is not a host pattern: {error}", Quoted(text)))
}

/// FAIL-CLOSED: a partial manifest may hold what is not valid, and is granted nothing for it.
fn granted<T>(read: Result<T, String>, extent: Extent) -> Result<Option<T>, String> {
    match (read, extent) {
        (Ok(value), _) => Ok(Some(value)),
        (Err(_), Extent::Partial) => Ok(None),
        (Err(error), Extent::Whole) => Err(error),
    }
}

fn exec(section: Section<'_, '_>) -> Exec {
    let mut section = section.only(&["allowed_bins", "arg_patterns"]);
    Exec {
        allowed_bins: names(&mut section, "allowed_bins"),
        arg_patterns: arg_patterns(&mut section),
    }
}

/// A pattern that is not valid is a fault even in a partial manifest, because fewer patterns may
/// allow more.
fn arg_patterns(section: &mut Section<'_, '_>) -> ArgPatterns {
    let mut patterns = ArgPatterns::default();
    let read = section.each("arg_patterns", |text| {
        ArgPatterns::default()
            .add(text)
            .map(|()| text)
            .map_err(|error| format!("{} is not a pattern: {error}", Quoted(text)))
    });
    for pattern in read.into_iter().flatten() {
        // Each of them was just found to be valid.
        let _added = patterns.add(pattern);
    }
    patterns
}

fn budgets(section: Section<'_, '_>) -> Budgets {
    let mut section = section.only(&[
        "max_steps",
        "max_tool_calls",
        "max_model_calls",
        "max_output_bytes",
        "timeout_ms",
        "max_wall_time_ms",
    ]);
    let default = Budgets::default();
    let mut limit = |name, default| section.count(name).unwrap_or(default);
    Budgets {
        max_steps: limit("max_steps", default.max_steps),
        max_tool_calls: limit("max_tool_calls", default.max_tool_calls),
        max_output_bytes: limit("max_output_bytes", default.max_output_bytes),
        timeout_ms: limit("timeout_ms", default.timeout_ms),
        max_wall_time_ms: limit("max_wall_time_ms", default.max_wall_time_ms),
        max_model_calls: section.count("max_model_calls"),
    }
}
