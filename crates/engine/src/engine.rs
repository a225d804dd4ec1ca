//! Admitting, beginning and settling actions.

use std::sync::{Arc, PoisonError, RwLock};

use countersign_canon::{Digest, Json};
use countersign_event::EventType;
use countersign_event::payload::{
    Counters, ErrorRaised, Payload, PolicyDecision, ToolCallAllowed, ToolCallDenied,
    ToolCallExecuted, ToolCallProposed, ToolResult,
};
use countersign_policy::capability::{Constraints, Judgement};
use countersign_policy::facts::{Action, Facts, State, Surroundings};
use countersign_policy::manifest::{Loops, Manifest};
use countersign_policy::matcher::{Link, NormalPath};
use countersign_policy::{Decision, Verdict};
use countersign_session::{Call, LoopRules, Next, Terms, View};
use countersign_store::{Recorded, Store};

use crate::hot::{Hot, Sessions, lock, rebuild};
use crate::policies::{Mode, Opinion};
use crate::record::{Batch, durable};
use crate::refusal::Fault;
use crate::{Admission, Clock, Hold, Outcome, Permit, Policies, Proposal, Refusal, Running};

/// Decides actions, and records every one of them.
pub struct Engine {
    store: Store,
    clock: Box<dyn Clock>,
    policies: RwLock<Arc<Policies>>,
    sessions: Sessions,
}

/// A decision that is on its way to the disk.
struct Decided {
    judgement: Judgement,
    rewritten: Option<Vec<u8>>,
}

impl Engine {
    /// An engine over a store.
    pub fn new(store: Store, policies: Policies, clock: impl Clock + 'static) -> Self {
        Self {
            store,
            clock: Box::new(clock),
            policies: RwLock::new(Arc::new(policies)),
            sessions: Sessions::default(),
        }
    }

    /// The log.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The policies in force.
    pub fn policies(&self) -> Arc<Policies> {
        Arc::clone(&self.policies.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts other policies in force, between two decisions.
    pub fn replace_policies(&self, policies: Policies) {
        *self
            .policies
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(policies);
    }

    /// Decides an action. Whatever comes back is recorded durably first; where recording is what
    /// failed, a refusal comes back.
    pub fn admit(&self, proposal: Proposal<'_>) -> Admission {
        for _ in 0..MAX_ATTEMPTS {
            match self.try_admit(&proposal) {
                Err(Fault::Store(error)) if error.is_retryable() => {}
                Ok(admission) => return admission,
                Err(fault) => return Admission::Refusal(fault.into()),
            }
        }
        let gone = Fault::History("other processes write this session too fast".to_owned());
        Admission::Refusal(gone.into())
    }

    /// Begins what a permit allows: checks that these are its bytes and records the beginning.
    ///
    /// The caller forwards the bytes after this returned, and not otherwise.
    pub fn begin(&self, permit: Permit, bytes: &[u8]) -> Result<Running, Refusal> {
        if Digest::of(bytes) != permit.digest {
            return Err(Fault::OtherBytes.into());
        }
        let began_unix_ms = self.clock.now_unix_ms().map_err(Fault::from)?;
        let payload = Payload::ToolCallExecuted(ToolCallExecuted {
            call_id: Some(permit.call_id.clone()),
            started_ms: Some(began_unix_ms),
            action_digest: Some(permit.digest.to_string()),
            ..ToolCallExecuted::default()
        });
        let _durable = self.record(&permit.scope, EventType::ToolCallExecuted, payload)?;
        Ok(Running {
            scope: permit.scope,
            call_id: permit.call_id,
            tool_name: permit.tool_name,
            began_unix_ms,
            constraints: permit.constraints,
        })
    }

    /// Records how an action went.
    pub fn settle(&self, running: Running, outcome: Outcome) -> Result<Recorded, Refusal> {
        let now = self.clock.now_unix_ms().map_err(Fault::from)?;
        let call_id = Some(running.call_id);
        let (event_type, payload) = match outcome {
            Outcome::Result { content, is_error } => {
                let result = ToolResult {
                    call_id,
                    tool_name: Some(running.tool_name),
                    is_error: Some(is_error),
                    latency_ms: Some(now.saturating_sub(running.began_unix_ms)),
                    content: Some(content),
                    ..ToolResult::default()
                };
                (EventType::ToolResult, Payload::ToolResult(result))
            }
            Outcome::Failed { code, message } => {
                let error = ErrorRaised {
                    call_id,
                    code: Some(code),
                    message: Some(Json::from(message)),
                    ..ErrorRaised::default()
                };
                (EventType::ErrorRaised, Payload::ErrorRaised(error))
            }
        };
        self.record(&running.scope, event_type, payload)
    }

    /// Records an event that needs no decision.
    pub fn record(
        &self,
        scope: &countersign_event::Scope,
        event_type: EventType,
        payload: Payload,
    ) -> Result<Recorded, Refusal> {
        for _ in 0..MAX_ATTEMPTS {
            match self.try_record(scope, event_type, payload.clone()) {
                Err(Fault::Store(error)) if error.is_retryable() => {}
                result => return result.map_err(Refusal::from),
            }
        }
        self.try_record(scope, event_type, payload)
            .map_err(Refusal::from)
    }

    fn try_record(
        &self,
        scope: &countersign_event::Scope,
        event_type: EventType,
        payload: Payload,
    ) -> Result<Recorded, Fault> {
        let now = self.clock.now_unix_ms()?;
        let slot = self.sessions.slot(scope);
        let mut guard = lock(&slot);
        let hot = self.hot(&mut guard, scope)?;
        let mut batch = Batch::new(&self.store, scope, now, &hot);
        batch.push(event_type, payload)?;
        let (hot, last) = batch.finish();
        *guard = Some(hot);
        drop(guard);
        durable(last).inspect_err(|_| *lock(&slot) = None)
    }

    fn try_admit(&self, proposal: &Proposal<'_>) -> Result<Admission, Fault> {
        let policies = self.policies();
        let now = self.clock.now_unix_ms()?;
        let slot = self.sessions.slot(proposal.scope);
        // The session is locked while its chain needs it: to decide from its state and to put the
        // events on their way. Nobody waits for the disk under the lock.
        let mut guard = lock(&slot);
        let hot = self.hot(&mut guard, proposal.scope)?;
        let mut batch = Batch::new(&self.store, proposal.scope, now, &hot);
        let decided = decide(proposal, &hot, now, &policies, &mut batch)?;
        let (hot, last) = batch.finish();
        *guard = Some(hot);
        drop(guard);
        let recorded = durable(last).inspect_err(|_| *lock(&slot) = None)?;
        Ok(answer(proposal, decided, recorded))
    }

    /// Takes the state out of its slot: if anything fails on the way, the slot stays empty and the
    /// log is read again.
    fn hot(&self, slot: &mut Option<Hot>, scope: &countersign_event::Scope) -> Result<Hot, Fault> {
        match slot.take() {
            Some(hot) => Ok(hot),
            None => rebuild(scope, self.store.reader()),
        }
    }
}

/// Judges the action from the state before it, and puts its events on their way.
fn decide(
    proposal: &Proposal<'_>,
    hot: &Hot,
    now: u64,
    policies: &Policies,
    batch: &mut Batch<'_>,
) -> Result<Decided, Fault> {
    let snapshot_hash = hot.snapshot.hash();
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
    let facts = Facts::of(
        &action,
        State::of(&view, sanitized),
        &surroundings,
        manifest,
    );
    let (mut judgement, opinions) = policies.judge(&facts, &proposal.args, &|| view.to_json());
    let rewritten = match rewrite(proposal, &judgement.verdict) {
        Ok(rewritten) => rewritten,
        Err(fault) => {
            judgement.verdict =
                Verdict::new(Decision::Deny, TRANSFORM_MISSING).with_message(fault.to_string());
            judgement.constraints = None;
            None
        }
    };
    let decision = decision_event(
        proposal,
        &judgement,
        &opinions,
        policies,
        snapshot_hash.to_string(),
    );
    batch.push(EventType::ToolCallProposed, proposed_event(proposal))?;
    batch.push(EventType::PolicyDecision, decision)?;
    push_consequence(proposal, &judgement, rewritten.as_deref(), batch)?;
    Ok(Decided {
        judgement,
        rewritten,
    })
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
    snapshot_hash: String,
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
        snapshot_hash: Some(snapshot_hash),
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
fn push_consequence(
    proposal: &Proposal<'_>,
    judgement: &Judgement,
    rewritten: Option<&[u8]>,
    batch: &mut Batch<'_>,
) -> Result<(), Fault> {
    let call_id = Some(proposal.call_id.clone());
    let verdict = &judgement.verdict;
    match verdict.decision() {
        Decision::Allow | Decision::Warn | Decision::Transform => {
            let digest = Digest::of(rewritten.unwrap_or(proposal.bytes));
            let allowed = ToolCallAllowed {
                call_id,
                action_digest: Some(digest.to_string()),
                ..ToolCallAllowed::default()
            };
            batch.push(
                EventType::ToolCallAllowed,
                Payload::ToolCallAllowed(allowed),
            )
        }
        Decision::Escalate => Ok(()),
        Decision::Deny => {
            let denied = ToolCallDenied {
                call_id,
                reason_code: verdict.reason().map(str::to_owned),
                message: verdict.message().map(Json::from),
                ..ToolCallDenied::default()
            };
            batch.push(EventType::ToolCallDenied, Payload::ToolCallDenied(denied))
        }
    }
}

fn answer(proposal: &Proposal<'_>, decided: Decided, decision: Recorded) -> Admission {
    let Decided {
        judgement,
        rewritten,
    } = decided;
    let Judgement {
        verdict,
        constraints,
        irreversible,
        explanation,
    } = judgement;
    match (verdict.decision(), constraints) {
        (Decision::Allow | Decision::Warn | Decision::Transform, Some(constraints)) => {
            Admission::Permit(Permit {
                scope: proposal.scope.clone(),
                call_id: proposal.call_id.clone(),
                tool_name: proposal.tool_name.clone(),
                digest: Digest::of(rewritten.as_deref().unwrap_or(proposal.bytes)),
                rewritten,
                constraints,
                warning: verdict.message().map(str::to_owned),
                decision,
            })
        }
        (Decision::Escalate, _) => Admission::Hold(Hold {
            call_id: proposal.call_id.clone(),
            verdict,
            irreversible,
            explanation,
            decision,
        }),
        // FAIL-CLOSED: an allow without constraints cannot come from the rules.
        (Decision::Deny | Decision::Allow | Decision::Warn | Decision::Transform, _) => {
            Admission::Refusal(Refusal::denied(&verdict, explanation, decision))
        }
    }
}

/// Whether a path of this machine is a link.
fn examine(path: &NormalPath) -> Link {
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
/// Each lost race means that another process made progress.
const MAX_ATTEMPTS: usize = 1000;
