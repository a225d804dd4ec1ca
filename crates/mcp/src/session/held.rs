//! Calls that wait for a human: kept open, with signs of life, as long as the client may wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use countersign_engine::ApprovalId;

use super::ask::Form;
use super::client::{SERVER_GONE, left};
use super::pending::{Asked, CallState, Held};
use super::{Effect, Session};
use crate::frame::{Id, Kind};
use crate::gate::{Again, Call, Job};
use crate::reply::{self, RefusalForm, Refused};

impl Session {
    /// Nobody has decided about a call yet.
    pub(super) fn held(
        &mut self,
        call: Call,
        approval: ApprovalId,
        refused: Refused,
        now: Instant,
    ) -> Vec<Effect> {
        let call = match self.for_somebody(call, approval) {
            Ok(call) => *call,
            Err(effects) => return effects,
        };
        let id = call.id.clone();
        let wanted = !call.cancelled.load(Ordering::Acquire);
        let form = match self.is_held(&id) || !wanted {
            true => Form::Open,
            false => self.form(&call),
        };
        if form == Form::Round
            && let Some(round) = self.round(&call, approval, &refused, now)
        {
            self.asked.remove(&id);
            self.told_to_come_back(now);
            return round.into();
        }
        let call = match form {
            Form::Task => match self.make_task(call, approval, now) {
                Ok(effects) => {
                    self.asked.remove(&id);
                    return effects;
                }
                Err(call) => *call,
            },
            _ => call,
        };
        let question = match form {
            Form::Question => self.question(&call, &refused),
            Form::Open | Form::Round | Form::Task => None,
        };
        let token = progress_token(&call);
        let wait = self.hold_wait(token.is_some() || question.is_some());
        let (refusals, patience) = (self.refusals_of(call.method), self.patience(&call.frame));
        let held = match self.asked.remove(&id).filter(|_| wanted) {
            Some(Asked::Call(_, CallState::Held(before))) => Held {
                call: Some(call),
                next_look: later(now, LOOK),
                ..*before
            },
            Some(Asked::Call(_, CallState::Deciding { cancelled })) => Held {
                approval,
                cancelled,
                refused,
                next_look: later(now, LOOK),
                until: later(now, wait),
                progress_token: token,
                told: now,
                times_told: 0,
                call: Some(call),
            },
            _ => return vec![Effect::job(Job::Withdraw(approval))],
        };
        let state = CallState::Held(Box::new(held));
        self.asked
            .insert_until(id, Asked::Call(refusals, state), patience);
        question.into_iter().collect()
    }

    /// How long a call is kept open. A client that hears nothing gives it up some time, and so takes back what people
    /// were asked: it is told to come back before that.
    fn hold_wait(&self, is_heard: bool) -> Duration {
        let usual = match is_heard {
            true => HEARD,
            false => SILENT,
        };
        self.settings.hold_wait.unwrap_or(usual)
    }

    /// Nobody has decided about a call that was held before.
    pub(super) fn still_held(
        &mut self,
        call: Call,
        approval: ApprovalId,
        now: Instant,
    ) -> Vec<Effect> {
        let call = match self.for_somebody(call, approval) {
            Ok(call) => *call,
            Err(effects) => return effects,
        };
        match self.asked.get_mut(&call.id) {
            Some(Asked::Call(_, CallState::Held(held))) => {
                held.next_look = later(now, LOOK);
                held.call = Some(call);
                Vec::new()
            }
            Some(Asked::Call(_, CallState::Deciding { cancelled }))
                if Arc::ptr_eq(cancelled, &call.cancelled) =>
            {
                // It was taken back meanwhile.
                self.asked.remove(&call.id);
                vec![Effect::job(Job::Withdraw(approval))]
            }
            _ => vec![Effect::job(Job::Withdraw(approval))],
        }
    }

    /// Nobody wants a call any more at which somebody looks: what comes of that comes to its id, and must not find
    /// another call there.
    pub(super) fn keep_id(&mut self, id: &Id, form: RefusalForm, cancelled: Arc<AtomicBool>) {
        cancelled.store(true, Ordering::Release);
        let state = CallState::Deciding { cancelled };
        self.asked.insert(id.clone(), Asked::Call(form, state));
    }

    /// A call that is not decided, if anybody of the session waits for it; or what is to be done instead.
    fn for_somebody(&mut self, call: Call, approval: ApprovalId) -> Result<Box<Call>, Vec<Effect>> {
        let call = match self.task_waits(call) {
            Ok(effects) => return Err(effects),
            Err(call) => call,
        };
        let gone = match (self.client_gone, self.server_gone) {
            (true, _) => left(),
            (_, true) => Refused::denied("SERVER_GONE", SERVER_GONE),
            _ => return Ok(call),
        };
        let id = call.id.clone();
        let waits = self.asked.remove(&id).is_some();
        let answer = self.answer(&id, self.refusals_of(call.method), &gone);
        let answer = waits.then_some(Effect::ToCaller(id, answer));
        let withdraw = Effect::job(Job::Withdraw(approval));
        Err(std::iter::once(withdraw).chain(answer).collect())
    }

    /// Time has passed for a call that is held.
    pub(super) fn look(&mut self, id: &Id, now: Instant) -> Vec<Effect> {
        let Some(Asked::Call(form, CallState::Held(held))) = self.asked.get_mut(id) else {
            return Vec::new();
        };
        held.next_look = later(now, LOOK);
        // What is being looked at comes back first.
        let Some(call) = held.call.take() else {
            return Vec::new();
        };
        if held.until <= now {
            // The request stands: the same call, made again, waits for it or finds what was decided.
            let (form, refused, approval) = (*form, held.refused.clone(), held.approval);
            self.asked.remove(id);
            let again = Again {
                approval,
                refused: refused.clone(),
            };
            self.stands(&call, again, now);
            let answer = Effect::ToCaller(id.clone(), self.answer(id, form, &refused));
            return self
                .close_question(id)
                .into_iter()
                .chain([answer])
                .collect();
        }
        if self.list.is_judging() {
            // What the tool is now is known in a moment.
            held.call = Some(call);
            return Vec::new();
        }
        let mut effects = Vec::new();
        if later(held.told, TELL) <= now {
            held.told = now;
            held.times_told += 1;
            let token = held.progress_token.as_deref();
            effects.extend(token.map(|token| {
                let text = "waiting for a human to approve";
                Effect::ToCaller(id.clone(), reply::progress(token, held.times_told, text))
            }));
        }
        let approval = held.approval;
        effects.extend(self.look_again(call, approval, now));
        effects
    }

    /// Looks what people have decided about a call, if its tool is still what they were asked about.
    pub(super) fn look_again(
        &mut self,
        mut call: Call,
        approval: ApprovalId,
        now: Instant,
    ) -> Vec<Effect> {
        if self.is_unchanged(&call) {
            return vec![Effect::job(Job::Look(Box::new(call), approval))];
        }
        // It goes the way of a new call, with the approval that it comes back for.
        call.back = Some(approval);
        self.submit_known(call, now)
    }

    /// The door closes: nobody would be left to hear what people decide about a call that is held.
    pub(crate) fn let_go(&mut self, id: &Id) -> Vec<Effect> {
        let text = "the door closes before a human has decided; the request was taken back, \
                    make the same call again in a while";
        self.take_back(id, &Refused::denied("APPROVAL_WITHDRAWN", text))
    }

    /// The client no longer wants a call that is held.
    pub(super) fn withdraw(&mut self, id: &Id) -> Vec<Effect> {
        match self.asked.remove(id) {
            Some(Asked::Call(form, CallState::Held(held))) => {
                held.cancelled.store(true, Ordering::Release);
                if held.call.is_none() {
                    self.keep_id(id, form, held.cancelled);
                }
                let closed = self.close_question(id);
                let withdraw = Effect::job(Job::Withdraw(held.approval));
                closed.into_iter().chain([withdraw]).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Held {
    /// When there is something to do.
    pub(super) fn deadline(&self) -> Instant {
        match self.call {
            Some(_) => self.next_look.min(self.until),
            // What is being looked at comes back first.
            None => self.next_look,
        }
    }
}

fn progress_token(call: &Call) -> Option<Vec<u8>> {
    let Kind::Request { params, .. } = call.frame.kind() else {
        return None;
    };
    let token = call.frame.member(params.meta, "progressToken")?;
    Some(call.frame.part(token).to_vec())
}

fn later(now: Instant, by: Duration) -> Instant {
    now.checked_add(by).unwrap_or(now)
}

/// How long a client waits that hears that it does.
const HEARD: Duration = Duration::from_secs(300);
/// The same for one that hears nothing; common ones wait a minute for any answer.
const SILENT: Duration = Duration::from_secs(45);
/// How long until it is worth looking again.
const LOOK: Duration = Duration::from_millis(200);
/// How often a client that waits hears of it.
const TELL: Duration = Duration::from_secs(5);
