//! Keys of people, and which of them may still decide.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use countersign_canon::{Hash, ParseDigestError};
pub use ed25519_dalek::{SigningKey, VerifyingKey};

use crate::names::names;
use crate::principal::Human;

/// The name of a public key: the SHA-256 of its 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

impl FromStr for KeyId {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, ParseDigestError> {
        text.parse().map(Self)
    }
}

names! {
    /// What a key is still good for.
    KeyStatus as "status of a key" {
        /// New decisions and old ones.
        Active = "active",
        /// Old ones only: another key has taken its place.
        Retired = "retired",
        /// Old ones only: somebody else may have it.
        Revoked = "revoked",
    }
}

/// The keys of the people who may decide.
///
/// INVARIANT: every key stands under its own hash, is no weak point of the curve, and belongs to one
/// person.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    keys: BTreeMap<KeyId, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    owner: Human,
    key: VerifyingKey,
    status: KeyStatus,
}

impl Keyring {
    /// Adds a key as some file or table states it. Nothing stated is taken on trust.
    pub fn add(
        &mut self,
        stated: KeyId,
        public: &[u8; 32],
        owner: Human,
        status: KeyStatus,
    ) -> Result<(), KeyError> {
        let key = VerifyingKey::from_bytes(public).map_err(|_| KeyError::NotAKey)?;
        let id = KeyId::of(&key);
        if id != stated {
            return Err(KeyError::OtherName {
                stated,
                computed: id,
            });
        }
        // SECURITY: under a weak key one signature fits many texts.
        if key.is_weak() {
            return Err(KeyError::Weak(id));
        }
        // SECURITY: two people with one key would be one person who counts twice.
        if self.keys.contains_key(&id) {
            return Err(KeyError::Twice(id));
        }
        self.keys.insert(id, Entry { owner, key, status });
        Ok(())
    }

    /// The key of this name if it may still decide for this person.
    pub(crate) fn deciding(&self, id: KeyId, owner: &Human) -> Result<&VerifyingKey, KeyRefusal> {
        let entry = self.keys.get(&id).ok_or(KeyRefusal::Unknown(id))?;
        match (&entry.owner == owner, entry.status) {
            (false, _) => Err(KeyRefusal::NotYours(id)),
            (true, KeyStatus::Active) => Ok(&entry.key),
            (true, status) => Err(KeyRefusal::NotActive { id, status }),
        }
    }

    /// The key of this name, whatever it is still good for, and its owner. For old records only.
    pub fn historical(&self, id: KeyId) -> Option<(&Human, &VerifyingKey)> {
        self.keys.get(&id).map(|entry| (&entry.owner, &entry.key))
    }

    /// Every key with its owner and what it is good for, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (KeyId, &Human, KeyStatus)> {
        let entries = self.keys.iter();
        entries.map(|(id, entry)| (*id, &entry.owner, entry.status))
    }

    /// Changes what a key is good for. A key that is no longer active never becomes so again.
    pub fn set_status(&mut self, id: KeyId, status: KeyStatus) -> Result<(), KeyError> {
        let entry = self.keys.get_mut(&id).ok_or(KeyError::Absent(id))?;
        if entry.status > status {
            return Err(KeyError::NotActiveAgain(id));
        }
        entry.status = status;
        Ok(())
    }
}

/// Why a key was not taken into the ring.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The bytes are no public key.
    #[error("the bytes are no Ed25519 public key")]
    NotAKey,
    /// The key goes by a name that is not its hash.
    #[error("the key is stated as `{stated}`, but it is `{computed}`")]
    OtherName {
        /// The name it goes by.
        stated: KeyId,
        /// Its hash.
        computed: KeyId,
    },
    /// The key proves nothing.
    #[error("key `{0}` is weak")]
    Weak(KeyId),
    /// The key is there already.
    #[error("key `{0}` is in the ring already")]
    Twice(KeyId),
    /// There is no such key.
    #[error("key `{0}` is not in the ring")]
    Absent(KeyId),
    /// A retired or revoked key was to decide again.
    #[error("key `{0}` cannot become active again")]
    NotActiveAgain(KeyId),
}

/// Why a key may not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRefusal {
    /// Nobody knows it.
    #[error("key `{0}` is not known")]
    Unknown(KeyId),
    /// It belongs to somebody else.
    #[error("key `{0}` does not belong to the approver")]
    NotYours(KeyId),
    /// It was replaced or lost.
    #[error("key `{id}` is {status}")]
    NotActive {
        /// Which one.
        id: KeyId,
        /// What it is good for.
        status: KeyStatus,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> VerifyingKey {
        SigningKey::from_bytes(&[seed; 32]).verifying_key()
    }

    fn dana() -> Human {
        Human::new("dana").unwrap()
    }

    #[test]
    fn k07_a_key_under_another_name_is_refused() {
        let (mine, theirs) = (key(1), key(2));
        let mut ring = Keyring::default();
        let refused = ring.add(
            KeyId::of(&mine),
            theirs.as_bytes(),
            dana(),
            KeyStatus::Active,
        );
        assert_eq!(
            refused,
            Err(KeyError::OtherName {
                stated: KeyId::of(&mine),
                computed: KeyId::of(&theirs)
            })
        );
    }

    #[test]
    fn k02_weak_keys_are_refused() {
        let mut identity = [0; 32];
        identity[0] = 1;
        let id = KeyId(Hash::of(&identity));
        let refused = Keyring::default().add(id, &identity, dana(), KeyStatus::Active);
        assert_eq!(refused, Err(KeyError::Weak(id)));
    }

    #[test]
    fn n01_one_key_is_one_person() {
        let (mut ring, key) = (Keyring::default(), key(1));
        let id = KeyId::of(&key);
        let mut add = |owner: &str| {
            let owner = Human::new(owner).unwrap();
            ring.add(id, key.as_bytes(), owner, KeyStatus::Active)
        };
        assert_eq!(add("dana"), Ok(()));
        assert_eq!(add("eve"), Err(KeyError::Twice(id)));
    }

    #[test]
    fn k06_a_key_does_not_come_back() {
        let (mut ring, key) = (Keyring::default(), key(1));
        let id = KeyId::of(&key);
        ring.add(id, key.as_bytes(), dana(), KeyStatus::Active)
            .unwrap();
        assert!(ring.deciding(id, &dana()).is_ok());
        ring.set_status(id, KeyStatus::Retired).unwrap();
        let status = KeyStatus::Retired;
        assert_eq!(
            ring.deciding(id, &dana()),
            Err(KeyRefusal::NotActive { id, status })
        );
        let again = ring.set_status(id, KeyStatus::Active);
        assert_eq!(again, Err(KeyError::NotActiveAgain(id)));
        assert!(ring.historical(id).is_some());
    }
}
