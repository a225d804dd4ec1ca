//! Packs: requirements and the cases that show them.

use std::collections::BTreeMap;

use countersign_canon::{Json, Limits};
use countersign_policy::manifest::yaml;

use crate::case::Case;
use crate::step::Step;

/// A pack.
#[derive(Debug, Clone)]
pub struct Pack {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is about, in a line.
    pub description: String,
    /// What must hold, by its id.
    pub requirements: BTreeMap<String, String>,
    /// What is done before the cases, once.
    pub before: Vec<Step>,
    /// Whether it needs an MCP door, and the manifest of that door.
    pub mcp: Option<Json>,
    /// The cases.
    pub cases: Vec<Case>,
}

impl Pack {
    /// Reads a pack in YAML or JSON: ours, which names its `schema`, or the older form of single
    /// questions, whose members are `name` and `tests`.
    pub fn read(text: &[u8]) -> Result<Self, PackError> {
        let json = yaml::admit(text, &LIMITS).map_err(PackError::Yaml)?;
        match json.get("schema") {
            Some(Json::String(schema)) if schema == SCHEMA => scripted(&json),
            Some(_) => Err(PackError::Form(format!("the schema is not `{SCHEMA}`"))),
            None => questions(&json),
        }
    }

    /// Says of a case that it is known to fail, and why.
    pub fn expect_failure(&mut self, id: &str, reason: &str) -> bool {
        let case = self.cases.iter_mut().find(|case| case.id == id);
        let found = case.is_some();
        if let Some(case) = case {
            case.expected_failure = Some(reason.to_owned());
        }
        found
    }
}

/// Why a pack cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The text is no strict YAML.
    #[error("{0}")]
    Yaml(yaml::YamlError),
    /// It does not have the form of a pack.
    #[error("{0}")]
    Form(String),
}

/// The packs that come with this crate, by their names.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("events", include_str!("../../../conformance/events.yaml")),
    (
        "capability",
        include_str!("../../../conformance/capability.yaml"),
    ),
    ("taint", include_str!("../../../conformance/taint.yaml")),
    ("budgets", include_str!("../../../conformance/budgets.yaml")),
    (
        "agent-control",
        include_str!("../../../conformance/agent-control.yaml"),
    ),
    ("points", include_str!("../../../conformance/points.yaml")),
    (
        "approvals",
        include_str!("../../../conformance/approvals.yaml"),
    ),
    ("mcp", include_str!("../../../conformance/mcp.yaml")),
    (
        "evidence",
        include_str!("../../../conformance/evidence.yaml"),
    ),
    (
        "redaction",
        include_str!("../../../conformance/redaction.yaml"),
    ),
    ("hostile", include_str!("../../../conformance/hostile.yaml")),
    (
        "questions",
        include_str!("../../../conformance/questions.yaml"),
    ),
];

fn scripted(json: &Json) -> Result<Pack, PackError> {
    only(json, &SCRIPTED, "a pack")?;
    let requirements = json.get("requirements").and_then(Json::as_object);
    let requirements = requirements.ok_or_else(|| form("a pack lists its `requirements`"))?;
    let mut pack = Pack {
        name: text(json, "name")?,
        version: text(json, "version")?,
        description: text(json, "description")?,
        requirements: BTreeMap::new(),
        before: steps(json, "before", "before")?,
        mcp: json.get("mcp").cloned(),
        cases: Vec::new(),
    };
    for (id, words) in requirements.iter() {
        let words = words
            .as_str()
            .ok_or_else(|| form("a requirement is words"))?;
        pack.requirements.insert(id.to_owned(), words.to_owned());
    }
    let tests = json.get("tests").and_then(Json::as_array);
    for test in tests.ok_or_else(|| form("a pack lists its `tests`"))? {
        only(test, &TEST, "a test")?;
        let id = text(test, "id")?;
        let case = Case {
            req_id: text(test, "req_id")?,
            description: text(test, "description")?,
            steps: steps(test, "steps", &id)?,
            expected_failure: optional(test, "expected_failure")?,
            id,
        };
        if !pack.requirements.contains_key(&case.req_id) {
            let Case { id, req_id, .. } = case;
            return Err(form(&format!(
                "`{id}` is about `{req_id}`, which is not listed"
            )));
        }
        if case.steps.is_empty() {
            return Err(form(&format!("`{}` does nothing", case.id)));
        }
        pack.cases.push(case);
    }
    let tested = |id: &&String| !pack.cases.iter().any(|case| case.req_id == **id);
    if let Some(id) = pack.requirements.keys().find(tested) {
        return Err(form(&format!("no test is about `{id}`")));
    }
    unique(&pack)?;
    Ok(pack)
}

/// The older form: every test is one question with the verdict that must be given. Members that it
/// does not know are ignored, as its own runner does.
fn questions(json: &Json) -> Result<Pack, PackError> {
    let mut pack = Pack {
        name: text(json, "name")?,
        version: optional(json, "version")?.unwrap_or_default(),
        description: optional(json, "description")?.unwrap_or_default(),
        requirements: BTreeMap::new(),
        before: Vec::new(),
        mcp: None,
        cases: Vec::new(),
    };
    let tests = json.get("tests").and_then(Json::as_array);
    for test in tests.unwrap_or_default() {
        let id = text(test, "id")?;
        let part = |name: &str| test.get("request").and_then(|request| request.get(name));
        let question = ["event", "snapshot", "manifest"]
            .map(|name| (name, part(name).cloned().unwrap_or(Json::Null)));
        let expect = test.get("expect").unwrap_or(&Json::Null);
        let reason = optional(expect, "reason")?.filter(|reason| !reason.is_empty());
        let step = Step::decide(Json::object(question), text(expect, "outcome")?, reason);
        let case = Case {
            req_id: optional(test, "req_id")?.unwrap_or_default(),
            description: optional(test, "description")?.unwrap_or_default(),
            steps: vec![step],
            expected_failure: optional(test, "expected_failure")?,
            id,
        };
        let words = case.description.clone();
        pack.requirements
            .entry(case.req_id.clone())
            .or_insert(words);
        pack.cases.push(case);
    }
    match pack.cases.is_empty() {
        true => Err(form("a pack without tests shows nothing")),
        false => unique(&pack).map(|()| pack),
    }
}

fn unique(pack: &Pack) -> Result<(), PackError> {
    let mut seen = std::collections::BTreeSet::new();
    match pack.cases.iter().find(|case| !seen.insert(&case.id)) {
        None => Ok(()),
        Some(case) => Err(form(&format!("`{}` is there twice", case.id))),
    }
}

fn steps(json: &Json, member: &str, id: &str) -> Result<Vec<Step>, PackError> {
    let steps = json.get(member).map(Json::as_array);
    let steps = match steps {
        None => return Ok(Vec::new()),
        Some(steps) => steps.ok_or_else(|| form(&format!("`{id}`: `{member}` is a list")))?,
    };
    let numbered = steps.iter().enumerate();
    numbered
        .map(|(index, step)| {
            let number = index + 1;
            Step::read(step).map_err(|problem| form(&format!("`{id}`, step {number}: {problem}")))
        })
        .collect()
}

fn only(json: &Json, known: &[&str], what: &str) -> Result<(), PackError> {
    let members = json
        .as_object()
        .ok_or_else(|| form(&format!("{what} is an object")))?;
    match members.iter().find(|(name, _)| !known.contains(name)) {
        None => Ok(()),
        Some((name, _)) => Err(form(&format!("{what} has no `{name}`"))),
    }
}

fn text(json: &Json, member: &str) -> Result<String, PackError> {
    let text = optional(json, member)?.filter(|text| !text.is_empty());
    text.ok_or_else(|| form(&format!("`{member}` is missing")))
}

fn optional(json: &Json, member: &str) -> Result<Option<String>, PackError> {
    match json.get(member) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.clone())),
        Some(Json::Number(_)) => Ok(json
            .get(member)
            .map(|number| String::from_utf8_lossy(&number.to_sorted()).into_owned())),
        Some(_) => Err(form(&format!("`{member}` is a text"))),
    }
}

fn form(problem: &str) -> PackError {
    PackError::Form(problem.to_owned())
}

const SCHEMA: &str = "countersign/conformance/v1";
const SCRIPTED: [&str; 8] = [
    "schema",
    "name",
    "version",
    "description",
    "requirements",
    "before",
    "mcp",
    "tests",
];
const TEST: [&str; 5] = ["id", "req_id", "description", "steps", "expected_failure"];
const LIMITS: Limits = Limits {
    max_bytes: 4 << 20,
    ..Limits::event()
};
