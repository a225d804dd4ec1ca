//! What happens when nothing happens.

use std::time::{Duration, Instant};

use countersign_engine::Running;

use crate::outbound::Outbound;
use crate::reply::{self, RefusalForm, Refused};

use super::calls::{lost, settle};
use super::pending::{Asked, CallState};
use super::{Effect, Session};
use crate::Id;
use crate::gate::{Delivery, Job};

impl Session {
    /// When [`tick`](Self::tick) has something to do, if nothing comes before.
    pub fn deadline(&self) -> Option<Instant> {
        let calls = self.asked.iter().filter_map(|(_, asked)| deadline(asked));
        let others = self.list.deadline().into_iter().chain(self.patience_ends());
        calls.chain(others).min()
    }

    /// The same for somebody who waits for the answer to this request. What others wait for is left to them,
    /// unless none of them is there.
    pub fn deadline_for(&self, id: &Id) -> Option<Instant> {
        let own = self.asked.get(id).and_then(deadline);
        let others = self.deadline().and_then(|time| time.checked_add(OTHERS));
        let all = [own, self.patience_of(id), self.list.deadline(), others];
        all.into_iter().flatten().min()
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Instant) -> Vec<Effect> {
        let mut effects = self.release_late(now);
        let is_late = |asked: &Asked| deadline(asked).is_some_and(|until| until <= now);
        let late = self.asked.iter().filter(|(_, asked)| is_late(asked));
        let late: Vec<Id> = late.map(|(id, _)| id.clone()).collect();
        for id in late {
            effects.extend(match self.asked.get(&id) {
                Some(Asked::Call(_, CallState::Held(_))) => self.look(&id, now),
                _ => self.time_out(&id),
            });
        }
        effects.extend(self.lose_patience(now));
        effects
    }

    /// The connection is over: calls without an answer are settled as such.
    pub fn end(&mut self) -> Vec<Effect> {
        let tasks = self.withdraw_tasks();
        let all = self.asked.drain().into_iter();
        let calls = all.filter_map(|(_, asked)| match asked {
            Asked::Call(_, CallState::Running { running, .. }) => Some(settle(
                running,
                lost("connection_closed"),
                Delivery::default(),
            )),
            Asked::Call(_, CallState::Held(held)) => {
                Some(Effect::job(Job::Withdraw(held.approval)))
            }
            _ => None,
        });
        calls.chain(tasks).collect()
    }

    /// The server works on a call for too long, or for nobody.
    pub(super) fn time_out(&mut self, id: &Id) -> Vec<Effect> {
        if let Some(observed) = self.only_observed_late(id) {
            return vec![observed];
        }
        let Some(Asked::Call(
            form,
            CallState::Running {
                running,
                is_unwanted,
                ..
            },
        )) = self.asked.remove(id)
        else {
            return Vec::new();
        };
        self.note_late(id);
        if is_unwanted {
            let text = "the call was cancelled; whether it did anything is not known";
            let then = self.to_client(id, form, Refused::denied("CANCELLED", text));
            return vec![settle(running, lost("cancelled"), then)];
        }
        let limit = running.constraints().timeout_ms;
        let text = format!(
            "the tool took longer than {limit} ms; whether it did anything is not known: find out before you call \
             it again, or tell the operator"
        );
        self.too_late(id, form, running, text)
    }

    /// An answer to a call that runs would come too late.
    pub(super) fn too_late(
        &self,
        id: &Id,
        form: RefusalForm,
        running: Running,
        text: String,
    ) -> Vec<Effect> {
        let then = self.to_client(id, form, Refused::denied("TIMEOUT", text));
        let cancel = reply::cancelled(id, "timeout");
        vec![
            Effect::ToServer(Outbound::own(cancel)),
            settle(running, lost("timeout"), then),
        ]
    }
}

/// So long those who wait for something else have to notice that it is late.
const OTHERS: Duration = Duration::from_secs(1);

fn deadline(asked: &Asked) -> Option<Instant> {
    match asked {
        Asked::Call(_, CallState::Running { deadline, .. }) => *deadline,
        Asked::Call(_, CallState::Held(held)) => Some(held.deadline()),
        _ => None,
    }
}
