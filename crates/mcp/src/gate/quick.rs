//! Jobs that nobody has to wait for, or only for the disk: most calls, and most results.
//!
//! A driver that carries messages does these itself. Every change of thread would cost as much as the
//! decision.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use countersign_engine::{Haste, Start};

use super::{Call, Delivery, Done, Gate, Job, Waits};
use crate::frame::{self, Kind};
use crate::reply::Refused;

/// How far a job came without anybody waiting.
pub(crate) enum Quick {
    /// It is done.
    Done(Box<Done>),
    /// It is done when the disk has answered.
    Soon(Soon),
    /// It has not begun: it has to wait for somebody. [`Gate::run`] does it.
    Not(Box<Job>),
}

/// What comes of a job, or the job itself if it has to begin again with [`Gate::run`].
pub(crate) type Soon = Pin<Box<dyn Future<Output = Result<Done, Box<Job>>> + Send>>;

impl Gate {
    /// Does a job, if nobody has to be waited for; `haste` says who writes what it records.
    pub(crate) fn run_at_once(self: &Arc<Self>, job: Box<Job>, haste: Haste) -> Quick {
        let lost = Lost::of(&job);
        // FAIL-CLOSED: a job that broke off has done nothing that anybody may rely on.
        catch_unwind(AssertUnwindSafe(|| self.quick(*job, haste)))
            .unwrap_or_else(|_| Quick::Done(Box::new(lost.done())))
    }

    fn quick(self: &Arc<Self>, job: Job, haste: Haste) -> Quick {
        match job {
            Job::Decide(call) => self.decide_at_once(call, haste),
            Job::Look(call, approval) => match self.has_news(&call) {
                false => Quick::Done(Box::new(Done::StillHeld(call, approval))),
                true => Quick::Not(Box::new(Job::Look(call, approval))),
            },
            Job::Settle {
                running,
                outcome,
                is_whole,
                then,
            } if !self.is_unseen(is_whole) && then.is_quick() => {
                match self.engine.settle_at_once(running, outcome) {
                    Ok(settled) => {
                        self.owes.store(true, Ordering::Release);
                        Quick::Done(Box::new(self.settled(settled, false, then)))
                    }
                    Err((running, outcome)) => Quick::Not(Box::new(Job::Settle {
                        running,
                        outcome,
                        is_whole,
                        then,
                    })),
                }
            }
            job => Quick::Not(Box::new(job)),
        }
    }

    /// Whether [`Gate::catch_up`] has something to do that nobody else does already.
    pub(crate) fn owes(&self) -> bool {
        self.owes.load(Ordering::Relaxed) && self.owes.swap(false, Ordering::AcqRel)
    }

    /// Does what is better done when the agent has its results, if nobody has to be waited for.
    pub(crate) fn catch_up(&self) -> bool {
        // FAIL-CLOSED: what broke off leaves no state to decide from.
        let caught_up = AssertUnwindSafe(|| self.engine.catch_up(&self.scope));
        catch_unwind(caught_up).unwrap_or(false)
    }

    /// The same for whoever can wait.
    pub(crate) fn catch_up_in_turn(&self) {
        // FAIL-CLOSED: while the log does not take it, the session decides nothing.
        let _ = self.engine.catch_up_in_turn(&self.scope);
    }

    fn decide_at_once(self: &Arc<Self>, call: Box<Call>, haste: Haste) -> Quick {
        let waits = call.objection.is_some()
            || call.approval.is_some()
            || call.back.is_some()
            || call.again.is_some()
            || call.cancelled.load(Ordering::Acquire)
            || self.has_asked.load(Ordering::Acquire)
            || call.frame.bytes().len() > LARGEST;
        let starting = (!waits)
            .then(|| self.propose(&call, |it| self.engine.start_at_once(&it, haste)))
            .flatten();
        let Some(starting) = starting else {
            return Quick::Not(Box::new(Job::Decide(call)));
        };
        let gate = Arc::clone(self);
        Quick::Soon(Box::pin(async move {
            match starting.await {
                // To be told of by somebody who may wait for the disk.
                Some(Start::Refusal(refusal)) if !refusal.is_recorded() => {
                    Err(Box::new(Job::Decide(call)))
                }
                Some(start) => Ok(gate.started(*call, start)),
                None => Err(Box::new(Job::Decide(call))),
            }
        }))
    }
}

/// Who has to hear that a job broke off.
pub(crate) struct Lost {
    call: Option<frame::Id>,
    waits: Waits,
}

impl Lost {
    pub(crate) fn of(job: &Job) -> Self {
        Self {
            call: job.call().cloned(),
            waits: job.waits(),
        }
    }

    pub(crate) fn done(self) -> Done {
        let text = "refused: an internal error; tell the operator, do not retry";
        let refused = Refused::denied("runtime_error:internal", text);
        match self.call {
            Some(id) => Done::Refused(id, refused),
            None => Done::Unrecorded(self.waits, refused),
        }
    }
}

impl Job {
    /// The request that it decides about.
    pub(crate) fn call(&self) -> Option<&frame::Id> {
        match self {
            Self::Decide(call) | Self::Look(call, _) => Some(&call.id),
            Self::Round(round) => round.call(),
            Self::Settle { .. }
            | Self::Record { .. }
            | Self::Pass { .. }
            | Self::Review(_)
            | Self::Open { .. }
            | Self::Withdraw(_) => None,
        }
    }

    /// Who waits for what it delivers.
    pub(crate) fn waits(&self) -> Waits {
        match self {
            Self::Decide(_) | Self::Look(..) | Self::Withdraw(_) => Waits::Nobody,
            Self::Open { frame, .. } => match frame.kind() {
                Kind::Request { id, .. } => Waits::Client(id.clone()),
                _ => Waits::Nobody,
            },
            Self::Settle { then, .. } | Self::Record { then, .. } | Self::Pass { then, .. } => {
                then.waits.clone()
            }
            Self::Review(late) => late.then.waits.clone(),
            Self::Round(round) => round.waits(),
        }
    }
}

impl Delivery {
    /// Whether it is short, and names no event that has to be there first.
    fn is_quick(&self) -> bool {
        let answer = self.to_client.as_ref();
        self.refusal.is_none() && answer.is_none_or(|answer| answer.len() <= LARGEST)
    }
}

/// What takes longer to judge or to record is left to a thread beside those who carry messages.
const LARGEST: usize = 64 << 10;
