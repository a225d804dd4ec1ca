//! From the events of a session to the actions that its records tell of.

use std::collections::BTreeMap;

use countersign_approval::lease::SignedLease;
use countersign_approval::{Arguments, Envelope, LeaseId, SideEffect};
use countersign_canon::{Digest, Hash, Json};
use countersign_event::EventType;

use super::words::DenyReason;
use super::write::{Action, Authority, Claim, Drift, Outcome, Ran, StateChange, Surroundings};
use crate::Event;

/// What a session did, ready to be written.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// The actions, in the order in which they were proposed or denied.
    pub actions: Vec<(Action, Surroundings)>,
    /// Until when each lease of the session is good.
    pub leases: BTreeMap<String, u64>,
    /// Until when what was approved could be used, by the hash of what was approved.
    pub approvals: BTreeMap<String, u64>,
}

/// Reads the events of one session, in their order. A call that nobody decided gives no action.
pub fn session(session_id: &str, events: &[Event]) -> Session {
    let mut fold = Fold::default();
    for event in events {
        fold.event(event);
    }
    fold.finish(session_id)
}

#[derive(Default)]
struct Fold {
    calls: BTreeMap<String, Call>,
    order: Vec<Step>,
    leases: BTreeMap<String, Lease>,
    approvals: BTreeMap<String, u64>,
}

enum Step {
    Call(String),
    Drift(Box<(Action, Surroundings)>),
}

struct Lease {
    granted: bool,
    expires: Option<u64>,
}

#[derive(Default)]
struct Call {
    tool: String,
    server: Option<String>,
    agent: Option<String>,
    parent: Option<String>,
    arguments: Option<Digest>,
    verdict: Option<String>,
    reason: Option<String>,
    policy: Option<String>,
    rule: Option<String>,
    effect: Option<SideEffect>,
    snapshot: Option<Hash>,
    envelope: Option<Envelope>,
    plan: Option<Hash>,
    allowed_by: Option<String>,
    allowed: bool,
    denied_by: Option<String>,
    denied: bool,
    executed: bool,
    at: u64,
    last: u64,
    ran: Ran,
    standing_leases: Vec<String>,
    events: Vec<Hash>,
}

impl Fold {
    fn event(&mut self, event: &Event) {
        match event.event_type {
            EventType::ApprovalRequested => self.requested(event),
            EventType::ApprovalDecided => self.decided(event),
            EventType::ErrorRaised if event.text("code") == Some(ARGUMENT_DRIFT) => {
                self.drifted(event);
            }
            _ => {}
        }
        let Some(id) = event.text("call_id") else {
            return;
        };
        if event.event_type == EventType::ToolCallProposed && !self.calls.contains_key(id) {
            self.order.push(Step::Call(id.to_owned()));
            self.calls.insert(id.to_owned(), Call::proposed(event));
        }
        let standing = match event.event_type {
            EventType::PolicyDecision if !is_about_result(event) => self.standing(event.at_unix_ms),
            _ => Vec::new(),
        };
        if let Some(call) = self.calls.get_mut(id) {
            call.standing_leases.extend(standing);
            call.event(event);
        }
    }

    /// A lease is asked for and granted by events that name no call.
    fn requested(&mut self, event: &Event) {
        let id = event.text("approval_id").unwrap_or_default();
        let expires = event.payload.get("expires_unix_ms").and_then(Json::as_u64);
        if id.parse::<LeaseId>().is_ok() {
            let granted = false;
            self.leases
                .insert(id.to_owned(), Lease { granted, expires });
        }
        if let (Some(plan), Some(expires)) = (event.text("plan_hash"), expires) {
            self.approvals.insert(plan.to_owned(), expires);
        }
    }

    fn decided(&mut self, event: &Event) {
        let id = event.text("approval_id").unwrap_or_default();
        let Some(lease) = self.leases.get_mut(id) else {
            return;
        };
        lease.granted = event.payload.get("approved").and_then(Json::as_bool) == Some(true);
        let text = event.text("submission").map(str::as_bytes);
        if let Some(signed) = text.and_then(|text| SignedLease::read(text).ok()) {
            lease.expires = Some(signed.claims().terms().valid.expires_at.get());
        }
    }

    /// The leases that stand: authority that is available, whether somebody uses it or not.
    fn standing(&self, at: u64) -> Vec<String> {
        let standing = self
            .leases
            .iter()
            .filter(|(_, lease)| lease.granted && lease.expires.is_none_or(|expires| at < expires));
        standing.map(|(id, _)| id.clone()).collect()
    }

    /// A call that differs from what was approved is an action of its own.
    fn drifted(&mut self, event: &Event) {
        let message = event.payload.get("message");
        let text = |name| message?.get(name)?.as_str();
        let digest = |name| text(name)?.parse::<Digest>().ok();
        let (Some(id), Some(approved), Some(observed)) = (
            text("action_id"),
            digest("approved_args_digest"),
            digest("observed_args_digest"),
        ) else {
            return;
        };
        let call = event.text("call_id").and_then(|id| self.calls.get(id));
        let context = call.and_then(|call| call.plan);
        let Some(drift) = Drift::between(approved, observed, context) else {
            return;
        };
        let tool = text("tool_name").unwrap_or_default();
        let unknown = Call::default();
        let call = call.unwrap_or(&unknown);
        let mut claim = call.claim();
        claim.reason_code = Some(ARGUMENT_DRIFT.to_owned());
        let action = Action {
            id: id.to_owned(),
            tool_name: tool.to_owned(),
            at_unix_ms: event.at_unix_ms,
            effect: call.effect(),
            claim,
            authority: Authority::Drifted(drift),
            arguments: Some(observed),
            precondition: None,
            tool_descriptor: call.descriptor(),
            parent: None,
            evidence: vec![reference(event.hash)],
        };
        let surroundings = call.surroundings(event.at_unix_ms);
        self.order
            .push(Step::Drift(Box::new((action, surroundings))));
    }

    fn finish(mut self, session_id: &str) -> Session {
        let mut actions = Vec::with_capacity(self.order.len());
        let mut written: BTreeMap<String, bool> = BTreeMap::new();
        for step in self.order {
            let found = match step {
                Step::Drift(drifted) => {
                    written.insert(drifted.0.id.clone(), true);
                    Some(*drifted)
                }
                Step::Call(id) => {
                    let call = self.calls.remove(&id);
                    call.and_then(|call| call.finish(&id, &written))
                }
            };
            if let Some((action, mut surroundings)) = found {
                written.entry(action.id.clone()).or_insert(false);
                surroundings.session_id = Some(session_id.to_owned());
                actions.push((action, surroundings));
            }
        }
        let leases = self.leases.into_iter();
        Session {
            actions,
            leases: leases
                .filter_map(|(id, lease)| Some((id, lease.expires?)))
                .collect(),
            approvals: self.approvals,
        }
    }
}

impl Call {
    fn proposed(event: &Event) -> Self {
        let text = |name| event.text(name).map(str::to_owned);
        let arguments = event.payload.get("args").cloned();
        Self {
            tool: text("tool_name").unwrap_or_default(),
            server: text("server"),
            agent: text("agent_id"),
            parent: text("parent_call_id"),
            arguments: arguments
                .and_then(|args| Arguments::new(args).ok())
                .map(|args| args.digest()),
            at: event.at_unix_ms,
            ..Self::default()
        }
    }

    fn event(&mut self, event: &Event) {
        let text = |name| event.text(name).map(str::to_owned);
        match event.event_type {
            // Whether the agent may see a result says nothing about whether the call was allowed.
            EventType::PolicyDecision if is_about_result(event) => {}
            EventType::PolicyDecision => {
                self.verdict = text("verdict").or_else(|| text("outcome"));
                self.reason = text("reason").or_else(|| text("reason_code"));
                self.policy = text("policy_digest");
                self.rule = text("policy_ref");
                self.effect = event.text("side_effect").and_then(|it| it.parse().ok());
                self.snapshot = event.text("snapshot_hash").and_then(|it| it.parse().ok());
                self.at = event.at_unix_ms;
            }
            EventType::ApprovalRequested => {
                self.plan = event.text("plan_hash").and_then(|it| it.parse().ok());
                let envelope = event.text("envelope").map(str::as_bytes);
                self.envelope = envelope.and_then(|text| Envelope::read(text).ok());
            }
            EventType::ToolCallAllowed => {
                self.allowed = true;
                self.allowed_by = text("approval_id");
                self.at = event.at_unix_ms;
            }
            EventType::ToolCallDenied => {
                self.denied = true;
                self.denied_by = text("approval_id");
                self.reason = text("reason_code").or_else(|| self.reason.take());
                self.at = event.at_unix_ms;
            }
            EventType::ToolCallExecuted => {
                self.executed = true;
                self.at = event.at_unix_ms;
            }
            EventType::ToolResult => {
                let failed = event.payload.get("is_error").and_then(Json::as_bool);
                self.ran.outcome = Some(match failed {
                    Some(true) => Outcome::Failure,
                    _ => Outcome::Success,
                });
                let content = event.payload.get("content").map(Json::to_jcs);
                self.ran.result = content.and_then(Result::ok).map(|text| Digest::of(&text));
                let labels = event.payload.get("result_labels").and_then(Json::as_array);
                let labels = labels.unwrap_or_default().iter();
                self.ran.labels = labels.filter_map(Json::as_str).map(str::to_owned).collect();
                self.ran.state = StateChange::read(event.payload.get("state"));
            }
            EventType::ErrorRaised if self.executed && self.ran.outcome.is_none() => {
                let code = event.text("code").unwrap_or_default();
                // Where no answer came that can be believed, nobody knows how it went.
                self.ran.outcome = (!LOST.contains(&code)).then_some(Outcome::Failure);
                self.ran.state = StateChange::read(event.payload.get("state"));
            }
            _ => {}
        }
        self.last = self.last.max(event.at_unix_ms);
        self.events.push(event.hash);
    }

    fn finish(self, id: &str, written: &BTreeMap<String, bool>) -> Option<(Action, Surroundings)> {
        let authority = self.authority(written)?;
        let evidence = self.events.iter().copied().map(reference);
        let leases = self.standing_leases.iter();
        let leases = leases.map(|lease| format!("countersign:lease:{lease}"));
        let action = Action {
            id: id.to_owned(),
            tool_name: self.tool.clone(),
            at_unix_ms: self.at,
            effect: self.effect(),
            claim: self.claim(),
            authority,
            arguments: self.arguments,
            precondition: self.snapshot,
            tool_descriptor: self.descriptor(),
            // A parent of another session is not in this run.
            parent: self
                .parent
                .clone()
                .filter(|parent| written.contains_key(parent)),
            evidence: evidence.chain(leases).collect(),
        };
        let surroundings = self.surroundings(self.last);
        Some((action, surroundings))
    }

    fn authority(&self, written: &BTreeMap<String, bool>) -> Option<Authority> {
        let context = self.plan;
        if self.denied || self.verdict.as_deref() == Some("deny") {
            return Some(match self.denied_by {
                Some(_) => Authority::Refused { context },
                None => Authority::Denied(self.deny_reason()),
            });
        }
        if !self.allowed {
            let asked = matches!(
                self.verdict.as_deref(),
                Some("escalate" | "require_approval")
            );
            return asked.then_some(Authority::Asked { context });
        }
        let ran = self.executed.then(|| self.ran.clone());
        let lease = self.allowed_by.as_ref();
        let lease = lease.filter(|id| id.parse::<LeaseId>().is_ok());
        if let Some(lease) = lease {
            let lease = lease.clone();
            return Some(Authority::Leased { lease, ran });
        }
        let (Some(_), Some(context)) = (&self.allowed_by, context) else {
            return Some(Authority::Policy(ran));
        };
        let denied = self.envelope.as_ref().and_then(Envelope::parent_action);
        let denied = denied.map(|action| action.to_string());
        let denied = denied.filter(|action| written.get(action) == Some(&true));
        Some(match denied {
            Some(denied) => Authority::ReApproved {
                context,
                denied,
                ran,
            },
            None => Authority::Approved {
                context,
                matched: self.matched(),
                ran,
            },
        })
    }

    /// The arguments that were approved, if they are those that were proposed.
    fn matched(&self) -> Option<Digest> {
        let call = self.envelope.as_ref()?.plan().calls().first()?;
        let approved = call.args.digest();
        (self.arguments == Some(approved)).then_some(approved)
    }

    fn claim(&self) -> Claim {
        let requester = self.envelope.as_ref().map(|it| it.lineage().requester());
        let agent = self.agent.as_ref().map(|agent| format!("agent:{agent}"));
        Claim {
            capability: "tool.call".to_owned(),
            subject: requester
                .map(|requester| requester.to_string())
                .or(agent)
                .unwrap_or_else(|| "agent".to_owned()),
            resource: match &self.server {
                Some(server) => format!("mcp:{server}/{}", self.tool),
                None => format!("tool:{}", self.tool),
            },
            reason_code: self.reason.clone(),
        }
    }

    /// What was put before a person counts most; what nobody recorded is not known.
    fn effect(&self) -> SideEffect {
        let call = self
            .envelope
            .as_ref()
            .and_then(|it| it.plan().calls().first());
        let asked = call.map(|call| call.class.effect);
        asked.or(self.effect).unwrap_or(SideEffect::Unknown)
    }

    fn descriptor(&self) -> Option<Digest> {
        let call = self.envelope.as_ref()?.plan().calls().first()?;
        call.tool.definition
    }

    fn surroundings(&self, created_at_ms: u64) -> Surroundings {
        let lineage = self.envelope.as_ref().map(Envelope::lineage);
        let chain = lineage.map(|lineage| {
            let agents = lineage.agents().iter().map(ToString::to_string);
            std::iter::once(lineage.root().to_string()).chain(agents)
        });
        Surroundings {
            created_at_ms,
            policy_bundle_digest: self.policy.clone(),
            subject_id: lineage
                .map(|lineage| lineage.requester().to_string())
                .or_else(|| self.agent.clone()),
            user_id: lineage.map(|lineage| lineage.root().to_string()),
            delegation_chain: chain.into_iter().flatten().collect(),
            session_id: None,
        }
    }

    fn deny_reason(&self) -> DenyReason {
        let rule = self.rule.as_deref().unwrap_or_default();
        if rule.starts_with("tool-identity") {
            return DenyReason::ToolIdentity;
        }
        match self.reason.as_deref().unwrap_or_default() {
            "PERMISSION_UNDECLARED" | "EGRESS_DENY" | "PATH_DENY" | "CLEARANCE_EXCEEDED" => {
                DenyReason::ResourceScope
            }
            "EXEC_DENY" => DenyReason::Argument,
            "TAINTED_TO_HIGH_RISK" => DenyReason::TaintedInput,
            reason if reason.starts_with("runtime_error:") => DenyReason::Other,
            _ => DenyReason::PolicyRule,
        }
    }
}

/// Whether a decision is about what a call came to, after it ran.
fn is_about_result(event: &Event) -> bool {
    event.text("intervention_point") == Some("post_tool_call")
}

fn reference(hash: Hash) -> String {
    format!("countersign:event:{hash}")
}

/// What doors call a call that was sent and has no answer that can be believed.
const LOST: &[&str] = &[
    "connection_closed",
    "outcome_unknown",
    "output_too_large",
    "server_frame_refused",
    "server_gone",
    "timeout",
];
const ARGUMENT_DRIFT: &str = "approval:argument_drift";
