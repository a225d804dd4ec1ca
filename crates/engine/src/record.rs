//! Writing events for a session whose state is in memory.

use countersign_event::{EventType, Payload, Scope};
use countersign_session::Fact;
use countersign_store::{At, Change, Draft, Pending, Recorded, Store};

use crate::hot::Hot;
use crate::refusal::Fault;

/// Several events that follow each other, on their way to the disk together.
pub(crate) struct Batch<'s> {
    store: &'s Store,
    scope: &'s Scope,
    ts_unix_ms: u64,
    hot: Hot,
    pending: Vec<Pending>,
    lost: bool,
}

impl<'s> Batch<'s> {
    pub(crate) fn new(store: &'s Store, scope: &'s Scope, ts_unix_ms: u64, hot: Hot) -> Self {
        Self {
            store,
            scope,
            ts_unix_ms,
            hot,
            pending: Vec::new(),
            lost: false,
        }
    }

    /// Folds the next event into the state and puts it on its way.
    pub(crate) fn push(
        &mut self,
        event_type: EventType,
        payload: Payload,
        change: Option<Change>,
    ) -> Result<(), Fault> {
        let fact = Fact {
            seq: self.hot.head.count(),
            ts_unix_ms: self.ts_unix_ms,
            event_type,
            payload: &payload,
        };
        self.hot
            .snapshot
            .apply(&fact)
            .map_err(|error| Fault::History(error.to_string()))?;
        let draft = Draft {
            scope: self.scope.clone(),
            ts_unix_ms: self.ts_unix_ms,
            event_type,
            payload,
        };
        // The state has taken in an event that the log may never have.
        self.lost = true;
        let pending = self
            .store
            .append_with(draft, At::Head(self.hot.head), change)?;
        self.lost = false;
        self.hot.head = pending.head();
        self.pending.push(pending);
        Ok(())
    }

    /// The state after the events, unless it has to be read from the log again; and what to wait
    /// for.
    pub(crate) fn finish(self) -> (Option<Hot>, Vec<Pending>) {
        ((!self.lost).then_some(self.hot), self.pending)
    }
}

/// Waits until everything that was put on its way is durable.
///
/// The first that fails says why; those after it only know that it is not there.
pub(crate) fn durable(pending: Vec<Pending>) -> Result<Recorded, Fault> {
    let mut last = None;
    for pending in pending {
        last = Some(pending.wait()?);
    }
    last.ok_or_else(|| Fault::History("nothing was recorded".to_owned()))
}
