//! Why a session cannot be decided again.

use countersign_canon::Digest;
use countersign_event::Scope;
use countersign_policy::ArchiveError;
use countersign_session::FactError;

/// Why a session cannot be decided again. That it was decided differently is no error: the report
/// says so.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such session.
    #[error("there is no session `{}` of the tenant `{}`", .0.session.as_str(), .0.tenant.as_str())]
    NoSession(Box<Scope>),
    /// The log cannot be read, is damaged, or its content was erased or is under another key.
    #[error(transparent)]
    Store(#[from] countersign_store::Error),
    /// An event does not fit the events before it.
    #[error("event {seq} cannot be folded: {error}")]
    Fold {
        /// The event.
        seq: u64,
        /// Why.
        error: FactError,
    },
    /// The policies that took a decision are not kept beside the log.
    #[error(
        "event {seq} was decided by the policies {digest}, which are not beside the log: {error}"
    )]
    NotKept {
        /// The decision.
        seq: u64,
        /// The policies.
        digest: Digest,
        /// Why they cannot be read.
        error: std::io::Error,
    },
    /// The policies that took a decision are kept, but not as they were.
    #[error("event {seq} was decided by the policies {digest}, which cannot be used: {error}")]
    Unusable {
        /// The decision.
        seq: u64,
        /// The policies.
        digest: Digest,
        /// Why.
        error: ArchiveError,
    },
    /// A decision lacks what is needed to take it again.
    #[error("event {seq} cannot be decided again: {problem}")]
    Incomplete {
        /// The decision.
        seq: u64,
        /// What is missing.
        problem: &'static str,
    },
    /// Somebody stopped it.
    #[error("interrupted")]
    Interrupted,
}
