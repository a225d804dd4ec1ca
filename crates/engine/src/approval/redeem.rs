//! The one use of an approval.

use countersign_approval::{
    ApprovalMode, Granted, Refusal, Resolved, ToolCall, Verified, verify_execution,
};
use countersign_event::payload::ToolCallAllowed;
use countersign_policy::Point;
use countersign_store::ChangeRefused;
use std::time::Duration;

use super::basis::Bound;
use super::look::Under;
use super::vote::{ATTEMPTS, PATIENCE, is_misplaced, is_race, refused_change};
use super::*;
use crate::admission::{Done, Grounds};
use crate::{Engine, Permit};

/// What asking for the use of an approval gives.
#[derive(Debug)]
#[must_use]
pub enum Redeemed {
    /// The action may run, once, with these bytes.
    Permit(Permit),
    /// It was used already, and this is what came of it. Nothing runs again.
    Replayed(Box<Replay>),
    /// The agent wants something else than what was approved. The approval stays unused.
    Drifted(Drifted),
    /// It may not, and this is why.
    Refused(Refusal),
    /// Something failed; nothing may run.
    Failed(crate::Refusal),
}

/// What the agent would run now, as far as the door knows it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// The tool that would be reached.
    pub tool: Option<&'a Tool>,
    /// The arguments that it would be called with.
    pub args: Option<&'a Arguments>,
    /// The folder that it would run in.
    pub folder: Option<&'a Path>,
    /// What it would rest on. What only the door can look at must be among it.
    pub preconditions: &'a [Precondition],
}

impl Engine {
    /// Takes the one use of an approval: checks everything again, consumes it, and permits the bytes
    /// that `encode` makes of the *stored* arguments.
    pub fn redeem(
        &self,
        id: ApprovalId,
        wanted: Wanted<'_>,
        encode: &dyn Fn(&ToolCall) -> Vec<u8>,
    ) -> Redeemed {
        let mut overtaken = 0;
        for _ in 0..ATTEMPTS {
            match self.try_redeem(id, wanted, encode) {
                Ok(redeemed) => return redeemed,
                Err(Fault::Store(error)) if is_race(&error) => {}
                // Another use is on its way to the disk: what became of it can be read soon.
                Err(Fault::Store(error)) if is_misplaced(&error) && overtaken < PATIENCE => {
                    overtaken += 1;
                    std::thread::sleep(Duration::from_millis(overtaken));
                }
                Err(Fault::Store(error)) if is_misplaced(&error) => {
                    return self.replayed(id, State::Consumed);
                }
                Err(Fault::Approval(Refusal::Replayed(state))) => return self.replayed(id, state),
                Err(Fault::Approval(refusal)) => return Redeemed::Refused(refusal),
                Err(fault) => return Redeemed::Failed(fault.into()),
            }
        }
        Redeemed::Failed(history("others use the approval too fast").into())
    }

    fn try_redeem(
        &self,
        id: ApprovalId,
        wanted: Wanted<'_>,
        encode: &dyn Fn(&ToolCall) -> Vec<u8>,
    ) -> Result<Redeemed, Fault> {
        let asked = self.store().reader().asked(id)?;
        let asked = asked.ok_or(Fault::Approval(Refusal::UnknownNonce))?;
        let standing = self.standing(asked)?;
        let now = self.now()?;
        let redeemed = self.use_bound(wanted, encode, &standing, now);
        let refusal = match redeemed {
            Ok(redeemed) => return Ok(redeemed),
            Err(Fault::Approval(refusal)) => refusal,
            Err(fault) => self.closed(&standing, fault)?,
        };
        let mut entry = Entry::new(now, refusal.outcome());
        entry.about = Some(About::envelope(&standing.envelope));
        entry.detail = Some(refusal.to_string());
        self.note(&standing, entry, &refusal, now)?;
        Err(Fault::Approval(refusal))
    }

    /// Takes the use for what is wanted, if that is what was approved.
    fn use_bound(
        &self,
        wanted: Wanted<'_>,
        encode: &dyn Fn(&ToolCall) -> Vec<u8>,
        standing: &Standing,
        now: UnixMs,
    ) -> Result<Redeemed, Fault> {
        let drift = || drift::between(wanted.args, &standing.envelope);
        // The set in force is taken once: what is checked under it runs under it.
        let policies = self.policies();
        let labels = match self.bound(standing, wanted, &policies)? {
            Bound::Same(labels) => labels,
            Bound::Other => {
                // At other points than calls nothing ran that could have failed.
                let is_call = !standing.is_at_a_point();
                if let Some(drift) = drift().filter(|_| is_call) {
                    let _noted = self.deny_drift(drift, standing, now)?;
                    return Err(Fault::ActionMismatch);
                }
                return Err(self.deny_mismatch(standing, now)?);
            }
            Bound::No => match drift() {
                Some(drift) => {
                    let denied = self.deny_drift(drift, standing, now);
                    return denied.map(Redeemed::Drifted);
                }
                None => Vec::new(),
            },
        };
        let verified = self.executable(wanted, standing, &policies, now)?;
        self.consume(verified, encode, (standing, labels), &policies, now)
            .map(Redeemed::Permit)
    }

    fn executable(
        &self,
        wanted: Wanted<'_>,
        standing: &Standing,
        policies: &Policies,
        now: UnixMs,
    ) -> Result<Verified, Fault> {
        let envelope = &standing.envelope;
        let approvers = self.approver_list()?;
        let granted = self.granted(standing, &approvers)?;
        let tools = wanted.tool.map(|tool| {
            let calls = envelope.plan().calls().iter();
            calls.map(|call| (tool.clone(), call.class)).collect()
        });
        let under = Under {
            policy: policies.digest(),
            tools,
            folder: wanted.folder,
            preconditions: Some(wanted.preconditions),
        };
        self.look(standing, &approvers, under, now, |situation, keys| {
            verify_execution(&granted, envelope, keys, situation)
        })
    }

    /// The proof that enough people approved, from what they signed.
    fn granted(&self, standing: &Standing, approvers: &Approvers) -> Result<Granted, Fault> {
        let refused = || {
            Fault::Approval(match standing.row.state {
                State::Pending => Refusal::NotApproved,
                State::Denied => Refusal::Denied,
                State::Expired => Refusal::Expired,
                State::ExpiredUnused => Refusal::ExpiredUnused,
                State::Cancelled => Refusal::Cancelled,
                State::Superseded => Refusal::Superseded,
                State::Approved => Refusal::ConfigurationChanged,
                used => Refusal::Replayed(used),
            })
        };
        match self.ballot(standing, approvers)?.into_resolved() {
            Some(Resolved::Granted(granted)) => Ok(granted),
            Some(Resolved::Refused(_)) | None => Err(refused()),
        }
    }

    /// INVARIANT: the use is taken, and known to be durable, before there is a permit.
    fn consume(
        &self,
        verified: Verified,
        encode: &dyn Fn(&ToolCall) -> Vec<u8>,
        (standing, mut labels): (&Standing, Vec<String>),
        policies: &Policies,
        now: UnixMs,
    ) -> Result<Permit, Fault> {
        let envelope = &standing.envelope;
        // Of the votes that decided, one counts no more: what is left decided at another time.
        if standing.row.ends != Some(verified.ends()) {
            return Err(Fault::Approval(Refusal::ConfigurationChanged));
        }
        let runs = verified.runs(envelope).unwrap_or_default();
        let call = match runs.as_slice() {
            [call] => (*call).clone(),
            _ => return Err(history("an approval of this door has one call")),
        };
        let bytes = encode(&call);
        let digest = Digest::of(&bytes);
        let mut entry = Entry::new(now, Outcome::Consumed);
        entry.about = Some(About::envelope(envelope));
        entry.decisions = verified.decisions().to_vec();
        entry.computed_plan_hash = Some(verified.plan_hash());
        let allowed = ToolCallAllowed {
            call_id: Some(call.id.as_str().to_owned()),
            approval_id: Some(envelope.id().to_string()),
            action_digest: Some(digest.to_string()),
            ..ToolCallAllowed::default()
        };
        let owner = self.instance()?.name().to_owned();
        let change = Change::consume(verified, owner, entry, now);
        let event = (
            EventType::ToolCallAllowed,
            Payload::ToolCallAllowed(allowed),
        );
        let decision = self
            .record_events(&standing.row.scope, now, vec![event], change)
            .map_err(unused)?;
        let tool = policies
            .capability()
            .manifest()
            .and_then(|manifest| manifest.tool(&call.tool.name));
        Ok(Permit {
            scope: standing.row.scope.clone(),
            call_id: call.id.as_str().to_owned(),
            tool_name: call.tool.name,
            server: call.tool.server,
            digest,
            rewritten: Some(bytes),
            constraints: policies.capability().constraints(),
            observed: policies.is_observing(),
            labels: {
                labels.extend(
                    tool.into_iter()
                        .flat_map(|tool| tool.labels.iter().cloned()),
                );
                labels.sort_unstable();
                labels.dedup();
                labels
            },
            warning: None,
            decision,
            done: policies.attends(Point::PostToolCall).then(|| {
                Box::new(Done {
                    origin: standing.origin(),
                    args: call.args.value().clone(),
                })
            }),
            grounds: Some(Box::new(Grounds::Approval(Used {
                id: envelope.id(),
                about: About::envelope(envelope),
                mode: envelope.mode(),
            }))),
        })
    }
}

/// What it means that the store does not give out the one use, and will not later either.
fn unused(fault: Fault) -> Fault {
    let refused = match &fault {
        Fault::Store(error) => refused_change(error),
        _ => None,
    };
    match refused {
        Some(ChangeRefused::TooLate) => Fault::Approval(Refusal::ExpiredUnused),
        Some(ChangeRefused::Spent) => Fault::Approval(Refusal::Replayed(State::Consumed)),
        _ => fault,
    }
}

/// The approval that a permit came from.
#[derive(Debug)]
pub(crate) struct Used {
    pub(crate) id: ApprovalId,
    pub(crate) about: About,
    pub(crate) mode: ApprovalMode,
}

/// A step of an approval, to be taken with an event of its action.
pub(crate) struct ApprovalStep {
    id: ApprovalId,
    about: About,
    from: State,
    to: State,
}

impl Used {
    pub(crate) fn step(&self, from: State, to: State) -> ApprovalStep {
        ApprovalStep {
            id: self.id,
            about: self.about.clone(),
            from,
            to,
        }
    }
}

impl ApprovalStep {
    pub(crate) fn change(&self, now: UnixMs) -> Change {
        let mut entry = Entry::new(now, self.to.into());
        entry.about = Some(self.about.clone());
        Change::step(self.id, self.from, self.to, entry, now)
    }
}
