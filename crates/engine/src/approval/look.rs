//! How things are at the moment of a check.

use countersign_approval::{Keyring, Refusal};

use super::ask::enforced_identity;
use super::*;
use crate::Engine;

/// What the caller runs under, as far as it knows.
pub(super) struct Under<'a> {
    pub(super) policy: Digest,
    pub(super) tools: Option<Vec<(Tool, Class)>>,
    pub(super) folder: Option<&'a Path>,
    /// `None` where votes are counted.
    pub(super) preconditions: Option<&'a [Precondition]>,
}

impl Engine {
    /// Looks at everything that must not have changed since the request was made, and asks `check`
    /// whether that is so.
    pub(super) fn look<T>(
        &self,
        standing: &Standing,
        approvers: &Approvers,
        under: Under<'_>,
        now: UnixMs,
        check: impl FnOnce(&Situation<'_>, &Keyring) -> Result<T, Refusal>,
    ) -> Result<T, Fault> {
        let plan = standing.envelope.plan();
        let quorum = approvers.quorum();
        let quorum = quorum
            .as_ref()
            .ok_or(Fault::Approval(Refusal::ConfigurationChanged))?;
        let told = under.preconditions.unwrap_or_default();
        let asked = plan.preconditions().iter();
        let seen = asked.fold(Fingerprints::default(), |seen, (subject, expected)| {
            let fingerprint = match subject.kind {
                SubjectKind::File | SubjectKind::GitHead => fingerprint(subject),
                // Whoever counts votes has no policies to ask. The engine has, and compares before it
                // lets the action run. Neither can it see what a door sees, which says it then.
                SubjectKind::Resource
                    if under.preconditions.is_none() || *subject == enforced_identity() =>
                {
                    expected.map(str::to_owned)
                }
                SubjectKind::Resource => {
                    let told = told.iter().find(|it| it.subject() == *subject);
                    // FAIL-CLOSED: what the door does not know is not known to be the same.
                    let Some(told) = told else { return seen };
                    told.fingerprint()
                }
            };
            seen.with(subject.clone(), fingerprint)
        });
        let situation = Situation {
            state: standing.row.state,
            context: &context(&standing.envelope, under.policy, under.tools, under.folder),
            fingerprints: &seen,
            quorum,
            display: standing.rendering.display_sha256(),
            now,
            skew_ms: self.times().skew_ms,
        };
        let keys = approvers
            .keyring()
            .map_err(|error| history(&error.to_string()))?;
        let checked = check(&situation, keys).map_err(Fault::Approval)?;
        precondition::check_known(told, plan)
            .map_err(|failed| Fault::Approval(Refusal::Precondition(failed)))?;
        Ok(checked)
    }
}
