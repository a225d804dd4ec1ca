//! Whether somebody whose key is known signed exactly this record.

use std::collections::BTreeMap;

use countersign_canon::{Json, Object};
use ed25519_dalek::VerifyingKey;

use super::canonical::{self, Order, UNSIGNED};
use super::dsse::{self, Binding, Covers, Envelope};
use super::finding::{Code, Finding};
use super::version::Version;
use crate::word::words;

/// The keys that a reader trusts, by the names that records use.
#[derive(Clone, Debug, Default)]
pub struct Keys(BTreeMap<String, VerifyingKey>);

/// Why a key was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// Not a public key.
    #[error("the key of `{0}` is not 64 hexadecimal digits of an Ed25519 public key")]
    NotAKey(String),
    /// A key under which anything verifies.
    #[error("the key of `{0}` is weak")]
    Weak(String),
    /// Two keys with one name.
    #[error("`{0}` has two keys")]
    Twice(String),
}

impl Keys {
    /// Adds a key in hexadecimal digits.
    pub fn add(&mut self, name: &str, hex: &str) -> Result<(), KeysError> {
        let mut bytes = [0; 32];
        let decoded = base16ct::mixed::decode(hex.as_bytes(), &mut bytes);
        let whole = decoded.is_ok_and(|bytes| bytes.len() == 32);
        let key = VerifyingKey::from_bytes(&bytes).ok().filter(|_| whole);
        let key = key.ok_or_else(|| KeysError::NotAKey(name.to_owned()))?;
        if key.is_weak() {
            return Err(KeysError::Weak(name.to_owned()));
        }
        match self.0.insert(name.to_owned(), key) {
            Some(earlier) if earlier != key => Err(KeysError::Twice(name.to_owned())),
            _ => Ok(()),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

words! {
    /// Which bytes a signature covers.
    Profile {
        /// The canonical text of the record itself.
        Inline = "inline-ed25519",
        /// A statement in an envelope.
        Dsse = "aep-dsse-ed25519-decoded-body-v1",
    }
}

/// What can be said about who signed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Authenticity {
    /// Nobody signed.
    Unsigned(Vec<Finding>),
    /// The owner of a known key signed exactly this.
    Valid(Signed),
    /// A signature that does not hold.
    Invalid(Finding),
    /// A signature that holds, about something else.
    BindingMismatch(Finding),
    /// A construction that proves too little.
    UnsupportedLegacy(Finding),
    /// There is a signature, but no key to check it with.
    NotEvaluated(Finding),
}

/// A signature that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The name of the key that was given.
    pub key_id: String,
    /// What was signed.
    pub profile: Profile,
    /// How the statement and the record belong together, for an envelope.
    pub binding: Option<Binding>,
    /// The order of keys in what was signed.
    pub order: Order,
}

impl Authenticity {
    /// The word for it; `None` where nothing was concluded.
    pub const fn status(&self) -> Option<&'static str> {
        match self {
            Self::Unsigned(_) => Some("unsigned"),
            Self::Valid(_) => Some("valid"),
            Self::Invalid(_) => Some("invalid"),
            Self::BindingMismatch(_) => Some("binding-mismatch"),
            Self::UnsupportedLegacy(_) => Some("unsupported-legacy"),
            Self::NotEvaluated(_) => None,
        }
    }

    /// What was found.
    pub fn findings(&self) -> &[Finding] {
        match self {
            Self::Valid(_) => &[],
            Self::Unsigned(findings) => findings,
            Self::Invalid(finding)
            | Self::BindingMismatch(finding)
            | Self::UnsupportedLegacy(finding)
            | Self::NotEvaluated(finding) => std::slice::from_ref(finding),
        }
    }
}

pub(super) fn check(
    record: &Object,
    version: Option<Version>,
    keys: &Keys,
    notes: &mut Vec<Finding>,
) -> Authenticity {
    let found = found(record, version, keys);
    let is_enveloped =
        matches!(&found, Authenticity::Valid(signed) if signed.profile == Profile::Dsse);
    if is_enveloped && record.get("timestamp_proof").is_some() {
        let message = "the signature does not cover it";
        notes.push(Finding::new(Code::Weak, "/timestamp_proof", message));
    }
    found
}

fn found(record: &Object, version: Option<Version>, keys: &Keys) -> Authenticity {
    match (record.get("dsse_envelope"), record.get("signature")) {
        (None | Some(Json::Null), None | Some(Json::Null)) => Authenticity::Unsigned(Vec::new()),
        (None | Some(Json::Null), Some(signature)) => inline(record, signature, version, keys),
        (Some(envelope), mirror) => match enveloped(record, envelope, keys) {
            Ok(signed) => mirrored(record, envelope, mirror, signed, keys),
            Err(other) => *other,
        },
    }
}

fn inline(
    record: &Object,
    signature: &Json,
    version: Option<Version>,
    keys: &Keys,
) -> Authenticity {
    let text = |name: &str| {
        signature
            .get(name)
            .and_then(Json::as_str)
            .unwrap_or_default()
    };
    if PLACEHOLDERS.contains(&text("sig")) {
        let message = "words where a signature should be";
        let finding = Finding::new(Code::Placeholder, "/signature/sig", message);
        return Authenticity::Unsigned(vec![finding]);
    }
    match covered(record, signature, keys) {
        Ok(_) if version.is_some_and(|version| version > Version::V03) => {
            Authenticity::UnsupportedLegacy(Finding::new(
                Code::RetiredProfile,
                "/signature",
                "records of this version are signed as an envelope",
            ))
        }
        Ok(signed) => Authenticity::Valid(signed),
        Err(finding) if finding.code == Code::UnknownKey => Authenticity::NotEvaluated(finding),
        Err(finding) => Authenticity::Invalid(finding),
    }
}

/// Checks a signature over the record's own canonical text.
fn covered(record: &Object, signature: &Json, keys: &Keys) -> Result<Signed, Finding> {
    let text = |name: &str| {
        signature
            .get(name)
            .and_then(Json::as_str)
            .unwrap_or_default()
    };
    // SECURITY: the block is not covered by its own signature, so nothing in it may be lenient.
    if text("alg") != ALGORITHM {
        let message = format!("is not `{ALGORITHM}`");
        return Err(Finding::new(Code::Algorithm, "/signature/alg", message));
    }
    let at = "/signature/sig";
    let sig = dsse::standard_signature(text("sig"))
        .ok_or_else(|| Finding::new(Code::Encoding, at, dsse::NOT_A_SIGNATURE))?;
    let key = keys
        .0
        .get(text("key_id"))
        .ok_or_else(|| unknown(text("key_id")))?;
    let texts = canonical::texts(record, UNSIGNED)
        .map_err(|error| Finding::new(Code::SignatureMismatch, at, error.to_string()))?;
    let covered = texts
        .into_iter()
        .find(|(_, text)| key.verify_strict(text, &sig).is_ok());
    let message = "the signature does not cover this record";
    let (order, _) = covered.ok_or_else(|| Finding::new(Code::SignatureMismatch, at, message))?;
    Ok(Signed {
        key_id: text("key_id").to_owned(),
        profile: Profile::Inline,
        binding: None,
        order,
    })
}

fn enveloped(record: &Object, envelope: &Json, keys: &Keys) -> Result<Signed, Box<Authenticity>> {
    let envelope = Envelope::read(envelope).map_err(Authenticity::Invalid)?;
    let binding = envelope.binding(record);
    let Some(key) = keys.0.get(envelope.key_id) else {
        // A statement about something else needs no key to be refused.
        return Err(Box::new(match binding {
            Err(finding) => misbound(finding),
            Ok(_) => Authenticity::NotEvaluated(unknown(envelope.key_id)),
        }));
    };
    match envelope.covered(key).map_err(Authenticity::Invalid)? {
        Covers::Statement => {}
        Covers::Base64Text => {
            return Err(Box::new(Authenticity::UnsupportedLegacy(Finding::new(
                Code::RetiredProfile,
                "/dsse_envelope/signatures/0/sig",
                "the signature covers the base64 text, not what it holds",
            ))));
        }
    }
    Ok(Signed {
        key_id: envelope.key_id.to_owned(),
        profile: Profile::Dsse,
        binding: Some(binding.map_err(misbound)?),
        order: Order::Jcs,
    })
}

/// The signature beside an envelope repeats the one inside, or is a signature of its own.
fn mirrored(
    record: &Object,
    envelope: &Json,
    mirror: Option<&Json>,
    signed: Signed,
    keys: &Keys,
) -> Authenticity {
    let Some(mirror) = mirror.filter(|mirror| !mirror.is_null()) else {
        return Authenticity::Valid(signed);
    };
    let inner = envelope.get("signatures").and_then(Json::as_array);
    let inner = inner.and_then(|signatures| signatures.first());
    let text = |json: &Json, name: &str| json.get(name).and_then(Json::as_str).map(str::to_owned);
    let repeats = inner.is_some_and(|inner| {
        text(mirror, "alg").as_deref() == Some(ALGORITHM)
            && text(mirror, "key_id") == text(inner, "keyid")
            && text(mirror, "sig") == text(inner, "sig")
    });
    match repeats || covered(record, mirror, keys).is_ok() {
        true => Authenticity::Valid(signed),
        false => Authenticity::BindingMismatch(Finding::new(
            Code::Mirror,
            "/signature",
            "is neither a copy of the signature of the envelope nor one of its own",
        )),
    }
}

/// Types that are not ours make an envelope invalid; one of ours about something else does not bind.
fn misbound(finding: Finding) -> Authenticity {
    match finding.code {
        Code::Statement | Code::PredicateType => Authenticity::Invalid(finding),
        _ => Authenticity::BindingMismatch(finding),
    }
}

fn unknown(name: &str) -> Finding {
    let message = format!("no key was given for `{}`", name.escape_debug());
    Finding::new(Code::UnknownKey, "", message)
}

const ALGORITHM: &str = "ed25519";
const PLACEHOLDERS: &[&str] = &["", "UNSIGNED_PLACEHOLDER"];
