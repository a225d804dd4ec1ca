//! Sessions whose state is kept in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign_event::{Head, Line, Payload, Scope};
use countersign_session::{Fact, Snapshot};
use countersign_store::{Filter, Reader};
use countersign_vault::{SessionKey, joined};

use crate::owed::Owed;
use crate::refusal::Fault;

/// The state of one session, as of its head.
#[derive(Clone)]
pub(crate) struct Hot {
    pub(crate) snapshot: Snapshot,
    pub(crate) head: Head,
}

/// What is kept of one session.
#[derive(Default)]
pub(crate) struct Place {
    /// Its state; where there is none, the log has to be read.
    pub(crate) hot: Option<Hot>,
    /// Outcomes on their way to the disk that a door has already told of.
    pub(crate) owed: Vec<Owed>,
}

/// Sessions by name; a session that is absent is read from the log when it is needed.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<Scope, Arc<Mutex<Place>>>>);

impl Sessions {
    pub(crate) fn place(&self, scope: &Scope) -> Arc<Mutex<Place>> {
        let mut sessions = lock(&self.0);
        if sessions.len() >= MAX_SESSIONS {
            sessions.retain(|_, place| Arc::strong_count(place) > 1 || lock(place).owes());
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

impl Place {
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
    let mut hot = Hot {
        snapshot: Snapshot::default(),
        head: Head::GENESIS,
    };
    let mut key: Option<SessionKey> = None;
    reader.each(&Filter::session(scope), 0, |event| {
        if key.is_none() {
            key = Some(reader.session_key(scope)?);
        }
        let line = Line::read(&event.line).map_err(|error| Fault::History(error.to_string()))?;
        let payload = open(&line, event.ciphertext.as_deref(), key.as_ref(), scope)?;
        let fact = Fact {
            seq: line.seq,
            ts_unix_ms: line.ts_unix_ms,
            event_type: line.event_type,
            payload: &payload,
        };
        hot.snapshot
            .apply(&fact)
            .map_err(|error| Fault::History(error.to_string()))?;
        hot.head = Head::after(line.seq, line.hash);
        Ok::<_, Fault>(())
    })?;
    Ok(hot)
}

fn open(
    line: &Line<'_>,
    ciphertext: Option<&[u8]>,
    key: Option<&SessionKey>,
    scope: &Scope,
) -> Result<Payload, Fault> {
    let unreadable = |error: &dyn ToString| Fault::History(error.to_string());
    let openings = match (ciphertext, key) {
        (Some(ciphertext), Some(key)) => key
            .open(ciphertext, scope)
            .map_err(|error| unreadable(&error))?,
        _ => Vec::new(),
    };
    let payload = joined(line.payload, openings).map_err(|error| unreadable(&error))?;
    Payload::admit(line.event_type, payload).map_err(|error| unreadable(&error))
}

const MAX_SESSIONS: usize = 4096;
