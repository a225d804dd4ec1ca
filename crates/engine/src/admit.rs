//! Admitting actions: judging them, and asking people about those that are held.

use countersign_canon::Json;
use countersign_event::payload::{ErrorRaised, Payload};
use countersign_event::{EventType, Head};
use countersign_policy::capability::Judgement;
use countersign_policy::{Hearing, Policies};
use countersign_store::{Haste, Recorded};

use crate::approval::{Asked, Question};
use crate::decide::{Decided, decide, hear};
use crate::engine::{MAX_ATTEMPTS, began};
use crate::hot::{Hot, lock};
use crate::lease::Covered;
use crate::record::{Batch, durable, durable_soon};
use crate::refusal::Fault;
use crate::{Admission, Engine, Preview, Proposal, Refusal, Start, Unaskable};

/// What becomes of an action that needs a human.
enum Way {
    /// A lease covers it.
    Lease(Covered),
    /// Somebody is asked.
    Ask(Result<Box<Asked>, Unaskable>),
}

impl Start {
    fn new(admission: Admission, began: Option<u64>) -> Self {
        match (admission, began) {
            (Admission::Permit(permit), Some(began)) => Self::Running(permit.into_running(began)),
            (Admission::Permit(permit), None) => Self::Permit(permit),
            (Admission::Hold(hold), _) => Self::Hold(hold),
            (Admission::Refusal(refusal), _) => Self::Refusal(refusal),
        }
    }
}

impl Engine {
    /// Decides an action. Whatever comes back is recorded durably first; where recording is what
    /// failed, a refusal comes back.
    pub fn admit(&self, proposal: Proposal<'_>) -> Admission {
        self.decided(&proposal, None, false).0
    }

    /// Like [`Engine::admit`], if this is the head of the session; otherwise nothing is recorded and
    /// the refusal says so.
    pub fn admit_at(&self, proposal: Proposal<'_>, after: Head) -> Admission {
        self.decided(&proposal, Some(after), false).0
    }

    /// Decides an action and begins it, if it may run as it was proposed: what [`Engine::admit`] and
    /// [`Engine::begin`] do, for the price of one write.
    pub fn start(&self, proposal: Proposal<'_>) -> Start {
        // What is looked at before it runs is not begun with its decision.
        let begins = !self.watches(proposal.server.as_deref(), &proposal.tool_name);
        let (admission, began) = self.decided(&proposal, None, begins);
        Start::new(admission, began)
    }

    /// The decision, and when the action was begun if it was.
    fn decided(
        &self,
        proposal: &Proposal<'_>,
        after: Option<Head>,
        begins: bool,
    ) -> (Admission, Option<u64>) {
        for _ in 0..MAX_ATTEMPTS {
            match self.try_admit(proposal, after, begins) {
                Err(Fault::Store(error)) if error.is_retryable() && after.is_none() => {}
                Ok(decided) => return decided,
                Err(fault) => return (Admission::Refusal(fault.into()), None),
            }
        }
        (Admission::Refusal(Fault::Busy.into()), None)
    }

    /// What would be decided about an action now. Nothing is recorded and nothing may run.
    pub fn preview(&self, proposal: &Proposal<'_>) -> Result<Preview, Refusal> {
        let policies = self.policies();
        let now = self.clock.now_unix_ms().map_err(Fault::from)?;
        let place = self.sessions.place(proposal.scope);
        let mut guard = lock(&place);
        let hot = self.hot(&mut guard, proposal.scope)?;
        let decided = decide(proposal, &hot, now, &policies, Hearing::default());
        guard.hot = Some(hot);
        Ok(decided.map(Decided::preview)?)
    }

    fn try_admit(
        &self,
        proposal: &Proposal<'_>,
        after: Option<Head>,
        begins: bool,
    ) -> Result<(Admission, Option<u64>), Fault> {
        let policies = self.policies();
        self.keep(&policies)?;
        let now = self.clock.now_unix_ms()?;
        let place = self.sessions.place(proposal.scope);
        let heard = match policies.asks_others() {
            false => None,
            true => {
                let hot = self.peek(&place, proposal.scope)?;
                Some((hot.head, hear(proposal, &hot, now, &policies)?))
            }
        };
        // The session is locked while its chain needs it: to decide from its state and to put the
        // events on their way. Nobody waits for the disk under the lock.
        let mut guard = lock(&place);
        let hot = self.hot_at(&mut guard, proposal.scope, after)?;
        let hearing = match heard {
            Some((head, heard)) if head == hot.head => Hearing::again(heard.as_ref()),
            // Something has happened since, and others may say something else about it.
            _ => Hearing::default(),
        };
        let since = self.meter.began();
        let judged = self.judge(proposal, &hot, now, &policies, hearing);
        self.meter.decided(since);
        let (mut decided, way) = match judged {
            Ok(judged) => judged,
            Err(fault) => {
                guard.hot = Some(hot);
                return Err(fault);
            }
        };
        let mut batch = Batch::new(proposal.scope, now, hot);
        for (event_type, payload) in decided.take_events() {
            batch.push(event_type, payload, None)?;
        }
        let mut leased = false;
        match way {
            None => {}
            Some(Way::Lease(covered)) => {
                let (lease, payload, change) = covered.into_use(proposal);
                batch.push(EventType::ToolCallAllowed, payload, Some(change))?;
                decided.leased(lease, policies.capability().constraints());
                leased = true;
            }
            Some(Way::Ask(asked)) => push_question(asked, &mut decided, &mut batch)?,
        }
        let began = push_beginning(proposal, &decided, &mut batch, begins.then_some(now))?;
        let since = self.meter.began();
        let (hot, pending) = batch.send(self.store())?;
        guard.hot = Some(hot);
        drop(guard);
        let written = durable(pending).inspect(|_| self.meter.appended(since));
        match written.inspect_err(|_| lock(&place).hot = None) {
            // Others were faster, or it was taken back a moment ago: now people are asked.
            Err(Fault::Store(error)) if leased && is_lease_over(&error) => {
                let asked = self.ask_instead(proposal, decided, &policies)?;
                Ok((asked, None))
            }
            recorded => Ok((decided.answer(proposal)(recorded?), began)),
        }
    }

    /// Like [`Engine::start`], without waiting for anybody: the answer comes when the decision is
    /// durable, which `haste` sees to. Nothing comes at once where somebody has to be waited for first,
    /// and nothing then if others were faster: nothing was decided, and [`Engine::start`] decides.
    pub fn start_at_once(
        &self,
        proposal: &Proposal<'_>,
        haste: Haste,
    ) -> Option<impl Future<Output = Option<Start>> + Send + use<>> {
        let policies = self.policies();
        let waits = policies.asks_others()
            || *lock(&self.kept) != Some(policies.digest())
            || self.watches(proposal.server.as_deref(), &proposal.tool_name);
        if waits {
            return None;
        }
        let now = self.clock.now_unix_ms().ok()?;
        let place = self.sessions.place(proposal.scope);
        let mut guard = place.try_lock().ok()?;
        let hot = self.at_hand(&mut guard, proposal.scope)?;
        let since = self.meter.began();
        let mut decided = match decide(proposal, &hot, now, &policies, Hearing::default()) {
            Ok(decided) if decided.is_plain() => decided,
            _ => {
                guard.hot = Some(hot);
                return None;
            }
        };
        self.meter.decided(since);
        // Whatever fails from here on leaves no state behind, and the log is read again.
        let mut batch = Batch::new(proposal.scope, now, hot);
        for (event_type, payload) in decided.take_events() {
            batch.push(event_type, payload, None).ok()?;
        }
        let began = push_beginning(proposal, &decided, &mut batch, Some(now)).ok()?;
        let (meter, since) = (self.meter.clone(), self.meter.began());
        let (hot, pending) = batch.send_with(haste, self.store()).ok()?;
        guard.hot = Some(hot);
        drop(guard);
        let answer = decided.answer(proposal);
        Some(async move {
            match durable_soon(pending).await {
                Ok(recorded) => {
                    meter.appended(since);
                    Some(Start::new(answer(recorded), began))
                }
                Err(fault) => {
                    lock(&place).hot = None;
                    match fault {
                        Fault::Store(error) if error.is_retryable() => None,
                        fault => Some(Start::Refusal(fault.into())),
                    }
                }
            }
        })
    }

    fn judge(
        &self,
        proposal: &Proposal<'_>,
        hot: &Hot,
        now: u64,
        policies: &Policies,
        hearing: Hearing,
    ) -> Result<(Decided, Option<Way>), Fault> {
        let decided = decide(proposal, hot, now, policies, hearing)?;
        let Some(judgement) = decided.held() else {
            return Ok((decided, None));
        };
        let asked = decided.as_it_would_run(proposal);
        let mut question = self.question(&asked, judgement, hot, policies)?;
        question.identity = decided.identity();
        let way = match self.covered(&question)? {
            Some(covered) => Way::Lease(covered),
            None => Way::Ask(self.ask(&question).map(Box::new)),
        };
        Ok((decided, Some(way)))
    }

    /// Asks about a call that is proposed and judged already, and that no lease covers after all.
    fn ask_instead(
        &self,
        proposal: &Proposal<'_>,
        mut decided: Decided,
        policies: &Policies,
    ) -> Result<Admission, Fault> {
        decided.not_leased();
        for _ in 0..MAX_ATTEMPTS {
            match self.try_ask(proposal, &mut decided, policies) {
                Err(Fault::Store(error)) if error.is_retryable() => {}
                recorded => return Ok(decided.answer(proposal)(recorded?)),
            }
        }
        Err(Fault::Busy)
    }

    fn try_ask(
        &self,
        proposal: &Proposal<'_>,
        decided: &mut Decided,
        policies: &Policies,
    ) -> Result<Recorded, Fault> {
        let place = self.sessions.place(proposal.scope);
        let mut guard = lock(&place);
        let hot = self.hot(&mut guard, proposal.scope)?;
        let now = self.clock.now_unix_ms()?;
        let as_it_would_run = decided.as_it_would_run(proposal);
        let mut question = self.question(&as_it_would_run, decided.judgement(), &hot, policies)?;
        question.identity = decided.identity();
        let asked = self.ask(&question).map(Box::new);
        let mut batch = Batch::new(proposal.scope, now, hot);
        if let Err(unaskable) = &asked {
            // The answer needs something durable to point to.
            let error = ErrorRaised {
                call_id: Some(proposal.call_id.clone()),
                code: Some("approval_unavailable".to_owned()),
                message: Some(Json::from(unaskable.to_string())),
                ..ErrorRaised::default()
            };
            batch.push(EventType::ErrorRaised, Payload::ErrorRaised(error), None)?;
        }
        push_question(asked, decided, &mut batch)?;
        let (hot, pending) = batch.send(self.store())?;
        guard.hot = Some(hot);
        drop(guard);
        durable(pending).inspect_err(|_| lock(&place).hot = None)
    }

    /// What people are asked about an action that is held.
    pub(crate) fn question<'a>(
        &'a self,
        proposal: &'a Proposal<'a>,
        judgement: &'a Judgement,
        hot: &'a Hot,
        policies: &'a Policies,
    ) -> Result<Question<'a>, Fault> {
        Ok(Question {
            proposal,
            judgement,
            hot,
            policies,
            folder: self.store().folder().path(),
            times: self.times(),
            now: self.now()?,
            parent_action: self.drifted_action(proposal)?,
            supersedes: None,
            identity: None,
        })
    }
}

fn push_question(
    asked: Result<Box<Asked>, Unaskable>,
    decided: &mut Decided,
    batch: &mut Batch<'_>,
) -> Result<(), Fault> {
    let asked = match asked {
        Ok(asked) => asked,
        Err(unaskable) => {
            if let Some(call_id) = decided.ends_unasked() {
                let (kind, payload, change) = unaskable.denial(call_id);
                batch.push(kind, payload, change)?;
            }
            decided.asked(Err(unaskable));
            return Ok(());
        }
    };
    let kind = EventType::ApprovalRequested;
    batch.push(kind, asked.payload, Some(asked.change))?;
    decided.asked(Ok(Box::new(asked.envelope)));
    Ok(())
}

/// Where an action is begun with its decision, adds that; gives when it began.
fn push_beginning(
    proposal: &Proposal<'_>,
    decided: &Decided,
    batch: &mut Batch<'_>,
    at: Option<u64>,
) -> Result<Option<u64>, Fault> {
    let (Some(at), Some(digest)) = (at, decided.runs_as_proposed()) else {
        return Ok(None);
    };
    let payload = began(&proposal.call_id, digest, at);
    batch.push(EventType::ToolCallExecuted, payload, None)?;
    Ok(Some(at))
}

fn is_lease_over(error: &countersign_store::Error) -> bool {
    let over = countersign_store::ChangeRefused::LeaseOver;
    matches!(error.root(), countersign_store::Error::Approval(refused) if *refused == over)
}
