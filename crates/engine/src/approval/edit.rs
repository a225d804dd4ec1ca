//! Editing: another request takes the place of one that nobody has used.

use countersign_approval::{ArgumentsError, Human, Reason, Refusal};
use countersign_policy::{Decision, Hearing};

use super::ask::Unaskable;
use super::vote::{ATTEMPTS, is_race};
use super::*;
use crate::Engine;
use crate::decide::decide;
use crate::hot::lock;
use crate::record::{Batch, durable};

/// Why a request was not edited. It stays as it was.
#[derive(Debug, thiserror::Error)]
pub enum NotEdited {
    /// There is no such request, or it is over.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Policy does not let the edited call run.
    #[error("a policy refuses the edited call ({0})")]
    Denied(String),
    /// The arguments cannot be used.
    #[error(transparent)]
    Arguments(#[from] ArgumentsError),
    /// Nobody can be asked about it.
    #[error(transparent)]
    Unaskable(#[from] Unaskable),
    /// Something failed on the way.
    #[error("{}", .0.message())]
    Failed(crate::Refusal),
}

impl From<Fault> for NotEdited {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Approval(refusal) => Self::Refused(refusal),
            other => Self::Failed(other.into()),
        }
    }
}

impl Engine {
    /// Asks for the same call with other arguments. The edited call is judged like any other, by the
    /// policies that the request was made under; the door that runs it compares them with its own. A
    /// new envelope is made, which people decide from the start, and the old one is superseded in
    /// the same transaction.
    pub fn edit(
        &self,
        id: ApprovalId,
        args: Json,
        by: &Human,
        reason: Option<&Reason>,
    ) -> Result<Envelope, NotEdited> {
        let args = Arguments::new(args)?;
        let who = (by, reason);
        for _ in 0..ATTEMPTS {
            match self.try_edit(id, &args, who) {
                Err(Fault::Store(error)) if is_race(&error) => {}
                result => return result?,
            }
        }
        Err(history("others change the request too fast").into())
    }

    fn try_edit(
        &self,
        id: ApprovalId,
        args: &Arguments,
        who: (&Human, Option<&Reason>),
    ) -> Result<Result<Envelope, NotEdited>, Fault> {
        let reader = self.store().reader();
        let row = reader.approval(id)?;
        let row = row.ok_or(Fault::Approval(Refusal::UnknownNonce))?;
        let old = standing(row, reader)?;
        let from = old.row.state;
        if !matches!(from, State::Pending | State::Approved) {
            return Err(Fault::Approval(Refusal::of_state(from)));
        }
        let [call] = old.envelope.plan().calls() else {
            return Err(history("an approval of this door has one call"));
        };
        let origin = old.origin();
        let proposal = Proposal {
            scope: &old.row.scope,
            call_id: call.id.as_str().to_owned(),
            tool_name: call.tool.name.clone(),
            server: call.tool.server.clone(),
            definition: call.tool.definition,
            origin: &origin,
            preconditions: precondition::preconditions(old.envelope.plan()),
            args: args.value().clone(),
            sanitizer_key: None,
            bytes: args.canonical(),
            encode: &|args| args.to_sorted_ascii(),
        };
        match self.replace(&proposal, &old, who) {
            Err(fault) => Err(Fault::Approval(self.closed(&old, fault)?)),
            result => result,
        }
    }

    fn replace(
        &self,
        proposal: &Proposal<'_>,
        old: &Standing,
        (by, reason): (&Human, Option<&Reason>),
    ) -> Result<Result<Envelope, NotEdited>, Fault> {
        let policies = self.policies_with(old.envelope.plan().policy())?;
        self.keep(&policies)?;
        let now = self.now()?;
        let place = self.sessions.place(proposal.scope);
        let mut guard = lock(&place);
        let hot = self.hot(&mut guard, proposal.scope)?;
        let mut decided = decide(proposal, &hot, now.get(), &policies, Hearing::default())?;
        let judgement = decided.judgement();
        // FAIL-CLOSED: what a policy would rewrite is not what people would see.
        if matches!(
            judgement.verdict.decision(),
            Decision::Deny | Decision::Transform
        ) {
            guard.hot = Some(hot);
            let mut why = judgement.verdict.reason().unwrap_or("DENIED").to_owned();
            if let Some(more) = judgement.explanation.of_the_session() {
                why.push_str(": ");
                why.push_str(&more);
            }
            return Ok(Err(NotEdited::Denied(why)));
        }
        let mut question = self.question(proposal, judgement, &hot, &policies)?;
        question.supersedes = Some(old.row.id);
        question.identity = decided.identity();
        let asked = match self.ask(&question) {
            Ok(asked) => asked,
            Err(unaskable) => return Ok(Err(unaskable.into())),
        };
        let mut entry = Entry::new(now, Outcome::Superseded);
        entry.about = Some(About::envelope(&old.envelope));
        entry.actor = Some(by.to_string());
        let new = asked.envelope.id();
        entry.detail = Some(match reason {
            Some(reason) => format!("edited as {new}: {}", reason.as_str()),
            None => format!("edited as {new}"),
        });
        let mut supersede = Some(Change::step(
            old.row.id,
            old.row.state,
            State::Superseded,
            entry,
            now,
        ));
        let mut batch = Batch::new(proposal.scope, now.get(), hot);
        for (event_type, payload) in decided.take_events() {
            // The call was proposed once; only what is decided about it is new.
            if event_type == EventType::PolicyDecision {
                batch.push(event_type, payload, supersede.take())?;
            }
        }
        let kind = EventType::ApprovalRequested;
        batch.push(kind, asked.payload, Some(asked.change))?;
        let (hot, pending) = batch.send(self.store())?;
        guard.hot = Some(hot);
        drop(guard);
        let _recorded = durable(pending).inspect_err(|_| lock(&place).hot = None)?;
        Ok(Ok(asked.envelope))
    }
}
