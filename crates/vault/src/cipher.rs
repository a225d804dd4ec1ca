//! Authenticated encryption with a random nonce.

use aes_gcm::{
    AeadInOut, Aes256Gcm, KeyInit,
    aead::{Nonce, Tag},
};
use zeroize::Zeroizing;

/// Bytes of a key.
pub(crate) const KEY_LEN: usize = 32;
/// Key material that is wiped when dropped.
pub(crate) type KeyBytes = Zeroizing<[u8; KEY_LEN]>;

/// Why something could not be encrypted or decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CipherError {
    /// The system gave no randomness.
    #[error("the system gave no randomness")]
    Randomness,
    /// The text is too long to encrypt.
    #[error("the content is too long to encrypt")]
    TooLong,
    /// The ciphertext is not of a form that this version writes.
    #[error("the ciphertext has an unknown form")]
    Form,
    /// Wrong key, or the ciphertext or its context was changed.
    #[error("the ciphertext does not decrypt: wrong key, or it was changed")]
    Refused,
}

/// A cipher with its expanded key.
pub(crate) struct Cipher(Aes256Gcm);

impl Cipher {
    pub(crate) fn new(key: &KeyBytes) -> Self {
        Self(Aes256Gcm::new((&**key).into()))
    }

    /// `version ‖ nonce ‖ ciphertext ‖ tag`; the plaintext is wiped.
    ///
    /// The nonce is random: an append that lost a race is sealed again under the same key, so no
    /// counter that belongs to an event's place may serve as one.
    pub(crate) fn encrypt(
        &self,
        plaintext: Zeroizing<Vec<u8>>,
        context: &[u8],
    ) -> Result<Vec<u8>, CipherError> {
        let nonce = random::<NONCE_LEN>()?;
        let mut out = Vec::with_capacity(1 + NONCE_LEN + plaintext.len() + TAG_LEN);
        out.push(VERSION);
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&plaintext);
        let nonce = Nonce::<Aes256Gcm>::from(nonce);
        let body = out.get_mut(1 + NONCE_LEN..).ok_or(CipherError::Form)?;
        let tag = self
            .0
            .encrypt_inout_detached(&nonce, context, body.into())
            .map_err(|_| CipherError::TooLong)?;
        out.extend_from_slice(&tag);
        Ok(out)
    }

    pub(crate) fn decrypt(
        &self,
        ciphertext: &[u8],
        context: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, CipherError> {
        let (version, rest) = ciphertext.split_first().ok_or(CipherError::Form)?;
        let (nonce, rest) = rest
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(CipherError::Form)?;
        let (body, tag) = rest
            .split_last_chunk::<TAG_LEN>()
            .ok_or(CipherError::Form)?;
        if *version != VERSION {
            return Err(CipherError::Form);
        }
        let mut plaintext = Zeroizing::new(body.to_vec());
        let nonce = Nonce::<Aes256Gcm>::from(*nonce);
        let tag = Tag::<Aes256Gcm>::from(*tag);
        self.0
            .decrypt_inout_detached(&nonce, context, plaintext.as_mut_slice().into(), &tag)
            .map_err(|_| CipherError::Refused)?;
        Ok(plaintext)
    }
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], CipherError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| CipherError::Randomness)?;
    Ok(bytes)
}

const VERSION: u8 = 1;
const NONCE_LEN: usize = 12;
const TAG_LEN: usize = 16;
