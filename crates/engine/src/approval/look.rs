//! How things are at the moment of a check.

use countersign_approval::{Keyring, Refusal};

use super::ask::enforced_identity;
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
        let mut preconditions = plan.preconditions().iter();
        let bound = preconditions.find(|(subject, _)| **subject == enforced_identity());
        let subjects = plan.preconditions().iter().map(|(subject, _)| subject);
        let mut seen = fingerprints(subjects);
        if let Some((subject, expected)) = bound {
            // Whoever counts votes has no policies to ask. The engine has, and compares before it lets
            // the action run.
            seen = seen.with(subject.clone(), expected.map(str::to_owned));
        }
        let situation = Situation {
            state: standing.row.state,
            context: &context(&standing.envelope, policy, tools),
            fingerprints: &seen,
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
