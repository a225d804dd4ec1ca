//! Writing events for a session whose state is in memory.

use countersign_event::{EventType, Head, Payload, Scope};
use countersign_session::{Fact, Snapshot};
use countersign_store::{At, Draft, Pending, Recorded, Store};

use crate::hot::Hot;
use crate::refusal::Fault;

/// Several events that follow each other, on their way to the disk together.
pub(crate) struct Batch<'s> {
    store: &'s Store,
    scope: &'s Scope,
    ts_unix_ms: u64,
    snapshot: Snapshot,
    head: Head,
    last: Option<Pending>,
}

impl<'s> Batch<'s> {
    pub(crate) fn new(store: &'s Store, scope: &'s Scope, ts_unix_ms: u64, hot: &Hot) -> Self {
        Self {
            store,
            scope,
            ts_unix_ms,
            snapshot: hot.snapshot.clone(),
            head: hot.head,
            last: None,
        }
    }

    /// Puts the next event on its way and folds it into the state.
    pub(crate) fn push(&mut self, event_type: EventType, payload: Payload) -> Result<(), Fault> {
        let fact = Fact {
            seq: self.head.count(),
            ts_unix_ms: self.ts_unix_ms,
            event_type,
            payload: &payload,
        };
        self.snapshot
            .apply(&fact)
            .map_err(|error| Fault::History(error.to_string()))?;
        let draft = Draft {
            scope: self.scope.clone(),
            ts_unix_ms: self.ts_unix_ms,
            event_type,
            payload,
        };
        let pending = self.store.append(draft, At::Head(self.head))?;
        self.head = pending.head();
        self.last = Some(pending);
        Ok(())
    }

    /// The state after the events, and what to wait for. Events of one chain become durable in
    /// their order, so the last one stands for all.
    pub(crate) fn finish(self) -> (Hot, Option<Pending>) {
        (
            Hot {
                snapshot: self.snapshot,
                head: self.head,
            },
            self.last,
        )
    }
}

/// Waits until everything that was put on its way is durable.
pub(crate) fn durable(last: Option<Pending>) -> Result<Recorded, Fault> {
    let last = last.ok_or_else(|| Fault::History("nothing was recorded".to_owned()))?;
    Ok(last.wait()?)
}
