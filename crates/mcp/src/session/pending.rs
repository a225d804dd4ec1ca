//! Who waits for what.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use countersign_engine::{ApprovalId, Running};

use crate::Id;
use crate::gate::Call;
use crate::reply::{RefusalForm, Refused};

use super::patience::Patience;

/// Requests of one side that have no answer yet.
pub(super) struct Table<T> {
    waiting: HashMap<Id, (T, Option<Patience>)>,
    max: usize,
}

/// What a client asked for.
pub(super) enum Asked {
    /// A call, or something that is fetched: how its client is told of a refusal, and how far it has come.
    Call(RefusalForm, CallState),
    /// A page of tools.
    List(Page),
    /// How a task of the server stands.
    Task {
        /// Its name.
        task: String,
        /// Under which the log tells of it.
        key: String,
    },
    /// Which revision the server speaks.
    Open,
    /// Something that is passed on as it is.
    Plain,
}

/// A page of tools that a client asked for.
pub(super) struct Page {
    /// Its cursor; none for the first page.
    pub(super) cursor: Option<Vec<u8>>,
    /// Whether calls may wait for it.
    pub(super) is_wanted: bool,
}

/// How far a call has come.
pub(super) enum CallState {
    /// It waits until the server has listed its tools.
    Waiting,
    /// The engine decides.
    Deciding {
        /// Set when the client no longer wants it.
        cancelled: Arc<AtomicBool>,
    },
    /// A human decides.
    Held(Box<Held>),
    /// The server works on it.
    Running {
        /// What is needed to settle it.
        running: Running,
        /// When it has taken too long; `None` if that is beyond all times.
        deadline: Option<Instant>,
        /// The client has said that it no longer wants it.
        is_unwanted: bool,
    },
}

/// A call that waits for a human.
pub(super) struct Held {
    /// The call; away while somebody looks.
    pub(super) call: Option<Call>,
    pub(super) approval: ApprovalId,
    /// Set when the client no longer wants it.
    pub(super) cancelled: Arc<AtomicBool>,
    /// What the client hears if nobody decides while it waits.
    pub(super) refused: Refused,
    /// When to look again.
    pub(super) next_look: Instant,
    /// What the client wants to be told under, if it wants to be told.
    pub(super) progress_token: Option<Vec<u8>>,
    /// When the client is told to come back later.
    pub(super) until: Instant,
    /// When the client was told that it still waits.
    pub(super) told: Instant,
    pub(super) times_told: u64,
}

/// What a server asked for.
pub(super) enum ServerAsked {
    /// An answer of the client's model.
    Sample,
    /// An answer of the client's human.
    Elicit,
    /// Something else.
    Plain,
}

/// Why a request cannot wait.
pub(super) enum NoPlace {
    /// Another one waits under this id.
    Taken,
    /// Too many wait.
    Full,
}

impl<T> Table<T> {
    pub(super) fn new(max: usize) -> Self {
        Self {
            waiting: HashMap::new(),
            max,
        }
    }

    /// Whether a request with this id can wait.
    pub(super) fn check(&self, id: &Id) -> Result<(), NoPlace> {
        if self.waiting.contains_key(id) {
            return Err(NoPlace::Taken);
        }
        if self.waiting.len() >= self.max {
            return Err(NoPlace::Full);
        }
        Ok(())
    }

    pub(super) fn insert(&mut self, id: Id, asked: T) {
        self.insert_until(id, asked, None);
    }

    /// The request waits for so long.
    pub(super) fn insert_until(&mut self, id: Id, asked: T, patience: Option<Patience>) {
        self.waiting.insert(id, (asked, patience));
    }

    /// What waits under this id has come so far; it waits as long as it did.
    pub(super) fn advance(&mut self, id: &Id, to: T) -> Option<&mut Patience> {
        let (asked, patience) = self.waiting.get_mut(id)?;
        *asked = to;
        patience.as_mut()
    }

    /// Whether something waits that has an end, by its patience or by what it is.
    pub(super) fn has_end(&self, by_itself: impl Fn(&T) -> bool) -> bool {
        let mut waiting = self.waiting.values();
        waiting.any(|(asked, patience)| patience.is_some() || by_itself(asked))
    }

    pub(super) fn get_mut(&mut self, id: &Id) -> Option<&mut T> {
        self.waiting.get_mut(id).map(|(asked, _)| asked)
    }

    pub(super) fn get(&self, id: &Id) -> Option<&T> {
        self.waiting.get(id).map(|(asked, _)| asked)
    }

    pub(super) fn remove(&mut self, id: &Id) -> Option<T> {
        self.waiting.remove(id).map(|(asked, _)| asked)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Id, &T)> {
        self.waiting.iter().map(|(id, (asked, _))| (id, asked))
    }

    pub(super) fn patience_of(&self, id: &Id) -> Option<&Patience> {
        self.waiting.get(id)?.1.as_ref()
    }

    pub(super) fn patience(&self) -> impl Iterator<Item = (&Id, &Patience)> {
        let all = self.waiting.iter();
        all.filter_map(|(id, (_, patience))| Some((id, patience.as_ref()?)))
    }

    pub(super) fn patience_mut(&mut self) -> impl Iterator<Item = (&Id, &mut Patience)> {
        let all = self.waiting.iter_mut();
        all.filter_map(|(id, (_, patience))| Some((id, patience.as_mut()?)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Everything that waits; the table is empty then.
    pub(super) fn drain(&mut self) -> Vec<(Id, T)> {
        let all = self.waiting.drain();
        let mut all: Vec<_> = all.map(|(id, (asked, _))| (id, asked)).collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
    }
}
