//! A call that differs from what was approved, as evidence records it.

use countersign_canon::Digest;

use crate::call::{Arguments, ToolCall};
use crate::names::names;

/// The arguments that were approved, held against those that somebody wants to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ArgumentDrift {
    /// The digest of the approved text.
    pub approved_args_digest: Digest,
    /// The digest of the text that was asked for.
    pub observed_args_digest: Digest,
    /// What follows.
    pub resolution: Resolution,
}

names! {
    /// What follows from a comparison. A later approval of the changed call is an action of its own,
    /// whose parent is the denied one.
    Resolution as "resolution" {
        /// Both are the same text.
        Matched = "matched",
        /// They differ, so the call does not run.
        Denied = "denied",
    }
}

impl ArgumentDrift {
    /// Compares a call that is asked for with the one that was approved.
    pub fn between(approved: &ToolCall, observed: &Arguments) -> Self {
        let (approved_args_digest, observed_args_digest) =
            (approved.args.digest(), observed.digest());
        Self {
            approved_args_digest,
            observed_args_digest,
            resolution: match approved_args_digest == observed_args_digest {
                true => Resolution::Matched,
                false => Resolution::Denied,
            },
        }
    }

    /// Whether they differ.
    pub fn is_detected(&self) -> bool {
        self.resolution == Resolution::Denied
    }
}
