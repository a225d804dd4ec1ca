//! What an acknowledged event survives.

use std::fmt;
use std::str::FromStr;

/// What an acknowledged event survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Everything that leaves the disk as it is, a power cut included: an event is acknowledged after
    /// its fsync.
    #[default]
    Full,
    /// The end of the process, however it ends, but not a power cut: the system writes when it likes.
    /// The chain of what is left still holds.
    Relaxed,
}

impl Durability {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Relaxed => "relaxed",
        }
    }

    pub(crate) const fn pragma(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Relaxed => "NORMAL",
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that is no setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither `full` nor `relaxed`")]
pub struct UnknownDurability(String);

impl FromStr for Durability {
    type Err = UnknownDurability;

    fn from_str(text: &str) -> Result<Self, UnknownDurability> {
        match text {
            "full" => Ok(Self::Full),
            "relaxed" => Ok(Self::Relaxed),
            _ => Err(UnknownDurability(text.to_owned())),
        }
    }
}
