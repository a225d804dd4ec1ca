//! What would be lost if a session ended now.

use std::time::Instant;

use super::Session;
use super::ask::STATE_LIFE;
use super::pending::{Asked, CallState};

/// What of a session is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// Its client would have to begin anew, and nothing else is lost.
    Nothing,
    /// People were asked, and nothing of it was begun.
    AskedPeople,
    /// A call is on its way, or the server works on it.
    Call,
}

impl Session {
    pub(crate) fn unfinished(&self, now: Instant) -> Unfinished {
        let asked = || self.asked.iter().map(|(_, asked)| asked);
        let is_held = |asked: &Asked| matches!(asked, Asked::Call(_, CallState::Held(_)));
        let is_on_its_way = |asked: &Asked| matches!(asked, Asked::Call(..)) && !is_held(asked);
        if self.open.is_any_open() || asked().any(is_on_its_way) {
            return Unfinished::Call;
        }
        let is_promised = self.comes_back_until.is_some_and(|until| now <= until);
        match asked().any(is_held) || is_promised || self.has_task_that_waits(now) {
            true => Unfinished::AskedPeople,
            false => Unfinished::Nothing,
        }
    }

    /// The client was told to come back for a call that people were asked about. Whether it still has a reason to
    /// is not known here; after an hour it is too late for what it was given.
    pub(crate) fn told_to_come_back(&mut self, now: Instant) {
        self.comes_back_until = now.checked_add(STATE_LIFE);
    }
}
