//! A signature that was checked need not be computed again.

use countersign_canon::Hash;

use crate::envelope::Envelope;
use crate::key::{Keyring, VerifyingKey};
use crate::refusal::Refusal;
use crate::submission::Submission;

/// A submission with the proof that a key signed it about an envelope.
///
/// It says nothing about what the key is good for now: [`crate::verify_signed`] asks that each time.
#[derive(Clone, Debug)]
pub struct Signed {
    submission: Submission,
    envelope: Hash,
    key: VerifyingKey,
}

impl Signed {
    /// Checks the signature with the key that decides for this person.
    pub fn check(
        submission: Submission,
        envelope: &Envelope,
        keys: &Keyring,
    ) -> Result<Self, Refusal> {
        let key = *deciding(&submission, envelope, keys)?;
        match submission.is_signed_by(&key, envelope) {
            true => Ok(Self {
                submission,
                envelope: envelope.hash(),
                key,
            }),
            false => Err(Refusal::InvalidSignature),
        }
    }

    /// What was signed.
    pub const fn submission(&self) -> &Submission {
        &self.submission
    }

    /// Whether the proof is about this envelope and by the key that decides now.
    pub fn is_about(&self, envelope: &Envelope, keys: &Keyring) -> bool {
        self.holds(envelope, keys).is_ok()
    }

    pub(crate) fn holds(&self, envelope: &Envelope, keys: &Keyring) -> Result<(), Refusal> {
        let key = deciding(&self.submission, envelope, keys)?;
        match self.envelope == envelope.hash() && self.key == *key {
            true => Ok(()),
            false => Err(Refusal::InvalidSignature),
        }
    }
}

fn deciding<'k>(
    submission: &Submission,
    envelope: &Envelope,
    keys: &'k Keyring,
) -> Result<&'k VerifyingKey, Refusal> {
    if submission.nonce() != envelope.nonce() {
        return Err(Refusal::UnknownNonce);
    }
    let key = keys.deciding(submission.key_id(), &submission.claims().approver)?;
    Ok(key)
}
