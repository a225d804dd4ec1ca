//! Exit codes. Scripts rely on them, so each has one meaning.

use countersign_policy::Decision;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked.
    Done,
    /// It failed for a reason that has no code of its own.
    Failed,
    /// A policy does not allow it.
    Denied,
    /// The input cannot be used.
    Invalid,
    /// A human decides.
    Held,
    /// Something does not hold what it claims.
    Unverified,
    /// The arguments make no sense.
    Usage,
    /// Nobody answers.
    Unreachable,
    /// Somebody stopped it.
    Interrupted,
    /// As the program ended that was run.
    Passed(u8),
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Denied => 2,
            Self::Invalid => 3,
            Self::Held => 4,
            Self::Unverified => 5,
            Self::Usage => 64,
            Self::Unreachable => 69,
            Self::Interrupted => 130,
            Self::Passed(code) => code,
        }
    }
}

impl From<Decision> for Exit {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Allow | Decision::Warn | Decision::Transform => Self::Done,
            Decision::Escalate => Self::Held,
            Decision::Deny => Self::Denied,
        }
    }
}
