//! Outcomes that a door tells of before they are durable.
//!
//! A result may go to the agent as soon as the session's state counts it: the next decision is then
//! judged with it, and is durable only after it. What must not happen is a decision that has
//! forgotten it, so a session whose outcome was lost on the way to the disk records it again before
//! anything else, or decides nothing.

use countersign_event::{EventType, Payload, Scope};
use countersign_store::{Haste, Pending};

use crate::engine::MAX_ATTEMPTS;
use crate::hot::{Hot, Place, lock, rebuild};
use crate::record::{Batch, durable};
use crate::refusal::Fault;
use crate::{Engine, Outcome, Refusal, Running, Settled};

/// An outcome that is not known to be durable.
pub(crate) struct Owed {
    event_type: EventType,
    payload: Payload,
    /// Its way to the disk; none if it was lost there.
    pending: Option<Pending>,
}

impl Owed {
    /// Whether it is durable by now.
    pub(crate) fn is_paid(&mut self) -> bool {
        match self.pending.as_mut().and_then(Pending::try_wait) {
            Some(Ok(_)) => true,
            Some(Err(_)) => {
                self.pending = None;
                false
            }
            None => false,
        }
    }

    fn wait_until_paid(&mut self) -> bool {
        self.pending
            .take()
            .is_some_and(|pending| pending.wait().is_ok())
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
        if self.owe(&mut guard, running, outcome, now).is_some() {
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
    /// waited for first.
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
                // If it cannot be sent, it is owed: the session decides nothing before it is recorded.
                let _sent = self.owe(&mut guard, running, outcome, now);
                Ok(Settled::as_it_came(None))
            }
            _ => Err((running, outcome)),
        }
    }

    /// Waits until every outcome that was told is durable; what was lost on its way is recorded
    /// again.
    pub fn flush(&self) -> Result<(), Refusal> {
        for (scope, place) in self.sessions.owing() {
            let mut guard = lock(&place);
            guard.owed.retain_mut(|owed| !owed.wait_until_paid());
            if !guard.owed.is_empty() {
                guard.hot = Some(self.recover(&mut guard, &scope)?);
            }
        }
        Ok(())
    }

    /// Notes an outcome, and puts it on its way if the state of the session is at hand.
    fn owe(&self, place: &mut Place, running: Running, outcome: Outcome, now: u64) -> Option<()> {
        let scope = running.permit.scope.clone();
        let (event_type, payload) = running.into_event(outcome, now);
        place.owed.retain_mut(|owed| !owed.is_paid());
        place.owed.push(Owed {
            event_type,
            payload,
            pending: None,
        });
        self.send_newest(place, &scope, now)
    }

    fn send_newest(&self, place: &mut Place, scope: &Scope, now: u64) -> Option<()> {
        let mut batch = Batch::new(scope, now, place.hot.take()?);
        let owed = place.owed.last_mut()?;
        batch
            .push(owed.event_type, owed.payload.clone(), None)
            .ok()?;
        let (hot, mut pending) = batch.send_with(Haste::Soon, self.store()).ok()?;
        owed.pending = pending.pop();
        place.hot = Some(hot);
        Some(())
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
