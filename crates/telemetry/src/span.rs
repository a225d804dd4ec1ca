//! Spans, of which every part has a privacy class.

use countersign_canon::{Hash, Json};
use countersign_event::TraceParent;
use countersign_redact::{Record, Redacted};

/// A span as OpenTelemetry has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Where it belongs.
    pub(crate) place: Place,
    /// Its own id.
    pub(crate) id: [u8; 8],
    pub(crate) title: Title,
    pub(crate) kind: Kind,
    pub(crate) start_unix_ms: u64,
    pub(crate) end_unix_ms: u64,
    pub(crate) ending: Ending,
    pub(crate) attributes: Record,
}

/// A trace, and the span that a span is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) trace: [u8; 16],
    pub(crate) parent: Option<[u8; 8]>,
    pub(crate) flags: u8,
}

/// The name of a span: a word of ours, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Title {
    pub(crate) word: &'static str,
    pub(crate) about: Option<Redacted<String>>,
}

/// What a span is for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Something inside.
    Internal,
    /// A request to somebody else.
    Client,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Nobody says.
    Unset,
    /// It went well.
    Good,
    /// It did not.
    Failed,
}

impl Span {
    /// The trace, in hexadecimal.
    pub fn trace_id(&self) -> String {
        base16ct::lower::encode_string(&self.place.trace)
    }

    /// Its own id, in hexadecimal.
    pub fn span_id(&self) -> String {
        base16ct::lower::encode_string(&self.id)
    }

    /// The span that it is a part of, in hexadecimal.
    pub fn parent_id(&self) -> Option<String> {
        let parent = self.place.parent.as_ref();
        parent.map(|parent| base16ct::lower::encode_string(parent))
    }

    /// Its name.
    pub fn name(&self) -> String {
        match &self.title.about {
            Some(about) => format!("{} {about}", self.title.word),
            None => self.title.word.to_owned(),
        }
    }

    /// An attribute.
    pub fn attribute(&self, name: &str) -> Option<&Json> {
        let mut found = self.attributes.fields().filter(|(known, _)| *known == name);
        found.next().map(|(_, value)| value)
    }

    /// From when to when, in milliseconds since 1970.
    pub fn times(&self) -> (u64, u64) {
        (self.start_unix_ms, self.end_unix_ms)
    }

    /// How it ended.
    pub fn ending(&self) -> Ending {
        self.ending
    }
}

impl Place {
    /// The trace that all of a session is in, if its caller has none.
    pub(crate) fn of_session(tenant: &str, session: &str) -> Self {
        Self {
            trace: derived(&[b"trace", tenant.as_bytes(), session.as_bytes()]),
            parent: None,
            flags: 1,
        }
    }

    /// The trace of the caller.
    pub(crate) fn of_caller(trace: &TraceParent) -> Self {
        Self {
            trace: trace.trace(),
            parent: Some(trace.span()),
            flags: trace.flags(),
        }
    }
}

/// The same names give the same id in every process, so that spans of one action find each other.
pub(crate) fn derived<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut text = Vec::new();
    for part in parts {
        text.extend_from_slice(&(part.len() as u64).to_be_bytes());
        text.extend_from_slice(part);
    }
    first(&Hash::of(&text))
}

/// The first bytes of a hash, as an id.
pub(crate) fn first<const N: usize>(hash: &Hash) -> [u8; N] {
    let mut id = [0; N];
    for (byte, from) in id.iter_mut().zip(hash.as_bytes()) {
        *byte = *from;
    }
    id
}
