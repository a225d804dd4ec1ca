//! How long used and expired nonces are remembered.

/// How long bodies of finished envelopes are kept, and how long envelopes may wait.
///
/// INVARIANT: nothing is forgotten while a submission for it could still look fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    keep_ms: u64,
}

impl Retention {
    /// Checks the configuration at start: whatever is kept for less time than an approval lives,
    /// with clocks as far apart as allowed, could be replayed.
    pub const fn new(keep_ms: u64, ttl_ms: u64, skew_ms: u64) -> Result<Self, RetentionError> {
        let least_ms = ttl_ms.saturating_add(skew_ms);
        match keep_ms >= least_ms {
            true => Ok(Self { keep_ms }),
            false => Err(RetentionError { keep_ms, least_ms }),
        }
    }

    /// How long.
    pub const fn keep_ms(self) -> u64 {
        self.keep_ms
    }
}

/// Nonces would be forgotten too soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("approvals are kept for {keep_ms} ms, but must be kept for at least {least_ms} ms")]
pub struct RetentionError {
    keep_ms: u64,
    least_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d07_a_retention_shorter_than_an_approvals_life_is_refused() {
        assert!(Retention::new(3_660_000, 3_600_000, 60_000).is_ok());
        let refused = Retention::new(3_659_999, 3_600_000, 60_000).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "approvals are kept for 3659999 ms, but must be kept for at least 3660000 ms"
        );
        assert!(Retention::new(u64::MAX - 1, u64::MAX, 1).is_err());
    }
}
