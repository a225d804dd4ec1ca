//! How things are at the moment of a check.

use countersign_approval::{Keyring, Refusal};

use super::*;
use crate::Engine;

impl Engine {
    /// Looks at everything that must not have changed since the request was made, and asks `check`
    /// whether that is so. `policy` and `tools` are what the caller runs under.
    pub(super) fn look<T>(
        &self,
        standing: &Standing,
        approvers: &Approvers,
        (policy, tools): (Digest, Option<Vec<(Tool, Class)>>),
        now: UnixMs,
        check: impl FnOnce(&Situation<'_>, &Keyring) -> Result<T, Refusal>,
    ) -> Result<T, Fault> {
        let plan = standing.envelope.plan();
        let quorum = approvers.quorum();
        let quorum = quorum
            .as_ref()
            .ok_or(Fault::Approval(Refusal::ConfigurationChanged))?;
        let subjects = plan.preconditions().iter().map(|(subject, _)| subject);
        let situation = Situation {
            state: standing.row.state,
            context: &context(&standing.envelope, policy, tools),
            fingerprints: &fingerprints(subjects),
            quorum,
            display: standing.rendering.display_sha256(),
            now,
            skew_ms: self.times().skew_ms,
        };
        let keys = approvers
            .keyring()
            .map_err(|error| history(&error.to_string()))?;
        check(&situation, keys).map_err(Fault::Approval)
    }
}
