//! From an action and the state before it to a verdict and the events that tell of it.

use countersign_approval::{Envelope, LeaseId};
use countersign_canon::{Digest, Json};
use countersign_event::EventType;
use countersign_event::payload::{
    Counters, ErrorRaised, Payload, PolicyDecision, ToolCallAllowed, ToolCallDenied,
    ToolCallProposed,
};
use countersign_policy::capability::{Constraints, Judgement};
use countersign_policy::facts::{Action, Facts, State, Surroundings};
use countersign_policy::manifest::{Loops, Manifest};
use countersign_policy::matcher::{Link, NormalPath};
use countersign_policy::rego::EvalError;
use countersign_policy::{Classification, Decision, Mode, Offered, Opinion, Policies, Verdict};
use countersign_session::{Call, LoopRules, Next, Terms, View};
use countersign_store::Recorded;

use crate::admission::Grounds;
use crate::hot::Hot;
use crate::refusal::Fault;
use crate::{Admission, Hold, Permit, Preview, Proposal, Refusal, Unaskable};

/// A decision, and the events that have to be durable before it counts.
pub(crate) struct Decided {
    judgement: Judgement,
    opinions: Vec<Opinion>,
    rewritten: Option<Vec<u8>>,
    digest: Digest,
    labels: Vec<String>,
    events: Vec<(EventType, Payload)>,
    asked: Option<Result<Box<Envelope>, Unaskable>>,
    leased: Option<(LeaseId, Constraints)>,
}

/// Judges the action from the state before it.
pub(crate) fn decide(
    proposal: &Proposal<'_>,
    hot: &Hot,
    now: u64,
    policies: &Policies,
) -> Result<Decided, Fault> {
    let (mut judgement, opinions) = judge(proposal, hot, now, policies)?;
    let rewritten = match rewrite(proposal, &judgement.verdict) {
        Ok(rewritten) => rewritten,
        Err(fault) => {
            judgement.verdict =
                Verdict::new(Decision::Deny, TRANSFORM_MISSING).with_message(fault.to_string());
            judgement.constraints = None;
            None
        }
    };
    let digest = Digest::of(rewritten.as_deref().unwrap_or(proposal.bytes));
    let decision = decision_event(proposal, &judgement, &opinions, policies, hot);
    let mut events = Vec::with_capacity(4);
    events.push((EventType::ToolCallProposed, proposed_event(proposal)));
    events.extend(disagreement_event(&judgement.verdict));
    events.push((EventType::PolicyDecision, decision));
    events.extend(consequence(proposal, &judgement, digest));
    Ok(Decided {
        labels: labels(proposal, &judgement.verdict, policies),
        judgement,
        opinions,
        rewritten,
        digest,
        events,
        asked: None,
        leased: None,
    })
}

impl Decided {
    pub(crate) fn take_events(&mut self) -> Vec<(EventType, Payload)> {
        std::mem::take(&mut self.events)
    }

    /// The judgement, if a human has to decide.
    pub(crate) fn held(&self) -> Option<&Judgement> {
        let held = self.judgement.verdict.decision() == Decision::Escalate;
        held.then_some(&self.judgement)
    }

    pub(crate) fn asked(&mut self, asked: Result<Box<Envelope>, Unaskable>) {
        self.asked = Some(asked);
    }

    /// A lease covers the action, so nobody is asked.
    pub(crate) fn leased(&mut self, lease: LeaseId, constraints: Constraints) {
        self.leased = Some((lease, constraints));
    }

    pub(crate) fn not_leased(&mut self) {
        self.leased = None;
    }

    /// The digest of its bytes, if it may run with the bytes that were proposed.
    pub(crate) fn runs_as_proposed(&self) -> Option<Digest> {
        let may_run = match self.judgement.verdict.decision() {
            Decision::Allow | Decision::Warn => self.judgement.constraints.is_some(),
            Decision::Escalate => self.leased.is_some(),
            Decision::Transform | Decision::Deny => false,
        };
        (may_run && self.rewritten.is_none()).then_some(self.digest)
    }

    pub(crate) fn judgement(&self) -> &Judgement {
        &self.judgement
    }

    pub(crate) fn preview(self) -> Preview {
        Preview {
            judgement: self.judgement,
            opinions: self.opinions,
        }
    }

    /// INVARIANT: the decision is durable, so a permit may be made.
    pub(crate) fn answer(self, proposal: &Proposal<'_>, decision: Recorded) -> Admission {
        let Judgement {
            verdict,
            constraints,
            irreversible,
            explanation,
            ..
        } = self.judgement;
        let (lease, constraints) = match (verdict.decision(), self.leased) {
            (Decision::Escalate, Some((lease, constraints))) => (Some(lease), Some(constraints)),
            _ => (None, constraints),
        };
        match (verdict.decision(), constraints) {
            (Decision::Allow | Decision::Warn | Decision::Transform, Some(constraints))
            | (Decision::Escalate, Some(constraints)) => Admission::Permit(Permit {
                scope: proposal.scope.clone(),
                call_id: proposal.call_id.clone(),
                tool_name: proposal.tool_name.clone(),
                digest: self.digest,
                rewritten: self.rewritten,
                constraints,
                labels: self.labels,
                warning: verdict.message().map(str::to_owned),
                decision,
                grounds: lease.map(|lease| Box::new(Grounds::Lease(lease))),
            }),
            (Decision::Escalate, _) => Admission::Hold(Hold {
                call_id: proposal.call_id.clone(),
                verdict,
                irreversible,
                explanation,
                decision,
                approval: self.asked.unwrap_or(Err(Unaskable::Nobody)),
            }),
            // FAIL-CLOSED: an allow without constraints cannot come from the rules.
            (Decision::Deny | Decision::Allow | Decision::Warn | Decision::Transform, _) => {
                Admission::Refusal(Refusal::denied(&verdict, explanation, decision))
            }
        }
    }
}

fn judge(
    proposal: &Proposal<'_>,
    hot: &Hot,
    now: u64,
    policies: &Policies,
) -> Result<(Judgement, Vec<Opinion>), Fault> {
    let call = Call::new(hot.head.count(), &proposal.tool_name, Some(&proposal.args))?;
    let manifest = policies.capability().manifest();
    let view = view(hot, &call, now, manifest);
    let key = proposal.sanitizer_key.as_deref();
    let sanitized = key.is_some_and(|key| hot.snapshot.is_sanitized(key));
    let action = Action {
        tool_name: &proposal.tool_name,
        args: &proposal.args,
        sanitizer_key: key,
    };
    let surroundings = Surroundings {
        examine: &examine,
        base: None,
    };
    let state = State::of(&view, sanitized);
    let mut facts = Facts::of(&action, state, &surroundings, manifest);
    if proposal.server.is_some() || is_pinned(&proposal.tool_name, manifest) {
        facts = facts.classified(&classification(proposal, manifest));
    }
    Ok(policies.judge(&facts, &proposal.args, &|| view.to_json()))
}

/// Whether the manifest says which server or which definition it speaks of.
fn is_pinned(tool: &str, manifest: Option<&Manifest>) -> bool {
    manifest
        .and_then(|manifest| manifest.tool(tool))
        .is_some_and(|tool| tool.server.is_some() || tool.definition.is_some())
}

/// FAIL-CLOSED: a server or a definition that nobody knows is none that was pinned.
fn classification(proposal: &Proposal<'_>, manifest: Option<&Manifest>) -> Classification {
    let offered = Offered {
        server: proposal.server.as_deref().unwrap_or_default(),
        tool: &proposal.tool_name,
        definition: proposal.definition.unwrap_or_else(|| Digest::of(b"")),
    };
    Classification::of(&offered, manifest)
}

fn view(hot: &Hot, call: &Call, now: u64, manifest: Option<&Manifest>) -> View {
    let loops = loop_rules(manifest);
    let trusted = |tool: &str| {
        manifest
            .and_then(|manifest| manifest.tool(tool))
            .is_some_and(|tool| tool.trusted_output)
    };
    let terms = Terms {
        loops: &loops,
        trusted_tools: &trusted,
    };
    hot.snapshot.view(
        Some(&Next {
            call,
            ts_unix_ms: now,
        }),
        &terms,
    )
}

fn loop_rules(manifest: Option<&Manifest>) -> LoopRules {
    let default = Loops::default();
    let loops = manifest.map_or(&default, Manifest::loops);
    LoopRules {
        identical_calls: loops.identical_calls,
        no_progress_steps: loops.no_progress_steps,
        sequence_min: loops.sequence_min as usize,
        sequence_max: loops.sequence_max as usize,
        exempt_tools: loops.polling_tools.clone(),
    }
}

/// The bytes with the arguments that a transform asks for.
fn rewrite(proposal: &Proposal<'_>, verdict: &Verdict) -> Result<Option<Vec<u8>>, Fault> {
    let Some(transform) = verdict.transform() else {
        return Ok(None);
    };
    let mut args = proposal.args.clone();
    transform.path.replace(&mut args, transform.value.clone())?;
    Ok(Some((proposal.encode)(&args)))
}

fn proposed_event(proposal: &Proposal<'_>) -> Payload {
    Payload::ToolCallProposed(ToolCallProposed {
        call_id: Some(proposal.call_id.clone()),
        tool_name: Some(proposal.tool_name.clone()),
        server: proposal.server.clone(),
        sanitizer_key: proposal.sanitizer_key.clone(),
        args: Some(proposal.args.clone()),
        ..ToolCallProposed::default()
    })
}

fn decision_event(
    proposal: &Proposal<'_>,
    judgement: &Judgement,
    opinions: &[Opinion],
    policies: &Policies,
    hot: &Hot,
) -> Payload {
    let verdict = &judgement.verdict;
    let shadow: Vec<String> = opinions
        .iter()
        .filter(|opinion| opinion.mode == Mode::Shadow)
        .map(|opinion| format!("{}={}", opinion.policy, opinion.verdict.decision()))
        .collect();
    Payload::PolicyDecision(PolicyDecision {
        call_id: Some(proposal.call_id.clone()),
        outcome: Some(verdict.decision().outcome().to_owned()),
        verdict: Some(verdict.decision().as_str().to_owned()),
        reason: verdict.reason().map(str::to_owned),
        reason_codes: (!shadow.is_empty()).then_some(shadow),
        policy_ref: Some(format!("{} {ENGINE}", judgement.explanation.rule)),
        policy_digest: Some(policies.digest().to_string()),
        snapshot_hash: Some(hot.snapshot.hash().to_string()),
        side_effect: Some(judgement.side_effect.as_str().to_owned()),
        constraints: judgement.constraints.map(counters),
        ..PolicyDecision::default()
    })
}

fn counters(constraints: Constraints) -> Counters {
    Counters::from([
        ("max_output_bytes".to_owned(), constraints.max_output_bytes),
        ("timeout_ms".to_owned(), constraints.timeout_ms),
    ])
}

/// What follows from the decision at once: the permission or the denial. A hold waits.
fn consequence(
    proposal: &Proposal<'_>,
    judgement: &Judgement,
    digest: Digest,
) -> Option<(EventType, Payload)> {
    let call_id = Some(proposal.call_id.clone());
    let verdict = &judgement.verdict;
    match verdict.decision() {
        Decision::Allow | Decision::Warn | Decision::Transform => {
            let allowed = ToolCallAllowed {
                call_id,
                action_digest: Some(digest.to_string()),
                ..ToolCallAllowed::default()
            };
            Some((
                EventType::ToolCallAllowed,
                Payload::ToolCallAllowed(allowed),
            ))
        }
        Decision::Escalate => None,
        Decision::Deny => {
            let denied = ToolCallDenied {
                call_id,
                reason_code: verdict.reason().map(str::to_owned),
                message: verdict.message().map(Json::from),
                ..ToolCallDenied::default()
            };
            Some((EventType::ToolCallDenied, Payload::ToolCallDenied(denied)))
        }
    }
}

/// That the two evaluators of a policy disagree is a fault of its own, beside the refusal.
fn disagreement_event(verdict: &Verdict) -> Option<(EventType, Payload)> {
    let reason = EvalError::Disagreement.reason();
    let error = ErrorRaised {
        code: Some(reason.to_owned()),
        message: verdict.message().map(Json::from),
        ..ErrorRaised::default()
    };
    (verdict.reason() == Some(reason))
        .then_some((EventType::ErrorRaised, Payload::ErrorRaised(error)))
}

/// The labels of the result: what the manifest says about the tool, and what the verdict adds.
fn labels(proposal: &Proposal<'_>, verdict: &Verdict, policies: &Policies) -> Vec<String> {
    let manifest = policies.capability().manifest();
    let tool = manifest.and_then(|manifest| manifest.tool(&proposal.tool_name));
    let declared = tool.into_iter().flat_map(|tool| &tool.labels);
    let mut labels: Vec<String> = declared.chain(verdict.result_labels()).cloned().collect();
    labels.sort_unstable();
    labels.dedup();
    labels
}

/// Whether a path of this machine is a link.
pub(crate) fn examine(path: &NormalPath) -> Link {
    match std::fs::symlink_metadata(path.as_str()) {
        Ok(metadata) if metadata.file_type().is_symlink() => std::fs::read_link(path.as_str())
            .ok()
            .and_then(|target| target.into_os_string().into_string().ok())
            .map_or(Link::Unknown, Link::To),
        Ok(_) => Link::No,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Link::No,
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Link::No,
        Err(_) => Link::Unknown,
    }
}

const ENGINE: &str = concat!("countersign/", env!("CARGO_PKG_VERSION"), " regorus/0.14.1");
const TRANSFORM_MISSING: &str = "runtime_error:transform_target_missing";
