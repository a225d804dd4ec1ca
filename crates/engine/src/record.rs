//! Writing events for a session whose state is in memory.

use countersign_event::{EventType, OrderError, Payload, Scope};
use countersign_session::Fact;
use countersign_store::{At, Change, Events, Haste, Pending, Recorded, Store};

use crate::hot::Hot;
use crate::refusal::Fault;

/// Several events that follow each other. One transaction writes them.
pub(crate) struct Batch<'s> {
    scope: &'s Scope,
    ts_unix_ms: u64,
    hot: Hot,
    events: Events,
}

impl<'s> Batch<'s> {
    pub(crate) fn new(scope: &'s Scope, ts_unix_ms: u64, hot: Hot) -> Self {
        Self {
            scope,
            ts_unix_ms,
            hot,
            events: Vec::with_capacity(4),
        }
    }

    /// Folds the next event into the state.
    pub(crate) fn push(
        &mut self,
        event_type: EventType,
        payload: Payload,
        change: Option<Change>,
    ) -> Result<(), Fault> {
        if self.hot.snapshot().is_closed() {
            return Err(Fault::Store(OrderError::Terminated(event_type).into()));
        }
        let fact = Fact {
            seq: self.hot.head.count() + self.events.len() as u64,
            ts_unix_ms: self.ts_unix_ms,
            event_type,
            payload: &payload,
        };
        self.hot
            .apply(&fact)
            .map_err(|error| Fault::History(error.to_string()))?;
        self.events.push((event_type, payload, change));
        Ok(())
    }

    /// Puts the events on their way; gives the state after them, and what to wait for.
    pub(crate) fn send(self, store: &Store) -> Result<(Hot, Vec<Pending>), Fault> {
        self.send_with(Haste::Now, store)
    }

    pub(crate) fn send_with(
        mut self,
        haste: Haste,
        store: &Store,
    ) -> Result<(Hot, Vec<Pending>), Fault> {
        let at = At::Head(self.hot.head);
        let pending = store.append_all(self.scope, self.ts_unix_ms, self.events, at, haste)?;
        if let Some(last) = pending.last() {
            self.hot.head = last.head();
        }
        Ok((self.hot, pending))
    }
}

/// Waits until everything that was put on its way is durable.
///
/// The first that fails says why; those after it only know that it is not there.
pub(crate) fn durable(mut pending: Vec<Pending>) -> Result<Recorded, Fault> {
    // The last one is told last: who waits for it is woken once.
    let last = pending.pop().ok_or_else(nothing)?.wait();
    for earlier in pending {
        let _: Recorded = earlier.wait()?;
    }
    Ok(last?)
}

/// The same for a caller that cannot wait.
pub(crate) async fn durable_soon(mut pending: Vec<Pending>) -> Result<Recorded, Fault> {
    let last = pending.pop().ok_or_else(nothing)?.await;
    for earlier in pending {
        let _: Recorded = earlier.await?;
    }
    Ok(last?)
}

fn nothing() -> Fault {
    Fault::History("nothing was recorded".to_owned())
}
