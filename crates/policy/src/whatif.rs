//! The stateless question: what would be decided about this event, in this state, under this
//! manifest? The caller brings all three, so the answer binds nobody.
//!
//! Paths are judged by their letters: no disk is looked at, so links are not followed.

mod unreadable;

use std::collections::HashMap;

use countersign_canon::{Digest, Json, Object};
use countersign_event::EventType;

use crate::capability::{Capability, Constraints, Judgement};
use crate::facts::{Action, Facts, State, Surroundings};
use crate::manifest::{Manifest, ManifestError};
use crate::matcher::Link;
use crate::rego::{BundleError, Source};
use crate::{Classification, Decision, Hearing, Offered, Opinion, Policies};

/// The answer, in the words of the decision API.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Answer {
    /// The decision.
    pub decision: Decision,
    /// The reason code.
    pub reason: String,
    /// What an allowed call must keep to.
    pub constraints: Option<Constraints>,
}

/// A snapshot that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{member}` must be {expected}")]
pub struct SnapshotError {
    member: &'static str,
    expected: &'static str,
}

/// Answers one question after the other, and keeps what it compiled for the manifests it saw last.
#[derive(Default)]
pub struct Desk {
    rules: Option<Source>,
    compiled: HashMap<Digest, Capability>,
}

/// Answers one `{event, snapshot, manifest}` object.
pub fn decide(request: &Json) -> Answer {
    Desk::default().decide(request)
}

/// What the policies say about one call in one state, with their grounds. The snapshot has the
/// members that policies see of a session; what is absent was not used.
///
/// A tool is of the server that offers it, if one does, as it is behind a door.
pub fn judge(
    action: &Action<'_>,
    offered: Option<&Offered<'_>>,
    snapshot: &Json,
    policies: &Policies,
) -> Result<(Judgement, Vec<Opinion>), SnapshotError> {
    let state = State::strict(snapshot, action.sanitizer_key)?;
    let manifest = policies.capability().manifest();
    let facts = classified(facts(action, state, manifest), offered, manifest);
    let (mut judgement, opinions) = policies.judge(
        &facts,
        action.args,
        None,
        &|| snapshot.clone(),
        &Hearing::default(),
    );
    if let Some(refused) = judgement.verdict.unfit(action.args) {
        judgement.verdict = refused;
        judgement.constraints = None;
    }
    Ok((judgement, opinions))
}

/// The same for whoever sends what cannot be read as often as not: the answer is a refusal then, by the rule
/// that looks at the part of the snapshot, if there is one.
pub fn answer(action: &Action<'_>, snapshot: &Json, policies: &Policies) -> Answer {
    if let Ok((judgement, _)) = judge(action, None, snapshot, policies) {
        return judgement.into();
    }
    let (state, _) = state(snapshot, action.sanitizer_key);
    let manifest = policies.capability().manifest();
    let facts = classified(facts(action, state, manifest), None, manifest);
    let answer = Answer::from(policies.capability().judge(&facts));
    answer.or_refused(Some(INVALID_SNAPSHOT))
}

impl Desk {
    /// A desk with other rules in the place of the built-in ones.
    pub fn with_rules(rules: Source) -> Self {
        Self {
            rules: Some(rules),
            compiled: HashMap::new(),
        }
    }

    /// Answers one `{event, snapshot, manifest}` object.
    pub fn decide(&mut self, request: &Json) -> Answer {
        self.answer(request).unwrap_or_else(Answer::refused)
    }

    /// A refusal comes back as the reason for it.
    fn answer(&mut self, request: &Json) -> Result<Answer, &'static str> {
        if request.as_object().is_none() {
            return Err(INVALID_INPUT);
        }
        let event = request.get("event").unwrap_or(&Json::Null);
        let event_type = event.get("event_type").and_then(Json::as_str);
        match event_type.and_then(|name| name.parse().ok()) {
            Some(EventType::ToolCallProposed) => {}
            Some(_) => return Ok(Answer::new(Decision::Allow, "OK")),
            None => return Err(UNDECLARED),
        }
        let manifest = request.get("manifest").unwrap_or(&Json::Null);
        let (manifest, mut fault) = readable(manifest)?;
        let payload = event.get("payload").unwrap_or(&Json::Null);
        let tool = payload.get("tool_name").and_then(Json::as_str);
        // Known before anything is compiled.
        let tool = tool
            .filter(|tool| manifest.tool(tool).is_some())
            .ok_or(UNDECLARED)?;
        let action = Action {
            tool_name: tool,
            args: payload.get("args").unwrap_or(&Json::Null),
            sanitizer_key: payload.get("sanitizer_key").and_then(Json::as_str),
        };
        let snapshot = request.get("snapshot").unwrap_or(&Json::Null);
        let (state, problem) = state(snapshot, action.sanitizer_key);
        fault = fault.or(problem.map(|_| INVALID_SNAPSHOT));
        let server = payload.get("server").and_then(Json::as_str);
        let offered = server.map(|server| Offered {
            server,
            tool,
            definition: Digest::of(b""),
        });
        let facts = facts(&action, state, Some(&manifest));
        let facts = classified(facts, offered.as_ref(), Some(&manifest));
        let capability = self.compiled(manifest).map_err(|_| INVALID_MANIFEST)?;
        Ok(Answer::from(capability.judge(&facts)).or_refused(fault))
    }

    fn compiled(&mut self, manifest: Manifest) -> Result<&Capability, BundleError> {
        let digest = manifest.digest();
        if !self.compiled.contains_key(&digest) {
            let capability = match &self.rules {
                Some(rules) => Capability::with_rules(rules.clone(), Some(manifest))?,
                None => Capability::new(Some(manifest))?,
            };
            if self.compiled.len() >= MANY {
                self.compiled.clear();
            }
            self.compiled.insert(digest, capability);
        }
        self.compiled
            .get(&digest)
            .ok_or_else(|| BundleError::Compile("it was not kept".to_owned()))
    }
}

impl Answer {
    fn new(decision: Decision, reason: &str) -> Self {
        Self {
            decision,
            reason: reason.to_owned(),
            constraints: None,
        }
    }

    fn refused(reason: &str) -> Self {
        Self::new(Decision::Deny, reason)
    }

    /// FAIL-CLOSED: where something could not be read, only a denial stands.
    fn or_refused(self, fault: Option<&'static str>) -> Self {
        match fault {
            Some(reason) if self.decision != Decision::Deny => Self::refused(reason),
            _ => self,
        }
    }

    /// The answer to what cannot be read.
    pub fn unreadable() -> Self {
        Self::refused(INVALID_INPUT)
    }

    /// `allow`, `deny` or `require_approval`.
    pub fn outcome(&self) -> &'static str {
        self.decision.outcome()
    }

    /// The answer of the decision API.
    pub fn to_json(&self) -> Json {
        let constraints = self.constraints.map(|constraints| {
            Json::object([
                ("max_output_bytes", Json::from(constraints.max_output_bytes)),
                ("timeout_ms", Json::from(constraints.timeout_ms)),
            ])
        });
        Json::object([
            (
                "constraints",
                constraints.unwrap_or_else(|| Json::Object(Object::new())),
            ),
            ("outcome", Json::from(self.outcome())),
            ("reason", Json::from(self.reason.as_str())),
        ])
    }
}

impl From<Judgement> for Answer {
    fn from(judgement: Judgement) -> Self {
        Self {
            decision: judgement.verdict.decision(),
            reason: judgement.verdict.reason().unwrap_or_default().to_owned(),
            constraints: judgement.constraints,
        }
    }
}

/// FAIL-CLOSED: what a manifest says of one server's tool, or of one definition, is not said of a tool
/// that nobody offers.
fn classified(facts: Facts, offered: Option<&Offered<'_>>, manifest: Option<&Manifest>) -> Facts {
    let entry = manifest.and_then(|manifest| manifest.tool(&facts.tool));
    let pinned = entry.is_some_and(|tool| tool.server.is_some() || tool.definition.is_some());
    if offered.is_none() && !pinned {
        return facts;
    }
    let tool = facts.tool.clone();
    let nobody = Offered {
        server: "",
        tool: &tool,
        definition: Digest::of(b""),
    };
    let offered = offered.unwrap_or(&nobody);
    facts.classified(&Classification::of(offered, manifest))
}

fn facts(action: &Action<'_>, state: State, manifest: Option<&Manifest>) -> Facts {
    let surroundings = Surroundings {
        examine: &|_| Link::No,
        base: None,
    };
    Facts::of(action, state, &surroundings, manifest)
}

/// The caller's manifest, and the reason to refuse if some of it could not be read.
fn readable(manifest: &Json) -> Result<(Manifest, Option<&'static str>), &'static str> {
    let problems = match Manifest::partial(manifest) {
        Ok(manifest) => return Ok((manifest, None)),
        Err(ManifestError::Invalid(problems)) => problems,
        Err(_) => return Err(INVALID_MANIFEST),
    };
    let rest = unreadable::granting_nothing(manifest, &problems).ok_or(INVALID_MANIFEST)?;
    match Manifest::partial(&rest) {
        Ok(manifest) => Ok((manifest, Some(INVALID_MANIFEST))),
        Err(_) => Err(INVALID_MANIFEST),
    }
}

impl State {
    /// The caller's snapshot, read strictly.
    fn strict(snapshot: &Json, key: Option<&str>) -> Result<Self, SnapshotError> {
        match state(snapshot, key) {
            (state, None) => Ok(state),
            (_, Some(problem)) => Err(problem),
        }
    }
}

/// The caller's snapshot, with the first problem in it. FAIL-CLOSED: a session that nobody knows has used up
/// everything, and so has one of which a counter cannot be read.
fn state(snapshot: &Json, key: Option<&str>) -> (State, Option<SnapshotError>) {
    let (mut problem, none) = (None, Object::new());
    let mut wrong = |member, expected| {
        problem.get_or_insert(SnapshotError { member, expected });
    };
    let members = snapshot.as_object();
    if members.is_none() {
        wrong("snapshot", "an object");
    }
    let used_up = if members.is_none() { u64::MAX } else { 0 };
    let members = members.unwrap_or(&none);
    let mut count = |name| match members.get(name).map(Json::as_u64) {
        None => used_up,
        Some(count) => count.unwrap_or_else(|| {
            wrong(name, "a non-negative integer");
            u64::MAX
        }),
    };
    let steps = count("steps_consumed");
    let tool_calls = count("tool_calls_consumed");
    let model_calls = count("model_calls_consumed");
    let wall_time_ms = count("wall_time_ms");
    let tainted = match members.get("is_tainted").map(Json::as_bool) {
        None => false,
        Some(flag) => flag.unwrap_or_else(|| {
            wrong("is_tainted", "a boolean");
            true
        }),
    };
    let labels = labels(members.get("labels")).unwrap_or_else(|| {
        wrong("labels", "an array of strings");
        Vec::new()
    });
    let state = State {
        steps,
        tool_calls,
        model_calls,
        wall_time_ms,
        loop_violation: loop_violation(members.get("loop_violation")),
        tainted,
        sanitized: sanitized(members.get("sanitized_keys"), key),
        labels,
    };
    (state, problem)
}

/// Whatever is there and not empty is a violation.
fn loop_violation(given: Option<&Json>) -> String {
    match given {
        None | Some(Json::Null) => String::new(),
        Some(Json::String(name)) => name.clone(),
        Some(_) => "LOOP_DETECTED".to_owned(),
    }
}

fn labels(given: Option<&Json>) -> Option<Vec<String>> {
    let Some(given) = given else {
        return Some(Vec::new());
    };
    let label = |label: &Json| label.as_str().map(str::to_owned);
    given.as_array()?.iter().map(label).collect()
}

fn sanitized(keys: Option<&Json>, key: Option<&str>) -> bool {
    let key = key.filter(|key| !key.is_empty());
    let keys = keys.and_then(Json::as_array).unwrap_or_default();
    key.is_some_and(|key| keys.iter().any(|known| known.as_str() == Some(key)))
}

/// As many manifests as are kept compiled.
const MANY: usize = 64;

const INVALID_INPUT: &str = "INVALID_INPUT";
const INVALID_MANIFEST: &str = "INVALID_MANIFEST";
const INVALID_SNAPSHOT: &str = "INVALID_SNAPSHOT";
const UNDECLARED: &str = "PERMISSION_UNDECLARED";
