//! The list or map of tools.

use std::collections::BTreeMap;

use countersign_canon::Json;

use super::super::model::{Approval, Arguments, Schema, Tool};
use super::super::pointer::{Pointer, segment};
use super::super::section::Section;
use super::names;
use countersign_canon::Quoted;

pub(super) fn read(permissions: &mut Section<'_, '_>, schema: Schema) -> BTreeMap<String, Tool> {
    match (schema, permissions.value("tools")) {
        (Schema::Countersign, Some(Json::Object(_))) => map(permissions.section("tools")),
        _ => list(permissions, schema),
    }
}

fn list(permissions: &mut Section<'_, '_>, schema: Schema) -> BTreeMap<String, Tool> {
    let names = permissions.each("tools", |name| check_name(name).map(|()| name));
    let names = names.into_iter().flatten();
    names
        .map(|name| (name.to_owned(), Tool::plain(schema)))
        .collect()
}

fn map(mut section: Section<'_, '_>) -> BTreeMap<String, Tool> {
    let mut tools = BTreeMap::new();
    for name in section.names() {
        if let Err(error) = check_name(name) {
            section.note(&segment(name), error);
        }
        let tool = match section.value(name) {
            // In YAML, a name without an entry.
            Some(Json::Null) => Tool::plain(Schema::Countersign),
            _ => entry(section.section(name)),
        };
        tools.insert(name.to_owned(), tool);
    }
    tools
}

fn check_name(name: &str) -> Result<(), String> {
    match name {
        "" => Err("a tool needs a name".to_owned()),
        _ if name.contains(|c: char| c.is_control() || c.is_whitespace()) => {
            Err(format!("{} is not a tool name: white space", Quoted(name)))
        }
        _ => Ok(()),
    }
}

fn entry(section: Section<'_, '_>) -> Tool {
    let mut section = section.only(&[
        "server",
        "side_effect",
        "sink",
        "on_taint",
        "trusted_output",
        "arguments",
        "clearance",
        "labels",
        "approval",
        "definition",
        "irreversible",
        "state",
    ]);
    let plain = Tool::plain(Schema::Countersign);
    Tool {
        server: section.text("server").map(str::to_owned),
        side_effect: section.choice("side_effect").unwrap_or(plain.side_effect),
        sink: section.flag("sink"),
        on_taint: section.choice("on_taint").unwrap_or(plain.on_taint),
        trusted_output: section.flag("trusted_output").unwrap_or_default(),
        arguments: arguments(section.section("arguments")),
        clearance: section.text("clearance").map(str::to_owned),
        labels: names(&mut section, "labels"),
        approval: section.choice("approval").unwrap_or(Approval::Unstated),
        definition: section.parsed("definition", str::parse),
        irreversible: section.flag("irreversible").unwrap_or_default(),
        state: state(&mut section),
    }
}

/// A kind of state and the words that go with it, as a list or between white space.
fn state(section: &mut Section<'_, '_>) -> Vec<String> {
    let words = section.one_or_each("state", |text| Ok::<_, String>(text.to_owned()));
    let words: Vec<String> = match words.as_slice() {
        [one] => one.split_whitespace().map(str::to_owned).collect(),
        _ => words,
    };
    let kind = words.first().map(String::as_str);
    if section.value("state").is_some() && !kind.is_some_and(|kind| STATES.contains(&kind)) {
        let message = format!("a state begins with its kind: one of {}", STATES.join(", "));
        section.note(&segment("state"), message);
    }
    words
}

/// What `countersign evidence state` can digest.
const STATES: &[&str] = &[
    "git-tree",
    "sandbox-fs",
    "db-rowset",
    "browser-dom",
    "kv-snapshot",
    "memory-bag",
    "other",
];

fn arguments(section: Section<'_, '_>) -> Arguments {
    let mut section = section.only(&["host", "path", "binary"]);
    let mut pointers = |name| {
        section.one_or_each(name, |text| {
            Pointer::parse(text)
                .map_err(|error| format!("{} is not a JSON pointer: {error}", Quoted(text)))
        })
    };
    Arguments {
        host: pointers("host"),
        path: pointers("path"),
        binary: pointers("binary"),
    }
}
