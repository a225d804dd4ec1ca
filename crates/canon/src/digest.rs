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

    /// Takes 32 bytes that already are a hash.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The text form, without allocation.
    pub fn to_hex(&self) -> [u8; 64] {
        let mut hex = [0; 64];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            // INVARIANT: a pair has room for the two digits of one byte, so this cannot fail.
            let _written = base16ct::lower::encode(&[byte], pair);
        }
        hex
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
        write!(f, "{PREFIX}{}", self.0)
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
    let mut bytes = [0; 32];
    let written = base16ct::lower::decode(hex, &mut bytes).ok()?;
    // A shorter text decodes too, and would leave zeros behind.
    (written.len() == 32).then_some(Hash(bytes))
}

const PREFIX: &str = "sha256:";
const HASH_FORM: &str = "64 lower-case hex digits";
const DIGEST_FORM: &str = "`sha256:` and 64 lower-case hex digits";

#[cfg(test)]
mod tests;
