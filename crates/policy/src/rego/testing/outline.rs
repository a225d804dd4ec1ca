//! What a policy file holds.

use countersign_canon::{Json, Limits, Numbers};
use regorus::Engine;

use super::UNREADABLE;
use crate::rego::bundle::{BundleError, Source};

/// The package and the rules of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The file.
    pub file: String,
    /// Its package, as in `data.example`.
    pub package: String,
    /// Its rules, in their order; one that is defined in several pieces comes several times.
    pub rules: Vec<Rule>,
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
    add(source, &mut engine)?;
    let tree = engine.get_ast_as_json().ok();
    tree.and_then(|tree| read(&tree, source))
        .ok_or_else(|| BundleError::Compile(UNREADABLE.to_owned()))
}

pub(super) fn add(source: &Source, engine: &mut Engine) -> Result<(), BundleError> {
    let added = engine.add_policy(source.name.clone(), source.text.clone());
    added.map(drop).map_err(|error| BundleError::Parse {
        file: source.name.clone(),
        problem: error.to_string(),
    })
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
    let rules = module.get("rules")?.as_array()?.iter();
    Some(Outline {
        file: source.name.clone(),
        package: format!("data.{package}"),
        rules: rules.map(rule).collect::<Option<_>>()?,
    })
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
