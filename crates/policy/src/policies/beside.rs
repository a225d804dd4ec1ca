//! Somebody else who has a say about tool calls.

use countersign_canon::{Digest, Json};

use super::Opinion;

/// Judges tool calls beside the capability rules. The strictest of all verdicts counts.
///
/// FAIL-CLOSED: it has no way to give no opinion; one that cannot judge denies.
pub trait Beside: Send + Sync {
    /// What it is called, in messages and in the digest of the policies.
    fn name(&self) -> &str;

    /// Over everything that its verdicts depend on.
    fn digest(&self) -> Digest;

    /// What it says about a call. A change has to be a change of the arguments.
    fn opinion(&self, call: &Called<'_>) -> Opinion;
}

/// A tool call that is about to be decided.
#[derive(Debug, Clone, Copy)]
pub struct Called<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub args: &'a Json,
    /// What the session has done so far, as policies see it.
    pub session: &'a Json,
}
