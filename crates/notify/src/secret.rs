//! The shared secret, and what it signs.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

/// The header with the time of sending, in seconds since 1970.
pub const TIMESTAMP: &str = "countersign-timestamp";
/// The header with the signature: `v1=` and 64 hex digits.
pub const SIGNATURE: &str = "countersign-signature";
/// The header with the name of the delivery, which the body repeats.
pub const ID: &str = "countersign-notice";

/// What sender and receiver share.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

/// The secret is too short to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret of a web-hook has at least {LEAST} bytes")]
pub struct SecretError;

impl Secret {
    /// A secret of at least 32 bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, SecretError> {
        match bytes.len() >= LEAST {
            true => Ok(Self(Zeroizing::new(bytes.to_vec()))),
            false => Err(SecretError),
        }
    }

    /// The signature of a body that is sent at this time: HMAC-SHA-256 over the name of the delivery,
    /// the time and the body, the first two each with a dot after them.
    pub fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let tag = self.mac(id, timestamp, body).map(|mac| {
            let tag = mac.finalize().into_bytes();
            base16ct::lower::encode_string(&tag)
        });
        format!("{VERSION}{}", tag.unwrap_or_default())
    }

    /// Whether the signature is that of the body; takes as long for a wrong one.
    pub(crate) fn verifies(&self, signature: &str, id: &str, timestamp: u64, body: &[u8]) -> bool {
        let hex = signature.strip_prefix(VERSION);
        let tag = hex.and_then(|hex| base16ct::lower::decode_vec(hex).ok());
        let (Some(tag), Some(mac)) = (tag, self.mac(id, timestamp, body)) else {
            return false;
        };
        mac.verify_slice(&tag).is_ok()
    }

    fn mac(&self, id: &str, timestamp: u64, body: &[u8]) -> Option<Hmac<Sha256>> {
        // HMAC takes a key of any length.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(id.as_bytes());
        mac.update(b".");
        mac.update(timestamp.to_string().as_bytes());
        mac.update(b".");
        mac.update(body);
        Some(mac)
    }
}

// SECURITY: a secret does not reach a log line.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(not shown)")
    }
}

const LEAST: usize = 32;
const VERSION: &str = "v1=";
