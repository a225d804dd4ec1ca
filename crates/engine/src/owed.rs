//! Outcomes that a door tells of before they are durable.
//!
//! A result may go to the agent as soon as it is noted with the session's state: whoever takes the state
//! for the next decision puts the outcome on its way first, so that decision is judged with it, and is
//! durable only after it. What must not happen is a decision that has forgotten it, so a session whose
//! outcome was lost on the way to the disk records it again before anything else, or decides nothing.

use countersign_event::{EventType, Payload, Scope};
use countersign_store::{Haste, Pending, Store};

use crate::engine::MAX_ATTEMPTS;
use crate::hot::{Hot, Place, lock, rebuild};
use crate::record::{Batch, durable};
use crate::refusal::Fault;
use crate::{Engine, Outcome, Refusal, Running, Settled};

/// An outcome that is not known to be durable.
pub(crate) struct Owed {
    event_type: EventType,
    payload: Payload,
    way: Way,
}

/// How far an outcome came on its way to the disk.
enum Way {
    /// It was told of at this time. The state of the session does not have it yet.
    Noted(u64),
    /// The state has it, and the disk will.
    Sent(Pending),
    /// The disk does not have it.
    Lost,
}

impl Owed {
    fn noted(running: Running, outcome: Outcome, now: u64) -> Self {
        let (event_type, payload) = running.event(outcome, now);
        Self {
            event_type,
            payload,
            way: Way::Noted(now),
        }
    }

    /// Whether it is durable by now.
    pub(crate) fn is_paid(&mut self) -> bool {
        let Way::Sent(pending) = &mut self.way else {
            return false;
        };
        match pending.try_wait() {
            Some(Ok(_)) => true,
            Some(Err(_)) => {
                self.way = Way::Lost;
                false
            }
            None => false,
        }
    }

    fn is_lost(&self) -> bool {
        matches!(self.way, Way::Lost)
    }

    fn wait_until_paid(&mut self) -> bool {
        match std::mem::replace(&mut self.way, Way::Lost) {
            Way::Sent(pending) => pending.wait().is_ok(),
            Way::Noted(_) | Way::Lost => false,
        }
    }

    /// Puts it on its way, if it is only noted; gives the state with it.
    fn send(&mut self, hot: Hot, scope: &Scope, store: &Store) -> Option<Hot> {
        let Way::Noted(told) = self.way else {
            return Some(hot);
        };
        self.way = Way::Lost;
        let mut batch = Batch::new(scope, told, hot);
        let payload = self.payload.clone();
        batch.push(self.event_type, payload, None).ok()?;
        let (hot, mut pending) = batch.send_with(Haste::Soon, store).ok()?;
        self.way = pending.pop().map_or(Way::Lost, Way::Sent);
        Some(hot)
    }
}

impl Engine {
    /// Records how an action went without waiting for the disk. Every later decision of the session
    /// counts it, and none is taken while it cannot be recorded.
    ///
    /// The outcome of what people approved is waited for: it ends the life of their approval. So is one
    /// that somebody looks at before the agent does.
    pub fn settle_soon(&self, running: Running, outcome: Outcome) -> Result<Settled, Refusal> {
        if running.is_approved() || self.reviewers(&running, &outcome).is_some() {
            return self.settle(running, outcome);
        }
        let running = running.watched();
        let now = self.clock.now_unix_ms().map_err(Fault::from)?;
        let scope = running.permit.scope.clone();
        let place = self.sessions.place(&scope);
        let mut guard = lock(&place);
        guard.owed.push(Owed::noted(running, outcome, now));
        guard.hot = self.at_hand(&mut guard, &scope);
        if guard.hot.is_some() {
            return Ok(Settled::as_it_came(None));
        }
        for _ in 0..MAX_ATTEMPTS {
            match self.recover(&mut guard, &scope) {
                Err(Fault::Store(error)) if error.is_retryable() => {}
                recovered => {
                    guard.hot = Some(recovered?);
                    return Ok(Settled::as_it_came(None));
                }
            }
        }
        Err(Fault::Busy.into())
    }

    /// Like [`Engine::settle_soon`], without waiting for anybody; gives back what somebody has to be
    /// waited for first. The outcome is noted: once the agent has its result, the caller lets
    /// [`Engine::catch_up`] put it on its way.
    pub fn settle_at_once(
        &self,
        running: Running,
        outcome: Outcome,
    ) -> Result<Settled, (Running, Outcome)> {
        let waits = running.is_approved()
            || running.watched.is_some()
            || self.reviewers(&running, &outcome).is_some();
        let Ok(now) = self.clock.now_unix_ms() else {
            return Err((running, outcome));
        };
        let place = self.sessions.place(&running.permit.scope);
        match place.try_lock() {
            Ok(mut guard) if !waits && guard.is_open() => {
                guard.owed.push(Owed::noted(running, outcome, now));
                Ok(Settled::as_it_came(None))
            }
            _ => Err((running, outcome)),
        }
    }

    /// Puts on its way what was noted, and gets ready for the next decision of the session. Does nothing, and
    /// says so, where somebody has to be waited for: [`Engine::catch_up_in_turn`] does that.
    pub fn catch_up(&self, scope: &Scope) -> bool {
        let place = self.sessions.place(scope);
        let Ok(mut guard) = place.try_lock() else {
            return false;
        };
        guard.hot = self.at_hand(&mut guard, scope);
        if let Some(hot) = guard.hot.as_ref().filter(|hot| hot.is_at_rest()) {
            let _ready = hot.snapshot_hash();
        }
        guard.hot.is_some() || !guard.owes()
    }

    /// Puts on its way what was noted, and records what was lost there.
    pub fn catch_up_in_turn(&self, scope: &Scope) -> Result<(), Refusal> {
        let place = self.sessions.place(scope);
        let mut guard = lock(&place);
        if guard.owes() {
            guard.hot = Some(self.hot(&mut guard, scope)?);
        }
        Ok(())
    }

    /// Waits until every outcome that was told is durable; what was lost on its way is recorded
    /// again. What cannot be recorded in one session keeps no other one waiting; gives the first failure.
    pub fn flush(&self) -> Result<(), Refusal> {
        let mut flushed = Ok(());
        for (scope, place) in self.sessions.owing() {
            let mut guard = lock(&place);
            guard.hot = self.at_hand(&mut guard, &scope);
            guard.owed.retain_mut(|owed| !owed.wait_until_paid());
            if !guard.owed.is_empty() {
                match self.recover(&mut guard, &scope) {
                    Ok(hot) => guard.hot = Some(hot),
                    Err(fault) => flushed = flushed.and(Err(fault.into())),
                }
            }
        }
        flushed
    }

    /// Takes the state out of its place, if it is there, with all that doors have told of. If anything
    /// fails on the way, there is none in the place and the log is read again.
    pub(crate) fn at_hand(&self, place: &mut Place, scope: &Scope) -> Option<Hot> {
        place.owed.retain_mut(|owed| !owed.is_paid());
        // FAIL-CLOSED: a state with something that the log does not have is none.
        let hot = place.hot.take();
        let is_lost = place.owed.iter().any(Owed::is_lost);
        let mut hot = hot.filter(|_| !is_lost)?;
        for owed in &mut place.owed {
            hot = owed.send(hot, scope, self.store())?;
        }
        Some(hot)
    }

    /// Reads the log again, and records what a door has told of and the log does not have.
    ///
    /// FAIL-CLOSED: while that fails, the session has no state to decide from.
    pub(crate) fn recover(&self, place: &mut Place, scope: &Scope) -> Result<Hot, Fault> {
        // Somebody has to wait for the disk under the lock here: until it has answered, nobody knows
        // what the state is.
        place.owed.retain_mut(|owed| !owed.wait_until_paid());
        let hot = rebuild(scope, self.store().reader())?;
        if place.owed.is_empty() {
            return Ok(hot);
        }
        let mut batch = Batch::new(scope, self.clock.now_unix_ms()?, hot);
        for owed in &place.owed {
            batch.push(owed.event_type, owed.payload.clone(), None)?;
        }
        let (hot, pending) = batch.send(self.store())?;
        let _recorded = durable(pending)?;
        place.owed.clear();
        Ok(hot)
    }
}
