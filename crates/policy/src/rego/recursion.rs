//! Functions that can come to themselves, by calls or by way of rules.
//!
//! SECURITY: the engine follows such calls until its stack ends, and with it the process; no limit of
//! time or instructions comes first. Rules that need only rules are noticed by the engine.

use std::collections::{BTreeMap, BTreeSet};

use countersign_canon::Json;

use super::cycles::Graph;
use super::inspect::path;

/// Rules and functions by their full names without `data.`, with everything that they may look at.
#[derive(Default)]
pub(super) struct Functions {
    functions: BTreeSet<String>,
    /// The last parts of the functions' names.
    names: BTreeSet<String>,
    uses: BTreeMap<String, BTreeSet<String>>,
}

/// Where names of a file are looked up.
struct File<'a> {
    package: &'a str,
    imports: BTreeMap<String, String>,
}

impl Functions {
    /// Takes in one file, as the engine prints it, and its text.
    pub(super) fn add(&mut self, module: &Json, text: &str) {
        // A package with an odd name is known by the part that is not.
        let package = module.get("package").and_then(|it| base(it.get("refr")?));
        let package = package.unwrap_or_default();
        let file = File {
            package: &package,
            imports: imports(module, text),
        };
        let rules = module.get("rules").and_then(Json::as_array);
        for rule in rules.unwrap_or_default() {
            let head = rule.get("Spec").and_then(|spec| spec.get("head"));
            let kinds = ["Func", "Compr", "Set"];
            let mut found = kinds
                .iter()
                .filter_map(|kind| Some((*kind, head?.get(kind)?)));
            let Some((kind, head)) = found.next() else {
                continue;
            };
            let Some(name) = head.get("refr").and_then(base) else {
                continue;
            };
            let name = format!("{package}.{name}");
            if kind == "Func" {
                self.names.insert(last(&name).to_owned());
                self.functions.insert(name.clone());
            }
            // Only parameters hide rules for certain; a variable of the same name counts as the rule.
            let mut hidden = BTreeSet::new();
            head.get("args")
                .into_iter()
                .for_each(|args| names(args, &mut hidden));
            let mut looked_at = BTreeSet::new();
            let bodies = rule.get("Spec").and_then(|spec| spec.get("bodies"));
            let parts = [bodies, head.get("assign"), head.get("key")];
            for part in parts.into_iter().flatten() {
                names(part, &mut looked_at);
            }
            if let Some(refr) = head.get("refr") {
                brackets(refr, &mut looked_at);
            }
            let uses = self.uses.entry(name).or_default();
            let looked_at = looked_at
                .iter()
                .filter(|name| !hidden.contains(first(name)));
            uses.extend(looked_at.filter_map(|name| file.resolve(name)));
        }
    }

    /// Whether a call is one of these functions, as far as its name tells.
    pub(super) fn has(&self, call: &str) -> bool {
        let last = last(call);
        let is_local = last == call || call.starts_with("data.");
        is_local && self.names.contains(last)
    }

    /// A function that can come to itself, by its full name.
    pub(super) fn recursive(&self) -> Option<String> {
        let mut places = Places::default();
        for (rule, uses) in &self.uses {
            let rule = places.rule(rule);
            for used in uses {
                places.look(rule, used);
            }
        }
        let cyclic = places.graph.cyclic();
        let is_cyclic = |place: &usize| cyclic.get(rule(*place)) == Some(&true);
        let mut functions = self.functions.iter();
        let name = functions.find(|name| places.by_name.get(*name).is_some_and(is_cyclic))?;
        Some(format!("data.{name}"))
    }
}

/// Everything that has a name, and what leads from one to the other.
///
/// Looking at a name looks at the rule there, at all below it, and at those that hold it. Of each place
/// the graph has three nodes, so that a name that is looked at costs as many edges as it has parts: its
/// rule, everything from there down, everything from there up.
#[derive(Default)]
struct Places {
    by_name: BTreeMap<String, usize>,
    graph: Graph,
}

impl Places {
    fn rule(&mut self, name: &str) -> usize {
        let place = self.place(name);
        self.graph.join(down(place), rule(place));
        self.graph.join(up(place), rule(place));
        place
    }

    fn look(&mut self, from: usize, name: &str) {
        let place = self.place(name);
        self.graph.join(rule(from), down(place));
        self.graph.join(rule(from), up(place));
    }

    /// The place of a name, with those of all names that hold it.
    fn place(&mut self, name: &str) -> usize {
        let ends = name.match_indices('.').map(|(end, _)| end);
        let holders = ends.chain((!name.is_empty()).then_some(name.len()));
        let mut place = self.known("").0;
        for end in holders {
            let (inner, is_new) = self.known(name.get(..end).unwrap_or_default());
            if is_new {
                self.graph.join(down(place), down(inner));
                self.graph.join(up(inner), up(place));
            }
            place = inner;
        }
        place
    }

    fn known(&mut self, name: &str) -> (usize, bool) {
        let next = self.by_name.len();
        match self.by_name.get(name) {
            Some(place) => (*place, false),
            None => {
                self.by_name.insert(name.to_owned(), next);
                (next, true)
            }
        }
    }
}

const fn rule(place: usize) -> usize {
    place * 3
}

const fn down(place: usize) -> usize {
    place * 3 + 1
}

const fn up(place: usize) -> usize {
    place * 3 + 2
}

impl File<'_> {
    /// The full name, without `data.`; `None` for what is no rule.
    fn resolve(&self, name: &str) -> Option<String> {
        let (first, rest) = match name.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (name, None),
        };
        let absolute = match first {
            "data" => return Some(rest.unwrap_or_default().to_owned()),
            "input" => return None,
            first => match self.imports.get(first) {
                Some(path) if path == "data" => String::new(),
                Some(path) => path.strip_prefix("data.")?.to_owned(),
                None => format!("{}.{first}", self.package),
            },
        };
        Some(match rest {
            Some(rest) if absolute.is_empty() => rest.to_owned(),
            Some(rest) => format!("{absolute}.{rest}"),
            None => absolute,
        })
    }
}

fn first(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}

/// What names stand for that a file has imported.
fn imports(module: &Json, text: &str) -> BTreeMap<String, String> {
    let imports = module.get("imports").and_then(Json::as_array);
    let named = imports.unwrap_or_default().iter().filter_map(|import| {
        let path = base(import.get("refr")?)?;
        let alias = match import.get("as") {
            Some(span) => spanned(span, text)?,
            None => path.rsplit('.').next()?,
        };
        Some((alias.to_owned(), path))
    });
    named.collect()
}

/// The part of a text that the engine points at.
fn spanned<'t>(span: &Json, text: &'t str) -> Option<&'t str> {
    let end = |name: &str| usize::try_from(span.get(name)?.as_u64()?).ok();
    text.get(end("start")?..end("end")?)
}

/// The part of a reference that is written as names.
fn base(node: &Json) -> Option<String> {
    path(node).or_else(|| {
        let inner = node.get("RefBrack").or_else(|| node.get("RefDot"))?;
        base(inner.get("refr")?)
    })
}

/// Every name that stands somewhere, with the fields behind it.
fn names(node: &Json, found: &mut BTreeSet<String>) {
    if ["Var", "RefDot", "RefBrack"]
        .iter()
        .any(|kind| node.get(kind).is_some())
    {
        found.extend(base(node));
        brackets(node, found);
        return;
    }
    match node {
        Json::Array(elements) => elements.iter().for_each(|element| names(element, found)),
        Json::Object(members) => members.iter().for_each(|(_, value)| names(value, found)),
        _ => {}
    }
}

/// What a reference looks at beside what it names: in brackets, or where it begins with no name.
fn brackets(node: &Json, found: &mut BTreeSet<String>) {
    if node.get("Var").is_some() {
        return;
    }
    match node.get("RefBrack").or_else(|| node.get("RefDot")) {
        None => names(node, found),
        Some(inner) => {
            if let Some(index) = inner.get("index") {
                names(index, found);
            }
            if let Some(refr) = inner.get("refr") {
                brackets(refr, found);
            }
        }
    }
}
