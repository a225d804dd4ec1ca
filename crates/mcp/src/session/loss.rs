//! Requests that nobody answers, or that nobody waits for any more.

use std::sync::atomic::Ordering;

use crate::Id;
use crate::gate::{Delivery, Job, Waits};
use crate::reply::Refused;

use super::calls::{failed, lost, settle};
use super::pending::{Asked, CallState};
use super::{Effect, Session};

/// What a client hears in the place of an answer.
pub(crate) enum Instead {
    /// An error of ours.
    Error(Refused),
    /// What the server said outside the protocol.
    Served(Vec<u8>),
}

/// Why there is no answer, as the log tells it.
pub(crate) struct Unanswered<'a> {
    pub(crate) code: &'a str,
    /// Whether it is known that the request was not run.
    pub(crate) was_not_run: bool,
}

impl<'a> Unanswered<'a> {
    /// Nobody knows how far it came.
    pub(crate) const fn lost(code: &'a str) -> Self {
        Self {
            code,
            was_not_run: false,
        }
    }
}

impl Session {
    /// Whether the client waits for an answer under this id.
    pub(crate) fn waits(&self, id: &Id) -> bool {
        self.asked.get(id).is_some()
    }

    /// Whether the answer to this request is recorded, or judged by somebody.
    pub(crate) fn looks_at(&self, id: &Id) -> bool {
        matches!(
            self.asked.get(id),
            Some(Asked::Call(..) | Asked::Task { .. })
        )
    }

    /// The server will not answer this request.
    pub(crate) fn unanswered(
        &mut self,
        id: &Id,
        why: &Unanswered<'_>,
        instead: Instead,
    ) -> Vec<Effect> {
        let code = why.code;
        match self.asked.remove(id) {
            None => Vec::new(),
            Some(Asked::Call(form, CallState::Running { running, .. })) => {
                let then = match instead {
                    Instead::Error(refused) => self.to_client(id, form, refused),
                    Instead::Served(bytes) => Delivery {
                        to_client: Some(bytes),
                        waits: Waits::Client(id.clone()),
                        form,
                        ..Delivery::default()
                    },
                };
                let outcome = match why.was_not_run {
                    true => failed(code),
                    false => lost(code),
                };
                vec![settle(running, outcome, then)]
            }
            Some(Asked::Call(_, CallState::Waiting)) => {
                self.list.forget(id);
                vec![self.instead(id, instead)]
            }
            // The decision is on its way; what it begins is settled when it arrives.
            Some(Asked::Call(form, CallState::Deciding { cancelled })) => {
                let was_told = cancelled.load(Ordering::Acquire);
                self.keep_id(id, form, cancelled);
                match was_told {
                    true => Vec::new(),
                    false => vec![self.instead(id, instead)],
                }
            }
            Some(Asked::Call(form, CallState::Held(held))) => {
                self.questions.retain(|(_, call)| call != id);
                held.cancelled.store(true, Ordering::Release);
                if held.call.is_none() {
                    self.keep_id(id, form, held.cancelled);
                }
                let withdraw = Effect::job(Job::Withdraw(held.approval));
                vec![withdraw, self.instead(id, instead)]
            }
            Some(Asked::List(_)) => {
                let mut effects = vec![self.missing(id, code, instead)];
                effects.extend(self.ask_for_list());
                effects
            }
            Some(Asked::Task { .. } | Asked::Open | Asked::Plain) => {
                self.forget_question(id);
                vec![self.missing(id, code, instead)]
            }
        }
    }

    /// Our own request for tools under this id will not be answered: what waits for it asks again, or goes on without.
    pub(crate) fn own_unanswered(&mut self, id: &Id) -> Vec<Effect> {
        match self.list.take_own(id) {
            Some(own) => self.own_lost(&own),
            None => Vec::new(),
        }
    }

    /// The client no longer waits for this request, and the server hears that by other means.
    pub(crate) fn abandoned(&mut self, id: &Id) -> Vec<Effect> {
        if self.waits(id) {
            self.note_late(id);
        }
        if let Some(Asked::List(_)) = self.asked.get(id) {
            // Calls may want it still.
            self.asked.remove(id);
            return self.ask_for_list().into_iter().collect();
        }
        let effects = self.unanswered(
            id,
            &Unanswered::lost("cancelled"),
            Instead::Served(Vec::new()),
        );
        let heard = |effect: &Effect| !matches!(effect, Effect::ToClient(_) | Effect::ToCaller(..));
        effects.into_iter().filter(heard).collect()
    }

    /// A request that is no call has no answer: if that is a fault of the server, the log tells of it.
    fn missing(&mut self, id: &Id, code: &str, instead: Instead) -> Effect {
        let refused = match instead {
            Instead::Error(refused) => refused,
            served @ Instead::Served(_) => return self.instead(id, served),
        };
        let then = Delivery {
            waits: Waits::Client(id.clone()),
            ..Delivery::error(Some(id), refused)
        };
        self.complain(code, format!("the request {id} has no answer"), then)
    }

    fn instead(&self, id: &Id, instead: Instead) -> Effect {
        Effect::ToClient(match instead {
            Instead::Error(refused) => refused.to_error(Some(id)),
            Instead::Served(bytes) => bytes,
        })
    }
}
