//! Reading one stored or exported event, and recomputing its hash.
//!
//! A line is exactly the JCS form of the event. Anything else, even the same event with other
//! spacing or key order, is refused: that way every changed bit is a found bit.

use std::borrow::Cow;

use countersign_canon::{Digest, Error, Hash, jcs::Cursor};

use crate::body::{CIPHERTEXT, COMMITMENTS, SEALED};
use crate::payload::UnknownEventType;
use crate::{EventType, IdError, Refs, Seal, id};

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
    /// The seal, if the payload has one.
    pub seal: Option<SealText<'a>>,
    text: &'a [u8],
    hash_start: usize,
    hash_end: usize,
}

/// A seal as text, whose commitments are listed only when somebody needs them.
#[derive(Debug, Clone, Copy)]
pub struct SealText<'a> {
    /// Digest of the ciphertext.
    pub ciphertext: Digest,
    text: &'a [u8],
}

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
        cursor.expect_text(r#"{"event_type":"#)?;
        let event_type: EventType = cursor.string()?.parse()?;
        let hash_start = cursor.offset() + 1;
        cursor.expect_text(r#","hash":"#)?;
        let hash = read_hash(&mut cursor)?;
        let hash_end = cursor.offset() + 1;
        cursor.expect_text(r#","payload":"#)?;
        let (payload, refs, seal) = read_payload(event_type, &mut cursor, text)?;
        cursor.expect_text(r#","prev_hash":"#)?;
        let prev_hash = read_prev_hash(&mut cursor)?;
        cursor.expect_text(r#","seq":"#)?;
        let seq = unsigned(cursor.integer()?, "seq")?;
        cursor.expect_text(r#","session_id":"#)?;
        let session_id = cursor.string()?;
        id::check(&session_id, "session")?;
        cursor.expect_text(r#","tenant_id":"#)?;
        let tenant_id = cursor.string()?;
        id::check(&tenant_id, "tenant")?;
        cursor.expect_text(r#","ts_unix_ms":"#)?;
        let ts_unix_ms = unsigned(cursor.integer()?, "ts_unix_ms")?;
        cursor.expect_text("}")?;
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
        Hash::of_prefixed(before, after)
    }

    /// The whole text.
    pub fn text(&self) -> &'a [u8] {
        self.text
    }
}

impl<'a> SealText<'a> {
    /// The parts of the seal.
    pub fn read(&self) -> Result<Seal, LineError> {
        let mut commitments = Vec::new();
        let ciphertext = read_seal(
            &mut Cursor::new(self.text, MAX_DEPTH)?,
            |place, commitment| {
                // The places that we write need no escape, so the raw text is the place.
                commitments.push((place.to_owned(), commitment));
            },
        )?;
        Ok(Seal {
            ciphertext,
            commitments,
        })
    }

    fn take(cursor: &mut Cursor<'a>, line: &'a [u8]) -> Result<Self, LineError> {
        let start = cursor.offset();
        let ciphertext = read_seal(cursor, |_, _| ())?;
        let text = line.get(start..cursor.offset()).unwrap_or_default();
        Ok(Self { ciphertext, text })
    }
}

/// Reads a seal and hands out each place with its commitment.
fn read_seal<'a>(
    cursor: &mut Cursor<'a>,
    mut each: impl FnMut(&'a str, Digest),
) -> Result<Digest, LineError> {
    cursor.expect_text(r#"{"ciphertext":"#)?;
    let ciphertext = read_digest(cursor, CIPHERTEXT)?;
    cursor.expect_text(r#","commitments":"#)?;
    cursor.members(&[], |cursor, place| {
        each(place, read_digest(cursor, COMMITMENTS)?);
        Ok::<_, LineError>(())
    })?;
    cursor.expect_text("}")?;
    Ok(ciphertext)
}

fn read_payload<'a>(
    event_type: EventType,
    cursor: &mut Cursor<'a>,
    text: &'a [u8],
) -> Result<(&'a [u8], Refs<'a>, Option<SealText<'a>>), LineError> {
    let mut refs = Refs::default();
    let mut seal = None;
    if cursor.peek() != Some(b'{') {
        return Ok((cursor.value()?, refs, seal));
    }
    let start = cursor.offset();
    cursor.members(event_type.stored_keys(), |cursor, key| {
        let id = match key {
            "call_id" => &mut refs.call_id,
            "approval_id" => &mut refs.approval_id,
            "context_id" => &mut refs.context_id,
            SEALED => {
                seal = Some(SealText::take(cursor, text)?);
                return Ok(());
            }
            _ => return cursor.value().map(drop).map_err(LineError::from),
        };
        // A member of another type than text is no reference; whoever wrote it did not mean one.
        *id = match cursor.peek() {
            Some(b'"') => Some(cursor.string()?),
            _ => cursor.value().map(|_| None)?,
        };
        Ok::<_, LineError>(())
    })?;
    Ok((
        text.get(start..cursor.offset()).unwrap_or_default(),
        refs,
        seal,
    ))
}

fn read_hash(cursor: &mut Cursor<'_>) -> Result<Hash, LineError> {
    cursor
        .hash()
        .map_or_else(|| not_a_digest(cursor.string()?, "hash"), Ok)
}

fn read_prev_hash(cursor: &mut Cursor<'_>) -> Result<Option<Hash>, LineError> {
    match cursor.hash() {
        None => cursor
            .optional_string()?
            .map_or(Ok(None), |text| not_a_digest(text, "prev_hash")),
        hash => Ok(hash),
    }
}

fn read_digest(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Digest, LineError> {
    cursor
        .digest()
        .map_or_else(|| not_a_digest(cursor.string()?, field), Ok)
}

#[cold]
fn not_a_digest<T>(_: Cow<'_, str>, field: &'static str) -> Result<T, LineError> {
    Err(LineError::Digest(field))
}

fn unsigned(number: i64, field: &'static str) -> Result<u64, LineError> {
    u64::try_from(number).map_err(|_| LineError::Negative(field))
}

/// Levels of a payload; the envelope around it does not count.
const MAX_DEPTH: usize = 128;
