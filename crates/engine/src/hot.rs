//! Sessions whose state is kept in memory.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign_canon::Hash;
use countersign_event::{Head, Scope};
use countersign_session::{Fact, FactError, Snapshot};
use countersign_store::Reader;

use crate::owed::Owed;
use crate::refusal::Fault;

/// The state of one session, as of its head.
#[derive(Clone)]
pub(crate) struct Hot {
    snapshot: Snapshot,
    /// Of the snapshot, once somebody needed it.
    hash: OnceCell<Hash>,
    pub(crate) head: Head,
}

/// What is kept of one session.
#[derive(Default)]
pub(crate) struct Place {
    /// Its state; where there is none, the log has to be read. Outcomes that are only noted are not in it.
    pub(crate) hot: Option<Hot>,
    /// Outcomes that a door has told of, and that are not known to be durable.
    pub(crate) owed: Vec<Owed>,
}

/// Sessions by name; a session that is absent is read from the log when it is needed.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<Scope, Arc<Mutex<Place>>>>);

impl Sessions {
    pub(crate) fn place(&self, scope: &Scope) -> Arc<Mutex<Place>> {
        let mut sessions = lock(&self.0);
        if let Some(place) = sessions.get(scope) {
            return Arc::clone(place);
        }
        if sessions.len() >= MAX_SESSIONS {
            // Some make room; the others need not be read again.
            let mut surplus = MAX_SESSIONS / 8;
            sessions.retain(|_, place| {
                let stays = Arc::strong_count(place) > 1 || surplus == 0 || lock(place).owes();
                surplus -= usize::from(!stays);
                stays
            });
        }
        Arc::clone(sessions.entry(scope.clone()).or_default())
    }

    /// The places that owe the log an outcome.
    pub(crate) fn owing(&self) -> Vec<(Scope, Arc<Mutex<Place>>)> {
        let places: Vec<_> = lock(&self.0)
            .iter()
            .map(|(scope, place)| (scope.clone(), Arc::clone(place)))
            .collect();
        let owes = |(_, place): &(Scope, Arc<Mutex<Place>>)| lock(place).owes();
        places.into_iter().filter(owes).collect()
    }
}

impl Hot {
    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// What a decision names as the state that it was made from.
    pub(crate) fn snapshot_hash(&self) -> Hash {
        *self.hash.get_or_init(|| self.snapshot.hash())
    }

    /// Folds an event into the state.
    pub(crate) fn apply(&mut self, fact: &Fact<'_>) -> Result<(), FactError> {
        self.hash.take();
        self.snapshot.apply(fact)
    }

    /// Whether every call was answered or denied.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.snapshot.open_calls().next().is_none()
    }
}

impl Place {
    /// Whether the session is known to take events.
    pub(crate) fn is_open(&self) -> bool {
        let hot = self.hot.as_ref();
        hot.is_some_and(|hot| !hot.snapshot.is_closed())
    }

    /// Whether an outcome is not known to be durable.
    pub(crate) fn owes(&mut self) -> bool {
        self.owed.retain_mut(|owed| !owed.is_paid());
        !self.owed.is_empty()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Folds the recorded events of a session. The same events always give the same state.
pub(crate) fn rebuild(scope: &Scope, reader: &Reader) -> Result<Hot, Fault> {
    let mut snapshot = Snapshot::default();
    let head = reader.history(scope, |event| {
        let fact = Fact {
            seq: event.seq,
            ts_unix_ms: event.ts_unix_ms,
            event_type: event.event_type,
            payload: event.payload,
        };
        let folded = snapshot.apply(&fact);
        folded.map_err(|error| Fault::History(error.to_string()))
    })?;
    Ok(Hot {
        snapshot,
        hash: OnceCell::new(),
        head,
    })
}

const MAX_SESSIONS: usize = 4096;
