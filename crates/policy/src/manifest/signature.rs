//! Who published a manifest: an Ed25519 signature over its canonical text.
//!
//! The signature stands in the manifest itself, as `ed25519:<key id>:<signature>` in
//! `/integrity/signature`, both in lower-case hex. It covers the canonical text (RFC 8785) of the
//! manifest without that member, and without `integrity` if nothing else is in it. The key id is
//! the SHA-256 of the public key.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use countersign_canon::{Hash, Json, Object};
use ed25519_dalek::{Signature, Signer as _};
pub use ed25519_dalek::{SigningKey, VerifyingKey};

use super::Manifest;
use countersign_canon::Quoted;

/// How much an operator asks of a manifest's origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrustMode {
    /// Any origin will do; the result says what is known of it.
    #[default]
    Dev,
    /// A publisher from the list must have signed.
    Prod,
}

/// What is known of a manifest's origin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Origin {
    /// A publisher from the list has signed, with this key.
    Signed(KeyId),
    /// Nothing, for this reason; only where [`TrustMode::Dev`] allows it.
    Unproven(SignatureError),
}

impl Manifest {
    /// Checks who published the manifest.
    pub fn origin(
        &self,
        mode: TrustMode,
        publishers: &Publishers,
    ) -> Result<Origin, SignatureError> {
        match (verify(self.source(), publishers), mode) {
            (Ok(key), _) => Ok(Origin::Signed(key)),
            (Err(error), TrustMode::Dev) => Ok(Origin::Unproven(error)),
            (Err(error), TrustMode::Prod) => Err(error),
        }
    }

    /// Whether the manifest may be put in force. Where nobody has to sign, a signature of a known
    /// publisher that does not fit still tells that somebody has changed the manifest.
    pub fn accept(&self, mode: TrustMode, publishers: &Publishers) -> Result<(), SignatureError> {
        match self.origin(mode, publishers)? {
            Origin::Unproven(SignatureError::Invalid) => Err(SignatureError::Invalid),
            Origin::Signed(_) | Origin::Unproven(_) => Ok(()),
        }
    }
}

/// The manifest with a signature in it, in place of any it had.
pub fn sign(manifest: &Json, key: &SigningKey) -> Result<Json, SignatureError> {
    let signature = key.sign(&signed_text(manifest)?);
    let id = KeyId::of(&key.verifying_key());
    let value = Value { id, signature };
    let mut signed = manifest.as_object().cloned().unwrap_or_default();
    if signed.get(INTEGRITY).is_none() {
        signed.insert(INTEGRITY.to_owned(), Json::Object(Object::new()));
    }
    let integrity = signed.get_mut(INTEGRITY).and_then(Json::as_object_mut);
    let integrity = integrity.ok_or(SignatureError::NotAManifest)?;
    integrity.insert(SIGNATURE.to_owned(), Json::from(value.to_string()));
    Ok(Json::Object(signed))
}

/// Checks that the manifest's own publisher has signed it, with one of the keys listed for it.
pub fn verify(manifest: &Json, publishers: &Publishers) -> Result<KeyId, SignatureError> {
    let text = signed_text(manifest)?;
    let publisher = manifest.get("publisher").and_then(Json::as_str);
    let publisher = publisher.ok_or(SignatureError::NotAManifest)?;
    let value = manifest.get(INTEGRITY).and_then(|it| it.get(SIGNATURE));
    let value = value.ok_or(SignatureError::Unsigned)?;
    let value: Value = value.as_str().ok_or(SignatureError::Form)?.parse()?;
    let key = publishers.key(publisher, value.id)?;
    // SECURITY: strict, so that weak keys and the other encodings of a signature are refused.
    match key.verify_strict(&text, &value.signature) {
        Ok(()) => Ok(value.id),
        Err(_) => Err(SignatureError::Invalid),
    }
}

/// The bytes that a signature covers.
fn signed_text(manifest: &Json) -> Result<Vec<u8>, SignatureError> {
    let mut manifest = manifest.clone();
    let members = manifest
        .as_object_mut()
        .ok_or(SignatureError::NotAManifest)?;
    if let Some(integrity) = members.get_mut(INTEGRITY) {
        let integrity = integrity.as_object_mut();
        let integrity = integrity.ok_or(SignatureError::NotAManifest)?;
        integrity.remove(SIGNATURE);
        if integrity.is_empty() {
            members.remove(INTEGRITY);
        }
    }
    manifest.to_jcs().map_err(SignatureError::Canonical)
}

/// The publishers whose manifests are accepted, each with its keys.
///
/// As text, one a line: `ed25519:<public key in hex> <name>`. Blank lines and lines that start with `#`
/// say nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publishers {
    keys: BTreeMap<String, BTreeMap<KeyId, VerifyingKey>>,
}

impl Publishers {
    /// Accepts manifests of this publisher that were signed with this key.
    pub fn allow(&mut self, publisher: &str, key: VerifyingKey) {
        let keys = self.keys.entry(publisher.to_owned()).or_default();
        keys.insert(KeyId::of(&key), key);
    }

    fn key(&self, publisher: &str, id: KeyId) -> Result<&VerifyingKey, SignatureError> {
        let keys = self.keys.get(publisher);
        let keys = keys.ok_or_else(|| SignatureError::Publisher(publisher.to_owned()))?;
        keys.get(&id).ok_or(SignatureError::Key(id))
    }
}

impl FromStr for Publishers {
    type Err = PublishersError;

    fn from_str(text: &str) -> Result<Self, PublishersError> {
        let mut publishers = Self::default();
        for (text, line) in text.lines().zip(1..) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let (name, key) = listed(text).ok_or(PublishersError { line })?;
            publishers.allow(name, key);
        }
        Ok(publishers)
    }
}

/// The line that lists a publisher.
pub fn publisher_line(name: &str, key: &VerifyingKey) -> String {
    let key = base16ct::lower::encode_string(key.as_bytes());
    format!("{ALGORITHM}:{key} {name}")
}

fn listed(line: &str) -> Option<(&str, VerifyingKey)> {
    let (key, name) = line
        .strip_prefix(ALGORITHM)?
        .strip_prefix(':')?
        .split_once(' ')?;
    let mut bytes = [0; 32];
    let written = base16ct::lower::decode(key, &mut bytes).ok()?.len();
    let key = VerifyingKey::from_bytes(&bytes).ok()?;
    let name = name.trim();
    (written == bytes.len() && !name.is_empty() && !key.is_weak()).then_some((name, key))
}

/// A line that lists no publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} lists no publisher")]
pub struct PublishersError {
    /// Which, from 1.
    pub line: usize,
}

impl<P: Into<String>> FromIterator<(P, VerifyingKey)> for Publishers {
    fn from_iter<I: IntoIterator<Item = (P, VerifyingKey)>>(pairs: I) -> Self {
        let mut publishers = Self::default();
        for (publisher, key) in pairs {
            publishers.allow(&publisher.into(), key);
        }
        publishers
    }
}

/// The name of a public key: its SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId(Hash);

impl KeyId {
    /// The name of this key.
    pub fn of(key: &VerifyingKey) -> Self {
        Self(Hash::of(key.as_bytes()))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What stands in the manifest. One value has one text.
struct Value {
    id: KeyId,
    signature: Signature,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signature = base16ct::lower::encode_string(&self.signature.to_bytes());
        write!(f, "{ALGORITHM}:{}:{signature}", self.id)
    }
}

impl FromStr for Value {
    type Err = SignatureError;

    fn from_str(text: &str) -> Result<Self, SignatureError> {
        let mut parts = text.split(':');
        let (algorithm, id, signature) = (parts.next(), parts.next(), parts.next());
        let (Some(ALGORITHM), Some(id), Some(signature), None) =
            (algorithm, id, signature, parts.next())
        else {
            return Err(SignatureError::Form);
        };
        let id = id.parse().map_err(|_| SignatureError::Form)?;
        let bytes = base16ct::lower::decode_vec(signature).map_err(|_| SignatureError::Form)?;
        let bytes: [u8; 64] = bytes.try_into().map_err(|_| SignatureError::Form)?;
        Ok(Self {
            id: KeyId(id),
            signature: Signature::from_bytes(&bytes),
        })
    }
}

/// Why it is not proven who published a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The value is no object with a publisher.
    #[error("not a manifest")]
    NotAManifest,
    /// The manifest has no canonical text.
    #[error("the manifest has no canonical text: {0}")]
    Canonical(countersign_canon::Error),
    /// There is no signature.
    #[error("the manifest is not signed")]
    Unsigned,
    /// The signature is not of the form that is understood.
    #[error("the signature is not `ed25519:<key id>:<signature>` in lower-case hex")]
    Form,
    /// The publisher is not in the list.
    #[error("publisher {} is not in the list", Quoted(.0))]
    Publisher(String),
    /// The publisher has no such key.
    #[error("key `{0}` is not listed for the publisher")]
    Key(KeyId),
    /// The signature is not one of this manifest by this key.
    #[error("the signature does not fit the manifest")]
    Invalid,
}

const INTEGRITY: &str = "integrity";
const SIGNATURE: &str = "signature";
const ALGORITHM: &str = "ed25519";

#[cfg(test)]
mod tests;
