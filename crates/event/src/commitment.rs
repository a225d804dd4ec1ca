//! Salted commitments: what the chain keeps of a member whose content is encrypted.

use countersign_canon::{Digest, Error, Json};

/// A random value that keeps a commitment from being guessed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Salt([u8; Self::LEN]);

impl Salt {
    /// Bytes of a salt: 128 bits.
    pub const LEN: usize = 16;

    /// A salt from bytes that the caller drew at random.
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// The commitment to a value given by its JCS text: SHA-256 over a domain tag, the salt and the
    /// text.
    pub fn commit(&self, jcs: &[u8]) -> Digest {
        Digest::of_parts(&[DOMAIN, &self.0, jcs])
    }
}

/// A sealed value with its salt: enough to check it against its commitment.
#[derive(Clone, PartialEq)]
pub struct Opening {
    /// The salt that was drawn for this value.
    pub salt: Salt,
    /// The value.
    pub value: Json,
}

impl Opening {
    /// The commitment that this opening answers to.
    pub fn commitment(&self) -> Result<Digest, Error> {
        Ok(self.salt.commit(&self.value.to_jcs()?))
    }
}

const DOMAIN: &[u8] = b"countersign/commitment/v1\0";
