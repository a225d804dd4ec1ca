//! Keys of notes: names, short ids and the text form in which people hand them around.

use std::fmt;
use std::str::FromStr;

use countersign_canon::Hash;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

use crate::base64::{decode, encode};
use crate::note::{Note, NoteSignature};

/// The first four bytes of a key's hash. Tells which key to try; proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHint(pub [u8; 4]);

impl fmt::Display for KeyHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

/// What a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The text of a note: how a log signs its checkpoints.
    Note,
    /// A time and the text: how a witness says that it saw the log grow consistently.
    Cosignature,
}

impl Kind {
    const fn byte(self) -> u8 {
        match self {
            Self::Note => 1,
            Self::Cosignature => 4,
        }
    }
}

/// A public key with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    name: String,
    kind: Kind,
    key: VerifyingKey,
}

/// Why a text or some bytes are no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The name is empty, or holds a space, a plus or a control character.
    #[error("`{}` is no name of a key", .0.escape_debug())]
    Name(String),
    /// The text is not of the form name, hint and key.
    #[error("a key is written as name+hint+key, with 8 hexadecimal digits and base 64")]
    Form,
    /// The hint does not belong to the key.
    #[error("the key has the hint `{computed}`, not `{stated}`")]
    Hint {
        /// What the text says.
        stated: String,
        /// What the key gives.
        computed: KeyHint,
    },
    /// The algorithm is not one that is checked here.
    #[error("keys of type {0} are not known")]
    Unknown(u8),
    /// The bytes are no public key, or one under which a signature proves nothing.
    #[error("the bytes are no usable Ed25519 public key")]
    Bytes,
}

impl Key {
    /// A key from its parts.
    pub fn new(name: &str, kind: Kind, public: &[u8; 32]) -> Result<Self, KeyError> {
        if !is_name(name) {
            return Err(KeyError::Name(name.to_owned()));
        }
        let key = VerifyingKey::from_bytes(public).map_err(|_| KeyError::Bytes)?;
        // SECURITY: under a weak key one signature fits many texts.
        if key.is_weak() {
            return Err(KeyError::Bytes);
        }
        Ok(Self {
            name: name.to_owned(),
            kind,
            key,
        })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it signs.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The 32 bytes.
    pub fn public(&self) -> &[u8; 32] {
        self.key.as_bytes()
    }

    /// The short id.
    pub fn hint(&self) -> KeyHint {
        hint(&self.name, self.kind, self.key.as_bytes())
    }

    /// Whether this key made this signature over these bytes.
    pub fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        // SECURITY: strict, so that a signature has one encoding.
        self.key
            .verify_strict(message, &Signature::from_bytes(signature))
            .is_ok()
    }

    /// Whether a signature line is by this key over this text; for a cosignature, the time it states.
    pub(crate) fn check(&self, text: &str, signature: &[u8]) -> Option<Option<u64>> {
        match self.kind {
            Kind::Note => {
                let signature = signature.try_into().ok()?;
                self.verifies(text.as_bytes(), signature).then_some(None)
            }
            Kind::Cosignature => {
                let (time, signature) = signature.split_first_chunk::<8>()?;
                let time = u64::from_be_bytes(*time);
                let signature = signature.try_into().ok()?;
                (time <= i64::MAX as u64 && self.verifies(&cosigned(text, time), signature))
                    .then_some(Some(time))
            }
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![self.kind.byte()];
        bytes.extend_from_slice(self.key.as_bytes());
        write!(f, "{}+{}+{}", self.name, self.hint(), encode(&bytes))
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        // The key itself may hold a plus, the name and the hint may not.
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(stated), Some(key)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(KeyError::Form);
        };
        let bytes = decode(key).ok_or(KeyError::Form)?;
        let (kind, public) = bytes.split_first().ok_or(KeyError::Form)?;
        let kind = match kind {
            1 => Kind::Note,
            4 => Kind::Cosignature,
            other => return Err(KeyError::Unknown(*other)),
        };
        let public: &[u8; 32] = public.try_into().map_err(|_| KeyError::Bytes)?;
        let key = Self::new(name, kind, public)?;
        let computed = key.hint();
        if computed.to_string() != stated {
            return Err(KeyError::Hint {
                stated: stated.to_owned(),
                computed,
            });
        }
        Ok(key)
    }
}

/// A private key with its name.
pub struct Signer {
    name: String,
    key: SigningKey,
}

impl Signer {
    /// A signer from the 32 bytes of its private key.
    pub fn new(name: &str, secret: &[u8; 32]) -> Result<Self, KeyError> {
        if !is_name(name) {
            return Err(KeyError::Name(name.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            key: SigningKey::from_bytes(secret),
        })
    }

    /// The public key, as one that signs notes or as one that cosigns.
    pub fn key(&self, kind: Kind) -> Key {
        Key {
            name: self.name.clone(),
            kind,
            key: self.key.verifying_key(),
        }
    }

    /// Signs bytes that are no note; the caller keeps them apart from notes.
    pub fn sign_bytes(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }

    /// The signature line of a log.
    pub fn sign(&self, note: &Note) -> NoteSignature {
        let signature = self.key.sign(note.text().as_bytes());
        self.line(Kind::Note, signature.to_bytes().to_vec())
    }

    /// The signature line of a witness, at this time in seconds.
    pub fn cosign(&self, note: &Note, unix_seconds: u64) -> NoteSignature {
        let signature = self.key.sign(&cosigned(note.text(), unix_seconds));
        let mut bytes = unix_seconds.to_be_bytes().to_vec();
        bytes.extend_from_slice(&signature.to_bytes());
        self.line(Kind::Cosignature, bytes)
    }

    fn line(&self, kind: Kind, signature: Vec<u8>) -> NoteSignature {
        NoteSignature {
            name: self.name.clone(),
            hint: hint(&self.name, kind, self.key.verifying_key().as_bytes()),
            signature,
        }
    }
}

/// Whether a text can be the name of a key.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name
            .chars()
            .any(|c| c == '+' || c.is_whitespace() || c.is_control())
}

fn hint(name: &str, kind: Kind, public: &[u8; 32]) -> KeyHint {
    let full = Hash::of_parts(&[name.as_bytes(), b"\n", &[kind.byte()], public]);
    let [a, b, c, d, ..] = *full.as_bytes();
    KeyHint([a, b, c, d])
}

fn cosigned(text: &str, time: u64) -> Vec<u8> {
    format!("cosignature/v1\ntime {time}\n{text}").into_bytes()
}
