//! Reading one stored or exported event, and recomputing its hash.
//!
//! A line is exactly the JCS form of the event. Anything else, even the same event with other
//! spacing or key order, is refused: that way every changed bit is a found bit.

use std::borrow::Cow;

use countersign_canon::{Digest, Error, Hash, jcs::Cursor};

use crate::body::{CIPHERTEXT, COMMITMENTS, SEALED};
use crate::payload::UnknownEventType;
use crate::{EventType, IdError, Refs, id};

/// An event as text, with its fields borrowed from it.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    /// The type.
    pub event_type: EventType,
    /// The hash that the event states.
    pub hash: Hash,
    /// The hash that the event states for its predecessor.
    pub prev_hash: Option<Hash>,
    /// The place in the session.
    pub seq: u64,
    /// The session.
    pub session_id: Cow<'a, str>,
    /// The tenant.
    pub tenant_id: Cow<'a, str>,
    /// When it happened, as the recorder's clock said.
    pub ts_unix_ms: u64,
    /// The JCS text of the payload.
    pub payload: &'a [u8],
    /// The ids that the order rules look at.
    pub refs: Refs<'a>,
    /// The text of the seal, if the payload has one.
    pub seal: Option<SealText<'a>>,
    text: &'a [u8],
    hash_start: usize,
    hash_end: usize,
}

/// The text of a seal, read only when somebody needs it.
#[derive(Debug, Clone, Copy)]
pub struct SealText<'a>(&'a [u8]);

/// Why a line is not an event.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LineError {
    /// It is not canonical JSON of the right members.
    #[error(transparent)]
    Json(#[from] Error),
    /// Its type is not one of ours.
    #[error(transparent)]
    EventType(#[from] UnknownEventType),
    /// An id is empty or too long.
    #[error(transparent)]
    Id(#[from] IdError),
    /// A hash or digest is not 64 lower-case hexadecimal digits.
    #[error("`{0}` is not a hash in lower-case hexadecimal")]
    Digest(&'static str),
    /// A number is negative.
    #[error("`{0}` must not be negative")]
    Negative(&'static str),
}

impl<'a> Line<'a> {
    /// Reads a line. The hash is read, not yet compared: see [`Line::computed_hash`].
    pub fn read(text: &'a [u8]) -> Result<Self, LineError> {
        let mut cursor = Cursor::new(text, MAX_DEPTH)?;
        cursor.open_object()?;
        cursor.expect_key("event_type")?;
        let event_type = cursor.string()?.parse()?;
        cursor.expect_key("hash")?;
        // The key's text starts after `{"event_type":"…",`; its first byte is the quote.
        let hash_start = cursor.offset() - HASH_KEY.len();
        let hash = hash(&cursor.string()?, "hash")?;
        let hash_end = cursor.offset() + 1;
        cursor.expect_key("payload")?;
        let (payload, refs, seal) = read_payload(&mut cursor, text)?;
        cursor.expect_key("prev_hash")?;
        let prev_hash =
            cursor.optional_string()?.map(|text| self::hash(&text, "prev_hash")).transpose()?;
        cursor.expect_key("seq")?;
        let seq = unsigned(cursor.integer()?, "seq")?;
        cursor.expect_key("session_id")?;
        let session_id = cursor.string()?;
        id::check(&session_id, "session")?;
        cursor.expect_key("tenant_id")?;
        let tenant_id = cursor.string()?;
        id::check(&tenant_id, "tenant")?;
        cursor.expect_key("ts_unix_ms")?;
        let ts_unix_ms = unsigned(cursor.integer()?, "ts_unix_ms")?;
        cursor.close_object()?;
        cursor.finish()?;
        Ok(Self {
            event_type,
            hash,
            prev_hash,
            seq,
            session_id,
            tenant_id,
            ts_unix_ms,
            payload,
            refs,
            seal,
            text,
            hash_start,
            hash_end,
        })
    }

    /// SHA-256 over all fields but `hash`: the line without that member.
    pub fn computed_hash(&self) -> Hash {
        let before = self.text.get(..self.hash_start).unwrap_or_default();
        let after = self.text.get(self.hash_end..).unwrap_or_default();
        Hash::of_parts(&[before, after])
    }

    /// The whole text.
    pub fn text(&self) -> &'a [u8] {
        self.text
    }
}

impl SealText<'_> {
    /// The parts of the seal.
    pub fn read(&self) -> Result<crate::Seal, LineError> {
        let mut cursor = Cursor::new(self.0, MAX_DEPTH)?;
        cursor.open_object()?;
        cursor.expect_key(CIPHERTEXT)?;
        let ciphertext = digest(&cursor.string()?, CIPHERTEXT)?;
        cursor.expect_key(COMMITMENTS)?;
        cursor.open_object()?;
        let mut commitments = Vec::new();
        while let Some(place) = cursor.next_key()? {
            // The places that we write need no escape, so the raw text is the place.
            commitments.push((place.to_owned(), digest(&cursor.string()?, COMMITMENTS)?));
        }
        cursor.close_object()?;
        cursor.finish()?;
        Ok(crate::Seal { ciphertext, commitments })
    }
}

fn read_payload<'a>(
    cursor: &mut Cursor<'a>,
    text: &'a [u8],
) -> Result<(&'a [u8], Refs<'a>, Option<SealText<'a>>), LineError> {
    let mut refs = Refs::default();
    let mut seal = None;
    if cursor.peek() != Some(b'{') {
        return Ok((cursor.value()?, refs, seal));
    }
    let start = cursor.offset();
    cursor.open_object()?;
    while let Some(key) = cursor.next_key()? {
        match key {
            "call_id" => refs.call_id = text_member(cursor)?,
            "approval_id" => refs.approval_id = text_member(cursor)?,
            "context_id" => refs.context_id = text_member(cursor)?,
            SEALED => seal = Some(SealText(cursor.value()?)),
            _ => {
                cursor.value()?;
            }
        }
    }
    Ok((text.get(start..cursor.offset()).unwrap_or_default(), refs, seal))
}

/// A member of another type than text is no reference; whoever wrote it did not mean one.
fn text_member<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Cow<'a, str>>, Error> {
    if cursor.peek() == Some(b'"') {
        return cursor.string().map(Some);
    }
    cursor.value().map(|_| None)
}

fn hash(text: &str, field: &'static str) -> Result<Hash, LineError> {
    text.parse().map_err(|_| LineError::Digest(field))
}

fn digest(text: &str, field: &'static str) -> Result<Digest, LineError> {
    text.parse().map_err(|_| LineError::Digest(field))
}

fn unsigned(number: i64, field: &'static str) -> Result<u64, LineError> {
    u64::try_from(number).map_err(|_| LineError::Negative(field))
}

const HASH_KEY: &str = "\"hash\":";
/// Payloads of 128 levels, inside the envelope.
const MAX_DEPTH: usize = 129;
