//! The parts of a manifest.

use std::collections::BTreeMap;

use countersign_canon::{Json, Object};
use countersign_policy::manifest::Named;
use countersign_policy::path::Path;

use super::pin::Pinned;

/// What is judged at a point, and by which policy.
#[derive(Debug, Clone, PartialEq)]
pub struct PointConfig {
    /// What is judged.
    pub target: Path,
    /// What kind of thing that is.
    pub target_kind: Option<String>,
    /// Where the snapshot names the tool.
    pub tool_name_from: Option<Path>,
    /// The annotators that are asked first, by name.
    pub annotations: BTreeMap<String, Annotation>,
    /// The policy.
    pub policy: Binding,
}

/// One annotator, as a point asks it.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// What it looks at.
    pub from: Path,
    /// Its declaration with the fields of the point laid over it.
    pub fields: Object,
}

/// A policy, as a point asks it.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    /// Which policy.
    pub id: String,
    /// Which of its rules, if not the one of its definition.
    pub query: Option<String>,
    /// Everything else that the point says about it.
    pub fields: Object,
}

/// The definition of a policy.
#[derive(Debug, Clone, PartialEq)]
pub enum Policy {
    /// In Rego.
    Rego(RegoPolicy),
    /// In Cedar.
    Cedar(CedarPolicy),
    /// Always the same answer.
    Test(TestPolicy),
    /// By a program of the host.
    Custom(CustomPolicy),
}

/// A policy in Rego.
#[derive(Debug, Clone, PartialEq)]
pub struct RegoPolicy {
    /// The rule that answers, as in `data.example.verdict`.
    pub query: Option<String>,
    /// A folder or a file of policies.
    pub bundle: Option<String>,
    /// A bundle at an address.
    pub bundle_url: Option<Pinned>,
    /// Further files and folders, from `data` and `data_paths`.
    pub data: Vec<String>,
    /// Everything else.
    pub fields: Object,
}

/// A policy in Cedar.
#[derive(Debug, Clone, PartialEq)]
pub struct CedarPolicy {
    /// The text of the policies.
    pub policy_set: Option<String>,
    /// A file or a folder of policies.
    pub policy_path: Option<String>,
    /// A file of entities.
    pub entities_path: Option<String>,
    /// A file with a schema.
    pub schema_path: Option<String>,
    /// How the question is asked, if not in the default way.
    pub query: Option<Object>,
}

/// A policy that always says the same.
#[derive(Debug, Clone, PartialEq)]
pub struct TestPolicy {
    /// What it says.
    pub fields: Object,
}

/// A policy of the host.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomPolicy {
    /// Which of the host's adapters answers.
    pub adapter: String,
    /// Everything else.
    pub fields: Object,
}

impl Policy {
    /// The name of its type.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Rego(_) => "rego",
            Self::Cedar(_) => "cedar",
            Self::Test(_) => "test",
            Self::Custom(_) => "custom",
        }
    }
}

/// The declaration of an annotator.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotator {
    /// What it is.
    pub kind: AnnotatorKind,
    /// Everything else.
    pub fields: Object,
}

/// What an annotator is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnotatorKind {
    /// It sorts.
    Classifier,
    /// A language model.
    Llm,
    /// A service.
    Endpoint,
}

impl Named for AnnotatorKind {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("classifier", Self::Classifier),
        ("llm", Self::Llm),
        ("endpoint", Self::Endpoint),
    ];
}

/// Who is asked when somebody has to decide.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// Whom to ask.
    pub default_resolver: Option<String>,
    /// How long to wait.
    pub timeout_seconds: Option<u64>,
    /// What happens then.
    pub on_timeout: Option<OnTimeout>,
    /// How many requests are too many for a person.
    pub fatigue_threshold: Option<u64>,
    /// In how long.
    pub fatigue_window_seconds: Option<u64>,
    /// Who can be asked, by name.
    pub resolvers: BTreeMap<String, Resolver>,
}

/// Somebody who can be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolver {
    /// What kind.
    pub kind: String,
    /// Everything else.
    pub fields: Object,
}

/// What happens when nobody answers in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTimeout {
    /// It does not run.
    Deny,
    /// It runs.
    Allow,
    /// It waits on.
    Suspend,
}

impl Named for OnTimeout {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("deny", Self::Deny),
        ("allow", Self::Allow),
        ("suspend", Self::Suspend),
    ];
}

/// The fields that are not in the list.
pub(super) fn others(members: &Object, known: &[&str]) -> Object {
    members
        .iter()
        .filter(|(name, _)| !known.contains(name))
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect()
}

/// The catalog entry of a tool, with its name.
pub(super) fn projected(name: &str, fields: &Object) -> Json {
    let mut fields = fields.clone();
    fields.insert("name".to_owned(), name.into());
    Json::Object(fields)
}
