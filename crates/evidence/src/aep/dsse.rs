//! Signatures as DSSE envelopes around an in-toto statement that holds the record.

use base64ct::{Base64, Base64Unpadded, Base64Url, Base64UrlUnpadded, Encoding};
use countersign_canon::{Hash, Json, Limits, Object};
use ed25519_dalek::{Signature, VerifyingKey};

use super::canonical::{self, Order};
use super::finding::{Code, Finding};
use super::version::Version;
use crate::word::words;

words! {
    /// How the signed statement and the record belong together.
    Binding {
        /// The statement holds the record.
        Exact = "exact",
        /// The statement holds the record under the version before it.
        LegacyNormalized = "legacy-normalized",
    }
}

/// An envelope, taken apart.
pub(super) struct Envelope<'a> {
    pub(super) key_id: &'a str,
    pub(super) signature: &'a str,
    payload_text: &'a str,
    payload: Vec<u8>,
}

/// Which bytes a signature was found to cover.
pub(super) enum Covers {
    /// The statement, as the profile says.
    Statement,
    /// The base64 text of it, as early writers did.
    Base64Text,
}

impl<'a> Envelope<'a> {
    /// Takes an envelope apart: one signature, the right type, base64.
    pub(super) fn read(envelope: &'a Json) -> Result<Self, Finding> {
        let text = |json: &'a Json, name: &str, at: &str| {
            json.get(name).and_then(Json::as_str).ok_or_else(|| {
                Finding::new(Code::Encoding, format!("{AT}{at}/{name}"), "is not text")
            })
        };
        let signatures = envelope.get("signatures").and_then(Json::as_array);
        let [signature] = signatures.unwrap_or_default() else {
            return Err(Finding::new(
                Code::SignatureCount,
                format!("{AT}/signatures"),
                "there has to be exactly one signature",
            ));
        };
        if text(envelope, "payloadType", "")? != PAYLOAD_TYPE {
            return Err(Finding::new(
                Code::PayloadType,
                format!("{AT}/payloadType"),
                format!("is not `{PAYLOAD_TYPE}`"),
            ));
        }
        let payload_text = text(envelope, "payload", "")?;
        let payload = decode(payload_text).ok_or_else(|| {
            Finding::new(Code::Encoding, format!("{AT}/payload"), "is not base64")
        })?;
        Ok(Self {
            key_id: text(signature, "keyid", "/signatures/0")?,
            signature: text(signature, "sig", "/signatures/0")?,
            payload_text,
            payload,
        })
    }

    /// What the signature covers under this key.
    pub(super) fn covered(&self, key: &VerifyingKey) -> Result<Covers, Finding> {
        let at = format!("{AT}/signatures/0/sig");
        let signature = signature(self.signature)
            .ok_or_else(|| Finding::new(Code::Encoding, at.as_str(), NOT_A_SIGNATURE))?;
        let holds = |body: &[u8]| key.verify_strict(&pae(body), &signature).is_ok();
        if holds(&self.payload) {
            Ok(Covers::Statement)
        } else if holds(self.payload_text.as_bytes()) {
            Ok(Covers::Base64Text)
        } else {
            Err(Finding::new(
                Code::SignatureMismatch,
                at,
                "the signature does not cover the payload",
            ))
        }
    }

    /// Whether the statement is about this record, whoever signed it.
    pub(super) fn binding(&self, record: &Object) -> Result<Binding, Finding> {
        let at = format!("{AT}/payload");
        let fail = |code, message: &str| Finding::new(code, at.as_str(), message);
        let limits = Limits {
            max_bytes: usize::MAX,
            ..Limits::event()
        };
        let statement = Json::admit(&self.payload, &limits)
            .map_err(|error| fail(Code::Statement, &error.to_string()))?;
        let text =
            |json: &Json, name: &str| json.get(name).and_then(Json::as_str).map(str::to_owned);
        if text(&statement, "_type").as_deref() != Some(STATEMENT_TYPE) {
            return Err(fail(Code::Statement, "is not an in-toto statement"));
        }
        if text(&statement, "predicateType").as_deref() != Some(PREDICATE_TYPE) {
            return Err(fail(
                Code::PredicateType,
                "is a statement about something else",
            ));
        }
        let subjects = statement.get("subject").and_then(Json::as_array);
        let [subject] = subjects.unwrap_or_default() else {
            return Err(fail(Code::Subject, "has not exactly one subject"));
        };
        let run = record.get("run_id").and_then(Json::as_str);
        let name = run.map(subject_name);
        if name.is_none() || text(subject, "name") != name {
            return Err(fail(Code::Subject, "is about another run"));
        }
        let predicate = statement.get("predicate").and_then(Json::as_object);
        let predicate = predicate.ok_or_else(|| fail(Code::Predicate, "holds no record"))?;
        let binding = bound(predicate, record)
            .ok_or_else(|| fail(Code::Predicate, "holds another record"))?;
        let stated = subject
            .get("digest")
            .and_then(|digest| text(digest, "sha256"));
        let texts = canonical::texts(predicate, &[])
            .map_err(|error| fail(Code::Predicate, &error.to_string()))?;
        let fits = |(_, text): &(Order, Vec<u8>)| Some(Hash::of(text).to_string()) == stated;
        match texts.iter().any(fits) {
            true => Ok(binding),
            false => Err(fail(
                Code::Subject,
                "states another digest than its record has",
            )),
        }
    }
}

/// The statement about a record: what is signed.
pub(super) fn statement(record: &Object) -> Result<Vec<u8>, countersign_canon::Error> {
    let predicate = canonical::text(record, UNBOUND, Order::Jcs)?;
    let run = record.get("run_id").and_then(Json::as_str);
    let subject = Json::object([
        ("name", Json::from(subject_name(run.unwrap_or_default()))),
        (
            "digest",
            Json::object([("sha256", Json::from(Hash::of(&predicate).to_string()))]),
        ),
    ]);
    let bound = record.iter().filter(|(name, _)| !UNBOUND.contains(name));
    let statement = Json::object([
        ("_type", Json::from(STATEMENT_TYPE)),
        ("subject", Json::Array(vec![subject])),
        ("predicateType", Json::from(PREDICATE_TYPE)),
        (
            "predicate",
            Json::object(bound.map(|(name, value)| (name, value.clone()))),
        ),
    ]);
    statement.to_jcs()
}

/// The bytes that a DSSE signature covers.
pub(super) fn pae(body: &[u8]) -> Vec<u8> {
    let mut text = format!(
        "DSSEv1 {} {PAYLOAD_TYPE} {} ",
        PAYLOAD_TYPE.len(),
        body.len()
    )
    .into_bytes();
    text.extend_from_slice(body);
    text
}

/// The envelope of a statement and its signature.
pub(super) fn envelope(statement: &[u8], key_id: &str, signature: &str) -> Json {
    let signed = Json::object([
        ("keyid", Json::from(key_id)),
        ("sig", Json::from(signature)),
    ]);
    Json::object([
        ("payloadType", Json::from(PAYLOAD_TYPE)),
        ("payload", Json::from(Base64::encode_string(statement))),
        ("signatures", Json::Array(vec![signed])),
    ])
}

/// Standard or URL-safe base64, with or without padding, in the one form that its bytes have.
fn decode(text: &str) -> Option<Vec<u8>> {
    Base64::decode_vec(text)
        .or_else(|_| Base64Url::decode_vec(text))
        .or_else(|_| Base64Unpadded::decode_vec(text))
        .or_else(|_| Base64UrlUnpadded::decode_vec(text))
        .ok()
}

/// The signature that a text in an envelope holds.
fn signature(text: &str) -> Option<Signature> {
    let bytes: [u8; 64] = decode(text)?.try_into().ok()?;
    Some(Signature::from_bytes(&bytes))
}

/// The signature that a text in standard base64 holds, and in nothing else.
pub(super) fn standard_signature(text: &str) -> Option<Signature> {
    let bytes: [u8; 64] = Base64::decode_vec(text).ok()?.try_into().ok()?;
    Some(Signature::from_bytes(&bytes))
}

fn bound(predicate: &Object, record: &Object) -> Option<Binding> {
    let ours = canonical::text(record, UNBOUND, Order::Jcs).ok()?;
    let theirs = canonical::text(predicate, &[], Order::Jcs).ok()?;
    if ours == theirs {
        return Some(Binding::Exact);
    }
    let version = |object: &Object| {
        object
            .get("schema_version")
            .and_then(Json::as_str)
            .map(str::to_owned)
    };
    let before = version(predicate).as_deref() == Some(Version::V03.as_str())
        && version(record).as_deref() == Some(Version::V04.as_str());
    let mut raised = predicate.clone();
    raised.insert(
        "schema_version".to_owned(),
        Json::from(Version::V04.as_str()),
    );
    let raised = canonical::text(&raised, &[], Order::Jcs).ok()?;
    (before && raised == ours).then_some(Binding::LegacyNormalized)
}

fn subject_name(run: &str) -> String {
    format!("urn:wasmagent:run:{run}")
}

const AT: &str = "/dsse_envelope";
pub(super) const NOT_A_SIGNATURE: &str = "is not base64 of 64 bytes";
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The name of the profile did not move on with the versions of the format.
const PREDICATE_TYPE: &str = "https://wasmagent.dev/attestations/aep/v0.4";
/// What a statement does not hold.
const UNBOUND: &[&str] = &["signature", "dsse_envelope", "timestamp_proof"];
