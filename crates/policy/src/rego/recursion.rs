//! Functions that call themselves.
//!
//! SECURITY: the engine follows such calls until its stack ends, and with it the process; no limit of
//! time or instructions comes first. Rules that need themselves are noticed by the engine.

use std::collections::{BTreeMap, BTreeSet};

use countersign_canon::Json;

use super::inspect::path;

/// Functions by package and name, with what they call as it is written.
#[derive(Default)]
pub(super) struct Functions {
    calls: BTreeMap<(String, String), BTreeSet<String>>,
}

impl Functions {
    /// Takes in one file: its package, and its rules as the engine prints them.
    pub(super) fn add(&mut self, package: &str, rules: &Json) {
        for rule in rules.as_array().unwrap_or_default() {
            let spec = rule.get("Spec");
            let head = spec.and_then(|spec| spec.get("head")?.get("Func"));
            let Some(name) = head.and_then(|head| path(head.get("refr")?)) else {
                continue;
            };
            let calls = self.calls.entry((package.to_owned(), name)).or_default();
            find_calls(rule, calls);
        }
    }

    /// Whether a call is one of these functions, as far as its name tells.
    pub(super) fn has(&self, call: &str) -> bool {
        let last = call.rsplit('.').next().unwrap_or_default();
        let is_local = last == call || call.starts_with("data.");
        is_local && self.calls.keys().any(|(_, name)| name == last)
    }

    /// A function that can call itself, by its full name.
    pub(super) fn recursive(&self) -> Option<String> {
        let (package, name) = self.calls.keys().find(|start| self.reaches_itself(start))?;
        Some(format!("data.{package}.{name}"))
    }

    fn reaches_itself(&self, start: &(String, String)) -> bool {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&(String, String)> = self.called_by(start).collect();
        while let Some(function) = open.pop() {
            if function == start {
                return true;
            }
            if seen.insert(function) {
                open.extend(self.called_by(function));
            }
        }
        false
    }

    fn called_by(&self, caller: &(String, String)) -> impl Iterator<Item = &(String, String)> {
        let calls = self.calls.get(caller).into_iter().flatten();
        calls.flat_map(move |call| {
            let own = self.calls.contains_key(&(caller.0.clone(), call.clone()));
            self.calls
                .keys()
                .filter(move |function| may_mean(call, own, function, &caller.0))
        })
    }
}

/// Whether a call, as it is written in a package, may be one of the function; `own` if the package
/// has a function of that name. What stands behind an import may be in any other package.
fn may_mean(call: &str, own: bool, (package, name): &(String, String), caller: &str) -> bool {
    if call == name {
        return package == caller || !own;
    }
    if let Some(absolute) = call.strip_prefix("data.") {
        let rest = absolute.strip_prefix(package.as_str());
        return rest.and_then(|rest| rest.strip_prefix('.')) == Some(name);
    }
    match call.rsplit_once('.') {
        Some((alias, last)) => {
            last == name && (package != caller || package.rsplit('.').next() == Some(alias))
        }
        None => false,
    }
}

fn find_calls(node: &Json, calls: &mut BTreeSet<String>) {
    if let Some(call) = node.get("Call") {
        calls.extend(call.get("fcn").and_then(path));
    }
    match node {
        Json::Array(elements) => elements
            .iter()
            .for_each(|element| find_calls(element, calls)),
        Json::Object(members) => members
            .iter()
            .for_each(|(_, value)| find_calls(value, calls)),
        _ => {}
    }
}
