//! The one verdict type. Every external vocabulary is a projection of it.

use std::collections::BTreeMap;
use std::fmt;

use countersign_canon::{Json, Object};

mod target;

pub use target::{TargetError, TargetPath};

/// What may happen to an action, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[must_use]
pub enum Decision {
    /// It may run.
    Allow,
    /// It may run; somebody should know.
    Warn,
    /// It may run in a changed form.
    Transform,
    /// A human decides.
    Escalate,
    /// It may not run.
    Deny,
}

/// A decision with its grounds.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Verdict {
    decision: Decision,
    reason: Option<String>,
    message: Option<String>,
    transform: Option<Transform>,
    evidence: Option<Evidence>,
    result_labels: Vec<String>,
}

/// The change that a transform asks for: one new value at one place of the action.
#[derive(Debug, Clone, PartialEq)]
pub struct Transform {
    /// Where.
    pub path: TargetPath,
    /// What goes there; `null` is a value.
    pub value: Json,
}

/// What an auditor may consult about a verdict. It is passed on as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Content address or URI of a proof.
    pub artefact: Option<String>,
    /// Named pointers.
    pub verification_pointers: BTreeMap<String, String>,
}

/// Why the output of a policy is no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerdictError {
    /// A member is missing, of the wrong type, or not allowed here.
    #[error("the policy's answer is not a verdict: {0}")]
    Invalid(String),
    /// A transform wants to change something else than the action.
    #[error("a transform may only change `$policy_target`, not `{0}`")]
    TargetForbidden(String),
}

impl Evidence {
    /// What it says, as it was given.
    pub fn to_json(&self) -> Json {
        let artefact = self.artefact.as_deref();
        let artefact = artefact.map(|artefact| ("artefact", Json::from(artefact)));
        let pointers = &self.verification_pointers;
        let pointers = (!pointers.is_empty()).then(|| {
            let pointers = pointers.iter();
            let pointers = pointers.map(|(name, url)| (name.as_str(), Json::from(url.as_str())));
            ("verification_pointers", Json::object(pointers))
        });
        Json::object(artefact.into_iter().chain(pointers))
    }
}

impl Decision {
    /// Every decision, from the mildest to the strictest.
    pub const ALL: [Self; 5] = [
        Self::Allow,
        Self::Warn,
        Self::Transform,
        Self::Escalate,
        Self::Deny,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Transform => "transform",
            Self::Escalate => "escalate",
            Self::Deny => "deny",
        }
    }

    /// The three words of the decision API.
    pub const fn outcome(self) -> &'static str {
        match self {
            Self::Allow | Self::Warn | Self::Transform => "allow",
            Self::Escalate => "require_approval",
            Self::Deny => "deny",
        }
    }

    /// Whether the action may run without asking anybody.
    pub const fn permits(self) -> bool {
        matches!(self, Self::Allow | Self::Warn | Self::Transform)
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|decision| decision.as_str() == text)
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl VerdictError {
    /// The reserved reason that goes into the log.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "runtime_error:policy_output_invalid",
            Self::TargetForbidden(_) => "runtime_error:transform_target_forbidden",
        }
    }
}

impl Verdict {
    /// A verdict with a reason and nothing else.
    pub fn new(decision: Decision, reason: impl Into<String>) -> Self {
        Self {
            decision,
            reason: Some(reason.into()),
            message: None,
            transform: None,
            evidence: None,
            result_labels: Vec::new(),
        }
    }

    /// Reads what a policy answered. Anything that is not plainly a verdict is refused.
    pub fn from_policy(output: &Json) -> Result<Self, VerdictError> {
        let Json::Object(members) = output else {
            return Err(invalid("it must be an object"));
        };
        if members.contains_key("effects") {
            return Err(invalid(
                "`effects` is not supported; use the transform decision",
            ));
        }
        let decision =
            text(members, "decision")?.ok_or_else(|| invalid("`decision` is missing"))?;
        let decision = Decision::parse(&decision)
            .ok_or_else(|| invalid(&format!("`{decision}` is not a decision")))?;
        // In this order: an answer with several faults has the reason of the first.
        Ok(Self {
            decision,
            reason: reason(members)?,
            message: text(members, "message")?,
            result_labels: labels(members)?,
            transform: transform(decision, members)?,
            evidence: evidence(members)?,
        })
    }

    /// The stricter of two verdicts; of two equally strict ones, the first. What they ask for beside
    /// their decision counts together: labels of both are kept, and two changes are no change that
    /// both asked for.
    pub fn strictest(self, other: Self) -> Self {
        let (mut strictest, milder) = match other.decision > self.decision {
            true => (other, self),
            false => (self, other),
        };
        // FAIL-CLOSED: one of the two would be lost.
        if let (Some(one), Some(two)) = (&strictest.transform, &milder.transform)
            && one != two
        {
            return Self::new(Decision::Deny, TRANSFORM_INVALID).with_message(format!(
                "two policies change the action, at `{}` and at `{}`: make them one policy",
                one.path, two.path
            ));
        }
        for label in milder.result_labels {
            if !strictest.result_labels.contains(&label) {
                strictest.result_labels.push(label);
            }
        }
        strictest
    }

    /// Words for a person.
    #[must_use = "gives the changed verdict back"]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// The decision.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// The reason code.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Words for a person.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// The refusal that takes the place of a transform, if these arguments have no such place.
    pub fn unfit(&self, args: &Json) -> Option<Self> {
        let transform = self.transform()?;
        let fits = transform
            .path
            .replace(&mut args.clone(), transform.value.clone());
        let error = fits.err()?;
        let refused = Self::new(Decision::Deny, "runtime_error:transform_target_missing");
        Some(refused.with_message(error.to_string()))
    }

    /// The change, of a transform.
    pub fn transform(&self) -> Option<&Transform> {
        self.transform.as_ref()
    }

    /// What an auditor may consult.
    pub fn evidence(&self) -> Option<&Evidence> {
        self.evidence.as_ref()
    }

    /// Labels for what the action produces.
    pub fn result_labels(&self) -> &[String] {
        &self.result_labels
    }
}

fn reason(members: &Object) -> Result<Option<String>, VerdictError> {
    let reason = text(members, "reason")?;
    match reason {
        Some(reason) if reason.starts_with(RESERVED) => Err(invalid(
            "reasons that start with `runtime_error:` are reserved",
        )),
        reason => Ok(reason),
    }
}

fn transform(decision: Decision, members: &Object) -> Result<Option<Transform>, VerdictError> {
    let given = members.get("transform").filter(|value| !value.is_null());
    match (decision, given) {
        (Decision::Transform, None) => Err(invalid("a transform needs its `transform` object")),
        (Decision::Transform, Some(value)) => read_transform(value).map(Some),
        (_, None) => Ok(None),
        (_, Some(_)) => Err(invalid(
            "`transform` belongs to the transform decision only",
        )),
    }
}

fn read_transform(value: &Json) -> Result<Transform, VerdictError> {
    let path = value
        .get("path")
        .and_then(Json::as_str)
        .ok_or_else(|| invalid("`transform.path` must be a string"))?;
    let path = path.parse::<TargetPath>().map_err(|error| match error {
        TargetError::OtherRoot => VerdictError::TargetForbidden(path.to_owned()),
        error => invalid(&format!("`transform.path`: {error}")),
    })?;
    let new = value
        .get("value")
        .ok_or_else(|| invalid("`transform.value` is missing"))?;
    Ok(Transform {
        path,
        value: new.clone(),
    })
}

fn evidence(members: &Object) -> Result<Option<Evidence>, VerdictError> {
    let Some(value) = members.get("evidence").filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let Json::Object(evidence) = value else {
        return Err(invalid("`evidence` must be an object"));
    };
    // The size is looked at first: nothing of an over-long one is passed on.
    if value.to_sorted().len() > MAX_EVIDENCE_BYTES {
        return Err(invalid(&format!(
            "`evidence` has more than {MAX_EVIDENCE_BYTES} bytes"
        )));
    }
    Ok(Some(Evidence {
        artefact: text(evidence, "artefact")?,
        verification_pointers: pointers(evidence)?,
    }))
}

fn pointers(evidence: &Object) -> Result<BTreeMap<String, String>, VerdictError> {
    match evidence.get("verification_pointers") {
        None | Some(Json::Null) => Ok(BTreeMap::new()),
        Some(Json::Object(members)) => members
            .iter()
            .map(|(name, value)| {
                let pointer = value
                    .as_str()
                    .ok_or_else(|| invalid("a pointer must be a string"))?;
                Ok((name.to_owned(), pointer.to_owned()))
            })
            .collect(),
        Some(_) => Err(invalid(
            "`evidence.verification_pointers` must be an object of strings",
        )),
    }
}

fn labels(members: &Object) -> Result<Vec<String>, VerdictError> {
    let not_strings = || invalid("`result_labels` must be an array of strings");
    match members.get("result_labels") {
        None | Some(Json::Null) => Ok(Vec::new()),
        Some(Json::Array(labels)) => labels
            .iter()
            .map(|label| label.as_str().map(str::to_owned).ok_or_else(not_strings))
            .collect(),
        Some(_) => Err(not_strings()),
    }
}

fn text(members: &Object, name: &str) -> Result<Option<String>, VerdictError> {
    match members.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(invalid(&format!("`{name}` must be a string"))),
    }
}

fn invalid(problem: &str) -> VerdictError {
    VerdictError::Invalid(problem.to_owned())
}

const RESERVED: &str = "runtime_error:";
const TRANSFORM_INVALID: &str = "runtime_error:transform_invalid";
const MAX_EVIDENCE_BYTES: usize = 4096;

#[cfg(test)]
mod tests;
