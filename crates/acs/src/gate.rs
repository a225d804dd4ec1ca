//! An Agent Control manifest as one of the voices that decide a tool call.

use std::sync::Arc;

use countersign_canon::{Digest, Json};
use countersign_policy::capability::Explanation;
use countersign_policy::{Beside, Called, Decision, Mode as Counts, Opinion, Verdict};

use crate::{Evaluation, Mode, Point, Reserved, Runtime};

/// Judges tool calls at `pre_tool_call`. The snapshot that the manifest sees is made of the call and of
/// the session's own record: counters in `envelope.budgets`, labels in `ifc.source_labels`.
pub struct ToolGate {
    runtime: Arc<Runtime>,
    agent: String,
}

impl ToolGate {
    /// A gate for the calls of one agent.
    pub fn new(runtime: Arc<Runtime>, agent: impl Into<String>) -> Self {
        Self {
            runtime,
            agent: agent.into(),
        }
    }
}

impl Beside for ToolGate {
    fn name(&self) -> &str {
        NAME
    }

    fn digest(&self) -> Digest {
        let manifest = self.runtime.manifest().digest();
        Digest::of_parts(&[
            manifest.as_bytes(),
            self.runtime.policy_digest().as_bytes(),
            self.agent.as_bytes(),
        ])
    }

    fn opinion(&self, call: &Called<'_>) -> Opinion {
        let mut snapshot = host_snapshot(Point::PreToolCall, &self.agent, call.session);
        let tool_call =
            Json::object([("name", Json::from(call.tool)), ("args", call.args.clone())]);
        if let Json::Object(members) = &mut snapshot {
            members.insert("tool_call".to_owned(), tool_call);
        }
        let found = self
            .runtime
            .evaluate(Point::PreToolCall, &snapshot, Mode::Enforce);
        Opinion {
            policy: NAME.to_owned(),
            mode: Counts::Enforce,
            verdict: self.verdict(&found, &snapshot),
            explanation: explanation(&found),
        }
    }
}

impl ToolGate {
    /// A change of the target becomes a change of the arguments.
    fn verdict(&self, found: &Evaluation<'_>, snapshot: &Json) -> Verdict {
        let Some(changed) = found.transformed() else {
            return found.verdict().clone();
        };
        let config = self.runtime.manifest().points().get(&Point::PreToolCall);
        let mut after = snapshot.clone();
        let place = config.and_then(|config| config.target.resolve_mut(&mut after).ok());
        if let Some(place) = place {
            *place = changed.clone();
        }
        // Only the arguments are ours to change: whatever else is, nobody would carry it out.
        let args = arguments(&after).cloned();
        let mut rest = after;
        put_arguments(&mut rest, arguments(snapshot).cloned());
        let Some(args) = args.filter(|_| rest == *snapshot) else {
            return Verdict::new(Decision::Deny, Reserved::AdapterUnsupported.as_str())
                .with_message("the manifest changes something else than the arguments");
        };
        let verdict = found.verdict();
        let answer = Json::object([
            ("decision", Json::from("transform")),
            ("reason", Json::from(verdict.reason())),
            ("message", Json::from(verdict.message())),
            (
                "result_labels",
                Json::Array(
                    verdict
                        .result_labels()
                        .iter()
                        .map(|one| one.as_str().into())
                        .collect(),
                ),
            ),
            (
                "transform",
                Json::object([("path", Json::from("$policy_target")), ("value", args)]),
            ),
        ]);
        Verdict::from_policy(&answer).unwrap_or_else(|error| {
            Verdict::new(Decision::Deny, error.reason()).with_message(error.to_string())
        })
    }
}

fn arguments(snapshot: &Json) -> Option<&Json> {
    snapshot.get("tool_call")?.get("args")
}

fn put_arguments(snapshot: &mut Json, args: Option<Json>) {
    let call = snapshot
        .as_object_mut()
        .and_then(|members| members.get_mut("tool_call"));
    if let (Some(Json::Object(call)), Some(args)) = (call, args) {
        call.insert("args".to_owned(), args);
    }
}

/// What every snapshot of ours holds: who, how much so far, and the labels of what was read.
pub fn host_snapshot(point: Point, agent: &str, session: &Json) -> Json {
    let count = |name: &str| session.get(name).cloned().unwrap_or(Json::Null);
    let elapsed = session.get("wall_time_ms").and_then(Json::as_u64);
    Json::object([
        (
            "envelope",
            Json::object([
                ("agent", Json::object([("id", Json::from(agent))])),
                ("intervention_point", point.as_str().into()),
                (
                    "budgets",
                    Json::object([
                        ("tool_call_count", count("tool_calls_consumed")),
                        ("model_call_count", count("model_calls_consumed")),
                        ("step_count", count("steps_consumed")),
                        ("elapsed_seconds", elapsed.map(|ms| ms / 1000).into()),
                    ]),
                ),
            ]),
        ),
        ("ifc", Json::object([("source_labels", count("labels"))])),
        ("session", session.clone()),
    ])
}

fn explanation(found: &Evaluation<'_>) -> Explanation {
    let identities = found.identities();
    let facts = identities.map(|both| {
        [
            ("input_identity", Json::from(both.input.to_string())),
            ("enforced_identity", Json::from(both.enforced.to_string())),
        ]
    });
    Explanation {
        rule: format!("{NAME}:{}", found.point()),
        file: found.policy().unwrap_or_default().to_owned(),
        line: 0,
        facts: Json::object(facts.into_iter().flatten()),
        change: match found.detail() {
            Some(detail) => detail.to_owned(),
            None => "ask the owner of the Agent Control manifest".to_owned(),
        },
    }
}

const NAME: &str = "agent_control";

#[cfg(test)]
mod tests;
