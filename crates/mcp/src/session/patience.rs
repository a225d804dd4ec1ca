//! How long requests wait for their answer, where no policy says so for a call of a tool.

use std::time::{Duration, Instant};

use crate::frame::{Frame, Id, Kind};
use crate::gate::{Delivery, Waits};
use crate::method::Method;
use crate::outbound::Outbound;
use crate::reply::{self, Refused};

use super::pending::{Asked, CallState};
use super::{Effect, Session};

/// How long a request waits.
pub(super) struct Patience {
    method: Method,
    wait: Duration,
    /// When it has waited long enough; `None` if that is beyond all times, or the server does not have it yet.
    until: Option<Instant>,
    /// When it has, whatever the server says meanwhile.
    last: Option<Instant>,
    /// Under which the server tells of progress.
    token: Option<Vec<u8>>,
    /// The server has told of progress since it was last looked at.
    is_alive: bool,
}

impl Session {
    /// How long this request waits once the server has it; `None` for what the protocol keeps open. A call of a tool
    /// that has its time from policies waits only as long as that.
    pub(super) fn patience(&self, frame: &Frame) -> Option<Patience> {
        let Kind::Request { method, params, .. } = frame.kind() else {
            return None;
        };
        if matches!(method, Method::SubscriptionsListen | Method::TasksResult) {
            return None;
        }
        let token = frame.member(params.meta, "progressToken");
        Some(Patience {
            method: *method,
            wait: self.settings.answer_wait,
            until: None,
            last: None,
            token: token.map(|token| frame.part(token).to_vec()),
            is_alive: false,
        })
    }

    /// The server tells how far it is with something.
    pub(super) fn note_progress(&mut self, frame: &Frame) {
        let Kind::Notification { name, params, .. } = frame.kind() else {
            return;
        };
        let is_progress = frame.text(Some(*name)).as_deref() == Some("notifications/progress");
        let token = frame.member(params.whole.filter(|_| is_progress), "progressToken");
        let Some(token) = token.map(|token| frame.part(token)) else {
            return;
        };
        let all = self.asked.patience_mut();
        let told = all.filter(|(_, patience)| patience.token.as_deref() == Some(token));
        told.for_each(|(_, patience)| patience.is_alive = true);
    }

    /// When the first of them has waited long enough.
    pub(super) fn patience_ends(&self) -> Option<Instant> {
        let all = self.asked.patience();
        all.filter_map(|(_, patience)| patience.until).min()
    }

    /// When this one has.
    pub(super) fn patience_of(&self, id: &Id) -> Option<Instant> {
        self.asked.patience_of(id)?.until
    }

    /// Time has passed: who has waited long enough hears that nothing came.
    pub(super) fn lose_patience(&mut self, now: Instant) -> Vec<Effect> {
        // A server that waits for the client is not slow by itself.
        let asks = !self.server_asked.is_empty();
        let mut late: Vec<(Id, Method, Duration)> = Vec::new();
        for (id, patience) in self.asked.patience_mut() {
            if patience.until.is_some_and(|until| until <= now) && !patience.go_on(asks, now) {
                late.push((id.clone(), patience.method, patience.wait));
            }
        }
        late.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        let late = late.into_iter();
        late.flat_map(|(id, method, wait)| self.give_up(&id, method, wait))
            .collect()
    }

    fn give_up(&mut self, id: &Id, method: Method, wait: Duration) -> Vec<Effect> {
        let asked = self.asked.remove(id);
        self.note_late(id);
        let wait = wait.as_secs();
        let text = format!(
            "the server has not answered within {wait} seconds; whether it did anything is not known: find out \
             before you ask again, or tell the operator"
        );
        if let Some(Asked::Call(form, CallState::Running { running, .. })) = asked {
            return self.too_late(id, form, running, text);
        }
        self.forget_question(id);
        let then = Delivery {
            waits: Waits::Client(id.clone()),
            ..Delivery::error(Some(id), Refused::denied("TIMEOUT", text))
        };
        let message = format!("{method} {id} has no answer");
        let mut effects = vec![self.complain("timeout", message, then)];
        // The peers cannot take back that they met.
        if !matches!(asked, Some(Asked::Open)) {
            let cancelled = reply::cancelled(id, "timeout");
            effects.push(Effect::ToServer(Outbound::own(cancelled)));
        }
        if matches!(asked, Some(Asked::List(_))) {
            effects.extend(self.ask_for_list());
        }
        effects
    }

    /// An answer to this request would come too late.
    pub(super) fn note_late(&mut self, id: &Id) {
        self.late.push_back(id.clone());
        if self.late.len() > MAX_LATE {
            self.late.pop_front();
        }
    }
}

impl Patience {
    /// The server has it now.
    pub(super) fn begin(&mut self, now: Instant) {
        self.until = now.checked_add(self.wait);
        self.last = now.checked_add(self.wait.saturating_mul(MOST_TIMES));
        self.is_alive = false;
    }

    /// The same for a call.
    pub(super) fn begin_call(&mut self, is_timed: bool, now: Instant) {
        if !is_timed || self.method.reads() {
            self.begin(now);
        }
    }

    /// The same, for what goes to the server at once.
    pub(super) fn begun(mut self, now: Instant) -> Self {
        self.begin(now);
        self
    }

    /// Waits once more, if there is a reason and time is left.
    fn go_on(&mut self, asks: bool, now: Instant) -> bool {
        let has_time = self.last.is_none_or(|last| now < last);
        if !has_time || !(std::mem::take(&mut self.is_alive) || asks) {
            return false;
        }
        self.until = now.checked_add(self.wait).min(self.last);
        true
    }
}

/// A server that goes on telling of progress has at most so many times as long.
const MOST_TIMES: u32 = 6;
const MAX_LATE: usize = 256;
