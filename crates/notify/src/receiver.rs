//! What whoever gets a notice has to check.

use std::collections::HashMap;

use crate::Secret;

/// Checks notices: signature, age, and that each comes once.
#[derive(Debug)]
pub struct Receiver {
    secret: Secret,
    seen: HashMap<String, u64>,
}

/// Why a notice is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The signature does not fit.
    #[error("the signature does not fit")]
    Signature,
    /// It was sent too long ago, or its clock is too far ahead.
    #[error("the time is more than 5 minutes off")]
    Time,
    /// It came before.
    #[error("the notice came before")]
    Replayed,
}

impl Receiver {
    /// A receiver that has seen nothing yet.
    pub fn new(secret: Secret) -> Self {
        Self {
            secret,
            seen: HashMap::new(),
        }
    }

    /// Takes a notice, or says why not. `now` and `timestamp` are seconds since 1970.
    pub fn accept(
        &mut self,
        id: &str,
        timestamp: u64,
        signature: &str,
        body: &[u8],
        now: u64,
    ) -> Result<(), Rejected> {
        if !self.secret.verifies(signature, id, timestamp, body) {
            return Err(Rejected::Signature);
        }
        if now.abs_diff(timestamp) > WINDOW_S {
            return Err(Rejected::Time);
        }
        // Whatever is older than this is refused for its age.
        self.seen.retain(|_, sent| now.abs_diff(*sent) <= WINDOW_S);
        if self.seen.contains_key(id) {
            return Err(Rejected::Replayed);
        }
        self.seen.insert(id.to_owned(), timestamp);
        Ok(())
    }
}

const WINDOW_S: u64 = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o03_a_bad_signature_an_old_time_and_a_replay_are_refused() {
        let secret = Secret::new(&[7; 32]).unwrap();
        let mut receiver = Receiver::new(secret.clone());
        let good = secret.sign("n1", 1000, b"body");
        let other = Secret::new(&[8; 32]).unwrap().sign("n1", 1000, b"body");
        let mut check = |id: &str, at: u64, signature: &str, body: &[u8], now: u64| {
            receiver.accept(id, at, signature, body, now)
        };
        for (id, at, signature, body) in [
            ("n1", 1000, other.as_str(), &b"body"[..]),
            ("n1", 1000, good.as_str(), b"bodY"),
            ("n2", 1000, good.as_str(), b"body"),
            ("n1", 1001, good.as_str(), b"body"),
            ("n1", 1000, "v1=", b"body"),
            ("n1", 1000, &good["v1=".len()..], b"body"),
        ] {
            assert_eq!(
                check(id, at, signature, body, 1000),
                Err(Rejected::Signature)
            );
        }
        assert_eq!(check("n1", 1000, &good, b"body", 1301), Err(Rejected::Time));
        assert_eq!(check("n1", 1000, &good, b"body", 699), Err(Rejected::Time));
        assert_eq!(check("n1", 1000, &good, b"body", 1300), Ok(()));
        assert_eq!(
            check("n1", 1000, &good, b"body", 1300),
            Err(Rejected::Replayed)
        );
        // The same name a second later is the same notice.
        let again = secret.sign("n1", 1001, b"body");
        assert_eq!(
            check("n1", 1001, &again, b"body", 1300),
            Err(Rejected::Replayed)
        );
    }

    #[test]
    fn the_signature_is_the_one_that_others_compute() {
        // printf 'n.1.b' | openssl dgst -sha256 -mac HMAC -macopt hexkey:$(printf '07%.0s' {1..32})
        let signed = Secret::new(&[7; 32]).unwrap().sign("n", 1, b"b");
        assert_eq!(signed, GOLDEN);
        assert!(Secret::new(&[7; 31]).is_err());
    }

    const GOLDEN: &str = "v1=a1dab8d413a0aab1737bab4d851ab2da7708f5d4d7ac0afa9e20d41eb4d74bc1";
}
