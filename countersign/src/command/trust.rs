//! Files that say whose signatures count.

use countersign_approval::VerifyingKey;
use countersign_tlog::{Key, Kind};

use crate::errors::{Code, Failure};
use crate::input;

/// The keys that somebody trusts.
#[derive(Default)]
pub(crate) struct Trust {
    /// Keys of logs and of witnesses.
    pub(crate) keys: Vec<Key>,
    /// Keys of people who decide.
    pub(crate) people: Vec<VerifyingKey>,
}

impl Trust {
    /// Reads a file: one key a line, as `name+hint+key` for a log or a witness and as
    /// `ed25519:<hex> <name>` for a person. What follows a `#` is a comment.
    pub(crate) fn read(path: &str) -> Result<Self, Failure> {
        let text = input::file(path, MAX_FILE)?;
        let refuse = |number: usize, why: &dyn std::fmt::Display| {
            Failure::new(Code::Trust, format!("line {number} of `{path}`: {why}"))
        };
        let text = String::from_utf8(text).map_err(|_| refuse(1, &"it is not text"))?;
        let mut trust = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            match line.strip_prefix("ed25519:") {
                Some(rest) => {
                    let hex = rest.split_whitespace().next().unwrap_or_default();
                    let key = person(hex).ok_or_else(|| refuse(number, &"it is no public key"))?;
                    trust.people.push(key);
                }
                None => {
                    let key = line.parse().map_err(|error| refuse(number, &error))?;
                    trust.keys.push(key);
                }
            }
        }
        // FAIL-CLOSED: an empty list would be taken for the wish to trust whatever is there.
        match trust.keys.is_empty() && trust.people.is_empty() {
            true => Err(Failure::new(Code::Trust, format!("`{path}` has no key"))),
            false => Ok(trust),
        }
    }

    pub(crate) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Key> {
        self.keys.iter().filter(move |key| key.kind() == kind)
    }
}

fn person(hex: &str) -> Option<VerifyingKey> {
    let bytes: [u8; 32] = base16ct::lower::decode_vec(hex).ok()?.try_into().ok()?;
    VerifyingKey::from_bytes(&bytes)
        .ok()
        .filter(|key| !key.is_weak())
}

const MAX_FILE: usize = 1 << 20;
