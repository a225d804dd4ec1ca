//! Which tools the client was shown.
//!
//! A server can show the client one definition, and another one in the list that we ask for. What the client was
//! shown is what its model acts on, so it takes part in every judgement until it is accepted, or the client is shown
//! something else.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::tools::{Book, Definition};

/// What the client was shown, by name.
#[derive(Default)]
pub(super) struct Seen {
    shown: BTreeMap<String, Shown>,
    bytes: usize,
    lists: u64,
    is_changed: bool,
}

/// The definitions of one name that the client found in one list.
struct Shown {
    list: u64,
    definitions: Vec<Arc<Definition>>,
    is_accepted: bool,
}

impl Seen {
    /// The client begins to read a list: what is in it takes the place of what was in earlier ones.
    pub(super) fn begin(&mut self) -> u64 {
        self.lists += 1;
        self.lists
    }

    /// The list that the client has begun to read last.
    pub(super) fn latest(&self) -> u64 {
        self.lists
    }

    /// The client is about to be shown a definition. `false` if there is no room to keep it in mind.
    pub(super) fn show(&mut self, definition: &Arc<Definition>, list: u64) -> bool {
        let Some(known) = self.shown.get_mut(definition.name()) else {
            let bytes = self.bytes.saturating_add(definition.size());
            let has_room = bytes <= MAX_BYTES && self.shown.len() < MAX_NAMES;
            if has_room {
                self.bytes = bytes;
                self.is_changed = true;
                let shown = Shown::only(definition, list);
                self.shown.insert(definition.name().to_owned(), shown);
            }
            return has_room;
        };
        let is_later = known.list < list;
        if known.has(definition) && (!is_later || known.definitions.len() == 1) {
            known.list = known.list.max(list);
            return true;
        }
        let gone = if is_later { known.size() } else { 0 };
        let bytes = (self.bytes - gone).saturating_add(definition.size());
        if bytes > MAX_BYTES {
            return false;
        }
        self.bytes = bytes;
        self.is_changed = true;
        match is_later {
            true => *known = Shown::only(definition, list),
            false => known.add(definition),
        }
        true
    }

    /// Whether the client was shown anything new since this was last asked.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// What the client was shown, and nobody has accepted, under the names of these tools that are something else.
    pub(super) fn besides(&self, tools: &[Arc<Definition>]) -> Vec<Arc<Definition>> {
        let mut besides = Vec::new();
        for tool in tools {
            let shown = self.shown.get(tool.name());
            let shown = shown.filter(|shown| !shown.is_accepted);
            let definitions = shown.into_iter().flat_map(|shown| &shown.definitions);
            let others = definitions.filter(|other| other.digest() != tool.digest());
            besides.extend(others.cloned());
        }
        besides
    }

    /// What this book has accepted is what the client may act on, also when something else is accepted later.
    pub(super) fn accept(&mut self, book: &Book) {
        for (name, shown) in &mut self.shown {
            let pin = book.pins().get(name);
            let is_pinned =
                |one: &Arc<Definition>| pin.is_some_and(|pin| pin.digest == one.digest());
            shown.is_accepted |= shown.definitions.iter().all(is_pinned);
        }
    }
}

impl Shown {
    fn only(definition: &Arc<Definition>, list: u64) -> Self {
        Self {
            list,
            definitions: vec![Arc::clone(definition)],
            is_accepted: false,
        }
    }

    fn add(&mut self, definition: &Arc<Definition>) {
        self.definitions.push(Arc::clone(definition));
        self.is_accepted = false;
    }

    fn has(&self, definition: &Definition) -> bool {
        let digest = definition.digest();
        self.definitions.iter().any(|one| one.digest() == digest)
    }

    fn size(&self) -> usize {
        self.definitions.iter().map(|one| one.size()).sum()
    }
}

/// Beyond, the client is shown nothing more.
const MAX_NAMES: usize = 10_000;
const MAX_BYTES: usize = 16 << 20;
