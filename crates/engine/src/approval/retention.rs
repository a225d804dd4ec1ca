//! How long an approval that is over is kept.

use countersign_approval::{Retention, RetentionError};

use super::*;
use crate::Engine;

impl ApprovalTimes {
    /// Checks that nothing is forgotten while it could still look fresh.
    pub fn retention(&self) -> Result<Retention, RetentionError> {
        let decide = self.decide_within_ms.unwrap_or_default();
        let ttl = decide.saturating_add(self.execute_within_ms);
        Retention::new(self.keep_ms, ttl, self.skew_ms)
    }
}

impl Engine {
    /// Forgets approvals that have been over for as long as they are kept. The log and the audit stay
    /// as they are, and no nonce can ever be used again. Returns how many were forgotten.
    pub fn prune(&self) -> Result<usize, crate::Refusal> {
        let kept = self.times().keep_ms;
        let before = UnixMs::new(self.now()?.get().saturating_sub(kept));
        let forgotten = self.store().prune_approvals(before);
        Ok(forgotten.map_err(Fault::from)?)
    }
}
