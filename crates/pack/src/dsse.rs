//! Signed statements: a payload, its type, and who signed both.

use base64ct::{Base64, Encoding as _};
use countersign_canon::{Json, Limits, Numbers, Object};
use countersign_tlog::{Key, Signer};

/// A DSSE envelope that nobody has checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The bytes that are signed.
    pub payload: Vec<u8>,
    /// Which key, and its signature.
    signatures: Vec<(String, [u8; 64])>,
}

/// Why bytes are no envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// It is not strict JSON.
    #[error(transparent)]
    Json(#[from] countersign_canon::Error),
    /// A member is missing, of another type, or not known.
    #[error("the envelope has no proper `{0}`")]
    Member(&'static str),
    /// It is written in another way than here.
    #[error("the envelope is not in canonical form")]
    NotCanonical,
}

impl Envelope {
    /// Signs a payload.
    pub fn sign(payload: Vec<u8>, signer: &Signer, key: &Key) -> Self {
        let signature = signer.sign_bytes(&signed_bytes(&payload));
        Self {
            payload,
            signatures: vec![(key.to_string(), signature)],
        }
    }

    /// Whether this key has signed it.
    pub fn is_signed_by(&self, key: &Key) -> bool {
        let message = signed_bytes(&self.payload);
        let name = key.to_string();
        let mut signatures = self.signatures.iter().filter(|(id, _)| *id == name);
        signatures.any(|(_, signature)| key.verifies(&message, signature))
    }

    /// The text: RFC 8785 and a line end.
    pub fn to_text(&self) -> Vec<u8> {
        let signatures = self.signatures.iter().map(|(id, signature)| {
            Json::object([
                ("keyid", Json::from(id.as_str())),
                ("sig", Json::from(Base64::encode_string(signature))),
            ])
        });
        let envelope = Json::object([
            ("payload", Json::from(Base64::encode_string(&self.payload))),
            ("payloadType", Json::from(PAYLOAD_TYPE)),
            ("signatures", Json::Array(signatures.collect())),
        ]);
        // Strings only: nothing in it has no canonical text.
        let mut text = envelope.to_jcs().unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// Reads an envelope. Nothing is checked but its form.
    pub fn read(text: &[u8]) -> Result<Self, EnvelopeError> {
        let json = Json::admit(text, &LIMITS)?;
        let members = json.as_object().ok_or(EnvelopeError::Member("payload"))?;
        if string(members, "payloadType")? != PAYLOAD_TYPE {
            return Err(EnvelopeError::Member("payloadType"));
        }
        let payload = Base64::decode_vec(string(members, "payload")?);
        let payload = payload.map_err(|_| EnvelopeError::Member("payload"))?;
        let list = members.get("signatures").and_then(Json::as_array);
        let mut signatures = Vec::new();
        for one in list.ok_or(EnvelopeError::Member("signatures"))? {
            let one = one.as_object().ok_or(EnvelopeError::Member("signatures"))?;
            let bytes = Base64::decode_vec(string(one, "sig")?).ok();
            let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
            let bytes = bytes.ok_or(EnvelopeError::Member("sig"))?;
            signatures.push((string(one, "keyid")?.to_owned(), bytes));
        }
        let envelope = Self {
            payload,
            signatures,
        };
        // One text per envelope, so that no bit is free.
        match envelope.to_text() == text {
            true => Ok(envelope),
            false => Err(EnvelopeError::NotCanonical),
        }
    }
}

fn string<'j>(members: &'j Object, name: &'static str) -> Result<&'j str, EnvelopeError> {
    let found = members.get(name).and_then(Json::as_str);
    found.ok_or(EnvelopeError::Member(name))
}

/// What a signature covers: the pre-authentication encoding of DSSE. No checkpoint begins so, because
/// the name of a log has no spaces.
fn signed_bytes(payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "DSSEv1 {} {PAYLOAD_TYPE} {} ",
        PAYLOAD_TYPE.len(),
        payload.len()
    )
    .into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const LIMITS: Limits = Limits {
    max_bytes: 16 << 20,
    max_depth: 8,
    numbers: Numbers::Double,
};
