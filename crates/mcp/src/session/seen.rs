//! Which tools the client was shown.
//!
//! A server can show the client one definition, and another one in the list that we ask for. What the client was
//! shown is what its model acts on, so it takes part in every judgement until it is accepted, or the client is shown
//! something else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::tools::{Book, Definition};

/// What a client was shown, known to each of its sessions.
#[derive(Clone, Default)]
pub(crate) struct Sights(Arc<Mutex<Seen>>);

/// What a client was shown, by name.
#[derive(Default)]
pub(crate) struct Seen {
    shown: BTreeMap<String, Shown>,
    bytes: usize,
    /// Which list the client has begun to read last; none where lists of several sessions cannot be told apart.
    list: Option<u64>,
    /// How often something new was shown.
    news: u64,
}

/// The definitions of one name that the client found in one list.
#[derive(Default)]
struct Shown {
    list: u64,
    definitions: Vec<Sight>,
}

struct Sight {
    definition: Arc<Definition>,
    is_accepted: bool,
    shown: Instant,
}

impl Sights {
    /// For one session: what a list shows takes the place of what earlier ones have shown.
    pub(crate) fn of_a_session() -> Self {
        let seen = Seen {
            list: Some(0),
            ..Seen::default()
        };
        Self(Arc::new(Mutex::new(seen)))
    }

    /// For all sessions of one client, whose lists cannot be told apart: what was shown once counts for a day, or
    /// until it is accepted.
    pub(crate) fn of_a_client() -> Self {
        Self::default()
    }

    /// Whether no session has it.
    pub(crate) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    pub(crate) fn look(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// The client begins to read a list.
    pub(super) fn begin(&mut self) -> u64 {
        self.list = self.list.map(|list| list + 1);
        self.latest()
    }

    /// The list that the client has begun to read last.
    pub(super) fn latest(&self) -> u64 {
        self.list.unwrap_or_default()
    }

    /// Changes when the client was shown something new.
    pub(super) fn news(&self) -> u64 {
        self.news
    }

    /// The client is about to be shown a definition. `false` if there is no room to keep it in mind.
    pub(super) fn show(&mut self, definition: &Arc<Definition>, list: u64) -> bool {
        if !self.shown.contains_key(definition.name()) {
            let has_room = self.shown.len() < MAX_NAMES && self.has_room(definition, 0);
            if has_room {
                self.put(definition, list);
            }
            return has_room;
        }
        let Some(known) = self.shown.get_mut(definition.name()) else {
            return false;
        };
        let is_later = known.list < list;
        let count = known.definitions.len();
        if let Some(sight) = known.find(definition)
            && (!is_later || count == 1)
        {
            sight.shown = Instant::now();
            known.list = known.list.max(list);
            return true;
        }
        let gone = match is_later {
            true => known.size(),
            false if known.definitions.len() >= MAX_TWINS => return false,
            false => 0,
        };
        let has_room = self.has_room(definition, gone);
        if has_room {
            if is_later {
                self.bytes -= gone;
                self.shown.remove(definition.name());
            }
            self.put(definition, list);
        }
        has_room
    }

    fn has_room(&self, definition: &Definition, gone: usize) -> bool {
        (self.bytes - gone).saturating_add(definition.size()) <= MAX_BYTES
    }

    fn put(&mut self, definition: &Arc<Definition>, list: u64) {
        let shown = self.shown.entry(definition.name().to_owned()).or_default();
        shown.list = shown.list.max(list);
        shown.definitions.push(Sight {
            definition: Arc::clone(definition),
            is_accepted: false,
            shown: Instant::now(),
        });
        self.bytes += definition.size();
        self.news += 1;
    }

    /// What the client was shown, and nobody has accepted, under the names of these tools that are something else.
    pub(super) fn besides(&self, tools: &[Arc<Definition>]) -> Vec<Arc<Definition>> {
        let mut besides = Vec::new();
        for tool in tools {
            let shown = self.shown.get(tool.name());
            let sights = shown.into_iter().flat_map(|shown| &shown.definitions);
            let others =
                sights.filter(|it| self.counts(it) && it.definition.digest() != tool.digest());
            besides.extend(others.map(|it| Arc::clone(&it.definition)));
        }
        besides
    }

    fn counts(&self, sight: &Sight) -> bool {
        let is_recent = self.list.is_some() || sight.shown.elapsed() < DAY;
        is_recent && !sight.is_accepted
    }

    /// What this book has accepted is what the client may act on, also when something else is accepted later.
    pub(super) fn accept(&mut self, book: &Book) {
        for (name, shown) in &mut self.shown {
            let Some(pin) = book.pins().get(name) else {
                continue;
            };
            for sight in &mut shown.definitions {
                sight.is_accepted |= sight.definition.digest() == pin.digest;
            }
        }
    }
}

impl Shown {
    fn find(&mut self, definition: &Definition) -> Option<&mut Sight> {
        let digest = definition.digest();
        let mut sights = self.definitions.iter_mut();
        sights.find(|it| it.definition.digest() == digest)
    }

    fn size(&self) -> usize {
        self.definitions.iter().map(|it| it.definition.size()).sum()
    }
}

/// Beyond, the client is shown nothing more.
const MAX_NAMES: usize = 10_000;
const MAX_BYTES: usize = 16 << 20;
/// Of one name.
const MAX_TWINS: usize = 8;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
