//! The data key of one session: sealing payloads and opening them again.

use countersign_canon::{Digest, Error, Json, Limits, Numbers, Object};
use countersign_event::payload::{Split, join};
use countersign_event::{Body, Opening, Payload, Salt, Scope, Seal};
use zeroize::Zeroizing;

use crate::cipher::{Cipher, CipherError, KEY_LEN, KeyBytes, random};

/// Encrypts and decrypts the sealed members of one session.
pub struct SessionKey {
    bytes: KeyBytes,
    cipher: Cipher,
}

/// A payload in its stored form, with the ciphertext that belongs to it.
pub struct SealedPayload {
    /// What the chain covers.
    pub body: Body,
    /// What is stored beside the chain; `None` when every member is public.
    pub ciphertext: Option<Vec<u8>>,
}

/// Sealed values by their place in the payload.
pub type Openings = Vec<(String, Opening)>;

/// Why a payload could not be sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// A value has no canonical form.
    #[error(transparent)]
    Json(#[from] Error),
    /// Encryption failed.
    #[error(transparent)]
    Cipher(#[from] CipherError),
}

/// Why sealed members could not be opened.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum OpenError {
    /// Decryption failed.
    #[error(transparent)]
    Cipher(#[from] CipherError),
    /// The decrypted text is not what this version writes.
    #[error("the decrypted content has an unknown form")]
    Form,
}

impl SessionKey {
    /// A new random key.
    pub fn generate() -> Result<Self, CipherError> {
        Ok(Self::from_bytes(Zeroizing::new(random::<KEY_LEN>()?)))
    }

    pub(crate) fn from_bytes(bytes: KeyBytes) -> Self {
        let cipher = Cipher::new(&bytes);
        Self { bytes, cipher }
    }

    pub(crate) fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.bytes
    }

    /// Encrypts what the payload does not declare public.
    pub fn seal(&self, payload: Payload, scope: &Scope) -> Result<SealedPayload, SealError> {
        let Split { public, mut sealed } = payload.split();
        if sealed.is_empty() {
            return Ok(SealedPayload {
                body: Body::new(public, None)?,
                ciphertext: None,
            });
        }
        sealed.sort_unstable_by_key(|(place, _)| *place);
        let (plaintext, commitments) = plaintext(&sealed)?;
        let ciphertext = self.cipher.encrypt(plaintext, &context(scope))?;
        let seal = Seal {
            ciphertext: Digest::of(&ciphertext),
            commitments,
        };
        Ok(SealedPayload {
            body: Body::new(public, Some(seal))?,
            ciphertext: Some(ciphertext),
        })
    }

    /// Decrypts the sealed members of one payload.
    pub fn open(&self, ciphertext: &[u8], scope: &Scope) -> Result<Openings, OpenError> {
        let plaintext = self.cipher.decrypt(ciphertext, &context(scope))?;
        let Ok(Json::Object(members)) = Json::admit(&plaintext, &PLAINTEXT_LIMITS) else {
            return Err(OpenError::Form);
        };
        members
            .into_iter()
            .map(|(place, opening)| Some((place, read_opening(opening)?)))
            .collect::<Option<_>>()
            .ok_or(OpenError::Form)
    }
}

/// Equal keys open the same content.
impl PartialEq for SessionKey {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

/// The payload as it was given, from its stored form and its openings.
pub fn joined(body: &[u8], openings: Openings) -> Result<Json, OpenError> {
    let Ok(Json::Object(mut public)) = Json::admit(body, &PLAINTEXT_LIMITS) else {
        return Err(OpenError::Form);
    };
    public.remove("sealed");
    join(
        public,
        openings
            .into_iter()
            .map(|(place, opening)| (place, opening.value)),
    )
    .ok_or(OpenError::Form)
}

/// `{"/args":{"salt":"…","value":…},…}` and the commitment to each value.
#[expect(clippy::type_complexity, reason = "used once, right above")]
fn plaintext(
    sealed: &[(&'static str, Json)],
) -> Result<(Zeroizing<Vec<u8>>, Vec<(String, Digest)>), SealError> {
    let mut text = Zeroizing::new(Vec::with_capacity(512));
    let mut commitments = Vec::with_capacity(sealed.len());
    text.push(b'{');
    for (index, (place, value)) in sealed.iter().enumerate() {
        let salt = Salt::from_bytes(random()?);
        if index > 0 {
            text.push(b',');
        }
        text.push(b'"');
        text.extend_from_slice(place.as_bytes());
        text.extend_from_slice(b"\":{\"salt\":\"");
        text.extend_from_slice(base16ct::lower::encode_string(salt.as_bytes()).as_bytes());
        text.extend_from_slice(b"\",\"value\":");
        let start = text.len();
        value.write_jcs(&mut text)?;
        let jcs = text.get(start..).unwrap_or_default();
        commitments.push(((*place).to_owned(), salt.commit(jcs)));
        text.push(b'}');
    }
    text.push(b'}');
    Ok((text, commitments))
}

fn read_opening(opening: Json) -> Option<Opening> {
    let mut members: Object = opening.into_object()?;
    let mut salt = [0; Salt::LEN];
    base16ct::lower::decode(members.get("salt")?.as_str()?, &mut salt)
        .ok()
        .filter(|bytes| bytes.len() == Salt::LEN)?;
    Some(Opening {
        salt: Salt::from_bytes(salt),
        value: members.remove("value")?,
    })
}

/// Ties a ciphertext to its session: one moved to another session does not decrypt there.
fn context(scope: &Scope) -> Vec<u8> {
    crate::keyring::context(b"countersign/payload/v1\0", scope)
}

/// The payload's own limits plus the two levels around each value.
const PLAINTEXT_LIMITS: Limits = Limits {
    max_bytes: usize::MAX,
    max_depth: 130,
    numbers: Numbers::Double,
};
