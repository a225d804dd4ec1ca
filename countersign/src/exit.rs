//! Exit codes. Scripts rely on them, so each has one meaning.

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked.
    Done,
    /// It failed for a reason that has no code of its own.
    Failed,
    /// The input cannot be used.
    Invalid,
    /// A log does not hold what it claims.
    Unverified,
    /// The arguments make no sense.
    Usage,
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Invalid => 3,
            Self::Unverified => 5,
            Self::Usage => 64,
        }
    }
}
