//! Frames: one JSON-RPC message, as its original bytes and a look at its head.
//!
//! [`Frame::read`] scans the bytes once and refuses what two readers could understand differently.
//! It copies nothing: a frame knows where in its bytes the parts stand, and what is forwarded are
//! the bytes that came.

mod error;
mod head;
mod id;
mod lookalike;
mod salvage;
mod span;

use std::borrow::Cow;

use countersign_canon::scan::Scan;
use countersign_canon::{Limits, Numbers};

use crate::{Era, Method};

pub use error::{Fault, FrameError};
pub(crate) use head::TOP;
pub use id::Id;
pub use span::Span;

/// One message.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    // INVARIANT: the spans in `kind` lie within `bytes`, which are strict JSON.
    bytes: Vec<u8>,
    kind: Kind,
    has_others: bool,
}

/// What a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Somebody wants an answer.
    Request {
        /// Under this id.
        id: Id,
        /// What to do.
        method: Method,
        /// Where its name stands.
        name: Span,
        /// With what.
        params: Params,
    },
    /// Somebody wants no answer.
    Notification {
        /// What happened.
        method: Method,
        /// Where its name stands.
        name: Span,
        /// With what.
        params: Params,
    },
    /// An answer.
    Response {
        /// To this request.
        id: Id,
        /// The answer itself.
        result: Span,
    },
    /// An answer that says that something went wrong.
    Error {
        /// To this request; an error about a frame that could not be read has no id.
        id: Option<Id>,
        /// What went wrong.
        error: Span,
    },
}

/// Where the parameters that matter stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Params {
    /// All of them.
    pub whole: Option<Span>,
    /// The name of a tool or a prompt.
    pub name: Option<Span>,
    /// The address of a resource.
    pub uri: Option<Span>,
    /// The arguments of a tool or a prompt.
    pub arguments: Option<Span>,
    /// What goes along.
    pub meta: Option<Span>,
    /// The task that is asked about.
    pub task_id: Option<Span>,
    /// The request that is cancelled.
    pub request_id: Option<Span>,
}

/// How much a frame may ask of its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLimits {
    /// The most bytes.
    pub max_bytes: usize,
    /// The deepest nesting.
    pub max_depth: usize,
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self {
            max_bytes: 64 << 20,
            max_depth: 64,
        }
    }
}

impl Frame {
    /// Reads exactly one message.
    pub fn read(bytes: Vec<u8>, limits: &FrameLimits) -> Result<Self, FrameError> {
        match head::read(&bytes, &limits.json()) {
            Ok((kind, has_others)) => Ok(Self {
                bytes,
                kind,
                has_others,
            }),
            Err(fault) => Err(FrameError::of(fault, &bytes)),
        }
    }

    /// The bytes that came.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes that came, to be sent on.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// What it is.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Whether it has members that the protocol does not know, beside those that make it a message.
    pub fn has_others(&self) -> bool {
        self.has_others
    }

    /// A part of it.
    pub fn part(&self, span: Span) -> &[u8] {
        span.of(&self.bytes)
    }

    /// A part of it that is a string; `None` if it is something else.
    pub fn text(&self, span: Option<Span>) -> Option<Cow<'_, str>> {
        let part = self.part(span?);
        Scan::new(part, &HEAD_LIMITS).ok()?.string().ok()
    }

    /// The member `key` of a part of it that is an object.
    pub fn member(&self, of: Option<Span>, key: &str) -> Option<Span> {
        member(&self.bytes, of?, key)
    }

    /// Why it cannot stand in a batch, if it cannot: the peers introduce themselves outside of one, and
    /// a message of a revision without batches is in none.
    pub(crate) fn check_batched(&self) -> Result<(), Fault> {
        let (method, meta) = match &self.kind {
            Kind::Request { method, params, .. } | Kind::Notification { method, params, .. } => {
                (*method, params.meta)
            }
            Kind::Response { .. } | Kind::Error { .. } => return Ok(()),
        };
        let speaks = self.member(meta, Era::VERSION_KEY);
        match method == Method::Initialize || speaks.is_some() {
            true => Err(Fault::NotBatched),
            false => Ok(()),
        }
    }

    /// The id that a cancellation names.
    pub fn cancelled(&self) -> Option<Id> {
        match &self.kind {
            Kind::Notification { params, .. } => Id::read(self.part(params.request_id?)).ok(),
            _ => None,
        }
    }
}

// SECURITY: what a frame carries must not reach a log line through a derived `Debug`.
impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frame({} bytes)", self.bytes.len())
    }
}

impl FrameLimits {
    fn json(&self) -> Limits {
        Limits {
            max_bytes: self.max_bytes,
            max_depth: self.max_depth,
            numbers: Numbers::Exact,
        }
    }
}

/// Whether bytes are meant to be a batch.
pub(crate) fn is_batch(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'[')
}

/// The messages of a batch, each as its own bytes.
pub(crate) fn batch(bytes: &[u8], limits: &FrameLimits) -> Result<Vec<Vec<u8>>, FrameError> {
    let refused = |fault: Fault| FrameError::of(fault, bytes);
    let places = batch_places(bytes, limits).map_err(|error| refused(error.into()))?;
    match places.len() {
        0 => Err(refused(Fault::EmptyBatch)),
        1..=LONGEST_BATCH => {
            let messages = places.into_iter().map(|place| place.of(bytes).to_vec());
            Ok(messages.collect())
        }
        _ => Err(refused(Fault::LongBatch)),
    }
}

/// Where the messages stand; of a batch that is too long, not all of them.
fn batch_places(bytes: &[u8], limits: &FrameLimits) -> Result<Vec<Span>, countersign_canon::Error> {
    let mut scan = Scan::new(bytes, &limits.json())?;
    let mut places = Vec::new();
    scan.array(|scan| {
        let place = scan.value()?;
        if places.len() <= LONGEST_BATCH {
            places.push(Span::from(place));
        }
        Ok(())
    })?;
    scan.finish()?;
    Ok(places)
}

/// The member `key` of the object at `of`. The bytes were read before.
pub(crate) fn member(bytes: &[u8], of: Span, key: &str) -> Option<Span> {
    let mut scan = Scan::new(of.of(bytes), &HEAD_LIMITS).ok()?;
    let mut found = None;
    scan.object(|scan, member| {
        if member == key {
            let place = scan.value()?;
            found = Some(Span::from(of.start + place.start..of.start + place.end));
        }
        Ok(())
    })
    .ok()?;
    found
}

/// Whether some readers take a key for one that is known, and is not this one.
pub(crate) fn poses(key: &str, known: &[&'static str]) -> bool {
    lookalike::refuse(key, known).is_err()
}

/// Refuses an object with a key that some readers take for one that is known, and find something there.
pub(crate) fn refuse_posing(bytes: &[u8], of: Span, known: &[&'static str]) -> Result<(), Fault> {
    let mut scan = Scan::new(of.of(bytes), &HEAD_LIMITS)?;
    if scan.peek() != Some(b'{') {
        return Ok(());
    }
    let mut found = Ok(());
    scan.object(|scan, key| {
        let value = scan.value()?;
        if found.is_ok() && of.of(bytes).get(value) != Some(b"null") {
            found = lookalike::refuse(&key, known);
        }
        Ok(())
    })?;
    found
}

/// How many messages a batch may have. Each of them is decided, sent and answered by itself.
const LONGEST_BATCH: usize = 128;
/// Parts of frames that were read under their own limits.
const HEAD_LIMITS: Limits = Limits {
    max_bytes: usize::MAX,
    max_depth: 512,
    numbers: Numbers::Exact,
};

#[cfg(test)]
mod tests;
