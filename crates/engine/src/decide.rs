//! From an action and the state before it to a verdict and the events that tell of it.

use countersign_approval::{Envelope, LeaseId};
use countersign_canon::{Digest, Json};
use countersign_event::EventType;
use countersign_event::payload::{
    ErrorRaised, Payload, PolicyDecision, ToolCallAllowed, ToolCallDenied, ToolCallProposed,
};
use countersign_policy::capability::{Constraints, Judgement};
use countersign_policy::rego::EvalError;
use countersign_policy::{
    Case, Decision, Hearing, Identities, Opinion, Point, Policies, Ruling, Verdict,
};
use countersign_store::Recorded;

use crate::admission::{Done, Grounds};
use crate::hot::Hot;
use crate::links::Links;
use crate::refusal::Fault;
use crate::{Admission, Hold, Permit, Preview, Proposal, Refusal, Unaskable};

/// A decision, and the events that have to be durable before it counts.
pub(crate) struct Decided {
    call_id: String,
    judgement: Judgement,
    opinions: Vec<Opinion>,
    rewritten: Option<Vec<u8>>,
    /// The arguments that would run in the place of the proposed ones.
    args: Option<Json>,
    identities: Option<Identities>,
    /// Whether somebody wants to see the result before the agent does.
    reviewed: bool,
    /// Whether policies stop nothing.
    observed: bool,
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
    hearing: Hearing,
) -> Result<Decided, Fault> {
    let links = Links::default();
    let ruling = rule(proposal, hot, now, policies, (&links, &hearing))?;
    let rewritten = ruling
        .rewritten
        .as_ref()
        .map(|args| (proposal.encode)(args));
    let digest = Digest::of(rewritten.as_deref().unwrap_or(proposal.bytes));
    let decision = PolicyDecision {
        links: links.into_json(),
        heard: hearing.into_record(),
        ..ruling.to_event(
            &proposal.call_id,
            ENGINE,
            policies.digest(),
            hot.snapshot_hash(),
        )
    };
    let Ruling {
        judgement,
        opinions,
        rewritten: args,
        identities,
        ..
    } = ruling;
    let mut events = Vec::with_capacity(4);
    events.push((EventType::ToolCallProposed, proposed_event(proposal)));
    events.extend(disagreement_event(&judgement.verdict));
    events.push((EventType::PolicyDecision, Payload::PolicyDecision(decision)));
    events.extend(consequence(proposal, &judgement, digest));
    Ok(Decided {
        call_id: proposal.call_id.clone(),
        labels: labels(proposal, &judgement.verdict, policies),
        judgement,
        opinions,
        rewritten,
        args,
        identities,
        reviewed: policies.attends(Point::PostToolCall),
        observed: policies.is_observing(),
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

    /// What people are asked about: the action as it would run.
    pub(crate) fn as_it_would_run<'p>(&self, proposal: &Proposal<'p>) -> Proposal<'p> {
        Proposal {
            scope: proposal.scope,
            call_id: proposal.call_id.clone(),
            tool_name: proposal.tool_name.clone(),
            server: proposal.server.clone(),
            definition: proposal.definition,
            origin: proposal.origin,
            preconditions: proposal.preconditions.clone(),
            args: self.args.as_ref().unwrap_or(&proposal.args).clone(),
            sanitizer_key: proposal.sanitizer_key.clone(),
            bytes: proposal.bytes,
            encode: proposal.encode,
        }
    }

    /// The call, if it does not wait where nobody can be asked: an Agent Control manifest holds it.
    pub(crate) fn ends_unasked(&self) -> Option<&str> {
        let by_agent_control = self.judgement.explanation.rule.starts_with(AGENT_CONTROL);
        by_agent_control.then_some(&self.call_id)
    }

    /// What may be done, if somebody told.
    pub(crate) fn identity(&self) -> Option<Digest> {
        self.identities.map(|both| both.enforced)
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

    /// Whether what follows from it is in its events: nobody is asked, and nothing is rewritten.
    pub(crate) fn is_plain(&self) -> bool {
        self.judgement.verdict.decision() == Decision::Deny || self.runs_as_proposed().is_some()
    }

    /// What the answer is, once the decision is durable.
    pub(crate) fn answer(
        self,
        proposal: &Proposal<'_>,
    ) -> impl FnOnce(Recorded) -> Admission + Send + use<> {
        let done = self.reviewed.then(|| {
            let args = self.args.as_ref().unwrap_or(&proposal.args);
            Box::new(Done {
                origin: proposal.origin.clone(),
                args: args.clone(),
            })
        });
        let (scope, tool_name) = (proposal.scope.clone(), proposal.tool_name.clone());
        let server = proposal.server.clone();
        // INVARIANT: whoever has a decision that is recorded may make a permit.
        move |decision| {
            let ends_unasked = self.ends_unasked().is_some();
            let Judgement {
                verdict,
                constraints,
                irreversible,
                explanation,
                ..
            } = self.judgement;
            let (lease, constraints) = match (verdict.decision(), self.leased) {
                (Decision::Escalate, Some((lease, constraints))) => {
                    (Some(lease), Some(constraints))
                }
                _ => (None, constraints),
            };
            match (verdict.decision(), constraints) {
                (Decision::Allow | Decision::Warn | Decision::Transform, Some(constraints))
                | (Decision::Escalate, Some(constraints)) => Admission::Permit(Permit {
                    scope,
                    call_id: self.call_id,
                    tool_name,
                    server,
                    digest: self.digest,
                    rewritten: self.rewritten,
                    constraints,
                    observed: self.observed,
                    labels: self.labels,
                    warning: verdict.message().map(str::to_owned),
                    decision,
                    done,
                    grounds: lease.map(|lease| Box::new(Grounds::Lease(lease))),
                }),
                (Decision::Escalate, _) if ends_unasked && matches!(self.asked, Some(Err(_))) => {
                    let unaskable = self.asked.and_then(Result::err);
                    let unaskable = unaskable.unwrap_or(Unaskable::Nobody);
                    let denied = Verdict::new(Decision::Deny, unaskable.reason());
                    let denied = denied.with_message(unaskable.to_string());
                    Admission::Refusal(Refusal::denied(&denied, explanation, decision))
                }
                (Decision::Escalate, _) => Admission::Hold(Hold {
                    call_id: self.call_id,
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
}

/// What others say about an action, heard before the session is locked: nobody waits for them there.
pub(crate) fn hear(
    proposal: &Proposal<'_>,
    hot: &Hot,
    now: u64,
    policies: &Policies,
) -> Result<Option<Json>, Fault> {
    let hearing = Hearing::default();
    let _ruling = rule(proposal, hot, now, policies, (&Links::default(), &hearing))?;
    Ok(hearing.into_record())
}

fn rule(
    proposal: &Proposal<'_>,
    hot: &Hot,
    now: u64,
    policies: &Policies,
    (links, hearing): (&Links, &Hearing),
) -> Result<Ruling, Fault> {
    let case = Case {
        agent: Some(&proposal.origin.agent_name),
        tool_name: &proposal.tool_name,
        args: &proposal.args,
        server: proposal.server.as_deref(),
        definition: proposal.definition,
        sanitizer_key: proposal.sanitizer_key.as_deref(),
        seq: hot.head.count(),
        now_unix_ms: now,
        snapshot: hot.snapshot(),
    };
    Ok(policies.decide(&case, &|path| links.examine(path), hearing)?)
}

fn proposed_event(proposal: &Proposal<'_>) -> Payload {
    Payload::ToolCallProposed(ToolCallProposed {
        call_id: Some(proposal.call_id.clone()),
        tool_name: Some(proposal.tool_name.clone()),
        server: proposal.server.clone(),
        agent_id: Some(proposal.origin.agent_name.clone()),
        definition_digest: proposal.definition.map(|digest| digest.to_string()),
        sanitizer_key: proposal.sanitizer_key.clone(),
        traceparent: proposal.origin.trace.map(|trace| trace.to_string()),
        args: Some(proposal.args.clone()),
        ..ToolCallProposed::default()
    })
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

/// How the rules of an Agent Control manifest are named.
const AGENT_CONTROL: &str = "agent_control:";
pub(crate) const ENGINE: &str =
    concat!("countersign/", env!("CARGO_PKG_VERSION"), " regorus/0.14.1");
