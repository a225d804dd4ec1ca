//! A place inside the action that a transform changes: `$policy_target.body.items[2]`.

use std::fmt;
use std::str::FromStr;

use countersign_canon::Json;

use crate::path::{Path, PathError, Root};

/// A path from the root of the action.
#[derive(Debug, Clone, PartialEq, Eq)]
// INVARIANT: its root is the target.
pub struct TargetPath(Path);

/// Why a path cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It leads into something else than the action.
    #[error("the path does not start at `$policy_target`")]
    OtherRoot,
    /// It cannot be read.
    #[error("the path is malformed")]
    Malformed,
    /// There is nothing at the place.
    #[error("there is nothing at the place that the path names")]
    Missing,
}

impl TargetPath {
    /// Puts a value at the place, which must exist: a transform changes, it does not add.
    pub fn replace(&self, target: &mut Json, value: Json) -> Result<(), TargetError> {
        let place = self.0.resolve_mut(target);
        *place.map_err(|_| TargetError::Missing)? = value;
        Ok(())
    }
}

impl fmt::Display for TargetPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for TargetPath {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        match text.parse::<Path>() {
            Ok(path) if path.root() == Root::Target => Ok(Self(path)),
            Ok(_) => Err(TargetError::OtherRoot),
            Err(PathError::Root | PathError::Malformed(_)) => Err(TargetError::Malformed),
        }
    }
}
