//! How seriously a verdict is taken.

/// Whether the host acts on the verdict. It is the same verdict either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The verdict counts.
    Enforce,
    /// The verdict is recorded; a change is checked and not given.
    EvaluateOnly,
}

impl Mode {
    /// The name in requests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::EvaluateOnly => "evaluate_only",
        }
    }
}
