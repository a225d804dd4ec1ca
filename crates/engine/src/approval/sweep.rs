//! What time and crashes do to approvals.

use countersign_event::payload::ErrorRaised;

use super::vote::{ATTEMPTS, is_race};
use super::*;
use crate::Engine;

impl Engine {
    /// Moves every approval whose time is over, and tells the truth about those that a process began
    /// and did not live to finish. Returns how many moved.
    ///
    /// An expired approval is not a denial: nobody answered.
    pub fn sweep(&self) -> Result<usize, crate::Refusal> {
        Ok(self.try_sweep()?)
    }

    /// Takes a request back; what was not decided will not run.
    pub fn cancel(&self, id: ApprovalId) -> Result<bool, crate::Refusal> {
        let row = self.store().reader().approval(id).map_err(Fault::from)?;
        let Some(row) = row.filter(|row| matches!(row.state, State::Pending | State::Approved))
        else {
            return Ok(false);
        };
        let from = row.state;
        Ok(self.end(row, from, State::Cancelled, "approval_cancelled")?)
    }

    /// The one use was taken, and nothing was begun with it.
    pub(crate) fn not_started(&self, id: ApprovalId) -> Result<(), Fault> {
        match self.store().reader().approval(id)? {
            Some(row) if row.state == State::Consumed => {
                let (from, to) = (State::Consumed, State::NotStarted);
                self.end(row, from, to, "approval_not_started").map(drop)
            }
            _ => Ok(()),
        }
    }

    fn try_sweep(&self) -> Result<usize, Fault> {
        let reader = self.store().reader();
        let now = self.now()?;
        let over = |time: Option<UnixMs>| time.is_some_and(|time| !now.is_before(time));
        let mut moved = 0;
        for row in reader.approvals_in(State::Pending)? {
            if over(row.decide_by) {
                moved += usize::from(self.end(
                    row,
                    State::Pending,
                    State::Expired,
                    "approval_expired",
                )?);
            }
        }
        for row in reader.approvals_in(State::Approved)? {
            if over(row.ends) {
                moved += usize::from(self.end(
                    row,
                    State::Approved,
                    State::ExpiredUnused,
                    "approval_expired_unused",
                )?);
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
                    moved += usize::from(self.end(row, from, to, code)?);
                }
            }
        }
        Ok(moved)
    }

    /// `false` if somebody else was faster.
    fn end(&self, row: Approval, from: State, to: State, code: &str) -> Result<bool, Fault> {
        for _ in 0..ATTEMPTS {
            match self.try_end(&row, from, to, code) {
                Err(Fault::Store(error)) if error.is_retryable() => {}
                Err(Fault::Store(error)) if is_race(&error) => return Ok(false),
                result => return result.map(|()| true),
            }
        }
        Ok(false)
    }

    fn try_end(&self, row: &Approval, from: State, to: State, code: &str) -> Result<(), Fault> {
        let now = self.now()?;
        let standing = standing(row.clone(), self.store().reader())?;
        let mut entry = Entry::new(now, to.into());
        entry.about = Some(About::envelope(&standing.envelope));
        let call = standing.envelope.plan().calls().first();
        let error = ErrorRaised {
            call_id: call.map(|call| call.id.as_str().to_owned()),
            code: Some(code.to_owned()),
            ..ErrorRaised::default()
        };
        let event = (EventType::ErrorRaised, Payload::ErrorRaised(error));
        let change = Change::step(standing.row.id, from, to, entry, now);
        self.record_events(&standing.row.scope, now, vec![event], change)
            .map(drop)
    }
}
