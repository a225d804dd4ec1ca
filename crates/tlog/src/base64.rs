//! Standard base 64 with padding, one text per value.

use base64ct::{Base64, Encoding as _};
use countersign_canon::Hash;

pub(crate) fn encode(bytes: &[u8]) -> String {
    Base64::encode_string(bytes)
}

/// Refuses every text but the one that [`encode`] gives.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let bytes = Base64::decode_vec(text).ok()?;
    (encode(&bytes) == text).then_some(bytes)
}

pub(crate) fn decode_hash(text: &str) -> Option<Hash> {
    let bytes: [u8; 32] = decode(text)?.try_into().ok()?;
    Some(Hash::from_bytes(bytes))
}

/// A whole number without sign or leading zeros.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    let canonical =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    canonical.then(|| text.parse().ok()).flatten()
}
