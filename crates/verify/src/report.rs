//! What the verifier found.

use std::fmt;

use countersign_canon::Hash;
use countersign_event::{LineError, LinkError, OrderError};

/// The result of a verification.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Report {
    /// The first bad event, or what is missing; `None` when everything holds.
    pub failure: Option<Finding>,
    /// How many events of the selection were found good.
    pub events: u64,
    /// How many bytes they have, ciphertexts included.
    pub bytes: u64,
    /// The chains that were seen, in the order of their first event.
    pub sessions: Vec<SessionReport>,
    /// What was checked, in words.
    pub checked: Vec<String>,
    /// What was not, in words.
    pub not_checked: Vec<String>,
}

/// One chain, as far as it was found good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionReport {
    /// The tenant.
    pub tenant_id: String,
    /// The session.
    pub session_id: String,
    /// How many events.
    pub events: u64,
    /// The hash of the last one.
    pub head: Option<Hash>,
    /// Whether the session has ended.
    pub terminated: bool,
}

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Where it was seen, unless it is about something that is not there.
    pub place: Option<Place>,
    /// The tenant, session and sequence number, as far as they could be read.
    pub event: Option<(String, String, u64)>,
    /// What is wrong.
    pub problem: Problem,
}

/// A place in what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A line of a stream, from 1.
    Line(u64),
    /// A row of the table of events.
    Row(i64),
}

/// What can be wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is not an event in canonical form.
    #[error("not an event in canonical form: {0}")]
    NotAnEvent(#[from] LineError),
    /// The line is longer than any event.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The longest that is read.
        limit: usize,
    },
    /// The content is not what the hash was made of.
    #[error("the hash does not match the content: stated {stated}, computed {computed}")]
    Hash {
        /// What the event says.
        stated: Hash,
        /// What its content gives.
        computed: Hash,
    },
    /// It does not follow the event before it.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It may not come here.
    #[error("out of order: {0}")]
    Order(#[from] OrderError),
    /// The chain ends elsewhere than the given head.
    #[error(
        "the session ends at {}, not at the given head {expected}",
        head(found)
    )]
    Head {
        /// The given head.
        expected: Hash,
        /// The head that was found.
        found: Option<Hash>,
    },
    /// The chain has another length than the given count.
    #[error("the session has {found} event(s), not the given {expected}")]
    Count {
        /// The given count.
        expected: u64,
        /// The count that was found.
        found: u64,
    },
    /// No event has the given hash.
    #[error("no event has the given hash {0}")]
    NotContained(Hash),
    /// There is nothing to verify.
    #[error("there is no event to verify")]
    Nothing,
    /// There are events, and none of them was asked for.
    #[error("no event of the given session or tenant is here, and {others} of others are")]
    NoneOfThose {
        /// How many there are.
        others: u64,
    },
    /// A column of the database says something else than the event.
    #[error("the column `{0}` says something else than the event")]
    Column(&'static str),
    /// Rows are missing from the table of events.
    #[error("row {expected} is missing from the table of events")]
    RowGap {
        /// The first missing row.
        expected: i64,
    },
    /// The ciphertext is missing, was changed, or belongs to no sealed member.
    #[error("the ciphertext {0}")]
    Ciphertext(&'static str),
    /// The ciphertext does not open although its key is there.
    #[error("the sealed content does not open: {0}")]
    Unopened(String),
    /// A sealed value is not the one that was committed to.
    #[error("the sealed value at `{0}` is not the one that was committed to")]
    Commitment(String),
    /// The log has fewer events than it had at a checkpoint.
    #[error(
        "the log has {found} event(s), and had {expected} at the given checkpoint: its end was cut, or it was put back"
    )]
    Shorter {
        /// How many it had.
        expected: u64,
        /// How many it has.
        found: u64,
    },
    /// The events that a checkpoint covers are not those of then.
    #[error(
        "the first {size} event(s) are not those of the given checkpoint: the history was written anew, or this is another log"
    )]
    Rewritten {
        /// How many the checkpoint covers.
        size: u64,
    },
    /// The sessions did not end where a checkpoint said.
    #[error("the sessions of the first {size} event(s) do not end where the given checkpoint says")]
    Sessions {
        /// How many events the checkpoint covers.
        size: u64,
    },
    /// The database cannot be read.
    #[error("the database cannot be read: {0}")]
    Database(String),
}

/// How far a verification has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Events found good by themselves, also outside the selection.
    pub events: u64,
    /// How many bytes they have, ciphertexts included.
    pub bytes: u64,
}

impl Report {
    /// Whether everything that was checked holds.
    pub fn is_good(&self) -> bool {
        self.failure.is_none()
    }
}

impl Problem {
    /// A short name that scripts can rely on.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotAnEvent(_) => "not-an-event",
            Self::TooLong { .. } => "too-long",
            Self::Hash { .. } => "hash",
            Self::Link(LinkError::Gap { .. }) => "gap",
            Self::Link(LinkError::Reused { .. }) => "reused-seq",
            Self::Link(LinkError::Broken { .. }) => "broken-link",
            Self::Order(_) => "order",
            Self::Head { .. } => "head",
            Self::Count { .. } => "count",
            Self::NotContained(_) => "not-contained",
            Self::Nothing | Self::NoneOfThose { .. } => "nothing",
            Self::Column(_) => "column",
            Self::RowGap { .. } => "row-gap",
            Self::Ciphertext(_) => "ciphertext",
            Self::Unopened(_) => "unopened",
            Self::Commitment(_) => "commitment",
            Self::Shorter { .. } => "shorter",
            Self::Rewritten { .. } => "rewritten",
            Self::Sessions { .. } => "sessions",
            Self::Database(_) => "database",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Row(id) => write!(f, "row {id}"),
        }
    }
}

fn head(found: &Option<Hash>) -> String {
    found.map_or_else(|| "nothing".to_owned(), |hash| hash.to_string())
}
