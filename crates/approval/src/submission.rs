//! What a person sends: verdicts and a signature, and nothing that the stored envelope already says.
//!
//! The signed text is put together by the reader from the *stored* envelope and the few members
//! that a submission has. Whoever changes the stored clocks, arguments, quorum or lineage therefore
//! makes every signature invalid; whoever changes the submission does too.

use countersign_canon::{Hash, Json};
use ed25519_dalek::{Signature, Signer as _, VerifyingKey};

use crate::decision::CallDecision;
use crate::envelope::Envelope;
use crate::form::{Fields, FormError, SUBMISSION, wrong};
use crate::id::Nonce;
use crate::key::{KeyId, SigningKey};
use crate::principal::{Human, Principal};
use crate::refusal::Refusal;
use crate::time::UnixMs;

/// Verdicts by a person, signed but not yet checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    nonce: Nonce,
    ballot: BallotPaper,
    key: KeyId,
    signature: Signature,
}

/// What a person decides, before it is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BallotPaper {
    /// One verdict for each call, in the order of the plan.
    pub decisions: Vec<CallDecision>,
    /// Who decides. Only people can.
    pub approver: Human,
    /// The hash of what was shown.
    pub display: Hash,
    /// When, by the approver's clock.
    pub signed_at: UnixMs,
}

impl BallotPaper {
    /// Signs the verdicts for this envelope. The caller's process holds the key.
    pub fn sign(self, envelope: &Envelope, key: &SigningKey) -> Submission {
        let id = KeyId::of(&key.verifying_key());
        let signature = key.sign(&self.signed_text(envelope, id));
        Submission {
            nonce: envelope.nonce(),
            ballot: self,
            key: id,
            signature,
        }
    }

    /// The exact bytes that a signature covers.
    pub fn signed_text(&self, envelope: &Envelope, key: KeyId) -> Vec<u8> {
        let decisions = self.decisions.iter().map(CallDecision::to_signed_json);
        let plan = envelope.plan();
        let members = [
            ("approver", Json::from(self.approver.to_string())),
            ("ctx", Json::from(CONTEXT)),
            ("decisions", Json::Array(decisions.collect())),
            ("display_hash", Json::from(self.display.to_string())),
            ("envelope_hash", Json::from(envelope.hash().to_string())),
            ("envelope_id", Json::from(envelope.id().to_string())),
            ("key_id", Json::from(key.to_string())),
            ("nonce", Json::from(envelope.nonce().to_string())),
            ("plan_hash", Json::from(plan.hash().to_string())),
            ("policy_digest", Json::from(plan.policy().to_string())),
            ("signed_at_ms", Json::from(self.signed_at)),
        ];
        let clocks = envelope.clocks().members();
        Json::object(members.into_iter().chain(clocks)).to_sorted_ascii()
    }
}

impl Submission {
    /// Reads what was sent, strictly.
    pub fn parse(text: &[u8]) -> Result<Self, Refusal> {
        let json = Json::admit(text, &SUBMISSION).map_err(FormError::from)?;
        let mut fields = Fields::of("submission", json)?;
        let nonce = fields.parsed("nonce")?;
        let approver: Principal = fields.parsed("approver")?;
        let decisions = fields.list("decisions")?.into_iter();
        let decisions = decisions
            .map(CallDecision::read)
            .collect::<Result<_, _>>()?;
        let display = fields.parsed("display_hash")?;
        let signed_at = UnixMs::new(fields.count("signed_at_ms")?);
        let key = fields.parsed("key_id")?;
        let signature = read_signature(&fields.text("signature")?)?;
        fields.end()?;
        let approver = match approver {
            Principal::Human(human) => human,
            Principal::Agent(agent) => return Err(Refusal::AgentDecides(agent)),
        };
        Ok(Self {
            nonce,
            ballot: BallotPaper {
                decisions,
                approver,
                display,
                signed_at,
            },
            key,
            signature,
        })
    }

    /// The text that [`Submission::parse`] reads: what is sent and what is stored.
    pub fn to_text(&self) -> Vec<u8> {
        let decisions = self.ballot.decisions.iter().map(CallDecision::to_json);
        let signature = base16ct::lower::encode_string(&self.signature.to_bytes());
        Json::object([
            ("approver", Json::from(self.ballot.approver.to_string())),
            ("decisions", Json::Array(decisions.collect())),
            ("display_hash", Json::from(self.ballot.display.to_string())),
            ("key_id", Json::from(self.key.to_string())),
            ("nonce", Json::from(self.nonce.to_string())),
            ("signature", Json::from(signature)),
            ("signed_at_ms", Json::from(self.ballot.signed_at)),
        ])
        .to_sorted_ascii()
    }

    /// Which envelope it is for.
    pub const fn nonce(&self) -> Nonce {
        self.nonce
    }

    /// What it says. Nobody has checked yet who says it.
    pub const fn claims(&self) -> &BallotPaper {
        &self.ballot
    }

    /// The key it claims to be signed with.
    pub const fn key_id(&self) -> KeyId {
        self.key
    }

    /// Whether this key signed these verdicts about this envelope.
    pub fn is_signed_by(&self, key: &VerifyingKey, envelope: &Envelope) -> bool {
        let text = self.ballot.signed_text(envelope, self.key);
        // SECURITY: strict, so that weak keys and the other encodings of a signature are refused.
        key.verify_strict(&text, &self.signature).is_ok()
    }
}

fn read_signature(hex: &str) -> Result<Signature, FormError> {
    let bytes = base16ct::lower::decode_vec(hex).ok();
    let bytes: Option<[u8; 64]> = bytes.and_then(|bytes| bytes.try_into().ok());
    let bytes = bytes.ok_or(wrong("signature", "128 lower-case hex digits"))?;
    Ok(Signature::from_bytes(&bytes))
}

/// Keeps these signatures apart from all others by the same key.
const CONTEXT: &str = "countersign.approval.decision.v1";
