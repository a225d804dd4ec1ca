//! The two clocks of an envelope: how long people may decide, and how long the decision holds.

use countersign_canon::Json;

use crate::form::{Fields, FormError, wrong};
use crate::time::UnixMs;

/// When an envelope was made and until when it is good. Whatever is good until `t` is good at `now`
/// exactly if `now < t`.
///
/// INVARIANT: made before either end; no time to decide beyond the time to execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    issued_at: UnixMs,
    decide_by: Option<UnixMs>,
    execute_by: ExecuteBy,
}

/// Until when an approved plan may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecuteBy {
    /// A point in time.
    At(UnixMs),
    /// So many milliseconds after the decision. For envelopes that wait as long as it takes.
    Within(u64),
}

impl Clocks {
    /// Both clocks, checked. Without `decide_by` the envelope waits as long as it takes.
    pub fn new(
        issued_at: UnixMs,
        decide_by: Option<UnixMs>,
        execute_by: ExecuteBy,
    ) -> Result<Self, ClocksError> {
        let end = match execute_by {
            ExecuteBy::At(end) => end,
            ExecuteBy::Within(0) => return Err(ClocksError::NoTimeToExecute),
            ExecuteBy::Within(_) => UnixMs::MAX,
        };
        if end <= issued_at {
            return Err(ClocksError::NoTimeToExecute);
        }
        match decide_by {
            Some(decide_by) if decide_by <= issued_at => Err(ClocksError::NoTimeToDecide),
            Some(decide_by) if decide_by > end => Err(ClocksError::Order),
            _ => Ok(Self {
                issued_at,
                decide_by,
                execute_by,
            }),
        }
    }

    /// When the envelope was made.
    pub const fn issued_at(&self) -> UnixMs {
        self.issued_at
    }

    /// Until when people may decide, if there is an end to it.
    pub const fn decide_by(&self) -> Option<UnixMs> {
        self.decide_by
    }

    /// Until when an approved plan may start.
    pub const fn execute_by(&self) -> ExecuteBy {
        self.execute_by
    }

    /// When it is too late to decide, if ever: at `decide_by`, or when it is too late to execute.
    pub const fn decision_ends(&self) -> Option<UnixMs> {
        match (self.decide_by, self.execute_by) {
            (Some(end), _) | (None, ExecuteBy::At(end)) => Some(end),
            (None, ExecuteBy::Within(_)) => None,
        }
    }

    /// Whether a decision at `now` comes in time.
    pub fn may_decide(&self, now: UnixMs) -> bool {
        self.decision_ends().is_none_or(|end| now.is_before(end))
    }

    /// Until when a plan that was decided at `decided_at` may start.
    pub fn execution_ends(&self, decided_at: UnixMs) -> UnixMs {
        match self.execute_by {
            ExecuteBy::At(end) => end,
            ExecuteBy::Within(ms) => decided_at.plus(ms),
        }
    }

    /// The members that stand in an envelope and in a signed decision.
    pub(crate) fn members(&self) -> [(&'static str, Json); 4] {
        let (at, within) = match self.execute_by {
            ExecuteBy::At(end) => (Some(end), None),
            ExecuteBy::Within(ms) => (None, Some(ms)),
        };
        [
            ("decide_by_ms", Json::from(self.decide_by)),
            ("execute_by_ms", Json::from(at)),
            ("execute_within_ms", Json::from(within)),
            ("issued_at_ms", Json::from(self.issued_at)),
        ]
    }

    pub(crate) fn take(fields: &mut Fields) -> Result<Self, FormError> {
        let issued_at = UnixMs::new(fields.count("issued_at_ms")?);
        let decide_by = fields.nullable_count("decide_by_ms")?.map(UnixMs::new);
        let at = fields.nullable_count("execute_by_ms")?;
        let within = fields.nullable_count("execute_within_ms")?;
        let execute_by = match (at, within) {
            (Some(at), None) => ExecuteBy::At(UnixMs::new(at)),
            (None, Some(ms)) => ExecuteBy::Within(ms),
            _ => return Err(wrong("execute_by_ms", "the only end of execution")),
        };
        Self::new(issued_at, decide_by, execute_by)
            .map_err(|error| FormError::refused("issued_at_ms", error))
    }
}

/// Why two clocks do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClocksError {
    /// The time to decide ends before it begins.
    #[error("there is no time to decide")]
    NoTimeToDecide,
    /// The time to execute ends before it begins.
    #[error("there is no time to execute")]
    NoTimeToExecute,
    /// People could still decide when it is too late to execute.
    #[error("the time to decide ends after the time to execute")]
    Order,
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> UnixMs {
        UnixMs::new(ms)
    }

    #[test]
    fn f01_the_end_itself_is_too_late() {
        let clocks = Clocks::new(at(10), Some(at(20)), ExecuteBy::At(at(30))).unwrap();
        assert!(clocks.may_decide(at(19)));
        assert!(!clocks.may_decide(at(20)));
        assert_eq!(clocks.execution_ends(at(15)), at(30));
    }

    #[test]
    fn f06_without_an_end_an_envelope_waits() {
        let clocks = Clocks::new(at(0), None, ExecuteBy::Within(300_000)).unwrap();
        let later = at(30 * 86_400_000);
        assert!(clocks.may_decide(later));
        assert_eq!(clocks.execution_ends(later), later.plus(300_000));
        // With an end of execution there is no use in deciding after it.
        let clocks = Clocks::new(at(0), None, ExecuteBy::At(at(5))).unwrap();
        assert!(clocks.may_decide(at(4)) && !clocks.may_decide(at(5)));
    }

    #[test]
    fn clocks_that_make_no_sense_are_refused() {
        let check = |decide_by: Option<u64>, execute_by, expect| {
            assert_eq!(
                Clocks::new(at(10), decide_by.map(at), execute_by),
                Err(expect)
            );
        };
        check(Some(10), ExecuteBy::Within(1), ClocksError::NoTimeToDecide);
        check(None, ExecuteBy::At(at(10)), ClocksError::NoTimeToExecute);
        check(None, ExecuteBy::Within(0), ClocksError::NoTimeToExecute);
        check(Some(31), ExecuteBy::At(at(30)), ClocksError::Order);
    }
}
