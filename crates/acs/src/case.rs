//! Cases as data, in the form in which the specification gives its own: a manifest, a snapshot at a point,
//! what policies and annotators say, and what must come out.

use std::sync::{Arc, Mutex, PoisonError};

use countersign_canon::{Digest, Json, Object};
use countersign_policy::Verdict;

use crate::{
    Annotate, AnnotationError, AnnotatorCall, ApprovalRequest, Dispatch, DispatchError, Evaluation,
    Limits, Manifest, Mode, Point, PolicyCall, Resolution, Resolve, ResolverError, Runtime,
};

/// One case, read and found complete.
#[derive(Debug, Clone)]
pub struct Case {
    id: String,
    manifest: String,
    point: Point,
    mode: Mode,
    snapshot: Json,
    policy: Told,
    annotators: Told,
    limits: Limits,
    is_mismatch: bool,
    expected: Object,
}

/// What somebody says who is asked.
#[derive(Debug, Clone)]
enum Told {
    Says(Json),
    Fails,
    IsLate,
}

impl Case {
    /// Reads a case; says what is wrong with it if it is none.
    pub fn read(case: &Json) -> Result<Self, String> {
        let members = case.as_object().ok_or("a case is an object")?;
        let id = text(members, "id")?.to_owned();
        Self::complete(id.clone(), members).map_err(|problem| format!("case `{id}`: {problem}"))
    }

    fn complete(id: String, members: &Object) -> Result<Self, String> {
        // A misspelt expectation would hold for ever.
        known(members, MEMBERS, "a case")?;
        let expected = members.get("expected").and_then(Json::as_object);
        let expected = expected.ok_or("`expected` is missing or no object")?;
        known(expected, EXPECTED, "`expected`")?;
        text(expected, "decision")?;
        let annotators = match choice(members, "annotator_behavior", &["error", "timeout"])? {
            Some("error") => Told::Fails,
            Some(_) => Told::IsLate,
            None => Told::Says(
                members
                    .get("annotator_outputs")
                    .cloned()
                    .unwrap_or(Json::Null),
            ),
        };
        let policy = match choice(members, "policy_behavior", &["error"])? {
            Some(_) => Told::Fails,
            None => Told::Says(value(members, "policy_response")?.clone()),
        };
        let mode = choice(members, "mode", &["enforce", "evaluate_only"])?;
        let operations = ["build", "evaluate", "approval_action_mismatch"];
        let operation = choice(members, "operation", &operations)?;
        let point = text(members, "intervention_point")?;
        Ok(Self {
            id,
            manifest: text(members, "manifest_yaml")?.to_owned(),
            point: point
                .parse()
                .map_err(|_| format!("there is no point `{point}`"))?,
            mode: match mode {
                Some("evaluate_only") => Mode::EvaluateOnly,
                _ => Mode::Enforce,
            },
            snapshot: value(members, "snapshot")?.clone(),
            policy,
            annotators,
            limits: limits(members)?,
            is_mismatch: operation == Some("approval_action_mismatch"),
            expected: expected.clone(),
        })
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Evaluates it, and says everything that is not as expected.
    #[must_use = "a case that was not looked at says nothing"]
    pub fn failures(&self) -> Vec<String> {
        let manifest = match Manifest::read(self.manifest.as_bytes()) {
            Ok(manifest) => manifest,
            Err(error) => {
                let mut wrong = Differences::default();
                let found = [("decision", "deny"), ("reason", error.reserved().as_str())];
                for (name, found) in found {
                    wrong.compare(name, self.expected.get(name), &Json::from(found));
                }
                return wrong.told(Some(&error.to_string()));
            }
        };
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let annotators = Annotators {
            told: self.annotators.clone(),
            asked: Arc::clone(&asked),
        };
        let runtime = Runtime::new(manifest, Policy(self.policy.clone()))
            .with_annotators(annotators)
            .with_limits(self.limits);
        let found = runtime.evaluate(self.point, &self.snapshot, self.mode);
        let verdict = match self.is_mismatch {
            true => runtime.resolve(&found, &found, &Careless),
            false => found.verdict().clone(),
        };
        let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
        self.differences(&verdict, &found, &asked)
            .told(found.detail())
    }

    fn differences(
        &self,
        verdict: &Verdict,
        found: &Evaluation<'_>,
        asked: &[String],
    ) -> Differences {
        let mut wrong = Differences::default();
        let input = found.input();
        let asked = asked.iter().map(|name| Json::from(name.as_str())).collect();
        let identity = match found.identities() {
            Some(_) => "present",
            None => "absent",
        };
        let tool = input.and_then(|input| input.tool().get("name").cloned());
        let annotations = input.map(|input| Json::Object(input.annotations().clone()));
        for (name, found) in [
            ("decision", Json::from(verdict.decision().as_str())),
            ("reason", Json::from(verdict.reason())),
            ("message", Json::from(verdict.message())),
            (
                "transformed_policy_target",
                found.transformed().cloned().unwrap_or(Json::Null),
            ),
            (
                "policy_target",
                input.map_or(Json::Null, |input| input.target().clone()),
            ),
            ("tool_name", tool.unwrap_or(Json::Null)),
            ("annotations", annotations.unwrap_or(Json::Null)),
            ("annotator_order", Json::Array(asked)),
            ("action_identity", Json::from(identity)),
        ] {
            wrong.compare(name, self.expected.get(name), &found);
        }
        wrong
    }
}

#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn compare(&mut self, name: &str, expected: Option<&Json>, found: &Json) {
        let said = |json: &Json| String::from_utf8(json.to_sorted()).unwrap_or_default();
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            let (expected, found) = (said(expected), said(found));
            self.0
                .push(format!("expected {name} {expected}, found {found}"));
        }
    }

    /// With what the runtime says itself, if anything is different.
    fn told(mut self, detail: Option<&str>) -> Vec<String> {
        if !self.0.is_empty() {
            self.0.extend(detail.map(str::to_owned));
        }
        self.0
    }
}

/// A policy that does as it is told.
struct Policy(Told);

impl Dispatch for Policy {
    fn dispatch(&self, _: &PolicyCall<'_>) -> Result<Json, DispatchError> {
        match &self.0 {
            Told::Says(answer) => Ok(answer.clone()),
            Told::Fails | Told::IsLate => Err(DispatchError::Failed(AS_TOLD.to_owned())),
        }
    }
}

/// Annotators that do as they are told, and remember in which order they were asked.
struct Annotators {
    told: Told,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Annotate for Annotators {
    fn annotate(&self, call: &AnnotatorCall<'_>) -> Result<Json, AnnotationError> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(call.name.to_owned());
        match &self.told {
            Told::Says(outputs) => Ok(outputs.get(call.name).cloned().unwrap_or(Json::Null)),
            Told::Fails => Err(AnnotationError::Failed(AS_TOLD.to_owned())),
            Told::IsLate => Err(AnnotationError::TimedOut(AS_TOLD.to_owned())),
        }
    }
}

/// Somebody who approves something else.
struct Careless;

impl Resolve for Careless {
    fn knows(&self, _: Option<&str>) -> bool {
        true
    }

    fn resolve(&self, _: &ApprovalRequest<'_>) -> Result<Resolution, ResolverError> {
        Ok(Resolution::Allow {
            identity: Digest::of(b"something else"),
        })
    }
}

fn limits(members: &Object) -> Result<Limits, String> {
    let mut limits = Limits::default();
    let given = members.get("limits").map(|given| given.as_object());
    let given = given.map(|given| given.ok_or("`limits` is no object"));
    for (name, value) in given.transpose()?.into_iter().flatten() {
        let value = value.as_u64().and_then(|value| usize::try_from(value).ok());
        let value = value.ok_or_else(|| format!("limit `{name}` is no count"))?;
        let limit = match name {
            "max_snapshot_bytes" => &mut limits.max_snapshot_bytes,
            "max_policy_input_depth" => &mut limits.max_policy_input_depth,
            "max_annotators_per_point" => &mut limits.max_annotators_per_point,
            "max_annotator_output_bytes" => &mut limits.max_annotator_output_bytes,
            "max_policy_output_bytes" => &mut limits.max_policy_output_bytes,
            "max_extends_depth" => &mut limits.max_extends_depth,
            "max_merged_manifest_bytes" => &mut limits.max_merged_manifest_bytes,
            name => return Err(format!("there is no limit `{name}`")),
        };
        *limit = value;
    }
    Ok(limits)
}

fn value<'j>(members: &'j Object, name: &str) -> Result<&'j Json, String> {
    let missing = || format!("`{name}` is missing");
    members.get(name).ok_or_else(missing)
}

fn text<'j>(members: &'j Object, name: &str) -> Result<&'j str, String> {
    let found = value(members, name)?.as_str();
    found.ok_or_else(|| format!("`{name}` is no text"))
}

/// One of a few words, if it is there.
fn choice<'j>(members: &'j Object, name: &str, words: &[&str]) -> Result<Option<&'j str>, String> {
    if !members.contains_key(name) {
        return Ok(None);
    }
    let word = text(members, name)?;
    match words.contains(&word) {
        true => Ok(Some(word)),
        false => Err(format!("`{name}` must be one of {}", words.join(", "))),
    }
}

fn known(members: &Object, names: &[&str], of: &str) -> Result<(), String> {
    let mut given = members.iter().map(|(name, _)| name);
    match given.find(|name| !names.contains(name)) {
        None => Ok(()),
        Some(name) => Err(format!("{of} has no member `{name}`")),
    }
}

const AS_TOLD: &str = "as told";

const MEMBERS: &[&str] = &[
    "$schema",
    "id",
    "spec_section",
    "title",
    "claimable",
    "operation",
    "sdk_support",
    "manifest_yaml",
    "intervention_point",
    "snapshot",
    "policy_response",
    "mode",
    "policy_behavior",
    "annotator_outputs",
    "annotator_behavior",
    "limits",
    "expected",
    "references",
];

const EXPECTED: &[&str] = &[
    "decision",
    "reason",
    "message",
    "transformed_policy_target",
    "policy_target",
    "tool_name",
    "annotations",
    "annotator_order",
    "action_identity",
];
