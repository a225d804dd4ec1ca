//! Limits of calls that are only observed: nothing is stopped, and the log says what would have been.

use countersign_engine::Running;

use super::pending::{Asked, CallState};
use super::{Effect, Session};
use crate::Id;
use crate::gate::{Delivery, Job};
use crate::record;

impl Session {
    /// The server takes longer for a call than policies allow. If they only observe, it goes on, for as long as
    /// anything that no policy is about.
    pub(super) fn only_observed_late(&mut self, id: &Id) -> Option<Effect> {
        let Some(Asked::Call(
            _,
            CallState::Running {
                running,
                deadline,
                is_unwanted: false,
            },
        )) = self.asked.get_mut(id)
        else {
            return None;
        };
        if !running.is_observed() {
            return None;
        }
        *deadline = None;
        let limit = running.constraints().timeout_ms;
        let because = format!("it takes longer than {limit} ms");
        Some(passes("TIMEOUT", &called(running), &because))
    }
}

/// The server says more about a call than policies allow, and they only observe.
pub(super) fn large(what: &str, length: usize, most: u64) -> Effect {
    let because = format!("the result has {length} bytes, {most} are allowed");
    passes("OUTPUT_TOO_LARGE", what, &because)
}

pub(super) fn called(running: &Running) -> String {
    format!("a call of `{}`", running.tool_name().escape_debug())
}

fn passes(reason: &str, what: &str, because: &str) -> Effect {
    let message = format!("observed: {what} passes, which would be refused: {because}");
    Effect::job(Job::Record {
        entries: vec![record::fault(reason, message)],
        then: Delivery::default(),
    })
}
