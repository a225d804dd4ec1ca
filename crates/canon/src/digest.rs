//! SHA-256 values in their two text forms.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::quoted::Quoted;

/// A SHA-256 value whose text is 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The hash of the parts one after the other, without joining them in memory.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// The hash of a short text and a long one after it, without joining them in memory.
    pub fn of_prefixed(prefix: &[u8], rest: &[u8]) -> Self {
        let mut block = [0; BLOCK];
        let missing = BLOCK.saturating_sub(prefix.len());
        let (Some(start), Some((end, rest))) = (
            block.get_mut(..prefix.len()),
            rest.split_at_checked(missing),
        ) else {
            return Self::of_parts(&[prefix, rest]);
        };
        start.copy_from_slice(prefix);
        if let Some(free) = block.get_mut(prefix.len()..) {
            free.copy_from_slice(end);
        }
        // Whole blocks from the start: the hasher has nothing to keep and to shift.
        Self::of_parts(&[&block, rest])
    }

    /// Takes 32 bytes that already are a hash.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The text form, without allocation.
    // Not inlined, for the reason that `read_hex` is not.
    #[inline(never)]
    pub fn to_hex(&self) -> [u8; 64] {
        let mut hex = [0; 64];
        for (pair, byte) in hex.as_chunks_mut().0.iter_mut().zip(self.0) {
            *pair = [digit_of(byte >> 4), digit_of(byte & 0xf)];
        }
        hex
    }

    /// The hash with this text form.
    #[inline]
    pub(crate) fn from_hex(hex: &[u8; 64]) -> Option<Self> {
        let mut bytes = [0; 32];
        read_hex(hex, &mut bytes).then_some(Self(bytes))
    }

    /// The same value in the form with the name of its algorithm.
    pub const fn to_digest(self) -> Digest {
        Digest(self)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(std::str::from_utf8(&self.to_hex()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, ParseDigestError> {
        decode(text).ok_or_else(|| ParseDigestError {
            text: text.to_owned(),
            form: HASH_FORM,
        })
    }
}

/// A SHA-256 value whose text is `sha256:` and 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(Hash);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Hash::of(bytes))
    }

    /// The digest of the parts one after the other, without joining them in memory.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        Self(Hash::of_parts(parts))
    }

    /// Takes 32 bytes that already are a SHA-256 value.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Hash(bytes))
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// The same value in the form without the name of its algorithm.
    pub const fn to_hash(self) -> Hash {
        self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In one piece, because texts are made of it.
        let mut text = [0; PREFIX.len() + 64];
        let (prefix, hex) = text.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(PREFIX.as_bytes());
        hex.copy_from_slice(&self.0.to_hex());
        f.pad(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, ParseDigestError> {
        let hash = text.strip_prefix(PREFIX).and_then(decode);
        let refuse = || ParseDigestError {
            text: text.to_owned(),
            form: DIGEST_FORM,
        };
        hash.map(Self).ok_or_else(refuse)
    }
}

/// The text is not a SHA-256 value in the form asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not {form}", Quoted(text))]
pub struct ParseDigestError {
    text: String,
    form: &'static str,
}

fn decode(hex: &str) -> Option<Hash> {
    Hash::from_hex(hex.as_bytes().try_into().ok()?)
}

// Hashes are public, so their digits need no constant time; a verifier reads several per event.

#[inline]
fn digit_of(value: u8) -> u8 {
    value + if value < 10 { b'0' } else { b'a' - 10 }
}

/// Reads lower-case digits; says whether they all are.
///
/// Not inlined: by itself it becomes a few vector instructions, among other code it does not.
#[inline(never)]
fn read_hex(hex: &[u8; 64], bytes: &mut [u8; 32]) -> bool {
    let values = hex.map(value_of);
    for (byte, [high, low]) in bytes.iter_mut().zip(values.as_chunks().0) {
        *byte = high << 4 | low;
    }
    values.iter().fold(0, |all, value| all | value) <= 0xf
}

/// The value of a lower-case digit; of any other byte, more than a digit can have.
#[inline]
fn value_of(digit: u8) -> u8 {
    // Signed, because that is how vectors compare; what is not ASCII is below everything then.
    let above_nine = digit as i8 > b'9' as i8;
    let is_letter = digit as i8 >= b'a' as i8;
    let letter_gap = if is_letter { b'a' - b':' } else { 0 };
    let between = if above_nine != is_letter { u8::MAX } else { 0 };
    // The sixteen digits now lie one after the other from `0` on, where only the low half changes.
    (digit.wrapping_sub(letter_gap) ^ b'0') | between
}

/// What SHA-256 takes at a time.
const BLOCK: usize = 64;
const PREFIX: &str = "sha256:";
const HASH_FORM: &str = "64 lower-case hex digits";
const DIGEST_FORM: &str = "`sha256:` and 64 lower-case hex digits";

#[cfg(test)]
mod tests;
