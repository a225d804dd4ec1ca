//! How far the calls of a consumed plan have come, one by one.

use crate::ballot::Granted;
use crate::names::names;
use crate::state::State;

names! {
    /// How far one call has come.
    CallState as "state of a call" {
        /// It was denied, so it never runs.
        Denied = "denied",
        /// Its turn has not come.
        Waiting = "waiting",
        /// It may be running.
        Started = "started",
        /// It ran.
        Executed = "executed",
        /// It ran and failed.
        Failed = "failed",
        /// It was started, and nobody knows what came of it.
        Unknown = "unknown",
        /// It surely did not run.
        NotStarted = "not_started",
    }
}

/// The calls of one consumed plan. They run one after the other, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress(Vec<CallState>);

impl Progress {
    /// Before the first call.
    pub fn begin(granted: &Granted) -> Self {
        let states = granted
            .decisions()
            .iter()
            .map(|it| match it.decision.is_approved() {
                true => CallState::Waiting,
                false => CallState::Denied,
            });
        Self(states.collect())
    }

    /// The states in order.
    pub fn calls(&self) -> &[CallState] {
        &self.0
    }

    /// The next call starts; returns its place, or `None` if one is running or none is left.
    pub fn start(&mut self) -> Option<usize> {
        if self.0.contains(&CallState::Started) {
            return None;
        }
        let next = self
            .0
            .iter()
            .position(|state| *state == CallState::Waiting)?;
        self.set(next, CallState::Started);
        Some(next)
    }

    /// The running call ended; returns its place, or `None` if none is running.
    pub fn finish(&mut self, failed: bool) -> Option<usize> {
        let running = self
            .0
            .iter()
            .position(|state| *state == CallState::Started)?;
        self.set(
            running,
            match failed {
                true => CallState::Failed,
                false => CallState::Executed,
            },
        );
        Some(running)
    }

    /// No further call will run: what waits surely did not, what was started nobody knows.
    pub fn stop(&mut self) {
        for state in &mut self.0 {
            *state = match *state {
                CallState::Waiting => CallState::NotStarted,
                CallState::Started => CallState::Unknown,
                state => state,
            };
        }
    }

    /// The state of the whole plan: the worst thing that is true of it.
    pub fn state(&self) -> State {
        let any = |state| self.0.contains(&state);
        let ran = any(CallState::Executed) || any(CallState::Failed);
        if any(CallState::Unknown) {
            State::Unknown
        } else if any(CallState::Started) || (ran && any(CallState::Waiting)) {
            State::Started
        } else if any(CallState::Waiting) {
            State::Consumed
        } else if any(CallState::Failed) || (ran && any(CallState::NotStarted)) {
            State::Failed
        } else if ran {
            State::Executed
        } else {
            State::NotStarted
        }
    }

    fn set(&mut self, place: usize, state: CallState) {
        if let Some(call) = self.0.get_mut(place) {
            *call = state;
        }
    }
}
