//! The modules that a policy in Rego can ask for by name: `library: [labels, egress]`.

use countersign_canon::Json;
use countersign_policy::rego::Source;

/// The modules of the policy library with these names, for tests of policies that ask for them.
pub fn library(names: &[String]) -> Result<Vec<Source>, String> {
    let names = names.iter().map(|name| name.as_str().into()).collect();
    modules(Some(&Json::Array(names)))
}

/// The modules with these names: a list, or `true` for all of them.
pub(crate) fn modules(wanted: Option<&Json>) -> Result<Vec<Source>, String> {
    let source = |(name, text): &(&str, &str)| Source {
        name: format!("library/{name}.rego"),
        text: (*text).to_owned(),
    };
    match wanted {
        None | Some(Json::Bool(false)) => Ok(Vec::new()),
        Some(Json::Bool(true)) => Ok(MODULES.iter().map(source).collect()),
        Some(Json::Array(names)) => names
            .iter()
            .map(|wanted| {
                let module = MODULES
                    .iter()
                    .find(|(name, _)| wanted.as_str() == Some(*name));
                module.map(source).ok_or_else(unknown)
            })
            .collect(),
        Some(_) => Err(unknown()),
    }
}

fn unknown() -> String {
    let names: Vec<&str> = MODULES.iter().map(|(name, _)| *name).collect();
    format!("`library` must be true, or a list of: {}", names.join(", "))
}

macro_rules! modules {
    ($($name:literal),*) => {
        &[$((
            $name,
            include_str!(concat!("../../../policies/library/rego/", $name, ".rego")),
        )),*]
    };
}

const MODULES: &[(&str, &str)] = modules![
    "approval",
    "budgets",
    "confidence",
    "drift",
    "egress",
    "labels",
    "patterns",
    "redaction",
    "strictest"
];
