//! Looking at the syntax of policies before they are used.

use std::collections::{BTreeMap, BTreeSet};

use countersign_canon::{Json, Limits, Numbers};

use super::bundle::BundleError;
use super::recursion::Functions;
use super::{growth, types};

/// What the syntax of a bundle shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Syntax {
    /// Every function that is called, by its full name.
    pub(super) calls: BTreeSet<String>,
    /// Every part of the input that is looked at by name, as in `action.tool`.
    pub(super) inputs: BTreeSet<String>,
    /// Everything that stands in for something else.
    stand_ins: BTreeSet<String>,
    /// Constructs that the virtual machine is known to get wrong, or that we do not trust it with.
    pub(super) doubtful: BTreeSet<&'static str>,
    /// A function that can call itself.
    pub(super) recursive: Option<String>,
    /// A call that could grow without a bound, and what is asked of it.
    unbounded: Option<(String, &'static str)>,
}

/// Builtins that would make a verdict depend on something else than its input.
pub(super) const FORBIDDEN: &[&str] = &[
    "http.send",
    "net.lookup_ip_addr",
    "opa.runtime",
    "rand.intn",
    "time.now_ns",
    "uuid.rfc4122",
];

/// Builtins that the machine may serve.
const SAFE: &[&str] = &["count"];

/// Reads the syntax tree that the engine prints. `None` if it cannot be read, which nobody should
/// take for a good sign.
pub(super) fn syntax(tree: &str) -> Option<Syntax> {
    let limits = Limits {
        max_bytes: usize::MAX,
        max_depth: 512,
        numbers: Numbers::Exact,
    };
    let tree = Json::admit(tree.as_bytes(), &limits).ok()?;
    let mut syntax = Syntax::default();
    let mut functions = Functions::default();
    for policy in tree.as_array()? {
        let module = policy.get("ast")?;
        let rules = module.get("rules")?;
        syntax.visit(rules);
        syntax.notice_several_values(rules);
        for rule in rules.as_array()? {
            syntax.doubtful.extend(types::doubts(rule));
        }
        let text = policy
            .get("source")
            .and_then(|source| source.get("contents"));
        functions.add(module, text?.as_str()?);
    }
    syntax.recursive = functions.recursive();
    syntax.notice_failing_calls(&functions);
    syntax.keep_longest_inputs();
    Some(syntax)
}

impl Syntax {
    /// What no policy may do, whoever asks.
    pub(super) fn check(&self) -> Result<(), BundleError> {
        let uses = |name: &&&str| self.calls.contains(**name) || self.stand_ins.contains(**name);
        if let Some(forbidden) = FORBIDDEN.iter().find(uses) {
            return Err(BundleError::Forbidden((*forbidden).to_owned()));
        }
        if let Some((name, why)) = self.unbounded.clone() {
            return Err(BundleError::Unbounded { name, why });
        }
        match &self.recursive {
            Some(function) => Err(BundleError::Recursive(function.clone())),
            None => Ok(()),
        }
    }

    fn visit(&mut self, node: &Json) {
        match node {
            Json::Array(elements) => elements.iter().for_each(|element| self.visit(element)),
            Json::Object(members) => {
                for (name, value) in members {
                    self.notice(name, value);
                    self.visit(value);
                }
            }
            _ => {}
        }
    }

    fn notice(&mut self, name: &str, value: &Json) {
        match name {
            "Call" => {
                let called = value.get("fcn").and_then(path);
                if called.as_deref() == Some("walk") {
                    self.doubtful.insert("walk");
                }
                self.calls.extend(called);
                self.unbounded = self.unbounded.take().or_else(|| growth::objection(value));
            }
            "RefDot" => {
                let path = dotted(value);
                let of_input = path.as_deref().and_then(|path| path.strip_prefix("input."));
                self.inputs.extend(of_input.map(str::to_owned));
            }
            // SECURITY: what fails in the interpreter, and so denies, is only undefined in the machine;
            // a condition that should deny would not hold.
            "ArithExpr" | "UnaryExpr" => {
                self.doubtful.insert("arithmetic");
            }
            // `every` with a body that is undefined was seen to hold in the machine.
            "Every" => {
                self.doubtful.insert("every");
            }
            "with_mods" if value.as_array().is_some_and(|mods| !mods.is_empty()) => {
                self.doubtful.insert("with");
                self.notice_stand_ins(value);
            }
            "Default"
                if value
                    .get("args")
                    .and_then(Json::as_array)
                    .is_some_and(|a| !a.is_empty()) =>
            {
                self.doubtful.insert("a default for a function");
            }
            "head" => self.notice_head(value),
            _ => {}
        }
    }

    /// SECURITY: `with f as rand.intn` makes every call of `f` one of the builtin.
    fn notice_stand_ins(&mut self, mods: &Json) {
        let mods = mods.as_array().unwrap_or_default().iter();
        for name in mods.filter_map(|one| one.get("as").and_then(path)) {
            if growth::can_grow(&name) {
                let why = "it may not stand in for another function";
                self.unbounded = self.unbounded.take().or(Some((name.clone(), why)));
            }
            self.stand_ins.insert(name);
        }
    }

    /// Calls of anything but functions of the bundle and of builtins that cannot fail on facts.
    fn notice_failing_calls(&mut self, functions: &Functions) {
        // `walk` has a reason of its own.
        let is_safe =
            |name: &String| SAFE.contains(&name.as_str()) || name == "walk" || functions.has(name);
        if !self.calls.iter().all(is_safe) {
            self.doubtful.insert("a builtin that can fail");
        }
    }

    /// Rules of one name with values that could differ: the interpreter fails, the machine takes one.
    fn notice_several_values(&mut self, rules: &Json) {
        let mut seen: BTreeMap<String, bool> = BTreeMap::new();
        for rule in rules.as_array().unwrap_or_default() {
            let head = rule.get("Spec").and_then(|spec| spec.get("head"));
            let head = head.and_then(|head| head.get("Compr").or_else(|| head.get("Func")));
            let Some(head) = head else { continue };
            let Some(name) = head.get("refr").and_then(path) else {
                continue;
            };
            let has_value = head.get("assign").is_some_and(|assign| !assign.is_null());
            let before = seen.get(&name).copied();
            if before.is_some_and(|had_value| had_value || has_value) {
                self.doubtful.insert("a rule with several values");
            }
            seen.insert(name, has_value || before.unwrap_or_default());
        }
    }

    /// `input.a.b` also shows as `input.a`.
    fn keep_longest_inputs(&mut self) {
        let all = self.inputs.clone();
        self.inputs.retain(|path| {
            let longer = format!("{path}.");
            let next = all.range(longer.clone()..).next();
            !next.is_some_and(|next| next.starts_with(&longer))
        });
    }

    /// Rules with a path for a name (`a.b := 1`) are read wrongly as a whole document.
    fn notice_head(&mut self, head: &Json) {
        let kinds = head.as_object().into_iter().flat_map(|kinds| kinds.iter());
        for (_, rule) in kinds {
            let simple = rule
                .get("refr")
                .is_some_and(|name| name.get("Var").is_some());
            if !simple {
                self.doubtful.insert("a rule name of several parts");
            }
        }
    }
}

/// `Var` and `RefDot` nodes as a dotted name.
pub(super) fn path(node: &Json) -> Option<String> {
    if let Some(var) = node.get("Var") {
        return var.get("value")?.as_str().map(str::to_owned);
    }
    dotted(node.get("RefDot")?)
}

fn dotted(dot: &Json) -> Option<String> {
    let field = dot.get("field")?.as_array()?.last()?.as_str()?;
    Some(format!("{}.{field}", path(dot.get("refr")?)?))
}
