//! What time, crashes and the ends of sessions do to approvals.

use countersign_event::payload::{ErrorRaised, Termination};
use countersign_event::{OrderError, Scope as Session};
use countersign_store::Recorded;

use super::vote::{ATTEMPTS, is_race, refused_change};
use super::*;
use crate::hot::lock;
use crate::record::{Batch, durable};
use crate::{Engine, Refusal};

/// What a sweep did.
#[derive(Debug, Default)]
#[must_use = "what could not be ended is worth telling"]
pub struct Swept {
    /// How many approvals moved.
    pub moved: usize,
    /// Those that should have moved and stay as they are, and why. They keep nobody from the others.
    pub failed: Vec<(ApprovalId, Refusal)>,
}

impl Engine {
    /// Moves every approval whose time or session is over, and tells the truth about those that a
    /// process began and did not live to finish.
    ///
    /// An expired approval is not a denial: nobody answered.
    pub fn sweep(&self) -> Result<Swept, Refusal> {
        Ok(self.try_sweep()?)
    }

    /// Takes a request back; what was not used will not run. `false` if it is over, or in use.
    pub fn cancel(&self, id: ApprovalId) -> Result<bool, Refusal> {
        for _ in 0..ATTEMPTS {
            let row = self.store().reader().approval(id).map_err(Fault::from)?;
            let Some(row) = row.filter(|row| is_open(row.state)) else {
                return Ok(false);
            };
            // Whoever was faster may have approved it: then it is taken back from there.
            let from = row.state;
            if self.end(&row, from, State::Cancelled, CANCELLED)? {
                return Ok(true);
            }
        }
        Err(Fault::Busy.into())
    }

    /// The one use was taken, and nothing was begun with it.
    pub(crate) fn not_started(&self, id: ApprovalId) -> Result<(), Fault> {
        match self.store().reader().approval(id)? {
            Some(row) if row.state == State::Consumed => {
                let (from, to) = (State::Consumed, State::NotStarted);
                self.end(&row, from, to, "approval_not_started").map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Records that a session is over. What it has asked people for, and nobody has used, is taken
    /// back with it: nothing of it could run any more.
    pub fn terminate(&self, scope: &Session, reason: &str) -> Result<Recorded, Refusal> {
        for _ in 0..ATTEMPTS {
            match self.try_terminate(scope, reason) {
                Err(Fault::Store(error)) if is_race(&error) => {}
                result => {
                    let recorded = result?;
                    // What was on its way to the disk when we looked is there now. The session is over
                    // in any case; what is left is for a sweep.
                    let _ = self.withdraw(scope);
                    return Ok(recorded);
                }
            }
        }
        Err(Fault::Busy.into())
    }

    /// Takes back everything that a session has asked people for and nobody has used. What cannot be
    /// taken back stays, and a sweep tells of it.
    pub fn withdraw(&self, scope: &Session) -> Result<(), Refusal> {
        for row in self.open_rows(scope)? {
            let _ = self.cancel(row.id);
        }
        Ok(())
    }

    fn try_terminate(&self, scope: &Session, reason: &str) -> Result<Recorded, Fault> {
        let termination = Payload::Termination(Termination {
            reason_code: Some(reason.to_owned()),
            ..Termination::default()
        });
        let now = self.now()?;
        let place = self.sessions.place(scope);
        let mut guard = lock(&place);
        let hot = self.hot(&mut guard, scope)?;
        let mut batch = Batch::new(scope, now.get(), hot);
        for (event_type, payload, change) in self.withdrawals(scope, now)? {
            batch.push(event_type, payload, Some(change))?;
        }
        batch.push(EventType::Termination, termination, None)?;
        let (hot, pending) = batch.send(self.store())?;
        guard.hot = Some(hot);
        drop(guard);
        durable(pending).inspect_err(|_| lock(&place).hot = None)
    }

    /// The events that take back what a session has asked for, each with its change.
    fn withdrawals(
        &self,
        scope: &Session,
        now: UnixMs,
    ) -> Result<Vec<(EventType, Payload, Change)>, Fault> {
        let rows = self.open_rows(scope)?;
        let events = rows.iter().filter_map(|row| {
            // One that cannot be read must not keep its session from ending.
            let ending = self.ending(row, State::Cancelled, CANCELLED, now).ok()?;
            let change = Change::step(row.id, row.state, State::Cancelled, ending.entry, now);
            Some((EventType::ErrorRaised, ending.payload, change))
        });
        Ok(events.collect())
    }

    fn open_rows(&self, scope: &Session) -> Result<Vec<Approval>, Fault> {
        Ok(self.store().reader().open_approvals(scope)?)
    }

    fn try_sweep(&self) -> Result<Swept, Fault> {
        let reader = self.store().reader();
        let now = self.now()?;
        let over = |time: Option<UnixMs>| time.is_some_and(|time| !now.is_before(time));
        let mut swept = Swept::default();
        for row in reader.approvals_in(State::Pending)? {
            if over(row.decide_by) {
                self.sweep_one(&row, State::Expired, "approval_expired", &mut swept);
            } else if reader.is_terminated(&row.scope)? {
                self.sweep_one(&row, State::Cancelled, CANCELLED, &mut swept);
            }
        }
        for row in reader.approvals_in(State::Approved)? {
            if over(row.ends) {
                let code = "approval_expired_unused";
                self.sweep_one(&row, State::ExpiredUnused, code, &mut swept);
            } else if reader.is_terminated(&row.scope)? {
                self.sweep_one(&row, State::Cancelled, CANCELLED, &mut swept);
            }
        }
        for (from, to, code) in [
            (State::Consumed, State::NotStarted, "approval_not_started"),
            (State::Started, State::Unknown, "outcome_unknown"),
        ] {
            for row in reader.approvals_in(from)? {
                let alive = row
                    .owner
                    .as_deref()
                    .is_some_and(|owner| self.is_alive(owner));
                if !alive {
                    self.sweep_one(&row, to, code, &mut swept);
                }
            }
        }
        Ok(swept)
    }

    fn sweep_one(&self, row: &Approval, to: State, code: &str, swept: &mut Swept) {
        match self.end(row, row.state, to, code) {
            Ok(moved) => swept.moved += usize::from(moved),
            Err(fault) => swept.failed.push((row.id, fault.into())),
        }
    }

    /// `false` if somebody else was faster.
    fn end(&self, row: &Approval, from: State, to: State, code: &str) -> Result<bool, Fault> {
        for _ in 0..ATTEMPTS {
            match self.try_end(row, from, to, code) {
                Err(Fault::Store(error)) if error.is_retryable() => {}
                Err(Fault::Store(error)) if refused_change(&error).is_some() => return Ok(false),
                result => return result.map(|()| true),
            }
        }
        Ok(false)
    }

    fn try_end(&self, row: &Approval, from: State, to: State, code: &str) -> Result<(), Fault> {
        let now = self.now()?;
        let Ending { payload, entry } = self.ending(row, to, code, now)?;
        let event = (EventType::ErrorRaised, payload);
        let change = || Change::step(row.id, from, to, entry.clone(), now);
        let recorded = self.record_events(&row.scope, now, vec![event.clone()], change());
        match recorded.map(drop) {
            // The session takes no more events, and what it asked for must not stay for ever.
            Err(fault) if takes_nothing(&fault) => self.change_apart(&event, &change, now),
            result => result,
        }
    }

    /// Why nothing more comes of an approval whose session is closed: it is taken back now, if nobody
    /// has done so. Any other fault stays what it is.
    pub(super) fn closed(
        &self,
        standing: &Standing,
        fault: Fault,
    ) -> Result<countersign_approval::Refusal, Fault> {
        let row = &standing.row;
        if !(takes_nothing(&fault) && is_open(row.state)) {
            return Err(fault);
        }
        let _moved = self.end(row, row.state, State::Cancelled, CANCELLED)?;
        Ok(countersign_approval::Refusal::SessionOver)
    }

    /// What is written when an approval ends. One whose content was erased is named, and no more.
    fn ending(&self, row: &Approval, to: State, code: &str, now: UnixMs) -> Result<Ending, Fault> {
        let mut entry = Entry::new(now, to.into());
        let mut error = ErrorRaised {
            code: Some(code.to_owned()),
            ..ErrorRaised::default()
        };
        let asked = self.store().reader().asked(row.id).map_err(Fault::from);
        let asked = asked.and_then(|asked| asked.ok_or_else(|| history("the approval is gone")));
        match asked.and_then(|asked| self.standing(asked)) {
            Ok(standing) => {
                let call = standing.envelope.plan().calls().first();
                error.call_id = call.map(|call| call.id.as_str().to_owned());
                entry.about = Some(About::envelope(&standing.envelope));
            }
            Err(Fault::Store(erased)) if is_erased(&erased) => {
                entry.detail = Some(format!("{}: its content was erased", row.id));
            }
            Err(fault) => return Err(fault),
        }
        let payload = Payload::ErrorRaised(error);
        Ok(Ending { payload, entry })
    }
}

struct Ending {
    payload: Payload,
    entry: Entry,
}

/// Whether nobody has used it, and somebody still could.
pub(super) fn is_open(state: State) -> bool {
    matches!(state, State::Pending | State::Approved)
}

/// Whether the session of an approval is closed, so that what is said about it goes elsewhere.
pub(super) fn takes_nothing(fault: &Fault) -> bool {
    let Fault::Store(error) = fault else {
        return false;
    };
    is_erased(error)
        || matches!(
            error.root(),
            countersign_store::Error::Order(OrderError::Terminated(_))
        )
}

/// Whether what was to be read, or added to, was erased.
pub(crate) fn is_erased(error: &countersign_store::Error) -> bool {
    matches!(error.root(), countersign_store::Error::Erased)
}

const CANCELLED: &str = "approval_cancelled";
