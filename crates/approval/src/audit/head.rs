//! Where the audit ends: the count and the hash of the last line, signed, and copied elsewhere.

use std::num::NonZeroU64;

use countersign_canon::{Hash, Json};
use ed25519_dalek::{Signature, Signer as _};

use super::entry::Entry;
use crate::form::{self, Fields, FormError, SUBMISSION, wrong};
use crate::key::{KeyId, SigningKey, VerifyingKey};
use crate::time::UnixMs;

/// Where a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// How many entries there are.
    pub count: u64,
    /// The hash of the last line; of the genesis text if there is none.
    pub hash: Hash,
}

impl Head {
    /// The end of an empty log.
    pub fn genesis() -> Self {
        Self {
            count: 0,
            hash: Hash::of(GENESIS),
        }
    }

    /// The line of an entry that follows, without a line end, and the head after it.
    pub fn append(&self, entry: &Entry) -> (Vec<u8>, Self) {
        let line = entry.to_line(self.hash);
        let hash = Hash::of(&line);
        let count = self.count.saturating_add(1);
        (line, Self { count, hash })
    }

    /// Whether a copy should be written elsewhere after this entry.
    pub const fn wants_anchor(&self, every: NonZeroU64) -> bool {
        self.count.is_multiple_of(every.get())
    }

    /// Signs the head.
    pub fn sign(self, key: &SigningKey) -> SignedHead {
        let id = KeyId::of(&key.verifying_key());
        SignedHead {
            head: self,
            key: id,
            signature: key.sign(&signed_text(self, id)),
        }
    }
}

/// A head that somebody answers for. Written after every append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHead {
    head: Head,
    key: KeyId,
    signature: Signature,
}

impl SignedHead {
    /// The head, if this key signed it.
    pub fn verify(&self, key: &VerifyingKey) -> Option<Head> {
        let text = signed_text(self.head, self.key);
        // SECURITY: strict, so that weak keys and the other encodings of a signature are refused.
        let fits = KeyId::of(key) == self.key && key.verify_strict(&text, &self.signature).is_ok();
        fits.then_some(self.head)
    }

    /// The head it claims.
    pub const fn claims(&self) -> Head {
        self.head
    }

    /// The key it claims.
    pub const fn key_id(&self) -> KeyId {
        self.key
    }

    /// The text that is stored.
    pub fn to_text(&self) -> Vec<u8> {
        let signature = base16ct::lower::encode_string(&self.signature.to_bytes());
        let members = members(self.head, self.key);
        let signature = ("signature", Json::from(signature));
        Json::object(members.into_iter().chain([signature])).to_sorted_ascii()
    }

    /// Reads the stored text.
    pub fn read(text: &[u8]) -> Result<Self, FormError> {
        let mut fields = Fields::of("head", form::canonical(text, &SUBMISSION)?)?;
        if fields.text("ctx")? != HEAD_CONTEXT {
            return Err(wrong("ctx", "the context of a signed head"));
        }
        let head = Head {
            count: fields.count("count")?,
            hash: fields.parsed("head")?,
        };
        let key = fields.parsed("key_id")?;
        let signature = base16ct::lower::decode_vec(fields.text("signature")?).ok();
        let signature: Option<[u8; 64]> = signature.and_then(|bytes| bytes.try_into().ok());
        let signature = signature.ok_or(wrong("signature", "128 lower-case hex digits"))?;
        fields.end()?;
        let signature = Signature::from_bytes(&signature);
        Ok(Self {
            head,
            key,
            signature,
        })
    }
}

/// A copy of the head, kept where whoever can write the log cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The head.
    pub head: Head,
    /// When it was copied.
    pub written_at: UnixMs,
}

impl Anchor {
    /// The text of the file.
    pub fn to_text(&self) -> Vec<u8> {
        Json::object([
            ("count", Json::from(self.head.count)),
            ("format", Json::from(ANCHOR_FORMAT)),
            ("head", Json::from(self.head.hash.to_string())),
            ("written_at", Json::from(self.written_at.to_string())),
        ])
        .to_sorted_ascii()
    }

    /// Reads the text of the file.
    pub fn read(text: &[u8]) -> Result<Self, FormError> {
        let mut fields = Fields::of("anchor", form::canonical(text, &SUBMISSION)?)?;
        if fields.text("format")? != ANCHOR_FORMAT {
            return Err(wrong("format", "a version of the anchor that is known"));
        }
        let head = Head {
            count: fields.count("count")?,
            hash: fields.parsed("head")?,
        };
        let written_at = fields.parsed("written_at")?;
        fields.end()?;
        Ok(Self { head, written_at })
    }
}

fn signed_text(head: Head, key: KeyId) -> Vec<u8> {
    Json::object(members(head, key)).to_sorted_ascii()
}

fn members(head: Head, key: KeyId) -> [(&'static str, Json); 4] {
    [
        ("count", Json::from(head.count)),
        ("ctx", Json::from(HEAD_CONTEXT)),
        ("head", Json::from(head.hash.to_string())),
        ("key_id", Json::from(key.to_string())),
    ]
}

/// Keeps signatures of heads apart from all others by the same key.
pub const HEAD_CONTEXT: &str = "countersign.audit.head.v1";

const ANCHOR_FORMAT: &str = "countersign.audit.anchor.v1";

/// What the first entry follows.
const GENESIS: &[u8] = b"autopoiesis:audit:genesis";
