//! The calls of one kind, each in the state that its last event left it in.

use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;

use hashbrown::HashTable;

use super::{OrderError, misplaced};
use crate::EventType;

/// The state of each named call, and how many unnamed ones are in each state.
///
/// SECURITY: agents choose the ids, so they are hashed under a random key: nobody can choose ids that
/// collide and make a session slow to verify.
#[derive(Debug, Clone)]
pub(super) struct Calls<S> {
    named: HashTable<Named<S>>,
    /// The ids of all named calls, one after the other: a session can have very many.
    ids: String,
    /// Where the last named call was found. Its next event mostly comes next, so it is tried first;
    /// the id is compared all the same.
    last: usize,
    unnamed: Vec<(S, u64)>,
    hasher: RandomState,
}

/// A call, with the hash of its id, so that a table that grows does not go through every id again.
#[derive(Debug, Clone)]
struct Named<S> {
    hash: u64,
    id: Range<usize>,
    state: S,
}

impl<S> Named<S> {
    fn has(&self, id: &str, ids: &str) -> bool {
        ids.as_bytes().get(self.id.clone()) == Some(id.as_bytes())
    }
}

impl<S> Default for Calls<S> {
    fn default() -> Self {
        Self {
            named: HashTable::new(),
            ids: String::new(),
            last: 0,
            unnamed: Vec::new(),
            hasher: RandomState::new(),
        }
    }
}

impl<S: Copy + Eq> Calls<S> {
    /// A new call; an id may be used only once.
    pub(super) fn begin(
        &mut self,
        state: S,
        event_type: EventType,
        id: Option<&str>,
    ) -> Result<(), OrderError> {
        let Some(id) = id else {
            self.count(state);
            return Ok(());
        };
        let hash = self.hasher.hash_one(id);
        if self
            .named
            .find(hash, |call| call.has(id, &self.ids))
            .is_some()
        {
            return Err(OrderError::Reused {
                event_type,
                id: id.to_owned(),
            });
        }
        let start = self.ids.len();
        self.ids.push_str(id);
        let call = Named {
            hash,
            id: start..self.ids.len(),
            state,
        };
        let entry = self.named.insert_unique(hash, call, |call| call.hash);
        self.last = entry.bucket_index();
        Ok(())
    }

    /// Moves a call that is in one of these states to another.
    pub(super) fn step(
        &mut self,
        from: &[S],
        to: S,
        event_type: EventType,
        id: Option<&str>,
        needs: &'static str,
    ) -> Result<(), OrderError> {
        let moved = match id {
            Some(id) => self
                .state(id)
                .filter(|state| from.contains(state))
                .map(|state| *state = to),
            None => self.take_unnamed(from).map(|()| self.count(to)),
        };
        moved.ok_or_else(|| misplaced(event_type, id, needs))
    }

    /// The named call must be in one of these states; events about no named call are free.
    pub(super) fn expect(
        &mut self,
        states: &[S],
        event_type: EventType,
        id: Option<&str>,
        needs: &'static str,
    ) -> Result<(), OrderError> {
        match id {
            Some(name) if !self.state(name).is_some_and(|state| states.contains(state)) => {
                Err(misplaced(event_type, id, needs))
            }
            _ => Ok(()),
        }
    }

    /// The state of a named call.
    fn state(&mut self, id: &str) -> Option<&mut S> {
        let is_last = self
            .named
            .get_bucket(self.last)
            .is_some_and(|call| call.has(id, &self.ids));
        if !is_last {
            let hash = self.hasher.hash_one(id);
            let found = |call: &Named<S>| call.has(id, &self.ids);
            self.last = self.named.find_bucket_index(hash, found)?;
        }
        self.named
            .get_bucket_mut(self.last)
            .map(|call| &mut call.state)
    }

    fn count(&mut self, state: S) {
        match self.unnamed.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => self.unnamed.push((state, 1)),
        }
    }

    fn take_unnamed(&mut self, from: &[S]) -> Option<()> {
        from.iter().find_map(|state| {
            let (_, count) = self
                .unnamed
                .iter_mut()
                .find(|(known, count)| known == state && *count > 0)?;
            *count -= 1;
            Some(())
        })
    }
}
