//! An Agent Control manifest as one of the voices that decide.

use std::sync::Arc;

use countersign_canon::{Digest, Json};
use countersign_policy::capability::Explanation;
use countersign_policy::{
    Appeal, Beside, Called, Decision, Finding, Hearing, Mode as Counts, Moment, Opinion, Verdict,
};

use crate::approval::resolver;
use crate::{
    ActivationError, Approval, Evaluation, Kept, Manifest, Mode, Offline, OnTimeout, Point,
    Policies, Policy, Reserved, Runtime,
};

/// Judges tool calls and every other point. The snapshot that the manifest sees is made of what happens
/// there and of the session's own record: counters in `envelope.budgets`, labels in `ifc.source_labels`.
pub struct Voice {
    runtime: Runtime,
    kept: Kept,
    asks_others: bool,
    knows_resolver: bool,
    appeal: Appeal,
}

/// Why a manifest cannot have a say here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VoiceError {
    /// Its approval section asks for something that nobody does here.
    #[error("approval: {0}")]
    Approval(String),
    /// Its policies cannot be made ready.
    #[error(transparent)]
    Activation(#[from] ActivationError),
    /// A document does not give one back.
    #[error("it is no document of an Agent Control manifest: {0}")]
    Document(String),
}

impl Voice {
    /// A voice; `kept` is what its policies were read from.
    pub fn new(runtime: Runtime, kept: Kept) -> Result<Self, VoiceError> {
        let manifest = runtime.manifest();
        let appeal = manifest.approval().map(appeal).transpose()?;
        let name = resolver(manifest);
        let declared = manifest.approval().into_iter();
        let mut declared = declared.flat_map(|approval| approval.resolvers.keys());
        let knows_resolver = name
            .is_none_or(|name| name == OURS || declared.any(|declared| declared.as_str() == name));
        Ok(Self {
            asks_others: asks_others(manifest),
            knows_resolver,
            appeal: appeal.unwrap_or_default(),
            runtime,
            kept,
        })
    }

    /// The voice of a document. It asks nobody: what others said has to be in the record.
    pub fn revive(document: &Json) -> Result<Self, VoiceError> {
        let wrong = |problem: &str| VoiceError::Document(problem.to_owned());
        let source = document.get("manifest");
        let source = source.ok_or_else(|| wrong("`manifest` is missing"))?;
        let manifest =
            Manifest::from_json(source.clone()).map_err(|error| wrong(&error.to_string()))?;
        let kept = document.get("kept").and_then(Kept::from_json);
        let kept = kept.ok_or_else(|| wrong("`kept` is missing or of another kind"))?;
        let policies = Policies::activate(&manifest, &kept)?;
        let runtime = Runtime::new(manifest, policies).with_annotators(Offline::default());
        Self::new(runtime, kept)
    }

    /// The runtime behind it.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// What is said about a snapshot, and the snapshot with the change in it.
    fn say(&self, point: Point, snapshot: &Json, hearing: &Hearing) -> Finding {
        let found = self
            .runtime
            .evaluate_hearing(point, snapshot, Mode::Enforce, hearing);
        let mut verdict = found.verdict().clone();
        if verdict.decision() == Decision::Escalate && !self.knows_resolver {
            verdict = Verdict::new(Decision::Deny, Reserved::ApprovalResolverMissing.as_str())
                .with_message("nobody here answers for the resolver that the manifest names");
        }
        let changed = found.transformed().and_then(|changed| {
            let config = self.runtime.manifest().points().get(&point)?;
            let mut after = snapshot.clone();
            *config.target.resolve_mut(&mut after).ok()? = changed.clone();
            Some(after)
        });
        Finding {
            verdict,
            changed,
            identities: found.identities(),
            explanation: explanation(&found),
        }
    }
}

impl Beside for Voice {
    fn name(&self) -> &str {
        NAME
    }

    fn digest(&self) -> Digest {
        let manifest = self.runtime.manifest().digest();
        Digest::of_parts(&[manifest.as_bytes(), self.runtime.policy_digest().as_bytes()])
    }

    fn opinion(&self, call: &Called<'_>, hearing: &Hearing) -> Opinion {
        let mut snapshot = host_snapshot(Point::PreToolCall, call.agent, call.session);
        let tool_call =
            Json::object([("name", Json::from(call.tool)), ("args", call.args.clone())]);
        if let Json::Object(members) = &mut snapshot {
            members.insert("tool_call".to_owned(), tool_call);
        }
        let found = self.say(Point::PreToolCall, &snapshot, hearing);
        let verdict = match &found.changed {
            None => found.verdict,
            Some(after) => only_arguments(&found.verdict, after, &snapshot),
        };
        Opinion {
            policy: NAME.to_owned(),
            mode: Counts::Enforce,
            verdict,
            explanation: found.explanation,
            identities: found.identities,
        }
    }

    fn attends(&self, point: Point) -> bool {
        self.runtime.manifest().points().contains_key(&point)
    }

    fn finding(&self, moment: &Moment<'_>, hearing: &Hearing) -> Finding {
        let host = host_snapshot(moment.point, moment.agent, moment.session);
        let mut snapshot = moment.subject.clone();
        if let (Json::Object(members), Json::Object(host)) = (&mut snapshot, &host) {
            // SECURITY: who it is, how much it has used and what it has read is ours to say.
            for (name, value) in host {
                members.insert(name.to_owned(), value.clone());
            }
        }
        let mut found = self.say(moment.point, &snapshot, hearing);
        if let Some(Json::Object(members)) = &mut found.changed {
            let is_ours = |(name, value): (&str, &Json)| members.get(name) == Some(value);
            let kept = host
                .as_object()
                .is_some_and(|host| host.iter().all(is_ours));
            for name in OURS_TO_SAY {
                members.remove(name);
            }
            if !kept {
                found.changed = None;
                found.verdict = unsupported("the manifest changes what is not the agent's");
            }
        }
        found
    }

    fn asks_others(&self) -> bool {
        self.asks_others
    }

    fn appeal(&self) -> Appeal {
        self.appeal
    }

    fn to_archive(&self) -> Json {
        Json::object([
            ("kept", self.kept.to_json()),
            ("manifest", self.runtime.manifest().source().clone()),
        ])
    }
}

/// A change of the target becomes a change of the arguments. Whatever else changes, nobody would carry
/// it out.
fn only_arguments(verdict: &Verdict, after: &Json, before: &Json) -> Verdict {
    let mut rest = after.clone();
    put_arguments(&mut rest, arguments(before).cloned());
    let Some(args) = arguments(after).filter(|_| rest == *before) else {
        return unsupported("the manifest changes something else than the arguments");
    };
    let labels = verdict.result_labels().iter();
    let labels = labels.map(|one| one.as_str().into()).collect();
    let change = Json::object([
        ("path", Json::from("$policy_target")),
        ("value", args.clone()),
    ]);
    let answer = Json::object([
        ("decision", Json::from("transform")),
        ("reason", Json::from(verdict.reason())),
        ("message", Json::from(verdict.message())),
        ("result_labels", Json::Array(labels)),
        ("transform", change),
    ]);
    Verdict::from_policy(&answer).unwrap_or_else(|error| {
        Verdict::new(Decision::Deny, error.reason()).with_message(error.to_string())
    })
}

fn unsupported(message: &str) -> Verdict {
    Verdict::new(Decision::Deny, Reserved::AdapterUnsupported.as_str()).with_message(message)
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
pub fn host_snapshot(point: Point, agent: Option<&str>, session: &Json) -> Json {
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

/// Whether an annotator or a policy of the manifest is somewhere else.
fn asks_others(manifest: &Manifest) -> bool {
    let mut annotations = manifest
        .points()
        .values()
        .flat_map(|config| config.annotations.values());
    let mut policies = manifest.policies().values();
    annotations.any(|one| !one.fields.contains_key("builtin"))
        || policies.any(|policy| matches!(policy, Policy::Custom(_)))
}

/// What the approval section comes to here. What nobody would do is refused.
fn appeal(approval: &Approval) -> Result<Appeal, VoiceError> {
    let refused = |problem: String| Err(VoiceError::Approval(problem));
    for (name, resolver) in &approval.resolvers {
        if resolver.kind != OURS {
            return refused(format!(
                "nobody answers for the resolver `{name}` of the type `{}`; here people decide: \
                 `type: {OURS}`",
                resolver.kind
            ));
        }
    }
    // FAIL-CLOSED: that nobody has said no is not a yes.
    if approval.on_timeout == Some(OnTimeout::Allow) {
        return refused("`on_timeout: allow` would run what nobody has approved".to_owned());
    }
    let fatigue = match (approval.fatigue_threshold, approval.fatigue_window_seconds) {
        (Some(threshold), Some(seconds)) => Some((threshold, seconds.saturating_mul(1000))),
        (None, None) => None,
        _ => {
            return refused(
                "`fatigue_threshold` and `fatigue_window_seconds` go together".to_owned(),
            );
        }
    };
    Ok(Appeal {
        decide_within_ms: approval
            .timeout_seconds
            .map(|seconds| seconds.saturating_mul(1000)),
        stays_open: approval.on_timeout == Some(OnTimeout::Suspend),
        fatigue,
    })
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

/// Brings a voice back from the archive of policies.
pub fn revive(name: &str, document: &Json) -> Result<Arc<dyn Beside>, String> {
    match name {
        NAME => match Voice::revive(document) {
            Ok(voice) => Ok(Arc::new(voice)),
            Err(error) => Err(error.to_string()),
        },
        _ => Err("nobody of this name is known".to_owned()),
    }
}

const NAME: &str = "agent_control";
/// The resolver that people answer for, through approvals.
const OURS: &str = "countersign";
/// The members of a snapshot that no agent brings.
pub const OURS_TO_SAY: [&str; 3] = ["envelope", "ifc", "session"];

#[cfg(test)]
mod tests;
