//! Where the virtual machine would not notice a value of the wrong type.
//!
//! The interpreter fails when a text is searched for members, counted or compared with a number; the
//! machine takes it for undefined, and a condition that should deny does not hold. So the machine serves
//! only where the types are certain: those of the facts, which are made in one place.

use std::collections::BTreeSet;

use countersign_canon::Json;

use super::inspect::path;

/// What is doubtful about one rule.
pub(super) fn doubts(rule: &Json) -> BTreeSet<&'static str> {
    let mut bound = BTreeSet::new();
    bind(rule, &mut bound);
    let mut doubts = BTreeSet::new();
    visit(rule, &bound, &mut doubts);
    doubts
}

/// Variables that have a value before they are used to look something up.
fn bind(node: &Json, bound: &mut BTreeSet<String>) {
    let mut add = |variable: Option<&Json>| bound.extend(variable.and_then(path));
    if let Some(some) = node.get("SomeIn") {
        add(some.get("key"));
        add(some.get("value"));
    }
    if let Some(assign) = node.get("AssignExpr") {
        add(assign.get("lhs"));
    }
    let parameters = node.get("Func").and_then(|function| function.get("args"));
    for parameter in parameters.and_then(Json::as_array).unwrap_or_default() {
        add(Some(parameter));
    }
    for child in children(node) {
        bind(child, bound);
    }
}

fn visit(node: &Json, bound: &BTreeSet<String>, doubts: &mut BTreeSet<&'static str>) {
    if let Some(some) = node.get("SomeIn")
        && !some.get("collection").is_some_and(is_list)
    {
        doubts.insert("a search in what may be no list");
    }
    if let Some(look) = node.get("RefBrack") {
        let variable = look.get("index").filter(|index| index.get("Var").is_some());
        if variable.is_some_and(|index| !path(index).is_some_and(|name| bound.contains(&name))) {
            doubts.insert("a variable that is searched for");
        }
    }
    if let Some(call) = node.get("Call")
        && call.get("fcn").and_then(path).as_deref() == Some("count")
    {
        let counted = call.get("params").and_then(Json::as_array);
        if !counted.is_some_and(|counted| counted.iter().all(is_list)) {
            doubts.insert("a count of what may be no list");
        }
    }
    if let Some(compared) = node.get("BoolExpr") {
        let op = compared
            .get("op")
            .and_then(Json::as_str)
            .unwrap_or_default();
        let sides = [compared.get("lhs"), compared.get("rhs")];
        let certain = sides.iter().all(|side| side.is_some_and(is_number));
        if !matches!(op, "Eq" | "Ne") && !certain {
            doubts.insert("an order of what may be no numbers");
        }
    }
    if node.get("BinExpr").is_some() {
        doubts.insert("set operations");
    }
    for child in children(node) {
        visit(child, bound, doubts);
    }
}

fn children(node: &Json) -> Vec<&Json> {
    match node {
        Json::Array(elements) => elements.iter().collect(),
        Json::Object(members) => members.iter().map(|(_, value)| value).collect(),
        _ => Vec::new(),
    }
}

/// A list among the facts, one that is written out, or the parents of a host.
fn is_list(node: &Json) -> bool {
    let is = |kind: &str| node.get(kind).is_some();
    if is("Array") || is("Set") || is("ArrayCompr") || is("SetCompr") {
        return true;
    }
    let parents = || {
        let dot = node.get("RefDot")?;
        let field = dot.get("field")?.as_array()?.last()?.as_str()?;
        let host = dot.get("refr")?.get("RefBrack")?;
        Some(field == "parents" && path(host.get("refr")?)? == "input.hosts")
    };
    path(node).is_some_and(|path| LISTS.contains(&path.as_str())) || parents() == Some(true)
}

/// A counter, its limit, or a number that is written out.
fn is_number(node: &Json) -> bool {
    let counted = |node: &Json| {
        let path = path(node)?;
        let name = path
            .strip_prefix("input.")
            .or_else(|| path.strip_prefix("data.manifest.limits."))?;
        Some(COUNTERS.contains(&name))
    };
    let is_count = node
        .get("Call")
        .is_some_and(|call| call.get("fcn").and_then(path).as_deref() == Some("count"));
    node.get("Number").is_some() || is_count || counted(node) == Some(true)
}

const LISTS: [&str; 5] = [
    "input.names",
    "input.hosts",
    "input.programs",
    "input.paths_outside",
    "input.uncleared",
];
const COUNTERS: [&str; 4] = ["steps", "tool_calls", "model_calls", "wall_time_ms"];
