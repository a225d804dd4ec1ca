//! What a policy file holds.

use std::collections::BTreeSet;

use countersign_canon::{Json, Limits, Numbers};
use regorus::Engine;
use regorus::unstable::BUILTINS;

use super::{Fault, UNREADABLE};
use crate::rego::bundle::{BundleError, Source};
use crate::rego::inspect::FORBIDDEN;
use crate::rego::text;

/// The package and the rules of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The file.
    pub file: String,
    /// Its package, as in `data.example`.
    pub package: String,
    /// Its rules, in their order; one that is defined in several pieces comes several times.
    pub rules: Vec<Rule>,
    /// The functions that it calls, each with its line.
    calls: Vec<(String, u64)>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// Its line.
    pub line: u64,
}

impl Rule {
    /// Whether it is a unit test.
    pub fn is_test(&self) -> bool {
        self.name.starts_with("test_")
    }
}

/// Looks into one file.
pub fn outline(source: &Source) -> Result<Outline, BundleError> {
    let mut engine = Engine::new();
    engine.set_rego_v0(false);
    text::add(source, &mut engine)?;
    let tree = engine.get_ast_as_json().ok();
    tree.and_then(|tree| read(&tree, source))
        .ok_or_else(|| BundleError::Compile(UNREADABLE.to_owned()))
}

/// Calls of functions that are neither built in nor defined in one of the files. The engine notices
/// them only when it gets there. What policies must not call is known, and refused elsewhere.
pub fn unknown_calls(outlines: &[Outline]) -> Vec<Fault> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let defined: BTreeSet<String> = outlines
        .iter()
        .flat_map(|outline| outline.rules.iter().map(|rule| last(&rule.name)))
        .collect();
    let is_known = |name: &str| {
        name == "print"
            || BUILTINS.contains_key(name)
            || FORBIDDEN.contains(&name)
            || defined.contains(&last(name))
    };
    let faults = |outline: &Outline| {
        let calls = outline.calls.iter().filter(|(name, _)| !is_known(name));
        let fault = |(name, line): &(String, u64)| Fault {
            file: outline.file.clone(),
            line: *line,
            message: format!("there is no function `{name}`"),
        };
        calls.map(fault).collect::<Vec<_>>()
    };
    outlines.iter().flat_map(faults).collect()
}

fn read(tree: &str, source: &Source) -> Option<Outline> {
    let limits = Limits {
        max_bytes: usize::MAX,
        max_depth: 512,
        numbers: Numbers::Exact,
    };
    let tree = Json::admit(tree.as_bytes(), &limits).ok()?;
    let module = tree.as_array()?.first()?.get("ast")?;
    let package = name(module.get("package")?.get("refr")?)?;
    let rules = module.get("rules")?;
    let mut calls = Vec::new();
    find_calls(rules, &mut calls);
    Some(Outline {
        file: source.name.clone(),
        package: format!("data.{package}"),
        rules: rules.as_array()?.iter().map(rule).collect::<Option<_>>()?,
        calls,
    })
}

fn find_calls(node: &Json, calls: &mut Vec<(String, u64)>) {
    if let Some(call) = node.get("Call") {
        let line = call.get("span").and_then(|span| span.get("line")?.as_u64());
        calls.extend(call.get("fcn").and_then(name).zip(line));
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

fn rule(node: &Json) -> Option<Rule> {
    let (_, rule) = node.as_object()?.iter().next()?;
    let named = match rule.get("head") {
        Some(head) => head.as_object()?.iter().next()?.1.get("refr")?,
        None => rule.get("refr")?,
    };
    Some(Rule {
        name: name(named)?,
        line: rule.get("span")?.get("line")?.as_u64()?,
    })
}

/// `a`, `a.b` or `a["b-c"]`.
fn name(node: &Json) -> Option<String> {
    let (kind, node) = node.as_object()?.iter().next()?;
    match kind {
        "Var" => node.get("value")?.as_str().map(str::to_owned),
        "RefDot" => {
            let field = node.get("field")?.as_array()?.last()?.as_str()?;
            Some(format!("{}.{field}", name(node.get("refr")?)?))
        }
        "RefBrack" => {
            let (_, index) = node.get("index")?.as_object()?.iter().next()?;
            let index = index.get("value")?.to_jcs().ok()?;
            let index = String::from_utf8(index).ok()?;
            Some(format!("{}[{index}]", name(node.get("refr")?)?))
        }
        _ => None,
    }
}
