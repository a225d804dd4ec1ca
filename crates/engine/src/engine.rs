//! Beginning and settling actions, and what the engine keeps.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use countersign_approval::{ApprovalId, HighWater, RetentionError, State, UnixMs};
use countersign_canon::Digest;
use countersign_event::payload::{Payload, ToolCallExecuted};
use countersign_event::{EventType, Scope};
use countersign_policy::{Point, Policies};
use countersign_store::{Change, Events, Recorded, Store};

use crate::admission::Grounds;
use crate::approval::{ApprovalStep, Board, Recent};
use crate::hot::{Hot, Place, Sessions, lock};
use crate::instance::Instance;
use crate::meter::Metered;
use crate::record::{Batch, durable};
use crate::refusal::Fault;
use crate::watch::Watched;
use crate::{
    ApprovalTimes, Approvers, Clock, Meter, Outcome, Permit, PolicyFiles, PolicyFilesError,
    Refusal, Running, Settled, Standing, Watch,
};

/// Decides actions, and records every one of them.
pub struct Engine {
    store: Store,
    pub(crate) clock: Box<dyn Clock>,
    policies: RwLock<Arc<Policies>>,
    /// Held by whoever works out other policies.
    revising: Mutex<()>,
    pub(crate) sessions: Sessions,
    pub(crate) recent: Recent,
    pub(crate) board: Board,
    times: ApprovalTimes,
    latest: Mutex<Option<HighWater>>,
    instance: OnceLock<Instance>,
    /// The policies that are known to be kept.
    pub(crate) kept: Mutex<Option<Digest>>,
    pub(crate) meter: Metered,
    /// Who can look at what tools change.
    pub(crate) watch: Option<Arc<dyn Watch>>,
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
            recent: Recent::default(),
            board: Board::default(),
            times: ApprovalTimes::default(),
            latest: Mutex::new(None),
            instance: OnceLock::new(),
            kept: Mutex::new(None),
            meter: Metered::default(),
            watch: None,
        }
    }

    /// The same engine, telling this one how long things take.
    #[must_use]
    pub fn with_meter(mut self, meter: Arc<dyn Meter>) -> Self {
        self.meter = Metered::new(meter);
        self
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
        match self.begun(&permit, bytes) {
            Ok((began_unix_ms, watched)) => {
                let mut running = permit.into_running(began_unix_ms);
                running.watched = watched;
                Ok(running)
            }
            Err(refusal) => {
                // What cannot be recorded now is found by the sweep.
                let _ = self.abandon(permit);
                Err(refusal)
            }
        }
    }

    /// When it began, and what was seen before.
    fn begun(
        &self,
        permit: &Permit,
        bytes: &[u8],
    ) -> Result<(u64, Option<Box<dyn Watched>>), Refusal> {
        if Digest::of(bytes) != permit.digest {
            return Err(Fault::OtherBytes.into());
        }
        let watched = self.seen_before(permit)?;
        let began_unix_ms = self.clock.now_unix_ms().map_err(Fault::from)?;
        let payload = began(&permit.call_id, permit.digest, began_unix_ms);
        let step = self.step(permit.grounds.as_deref(), State::Consumed, State::Started)?;
        let _durable =
            self.settle_event(&permit.scope, EventType::ToolCallExecuted, payload, step)?;
        Ok((began_unix_ms, watched))
    }

    /// Records how an action went, and says what of its result the agent may see.
    pub fn settle(&self, running: Running, outcome: Outcome) -> Result<Settled, Refusal> {
        self.try_settle(running, outcome)
            .map_err(|given_back| given_back.1)
    }

    /// The same. What could not be recorded is given back, so that it can be told again.
    pub fn try_settle(
        &self,
        running: Running,
        outcome: Outcome,
    ) -> Result<Settled, Box<(Running, Refusal)>> {
        let running = running.watched();
        self.settled(&running, outcome)
            .map_err(|refusal| Box::new((running, refusal)))
    }

    fn settled(&self, running: &Running, outcome: Outcome) -> Result<Settled, Refusal> {
        if let Some(policies) = self.reviewers(running, &outcome) {
            return self.settle_reviewed(running, &outcome, &policies);
        }
        let now = self.clock.now_unix_ms().map_err(Fault::from)?;
        let grounds = running.permit.grounds.as_deref();
        let step = self.step(grounds, State::Started, outcome.ended())?;
        let (event_type, payload) = running.event(outcome, now);
        let recorded = self.settle_event(&running.permit.scope, event_type, payload, step)?;
        Ok(Settled::as_it_came(Some(recorded)))
    }

    /// Those who want to see a result before the agent does.
    pub(crate) fn reviewers(&self, running: &Running, outcome: &Outcome) -> Option<Arc<Policies>> {
        outcome.said()?;
        running.permit.done.as_ref()?;
        Some(self.policies()).filter(|policies| policies.attends(Point::PostToolCall))
    }

    /// What a permit allows will not be begun: an approval that was used for it has not run.
    pub fn abandon(&self, permit: Permit) -> Result<(), Refusal> {
        match permit.grounds.as_deref() {
            Some(Grounds::Approval(used)) => Ok(self.not_started(used.id)?),
            _ => Ok(()),
        }
    }

    /// The step of the approval that goes with an event of its action.
    pub(crate) fn step(
        &self,
        grounds: Option<&Grounds>,
        from: State,
        to: State,
    ) -> Result<Option<(UnixMs, ApprovalStep)>, Fault> {
        let Some(Grounds::Approval(used)) = grounds else {
            return Ok(None);
        };
        Ok(Some((self.now()?, used.step(from, to))))
    }

    pub(crate) fn settle_event(
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
        Err(Fault::Busy.into())
    }

    /// Records an event that needs no decision.
    pub fn record(
        &self,
        scope: &Scope,
        event_type: EventType,
        payload: Payload,
    ) -> Result<Recorded, Refusal> {
        self.record_all(scope, &[(event_type, payload)])
    }

    /// Records events that need no decision, in one write; gives the last.
    pub fn record_all(
        &self,
        scope: &Scope,
        events: &[(EventType, Payload)],
    ) -> Result<Recorded, Refusal> {
        for _ in 0..MAX_ATTEMPTS {
            let now = self.clock.now_unix_ms().map_err(Fault::from)?;
            let events = events.iter().cloned();
            let events = events.map(|(event_type, payload)| (event_type, payload, None));
            match self.push(scope, now, events.collect()) {
                Err(Fault::Store(error)) if error.is_retryable() => {}
                result => return result.map_err(Refusal::from),
            }
        }
        Err(Fault::Busy.into())
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

    pub(crate) fn push(&self, scope: &Scope, now: u64, events: Events) -> Result<Recorded, Fault> {
        let place = self.sessions.place(scope);
        let guard = lock(&place);
        self.push_at(guard, &place, scope, now, events)
    }

    /// The same for a session that is locked already.
    pub(crate) fn push_at(
        &self,
        mut guard: MutexGuard<'_, Place>,
        place: &Mutex<Place>,
        scope: &Scope,
        now: u64,
        events: Events,
    ) -> Result<Recorded, Fault> {
        let hot = self.hot(&mut guard, scope)?;
        let mut batch = Batch::new(scope, now, hot);
        for (event_type, payload, change) in events {
            batch.push(event_type, payload, change)?;
        }
        let began = self.meter.began();
        let (hot, pending) = batch.send(&self.store)?;
        guard.hot = Some(hot);
        drop(guard);
        durable(pending)
            .inspect(|_| self.meter.appended(began))
            .inspect_err(|_| lock(place).hot = None)
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
        let asked = self.store.reader().asked(id).map_err(Fault::from)?;
        Ok(asked.map(|asked| self.standing(asked)).transpose()?)
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

    /// The state of a session right now; others may go on with it.
    pub(crate) fn peek(&self, place: &Mutex<Place>, scope: &Scope) -> Result<Hot, Fault> {
        let mut guard = lock(place);
        let hot = self.hot(&mut guard, scope)?;
        guard.hot = Some(hot.clone());
        Ok(hot)
    }

    /// Takes the state out of its place, or reads the log.
    pub(crate) fn hot(&self, place: &mut Place, scope: &Scope) -> Result<Hot, Fault> {
        match self.at_hand(place, scope) {
            Some(hot) => Ok(hot),
            None => self.recover(place, scope),
        }
    }
}

/// The event that an action begins.
pub(crate) fn began(call_id: &str, digest: Digest, now: u64) -> Payload {
    Payload::ToolCallExecuted(ToolCallExecuted {
        call_id: Some(call_id.to_owned()),
        started_ms: Some(now),
        action_digest: Some(digest.to_string()),
        ..ToolCallExecuted::default()
    })
}

/// Each lost race means that another process made progress.
pub(crate) const MAX_ATTEMPTS: usize = 1000;
