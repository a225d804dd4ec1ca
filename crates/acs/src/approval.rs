//! When somebody has to decide: what they are asked, and what their answer is worth.

use countersign_canon::Digest;
use countersign_policy::{Decision, Verdict};

use crate::reserved::Failure;
use crate::{Evaluation, Manifest, Mode, Point, Reserved, Runtime};

/// Who can be asked.
pub trait Resolve {
    /// Whether this resolver of the manifest is at hand. `None` is the host's own.
    fn knows(&self, resolver: Option<&str>) -> bool;

    /// Asks. It has to end in bounded time by itself.
    fn resolve(&self, request: &ApprovalRequest<'_>) -> Result<Resolution, ResolverError>;
}

/// What somebody is asked.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalRequest<'a> {
    /// The resolver that the manifest names.
    pub resolver: Option<&'a str>,
    /// Where.
    pub point: Point,
    /// The verdict that asks.
    pub verdict: &'a Verdict,
    /// What would be done. The answer has to name it.
    pub enforced_identity: Digest,
}

/// What somebody said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// It may be done; this, and nothing else.
    Allow {
        /// What was approved.
        identity: Digest,
    },
    /// It may not be done.
    Deny,
    /// Not now. The run ends here.
    Suspend {
        /// What was asked.
        identity: Digest,
    },
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ResolverError(pub String);

impl Runtime {
    /// Asks about a verdict that escalates, and gives the verdict that counts. `current` is the same
    /// question asked again: what was approved has to be what is about to be done *now*. Other verdicts
    /// stay what they are; nobody is asked about a deny.
    pub fn resolve(
        &self,
        held: &Evaluation<'_>,
        current: &Evaluation<'_>,
        people: &dyn Resolve,
    ) -> Verdict {
        let is_held =
            held.verdict().decision() == Decision::Escalate && held.mode() == Mode::Enforce;
        if !is_held {
            return held.verdict().clone();
        }
        match self.resolution(held, current, people) {
            Ok(verdict) => verdict,
            Err(failure) => {
                Verdict::new(Decision::Deny, failure.reserved.as_str()).with_message(failure.detail)
            }
        }
    }

    fn resolution(
        &self,
        held: &Evaluation<'_>,
        current: &Evaluation<'_>,
        people: &dyn Resolve,
    ) -> Result<Verdict, Failure> {
        let mismatch = |problem: &str| Failure::new(Reserved::ApprovalActionMismatch, problem);
        let resolver = resolver(self.manifest());
        if !people.knows(resolver) {
            let name = resolver.unwrap_or("(the host's own)");
            let detail = format!("nobody answers for the resolver `{name}`");
            return Err(Failure::new(Reserved::ApprovalResolverMissing, detail));
        }
        let asked = held.identities().map(|both| both.enforced);
        let asked = asked.ok_or_else(|| mismatch("the action has no identity"))?;
        let request = ApprovalRequest {
            resolver,
            point: held.point(),
            verdict: held.verdict(),
            enforced_identity: asked,
        };
        let answer = people
            .resolve(&request)
            .map_err(|error| Failure::new(Reserved::ApprovalResolverFailed, error.to_string()))?;
        let now = current.identities().map(|both| both.enforced);
        let is_same = |identity: Digest| identity == asked && Some(identity) == now;
        match answer {
            Resolution::Deny => Ok(Verdict::new(Decision::Deny, "approval_denied")),
            Resolution::Allow { identity } | Resolution::Suspend { identity }
                if !is_same(identity) =>
            {
                Err(mismatch(
                    "something else was approved than what would be done",
                ))
            }
            Resolution::Allow { .. } => Ok(Verdict::new(Decision::Allow, "approval_granted")),
            Resolution::Suspend { .. } => Ok(held.verdict().clone()),
        }
    }
}

pub(crate) fn resolver(manifest: &Manifest) -> Option<&str> {
    let approval = manifest.approval()?;
    let only = || match approval.resolvers.len() {
        1 => approval.resolvers.keys().next().map(String::as_str),
        _ => None,
    };
    approval.default_resolver.as_deref().or_else(only)
}
