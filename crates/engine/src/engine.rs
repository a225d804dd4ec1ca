//! Admitting, beginning and settling actions.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use countersign_approval::{ApprovalId, HighWater, State, UnixMs};
use countersign_canon::{Digest, Json};
use countersign_event::payload::{ErrorRaised, Payload, ToolCallExecuted, ToolResult};
use countersign_event::{EventType, Scope};
use countersign_policy::Policies;
use countersign_policy::capability::Judgement;
use countersign_store::{Change, Recorded, Store};

use crate::approval::{ApprovalStep, Question, Used, ask, standing};
use crate::decide::{Decided, decide};
use crate::hot::{Hot, Sessions, lock, rebuild};
use crate::instance::Instance;
use crate::record::{Batch, durable};
use crate::refusal::Fault;
use crate::{
    Admission, ApprovalTimes, Approvers, Clock, Outcome, Permit, PolicyFiles, PolicyFilesError,
    Preview, Proposal, Refusal, Running, Standing,
};

/// Decides actions, and records every one of them.
pub struct Engine {
    store: Store,
    clock: Box<dyn Clock>,
    policies: RwLock<Arc<Policies>>,
    sessions: Sessions,
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
            sessions: Sessions::default(),
            times: ApprovalTimes::default(),
            latest: Mutex::new(None),
            instance: OnceLock::new(),
        }
    }

    /// The same engine, giving people this much time.
    #[must_use = "gives the changed engine back"]
    pub fn with_times(mut self, times: ApprovalTimes) -> Self {
        self.times = times;
        self
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
        let step = self.step(permit.approval.as_deref(), State::Consumed, State::Started)?;
        let _durable =
            self.settle_event(&permit.scope, EventType::ToolCallExecuted, payload, step)?;
        Ok(Running {
            scope: permit.scope,
            call_id: permit.call_id,
            tool_name: permit.tool_name,
            began_unix_ms,
            constraints: permit.constraints,
            labels: permit.labels,
            approval: permit.approval,
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
        let step = self.step(running.approval.as_deref(), State::Started, ended)?;
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
        approval: Option<&Used>,
        from: State,
        to: State,
    ) -> Result<Option<(UnixMs, ApprovalStep)>, Refusal> {
        let Some(used) = approval else {
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
        self.push(scope, now, vec![(event_type, payload)], None)
    }

    /// Records events of an approval, the first with its change; all of them or none.
    pub(crate) fn record_events(
        &self,
        scope: &Scope,
        now: UnixMs,
        events: Vec<(EventType, Payload)>,
        change: Change,
    ) -> Result<Recorded, Fault> {
        self.push(scope, now.get(), events, Some(change))
    }

    fn push(
        &self,
        scope: &Scope,
        now: u64,
        events: Vec<(EventType, Payload)>,
        mut change: Option<Change>,
    ) -> Result<Recorded, Fault> {
        let slot = self.sessions.slot(scope);
        let mut guard = lock(&slot);
        let hot = self.hot(&mut guard, scope)?;
        let mut batch = Batch::new(&self.store, scope, now, hot);
        let pushed = events
            .into_iter()
            .try_for_each(|(event_type, payload)| batch.push(event_type, payload, change.take()));
        let (hot, pending) = batch.finish();
        *guard = hot;
        drop(guard);
        pushed?;
        durable(pending).inspect_err(|_| *lock(&slot) = None)
    }

    /// What people are asked about an action that is held.
    fn question<'a>(
        &'a self,
        proposal: &'a Proposal<'a>,
        judgement: &'a Judgement,
        hot: &'a Hot,
        policies: &'a Policies,
    ) -> Result<Question<'a>, Fault> {
        Ok(Question {
            proposal,
            judgement,
            hot,
            policies,
            folder: self.store.folder().path(),
            times: self.times,
            now: self.now()?,
        })
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
        let question = decided
            .held()
            .map(|judgement| self.question(proposal, judgement, &hot, &policies))
            .transpose();
        let question = match question {
            Ok(question) => question,
            Err(fault) => {
                *guard = Some(hot);
                return Err(fault);
            }
        };
        let asked = question.map(|question| ask(&question));
        let mut batch = Batch::new(&self.store, proposal.scope, now, hot);
        let mut pushed = decided
            .take_events()
            .into_iter()
            .try_for_each(|(event_type, payload)| batch.push(event_type, payload, None));
        if let Some(asked) = asked {
            decided.asked(asked.map(|asked| {
                if pushed.is_ok() {
                    let kind = EventType::ApprovalRequested;
                    pushed = batch.push(kind, asked.payload, Some(asked.change));
                }
                Box::new(asked.envelope)
            }));
        }
        let (hot, pending) = batch.finish();
        *guard = hot;
        drop(guard);
        pushed?;
        let recorded = durable(pending).inspect_err(|_| *lock(&slot) = None)?;
        Ok(decided.answer(proposal, recorded))
    }

    /// Takes the state out of its slot: if anything fails on the way, the slot stays empty and the
    /// log is read again.
    fn hot(&self, slot: &mut Option<Hot>, scope: &Scope) -> Result<Hot, Fault> {
        match slot.take() {
            Some(hot) => Ok(hot),
            None => rebuild(scope, self.store.reader()),
        }
    }
}

/// Each lost race means that another process made progress.
const MAX_ATTEMPTS: usize = 1000;
