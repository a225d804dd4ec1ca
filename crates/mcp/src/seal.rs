//! States that we hand to a client and want back as they were.
//!
//! A client that is told to come back brings the state along. It is sealed: the client can neither
//! read nor change it, and it opens only for the session that made it and for the very call that it was
//! made for.

use std::sync::atomic::{AtomicU64, Ordering};

use aes_gcm::{
    AeadInOut, Aes256Gcm, KeyInit,
    aead::{Nonce, Tag},
};

/// The seal of one session.
pub struct Seal {
    cipher: Aes256Gcm,
    /// Never the same twice under one key.
    count: AtomicU64,
}

impl Seal {
    /// A seal with a key that is used for nothing else, and by no other session.
    pub fn new(key: &[u8; 32]) -> Self {
        Self {
            cipher: Aes256Gcm::new(key.into()),
            count: AtomicU64::new(0),
        }
    }

    /// Seals a text for a context; `None` if the seal is worn out.
    pub(crate) fn close(&self, text: &str, context: &[u8]) -> Option<String> {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        if count > MOST {
            return None;
        }
        let mut nonce = [0; NONCE];
        nonce.get_mut(..8)?.copy_from_slice(&count.to_be_bytes());
        let mut body = text.as_bytes().to_vec();
        let key = Nonce::<Aes256Gcm>::from(nonce);
        let inout = body.as_mut_slice().into();
        let tag = self.cipher.encrypt_inout_detached(&key, context, inout);
        let bytes = [&nonce[..], &body, &tag.ok()?].concat();
        Some(format!(
            "{PREFIX}{}",
            base16ct::lower::encode_string(&bytes)
        ))
    }

    /// The text, if it was sealed here for this context.
    pub(crate) fn open(&self, state: &str, context: &[u8]) -> Option<String> {
        let hex = state.strip_prefix(PREFIX)?;
        let bytes = base16ct::lower::decode_vec(hex.as_bytes()).ok()?;
        let (nonce, rest) = bytes.split_first_chunk::<NONCE>()?;
        let (body, tag) = rest.split_last_chunk::<TAG>()?;
        let mut body = body.to_vec();
        let nonce = Nonce::<Aes256Gcm>::from(*nonce);
        let tag = Tag::<Aes256Gcm>::from(*tag);
        let inout = body.as_mut_slice().into();
        let opened = self
            .cipher
            .decrypt_inout_detached(&nonce, context, inout, &tag);
        opened.ok()?;
        String::from_utf8(body).ok()
    }

    /// Whether a state says that it is one of ours; it may be forged.
    pub(crate) fn claims(state: &str) -> bool {
        state.starts_with(PREFIX)
    }
}

// SECURITY: a key must not reach a log line through a derived `Debug`.
impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

const PREFIX: &str = "countersign.1.";
const NONCE: usize = 12;
const TAG: usize = 16;
/// Far more than a session ever asks.
const MOST: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_opens_only_as_it_was_and_where_it_was_made() {
        let seal = Seal::new(&[7; 32]);
        let state = seal.close("apr_1 99", b"this call").unwrap();
        assert_eq!(seal.open(&state, b"this call").as_deref(), Some("apr_1 99"));
        assert!(!state.contains("apr_1"));
        assert_ne!(state, seal.close("apr_1 99", b"this call").unwrap());
        assert_eq!(seal.open(&state, b"another call"), None);
        assert_eq!(Seal::new(&[8; 32]).open(&state, b"this call"), None);
        for at in 0..state.len() {
            let mut changed = state.clone().into_bytes();
            changed[at] ^= 1;
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(seal.open(&changed, b"this call"), None, "{at}");
            assert_eq!(seal.open(&state[..at], b"this call"), None, "{at}");
        }
    }
}
