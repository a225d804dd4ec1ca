//! Events that callers bring, and the state of sessions: what a door needs beside decisions.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use countersign_event::payload::Payload;
use countersign_event::{EventType, Head, OrderError, Scope};
use countersign_session::Snapshot;
use countersign_store::{Conflict, Pending, Recorded};

use crate::hot::{Hot, Place, lock};
use crate::meter::Metered;
use crate::record::Batch;
use crate::refusal::Fault;
use crate::{Engine, Refusal};

/// An event that is on its way to the disk.
#[must_use = "an event counts as recorded only when the answer says so"]
pub struct Ingest {
    pending: Vec<Pending>,
    place: Arc<Mutex<Place>>,
    meter: Metered,
    began: Option<Instant>,
}

impl Engine {
    /// Puts an event that needs no decision on its way. With a head it goes right after that, or
    /// nowhere; without a time it happened now.
    ///
    /// Returns before the event is durable: see [`Ingest::durable`].
    pub fn ingest(
        &self,
        scope: &Scope,
        event: (EventType, Payload),
        ts_unix_ms: Option<u64>,
        after: Option<Head>,
    ) -> Result<Ingest, Refusal> {
        Ok(self.try_ingest(scope, event, ts_unix_ms, after)?)
    }

    /// The state of a session, and the head that it is the state of.
    pub fn snapshot(&self, scope: &Scope) -> Result<(Snapshot, Head), Refusal> {
        let place = self.sessions.place(scope);
        let mut guard = lock(&place);
        let stored = self.store().reader().session(scope).map_err(Fault::from)?;
        // Other processes may have gone on with it.
        if let (Some(hot), Some(stored)) = (&guard.hot, &stored)
            && hot.head.count() < stored.events
        {
            guard.hot = None;
        }
        let hot = self.hot(&mut guard, scope)?;
        let found = (hot.snapshot().clone(), hot.head);
        guard.hot = Some(hot);
        Ok(found)
    }

    fn try_ingest(
        &self,
        scope: &Scope,
        (event_type, payload): (EventType, Payload),
        ts_unix_ms: Option<u64>,
        after: Option<Head>,
    ) -> Result<Ingest, Fault> {
        let now = ts_unix_ms.map_or_else(|| self.clock.now_unix_ms(), Ok)?;
        let place = self.sessions.place(scope);
        let mut guard = lock(&place);
        let hot = self.hot_at(&mut guard, scope, after)?;
        if hot.snapshot().is_closed() {
            guard.hot = Some(hot);
            let over = OrderError::Terminated(event_type);
            return Err(Fault::Store(over.into()));
        }
        let mut batch = Batch::new(scope, now, hot);
        batch.push(event_type, payload, None)?;
        let began = self.meter.began();
        let (hot, pending) = batch.send(self.store())?;
        guard.hot = Some(hot);
        drop(guard);
        Ok(Ingest {
            pending,
            place,
            meter: self.meter.clone(),
            began,
        })
    }

    /// The state of a session, if its head is the one that the caller knows. What is in memory may be
    /// behind other processes, so a difference is looked up before it is called a conflict.
    pub(crate) fn hot_at(
        &self,
        place: &mut Place,
        scope: &Scope,
        after: Option<Head>,
    ) -> Result<Hot, Fault> {
        let Some(after) = after else {
            return self.hot(place, scope);
        };
        let known = self.hot(place, scope)?;
        let hot = match known.head.count() < after.count() {
            true => self.recover(place, scope)?,
            false => known,
        };
        if hot.head == after {
            return Ok(hot);
        }
        let conflict = Conflict {
            expected_seq: after.count(),
            actual: hot.head,
        };
        place.hot = Some(hot);
        Err(Fault::Store(conflict.into()))
    }
}

impl Ingest {
    /// The event is durable, or not there.
    pub async fn durable(self) -> Result<Recorded, Refusal> {
        let mut last = None;
        for pending in self.pending {
            match pending.await {
                Ok(recorded) => last = Some(recorded),
                Err(error) => {
                    lock(&self.place).hot = None;
                    return Err(Fault::Store(error).into());
                }
            }
        }
        self.meter.appended(self.began);
        last.ok_or_else(|| Fault::History("nothing was recorded".to_owned()).into())
    }
}
