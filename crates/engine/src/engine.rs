//! Admitting, beginning and settling actions.

use std::sync::{Arc, PoisonError, RwLock};

use countersign_canon::{Digest, Json};
use countersign_event::EventType;
use countersign_event::payload::{ErrorRaised, Payload, ToolCallExecuted, ToolResult};
use countersign_policy::Policies;
use countersign_store::{Recorded, Store};

use crate::decide::{Decided, decide};
use crate::hot::{Hot, Sessions, lock, rebuild};
use crate::record::{Batch, durable};
use crate::refusal::Fault;
use crate::{
    Admission, Clock, Outcome, Permit, PolicyFiles, PolicyFilesError, Preview, Proposal, Refusal,
    Running,
};

/// Decides actions, and records every one of them.
pub struct Engine {
    store: Store,
    clock: Box<dyn Clock>,
    policies: RwLock<Arc<Policies>>,
    sessions: Sessions,
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

    /// Reads the policies again and puts them in force, between two decisions. If anything is wrong
    /// with them, those that are in force stay. Tells whether anything changed.
    pub fn reload(&self, files: &PolicyFiles) -> Result<bool, PolicyFilesError> {
        let policies = files.load()?;
        let changed = policies.digest() != self.policies().digest();
        if changed {
            self.replace_policies(policies);
        }
        Ok(changed)
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

    /// What would be decided about an action now. Nothing is recorded and nothing may run.
    pub fn preview(&self, proposal: &Proposal<'_>) -> Result<Preview, Refusal> {
        let policies = self.policies();
        let now = self.clock.now_unix_ms().map_err(Fault::from)?;
        let slot = self.sessions.slot(proposal.scope);
        let mut guard = lock(&slot);
        let hot = self.hot(&mut guard, proposal.scope)?;
        let decided = decide(proposal, &hot, now, &policies);
        *guard = Some(hot);
        Ok(decided.map(Decided::preview)?)
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
            labels: permit.labels,
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
                    result_labels: (!running.labels.is_empty()).then_some(running.labels),
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
        let mut batch = Batch::new(&self.store, scope, now, hot);
        let pushed = batch.push(event_type, payload);
        let (hot, last) = batch.finish();
        *guard = hot;
        drop(guard);
        pushed?;
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
        let mut decided = match decide(proposal, &hot, now, &policies) {
            Ok(decided) => decided,
            Err(fault) => {
                *guard = Some(hot);
                return Err(fault);
            }
        };
        let mut batch = Batch::new(&self.store, proposal.scope, now, hot);
        let pushed = decided
            .take_events()
            .into_iter()
            .try_for_each(|(event_type, payload)| batch.push(event_type, payload));
        let (hot, last) = batch.finish();
        *guard = hot;
        drop(guard);
        pushed?;
        let recorded = durable(last).inspect_err(|_| *lock(&slot) = None)?;
        Ok(decided.answer(proposal, recorded))
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

/// Each lost race means that another process made progress.
const MAX_ATTEMPTS: usize = 1000;
