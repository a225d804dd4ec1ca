//! Verifying an evidence pack: with the file, and the keys that the reader trusts, alone.

use std::fmt;

use countersign_approval::VerifyingKey;
use countersign_canon::Hash;
use countersign_event::{LineError, LinkError, OrderError};
use countersign_pack::archive::{ArchiveError, Limits};
use countersign_pack::{OpeningError, Selected, StatementError, dsse, member};
use countersign_tlog::{CheckpointError, Durability, Key, KeyError, NoteError};

use crate::{Problem, Selection};

mod account;
mod actions;
mod approvals;
mod events;
mod html;
mod members;
mod noted;
mod policies;

pub use actions::{Action, Answer};
pub use html::html;

/// Whose signatures count.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// Keys of logs and witnesses. Empty: the key in the pack is taken at its word, and the report says
    /// so.
    pub keys: Vec<Key>,
    /// Keys of people. Empty: the keys in the pack are taken at their word.
    pub people: Vec<VerifyingKey>,
}

/// What the reader kept about the session of a pack, to hold the pack against.
#[derive(Debug, Clone, Default)]
pub struct Noted {
    /// Which sessions the rest is about; events of one of them must be in the pack.
    pub selection: Selection,
    /// The hash of the last event.
    pub head: Option<Hash>,
    /// The number of events.
    pub count: Option<u64>,
    /// The hash of some event.
    pub contains: Option<Hash>,
}

/// What was found in a pack.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct PackReport {
    /// The first thing that does not hold; `None` when everything does.
    pub failure: Option<PackProblem>,
    /// What the pack is about.
    pub selected: Option<Selected>,
    /// The log, and how many events it had.
    pub log: Option<(String, u64)>,
    /// What the log says about how its events were kept.
    pub durability: Option<Durability>,
    /// How many events were found good.
    pub events: u64,
    /// What agents did, in the order of the log.
    pub actions: Vec<Action>,
    /// What was checked, in words.
    pub checked: Vec<String>,
    /// What was not, in words.
    pub not_checked: Vec<String>,
}

/// What can be wrong with a pack.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PackProblem {
    /// The file is not a pack.
    #[error("the file is no pack: {0}")]
    Archive(#[from] ArchiveError),
    /// The envelope around the statement cannot be read.
    #[error("the signed statement cannot be read: {0}")]
    Envelope(#[from] dsse::EnvelopeError),
    /// The statement cannot be read.
    #[error("the statement cannot be read: {0}")]
    Statement(#[from] StatementError),
    /// A member is not there, or not where the statement lists it.
    #[error("the member `{0}` is missing, or not one that the statement lists")]
    Member(String),
    /// A member is not what the statement says.
    #[error("the member `{0}` was changed: its digest is not the stated one")]
    Digest(String),
    /// A member is not of its form.
    #[error("the member `{0}` cannot be read: {1}")]
    Form(&'static str, String),
    /// The checkpoint is no note.
    #[error("the checkpoint cannot be read: {0}")]
    Note(#[from] NoteError),
    /// The note is no checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The key of the log cannot be used.
    #[error("the key of the log cannot be used: {0}")]
    Key(#[from] KeyError),
    /// The log is not one that the reader trusts.
    #[error("the key of the log is not one of those that you trust")]
    Untrusted,
    /// A signature is wrong or missing.
    #[error("{0} is not signed by the key of the log")]
    Signature(&'static str),
    /// The signature of a witness is wrong.
    #[error("the cosignature by `{0}` is wrong")]
    Witness(String),
    /// A line is no event.
    #[error("line {line} of the events is no event in canonical form: {error}")]
    NotAnEvent {
        /// Which line, from 1.
        line: u64,
        /// Why not.
        error: LineError,
    },
    /// The content of an event is not what its hash was made of.
    #[error("event {0}: the hash does not match the content")]
    Hash(Hash),
    /// An event does not follow the one before it.
    #[error("event {event}: {error}")]
    Link {
        /// Which event.
        event: Hash,
        /// Why not.
        error: LinkError,
    },
    /// An event may not come where it is.
    #[error("event {event} is out of order: {error}")]
    Order {
        /// Which event.
        event: Hash,
        /// Why.
        error: OrderError,
    },
    /// An event is not one that was asked for.
    #[error("event {0} does not belong to what the pack is about")]
    NotSelected(Hash),
    /// The number of events is not the stated one.
    #[error("the pack has {found} event(s) and states {stated}")]
    Count {
        /// What the statement says.
        stated: u64,
        /// How many there are.
        found: u64,
    },
    /// The proof does not lead from the events to the root of the checkpoint.
    #[error("the events are not proven to be in the log at their stated places")]
    Inclusion,
    /// The proof does not lead from the heads to what the checkpoint says of sessions.
    #[error("the heads of the sessions are not those of the checkpoint")]
    Sessions,
    /// A session has another end than the checkpoint says.
    #[error("session `{}` has {stated} event(s) at the checkpoint, and {found} in the pack", .session.escape_debug())]
    Incomplete {
        /// Which session.
        session: String,
        /// How many the checkpoint says.
        stated: u64,
        /// How many are here.
        found: u64,
    },
    /// A pack of the whole log does not hold the whole log.
    #[error(
        "the log has {stated} event(s) at the checkpoint, and a pack of all of it holds {found}"
    )]
    NotTheLog {
        /// How many the checkpoint says.
        stated: u64,
        /// How many are here.
        found: u64,
    },
    /// A disclosed value cannot be read.
    #[error("line {line} of the openings: {error}")]
    Opening {
        /// Which line, from 1.
        line: u64,
        /// Why not.
        error: OpeningError,
    },
    /// A disclosed value is not the one that was committed to.
    #[error("event {event}: the value at `{place}` is not the one that was committed to")]
    Commitment {
        /// Which event.
        event: Hash,
        /// Which place.
        place: String,
    },
    /// An approval is not what its event says, or its signature is wrong.
    #[error("approval `{}`: {why}", .id.escape_debug())]
    Approval {
        /// Which.
        id: String,
        /// What does not hold.
        why: String,
    },
    /// The audit is not what the checkpoint says.
    #[error("entry {line} of the audit: {why}")]
    Audit {
        /// Which line, from 1.
        line: u64,
        /// What does not hold.
        why: String,
    },
    /// Policies are not what their name says, or decided nothing here.
    #[error("the policies in `{member}`: {why}")]
    Policy {
        /// Which member.
        member: String,
        /// What does not hold.
        why: String,
    },
    /// A record, envelope or CloudEvent is not what follows from the events.
    #[error("line {line} of `{member}`: {why}")]
    Told {
        /// Which member.
        member: &'static str,
        /// Which line, from 1.
        line: u64,
        /// What does not hold.
        why: String,
    },
    /// The events are not those that the reader noted.
    #[error(transparent)]
    Noted(Problem),
    /// A record is not signed by the key that the pack names.
    #[error("record {line} is not signed by the key of the records: {why}")]
    RecordSignature {
        /// Which line, from 1.
        line: u64,
        /// What does not hold.
        why: String,
    },
}

impl PackProblem {
    /// A short name that scripts can rely on.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Archive(ArchiveError::TooLarge(_) | ArchiveError::TooMany(_)) => "limit",
            Self::Archive(ArchiveError::Name(_)) => "path",
            Self::Archive(_) => "archive",
            Self::Envelope(_) | Self::Statement(_) => "statement",
            Self::Member(_) => "member",
            Self::Digest(_) => "digest",
            Self::Form(..) => "form",
            Self::Note(_) | Self::Checkpoint(_) => "checkpoint",
            Self::Key(_) => "key",
            Self::Untrusted => "untrusted",
            Self::Signature(_) => "signature",
            Self::Witness(_) => "witness",
            Self::NotAnEvent { .. } => "not-an-event",
            Self::Hash(_) => "hash",
            Self::Link { .. } => "link",
            Self::Order { .. } => "order",
            Self::NotSelected(_) => "not-selected",
            Self::Count { .. } => "count",
            Self::Inclusion => "inclusion",
            Self::Sessions => "sessions",
            Self::Incomplete { .. } | Self::NotTheLog { .. } => "incomplete",
            Self::Opening { .. } => "opening",
            Self::Commitment { .. } => "commitment",
            Self::Approval { .. } => "approval",
            Self::Audit { .. } => "audit",
            Self::Policy { .. } => "policy",
            Self::Told { member, .. } => match *member {
                member::RECORDS => "record",
                member::ENVELOPES => "envelope",
                _ => "cloudevent",
            },
            Self::Noted(problem) => problem.name(),
            Self::RecordSignature { .. } => "record-signature",
        }
    }
}

impl PackReport {
    /// Whether everything that was checked holds.
    pub fn is_good(&self) -> bool {
        self.failure.is_none()
    }

    fn check(&mut self, what: impl fmt::Display) {
        self.checked.push(what.to_string());
    }

    fn leave(&mut self, what: impl fmt::Display) {
        self.not_checked.push(what.to_string());
    }
}

/// Verifies a pack. Never fails: what does not hold is in the report.
pub fn verify_pack(file: &[u8], trust: &Trust, limits: &Limits) -> PackReport {
    verify_noted(file, trust, &Noted::default(), limits)
}

/// As [`verify_pack`], and holds the pack against what the reader noted.
pub fn verify_noted(file: &[u8], trust: &Trust, noted: &Noted, limits: &Limits) -> PackReport {
    let mut report = PackReport {
        failure: None,
        selected: None,
        log: None,
        durability: None,
        events: 0,
        actions: Vec::new(),
        checked: Vec::new(),
        not_checked: Vec::new(),
    };
    if let Err(problem) = verify(file, trust, noted, limits, &mut report) {
        report.failure = Some(problem);
        report.leave("everything after the place where the check ended");
    }
    report.leave("that the recorded clocks were right, and that tools did what they reported");
    report
}

fn verify(
    file: &[u8],
    trust: &Trust,
    noted: &Noted,
    limits: &Limits,
    report: &mut PackReport,
) -> Result<(), PackProblem> {
    let members = members::Members::read(file, limits, report)?;
    let log = members.log(trust, report)?;
    let events = events::Events::read(&members, &log, report)?;
    noted::check(noted, &events, report)?;
    let opened = events.openings(&members, report)?;
    let approvals = approvals::check(&members, &events, &opened, trust, report)?;
    approvals::check_audit(&members, &log, report)?;
    let manifests = policies::check(&members, &events, report)?;
    let told = account::check(&members, &events, &opened, &manifests, report)?;
    report.actions = actions::answers(&events, &opened, &approvals, &manifests, told);
    Ok(())
}
