//! What an agent is told about a call that does not run.

use std::fmt;

use crate::decision::{Decision, Reason};
use crate::refusal::Refusal;
use crate::state::State;

/// Why a call does not run, in the words for a model: what to do next, and nothing about policies,
/// people or keys. Only a person's denial is called one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A person said no, perhaps with a reason.
    Denied(Option<Reason>),
    /// Nobody answered in time.
    NotAnswered,
    /// There is nobody to ask.
    Unavailable,
    /// The request was taken back or replaced.
    Withdrawn,
    /// Something changed between the request and now.
    Changed,
    /// It was used already.
    Used,
    /// It may have run; nobody knows.
    Unknown,
    /// It cannot be checked, so it does not run.
    Refused,
}

impl Answer {
    /// What to say about a decision; nothing if the call may run.
    pub fn of_decision(decision: &Decision) -> Option<Self> {
        match decision {
            Decision::Approved => None,
            Decision::Denied(reason) => Some(Self::Denied(reason.clone())),
        }
    }

    /// What to say about an envelope that stays in this state; nothing if it is still on its way.
    pub const fn of_state(state: State) -> Option<Self> {
        match state {
            State::Denied => Some(Self::Denied(None)),
            State::Expired | State::ExpiredUnused => Some(Self::NotAnswered),
            State::Cancelled | State::Superseded => Some(Self::Withdrawn),
            State::NotStarted => Some(Self::Refused),
            State::Unknown => Some(Self::Unknown),
            State::Pending
            | State::Approved
            | State::Consumed
            | State::Started
            | State::Executed
            | State::Failed => None,
        }
    }

    /// What to say about a refusal.
    pub const fn of_refusal(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Denied => Self::Denied(None),
            Refusal::Expired | Refusal::ExpiredUnused => Self::NotAnswered,
            Refusal::Cancelled | Refusal::Superseded => Self::Withdrawn,
            Refusal::Replayed(_) => Self::Used,
            Refusal::ConfigurationChanged
            | Refusal::ContextDrift(_)
            | Refusal::DisplayMismatch
            | Refusal::Precondition(_) => Self::Changed,
            _ => Self::Refused,
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied(Some(reason)) => {
                return write!(f, "denied by a person: {}", reason.as_str());
            }
            Self::Denied(None) => "denied by a person; change the plan, do not retry",
            Self::NotAnswered => "nobody answered in time; ask again if it still matters",
            Self::Unavailable => "nobody can be asked here; tell the user, do not retry",
            Self::Withdrawn => "the request was withdrawn; do not retry",
            Self::Changed => "something changed since the request; look again, then ask again",
            Self::Used => "the approval was used already; ask again for another run",
            Self::Unknown => "it may have run; check the effect and ask the user before retrying",
            Self::Refused => "not run; ask the operator, do not retry",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j05_only_a_denial_is_called_one() {
        for &state in State::ALL {
            let text = Answer::of_state(state).map(|answer| answer.to_string());
            let denied = text.is_some_and(|text| text.contains("denied"));
            assert_eq!(denied, state == State::Denied, "{state}");
        }
        let expired = Answer::of_refusal(&Refusal::Expired).to_string();
        assert_eq!(
            expired,
            "nobody answered in time; ask again if it still matters"
        );
    }

    #[test]
    fn j01_the_agent_is_told_the_exact_reason() {
        let reason = Reason::new("use the staging table").unwrap();
        let answer = Answer::of_decision(&Decision::Denied(Some(reason))).unwrap();
        assert_eq!(
            answer.to_string(),
            "denied by a person: use the staging table"
        );
        assert_eq!(Answer::of_decision(&Decision::Approved), None);
    }
}
