//! Sealing an event onto the head of its chain.

use countersign_canon::{Hash, jcs};

use crate::{Body, EventType, Head, Scope};

/// The largest whole number that every JSON reader keeps exactly: 2^53 − 1.
pub const MAX_EXACT: u64 = (1 << 53) - 1;

/// An event whose hash was computed here; the only thing a store appends.
#[derive(Clone)]
pub struct Sealed {
    event_type: EventType,
    seq: u64,
    ts_unix_ms: u64,
    prev_hash: Option<Hash>,
    hash: Hash,
    line: Vec<u8>,
}

/// Why an event cannot be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// The timestamp is outside what JSON keeps exactly.
    #[error("timestamp {0} is over the largest exact whole number, {MAX_EXACT}")]
    Timestamp(u64),
    /// The chain has used every sequence number.
    #[error("the session has used every sequence number")]
    Exhausted,
}

impl Sealed {
    /// Makes the event that follows `head`.
    ///
    /// The hash is SHA-256 over the JCS form of all fields but `hash` itself.
    pub fn seal(
        event_type: EventType,
        ts_unix_ms: u64,
        body: &Body,
        scope: &Scope,
        head: &Head,
    ) -> Result<Self, EnvelopeError> {
        let seq = head.count();
        if ts_unix_ms > MAX_EXACT {
            return Err(EnvelopeError::Timestamp(ts_unix_ms));
        }
        if seq > MAX_EXACT {
            return Err(EnvelopeError::Exhausted);
        }
        let mut rest = Vec::with_capacity(body.text().len() + 384);
        write_rest(&mut rest, seq, ts_unix_ms, body, scope, head);
        let mut line = Vec::with_capacity(rest.len() + 128);
        line.extend_from_slice(b"{\"event_type\":\"");
        line.extend_from_slice(event_type.as_str().as_bytes());
        line.extend_from_slice(b"\",");

        let hash = Hash::of_parts(&[&line, &rest]);
        line.extend_from_slice(b"\"hash\":\"");
        line.extend_from_slice(&hash.to_hex());
        line.extend_from_slice(b"\",");
        line.extend_from_slice(&rest);
        Ok(Self {
            event_type,
            seq,
            ts_unix_ms,
            prev_hash: head.hash(),
            hash,
            line,
        })
    }

    /// The JCS form of the whole event, `hash` included: what is stored and exported.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// The type.
    pub fn event_type(&self) -> EventType {
        self.event_type
    }

    /// The place in the session, from 0.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// When it happened, as the recorder's clock said.
    pub fn ts_unix_ms(&self) -> u64 {
        self.ts_unix_ms
    }

    /// The hash of the event before it.
    pub fn prev_hash(&self) -> Option<Hash> {
        self.prev_hash
    }

    /// Its own hash.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The head of the chain after this event.
    pub fn head(&self) -> Head {
        Head::after(self.seq, self.hash)
    }
}

/// Everything that follows `hash` in key order.
fn write_rest(line: &mut Vec<u8>, seq: u64, ts: u64, body: &Body, scope: &Scope, head: &Head) {
    line.extend_from_slice(b"\"payload\":");
    line.extend_from_slice(body.text());
    line.extend_from_slice(b",\"prev_hash\":");
    match head.hash() {
        Some(hash) => {
            line.push(b'"');
            line.extend_from_slice(&hash.to_hex());
            line.push(b'"');
        }
        None => line.extend_from_slice(b"null"),
    }
    line.extend_from_slice(b",\"seq\":");
    line.extend_from_slice(seq.to_string().as_bytes());
    line.extend_from_slice(b",\"session_id\":");
    jcs::write_string(scope.session.as_str(), line);
    line.extend_from_slice(b",\"tenant_id\":");
    jcs::write_string(scope.tenant.as_str(), line);
    line.extend_from_slice(b",\"ts_unix_ms\":");
    line.extend_from_slice(ts.to_string().as_bytes());
    line.push(b'}');
}
