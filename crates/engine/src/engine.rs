//! Beginning and settling actions, and what the engine keeps.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use countersign_approval::{ApprovalId, HighWater, RetentionError, State, UnixMs};
use countersign_canon::{Digest, Json};
use countersign_event::payload::{ErrorRaised, Payload, ToolCallExecuted, ToolResult};
use countersign_event::{EventType, Scope};
use countersign_policy::Policies;
use countersign_store::{Change, Recorded, Store};

use crate::admission::Grounds;
use crate::approval::{ApprovalStep, standing};
use crate::hot::{Hot, Sessions, lock, rebuild};
use crate::instance::Instance;
use crate::record::{Batch, durable};
use crate::refusal::Fault;
use crate::{
    ApprovalTimes, Approvers, Clock, Outcome, Permit, PolicyFiles, PolicyFilesError, Refusal,
    Running, Standing,
};

/// Decides actions, and records every one of them.
pub struct Engine {
    store: Store,
    pub(crate) clock: Box<dyn Clock>,
    policies: RwLock<Arc<Policies>>,
    /// Held by whoever works out other policies.
    revising: Mutex<()>,
    pub(crate) sessions: Sessions,
    times: ApprovalTimes,
    latest: Mutex<Option<HighWater>>,
    instance: OnceLock<Instance>,
}

impl Engine {
    /// An engine over a store.
    pub fn new(store: Store, policies: Policies, clock: impl Clock + 'static) -> Self {
        Self {
            store,
            clock: Box::new(clock),
            policies: RwLock::new(Arc::new(policies)),
            revising: Mutex::default(),
            sessions: Sessions::default(),
            times: ApprovalTimes::default(),
            latest: Mutex::new(None),
            instance: OnceLock::new(),
        }
    }

    /// The same engine, giving people this much time. Refuses to forget what could still be used.
    pub fn with_times(mut self, times: ApprovalTimes) -> Result<Self, RetentionError> {
        let _holds = times.retention()?;
        self.times = times;
        Ok(self)
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
    /// with them, those that are in force stay. Where no file is named for it, so does the manifest.
    /// Tells whether anything changed.
    pub fn reload(&self, files: &PolicyFiles) -> Result<bool, PolicyFilesError> {
        self.revise(|current| files.load_beside(current.capability().manifest()))
    }

    /// Puts policies in force that follow from those that are, between two decisions; nobody else
    /// changes them meanwhile. Tells whether anything changed.
    pub fn revise<E>(
        &self,
        revised: impl FnOnce(&Policies) -> Result<Policies, E>,
    ) -> Result<bool, E> {
        let _revising = lock(&self.revising);
        let current = self.policies();
        let policies = revised(&current)?;
        let changed = policies.digest() != current.digest();
        if changed {
            self.put(policies);
        }
        Ok(changed)
    }

    /// Puts other policies in force, between two decisions.
    pub fn replace_policies(&self, policies: Policies) {
        let _revising = lock(&self.revising);
        self.put(policies);
    }

    fn put(&self, policies: Policies) {
        *self
            .policies
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(policies);
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
        let step = self.step(permit.grounds.as_deref(), State::Consumed, State::Started)?;
        let _durable =
            self.settle_event(&permit.scope, EventType::ToolCallExecuted, payload, step)?;
        Ok(Running {
            scope: permit.scope,
            call_id: permit.call_id,
            tool_name: permit.tool_name,
            began_unix_ms,
            constraints: permit.constraints,
            labels: permit.labels,
            grounds: permit.grounds,
        })
    }

    /// Records how an action went.
    pub fn settle(&self, running: Running, outcome: Outcome) -> Result<Recorded, Refusal> {
        let now = self.clock.now_unix_ms().map_err(Fault::from)?;
        let call_id = Some(running.call_id);
        let ended = match outcome {
            Outcome::Result {
                is_error: false, ..
            } => State::Executed,
            Outcome::Result { .. } | Outcome::Failed { .. } => State::Failed,
        };
        let step = self.step(running.grounds.as_deref(), State::Started, ended)?;
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
        self.settle_event(&running.scope, event_type, payload, step)
    }

    /// The step of the approval that goes with an event of its action.
    fn step(
        &self,
        grounds: Option<&Grounds>,
        from: State,
        to: State,
    ) -> Result<Option<(UnixMs, ApprovalStep)>, Refusal> {
        let Some(Grounds::Approval(used)) = grounds else {
            return Ok(None);
        };
        Ok(Some((self.now()?, used.step(from, to))))
    }

    fn settle_event(
        &self,
        scope: &Scope,
        event_type: EventType,
        payload: Payload,
        step: Option<(UnixMs, ApprovalStep)>,
    ) -> Result<Recorded, Refusal> {
        let Some((now, step)) = step else {
            return self.record(scope, event_type, payload);
        };
        for _ in 0..MAX_ATTEMPTS {
            let events = vec![(event_type, payload.clone())];
            match self.record_events(scope, now, events, step.change(now)) {
                Err(Fault::Store(error)) if error.is_retryable() => {}
                result => return Ok(result?),
            }
        }
        Err(Fault::History("other processes write this session too fast".to_owned()).into())
    }

    /// Records an event that needs no decision.
    pub fn record(
        &self,
        scope: &Scope,
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
        scope: &Scope,
        event_type: EventType,
        payload: Payload,
    ) -> Result<Recorded, Fault> {
        let now = self.clock.now_unix_ms()?;
        self.push(scope, now, vec![(event_type, payload, None)])
    }

    /// Records events of an approval, the first with its change: all of them, or none if the change
    /// is refused.
    pub(crate) fn record_events(
        &self,
        scope: &Scope,
        now: UnixMs,
        events: Vec<(EventType, Payload)>,
        change: Change,
    ) -> Result<Recorded, Fault> {
        let mut change = Some(change);
        let events = events.into_iter();
        let events = events.map(|(event_type, payload)| (event_type, payload, change.take()));
        self.push(scope, now.get(), events.collect())
    }

    pub(crate) fn push(
        &self,
        scope: &Scope,
        now: u64,
        events: Vec<(EventType, Payload, Option<Change>)>,
    ) -> Result<Recorded, Fault> {
        let slot = self.sessions.slot(scope);
        let mut guard = lock(&slot);
        let hot = self.hot(&mut guard, scope)?;
        let mut batch = Batch::new(scope, now, hot);
        for (event_type, payload, change) in events {
            batch.push(event_type, payload, change)?;
        }
        let (hot, pending) = batch.send(&self.store)?;
        *guard = Some(hot);
        drop(guard);
        durable(pending).inspect_err(|_| *lock(&slot) = None)
    }

    /// The time that approvals are judged by: it never goes back.
    pub(crate) fn now(&self) -> Result<UnixMs, Fault> {
        let wall = UnixMs::new(self.clock.now_unix_ms()?);
        let monotonic = self.clock.monotonic_ms();
        let mut latest = lock(&self.latest);
        let mut high = match *latest {
            Some(high) => high,
            None => HighWater::restored(self.store.reader().latest_time()?, monotonic),
        };
        let now = high.observe(wall, monotonic);
        *latest = Some(high);
        Ok(now)
    }

    pub(crate) fn times(&self) -> ApprovalTimes {
        self.times
    }

    /// Everybody who may decide, as the list says now.
    pub fn approvers(&self) -> Result<Approvers, Refusal> {
        Ok(self.approver_list()?)
    }

    pub(crate) fn approver_list(&self) -> Result<Approvers, Fault> {
        Approvers::load(self.store.folder().path())
            .map_err(|error| Fault::History(error.to_string()))
    }

    /// A request for approval as it stands.
    pub fn approval(&self, id: ApprovalId) -> Result<Option<Standing>, Refusal> {
        let reader = self.store.reader();
        let row = reader.approval(id).map_err(Fault::from)?;
        Ok(row.map(|row| standing(row, reader)).transpose()?)
    }

    pub(crate) fn instance(&self) -> Result<&Instance, Fault> {
        if let Some(instance) = self.instance.get() {
            return Ok(instance);
        }
        let instance = Instance::begin(self.store.folder().path())
            .map_err(|error| Fault::Instance(error.to_string()))?;
        Ok(self.instance.get_or_init(|| instance))
    }

    pub(crate) fn is_alive(&self, owner: &str) -> bool {
        let folder = self.store.folder().path();
        self.instance()
            .is_ok_and(|instance| instance.is_alive(owner, folder))
    }

    /// Takes the state out of its slot: if anything fails on the way, the slot stays empty and the
    /// log is read again.
    pub(crate) fn hot(&self, slot: &mut Option<Hot>, scope: &Scope) -> Result<Hot, Fault> {
        match slot.take() {
            Some(hot) => Ok(hot),
            None => rebuild(scope, self.store.reader()),
        }
    }
}

/// Each lost race means that another process made progress.
pub(crate) const MAX_ATTEMPTS: usize = 1000;
