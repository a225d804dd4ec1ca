//! What can go wrong.

use std::io;
use std::path::PathBuf;

use countersign_event::{EnvelopeError, Head, LineError, OrderError};
use countersign_vault::{KeyringError, OpenError, SealError};

/// Why the store refused or failed. Nothing was written unless the message says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else appended first, or the caller's idea of the head is wrong.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// The event may not come now.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The payload could not be sealed.
    #[error("cannot seal the payload: {0}")]
    Seal(#[from] SealError),
    /// The envelope could not be made.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// The content of the session was erased; nothing can be added to it.
    #[error("the content of this session was erased")]
    Erased,
    /// There is no such session.
    #[error("no session `{0}`")]
    NoSession(String),
    /// There is no log in the folder.
    #[error("there is no log in `{}`", .0.display())]
    NoLog(PathBuf),
    /// The stored history does not hold together; nothing is added on top of it.
    #[error("the stored history of this session is damaged at event {seq}: {problem}")]
    Damaged {
        /// The first bad event.
        seq: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A stored event cannot be read.
    #[error("a stored event is damaged: {0}")]
    Unreadable(#[from] LineError),
    /// The master keys cannot be used.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    /// Sessions are there, but not the key that their keys were wrapped with.
    #[error("the master key file `{}` is missing, and the log has sessions that need it", .0.display())]
    KeyFileMissing(PathBuf),
    /// Sealed content cannot be opened.
    #[error("cannot open the sealed content: {0}")]
    Open(#[from] OpenError),
    /// The master key was replaced while a session was made with the old one.
    #[error("the master key was replaced meanwhile")]
    Rotated,
    /// The disk is full.
    #[error("the disk is full: nothing was recorded")]
    Full,
    /// The database may not be written.
    #[error("the database `{}` cannot be written: it is read-only", .0.display())]
    ReadOnly(PathBuf),
    /// Another process held the database for too long.
    #[error("the database is busy: another process held it for too long")]
    Busy,
    /// The database file is of another program, or of a newer version of this one.
    #[error("`{}` {problem}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The folder cannot be made or read.
    #[error("cannot use the data folder `{}`", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is something, and it may not be read.
    #[error("cannot read `{}`", path.display())]
    Denied {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The database failed in another way.
    #[error("the database failed")]
    Database(#[source] rusqlite::Error),
    /// One transaction failed for all the events in it.
    #[error(transparent)]
    Shared(std::sync::Arc<Error>),
    /// An approval or a lease is not where the change needs it to be.
    #[error(transparent)]
    Approval(#[from] crate::ChangeRefused),
    /// The tree does not have the leaf, or not yet.
    #[error("the event is not in the tree, or not in a tree of this size")]
    NotIntegrated,
    /// There is no event that a checkpoint could cover.
    #[error("there is no event to publish a checkpoint for")]
    NothingToPublish,
    /// The log is not what the last checkpoint said; nothing is signed on top of it.
    #[error("the log has changed since its last checkpoint was signed: {0}")]
    Inconsistent(String),
    /// The log has another name.
    #[error("the log is called `{}`, and keeps its name", .0.escape_debug())]
    Renamed(String),
    /// A cosigned checkpoint is not one of this log.
    #[error("the checkpoint cannot be taken: {0}")]
    Cosignature(String),
    /// The key or the name of the log cannot be used.
    #[error(transparent)]
    LogKey(#[from] countersign_tlog::KeyError),
    /// The audit file cannot be written.
    #[error("the audit cannot be written: {0}")]
    Audit(std::sync::Arc<io::Error>),
    /// The writer is gone; the process must be restarted.
    #[error("the writer has stopped")]
    Stopped,
}

/// The chain has another head than the append expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("conflict: {}", self.words())]
pub struct Conflict {
    /// The sequence number that the append was made for.
    pub expected_seq: u64,
    /// The head as it is.
    pub actual: Head,
}

impl Conflict {
    fn words(&self) -> String {
        let (count, expected) = (self.actual.count(), self.expected_seq);
        match self.actual.hash() {
            Some(head) if count == expected => {
                format!("the event before number {expected} has the hash {head}, not the given one")
            }
            _ => format!("the next event of the session is number {count}, not {expected}"),
        }
    }
}

impl Error {
    /// Whether the same event can succeed when it is tried again on the new state.
    pub fn is_retryable(&self) -> bool {
        matches!(self.root(), Self::Conflict(_) | Self::Rotated)
    }

    /// The error itself, where several appends share one.
    pub fn root(&self) -> &Self {
        match self {
            Self::Shared(error) => error.root(),
            error => error,
        }
    }

    pub(crate) fn damaged(seq: u64, problem: impl ToString) -> Self {
        Self::Damaged {
            seq,
            problem: problem.to_string(),
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            _ => Self::Database(error),
        }
    }
}
