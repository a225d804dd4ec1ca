//! What a tool answered is looked at before the agent sees it.

use countersign_approval::{Arguments, Envelope, State};
use countersign_canon::Json;
use countersign_event::payload::PolicyDecision;
use countersign_event::{EventType, Payload, Scope};
use countersign_policy::{Decision, Finding, Hearing, Point, Policies};
use countersign_store::{Change, Recorded};

use crate::admission::Done;
use crate::approval::POINT_TOOL;
use crate::decide::ENGINE;
use crate::engine::MAX_ATTEMPTS;
use crate::hot::{Hot, lock};
use crate::refusal::Fault;
use crate::{ApprovalId, Engine, Intervention, Outcome, Refusal, Running, Unaskable};

/// An outcome that is recorded, or on its way, and what of it the agent may see.
#[derive(Debug)]
#[must_use = "what the agent may see is in it"]
pub struct Settled {
    recorded: Option<Recorded>,
    delivery: Delivery,
    warning: Option<String>,
}

/// What the agent may see of a result.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Delivery {
    /// All of it, as it came.
    AsItCame,
    /// This in its place.
    Changed(Json),
    /// Nothing, for this reason.
    Withheld(String),
    /// Nothing yet: people decide whether the agent may see it.
    Held(HeldResult),
}

/// A result that waits for people. Its call has run, and does not run again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldResult {
    /// Why they are asked.
    pub reason: String,
    /// The request: [`Engine::release`] gives the result once it is approved.
    pub approval: ApprovalId,
    /// The short code that they see.
    pub code: String,
}

/// A result that people have let pass.
#[derive(Debug)]
pub struct Released {
    /// The result, as it was kept.
    pub content: Json,
    /// Whether it says that the tool failed.
    pub is_error: bool,
    /// The durable decision.
    pub decision: Recorded,
}

/// Everything that has to be durable before a result counts.
type Events = Vec<(EventType, Payload, Option<Change>)>;

impl Settled {
    pub(crate) fn as_it_came(recorded: Option<Recorded>) -> Self {
        Self {
            recorded,
            delivery: Delivery::AsItCame,
            warning: None,
        }
    }

    /// The event that tells how it went, where it was waited for.
    pub fn recorded(&self) -> Option<Recorded> {
        self.recorded
    }

    /// What the agent may see.
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// Words that go with a result that passes.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// What the agent may see.
    pub fn into_delivery(self) -> Delivery {
        self.delivery
    }
}

impl Delivery {
    fn passes(&self) -> bool {
        matches!(self, Self::AsItCame | Self::Changed(_))
    }

    /// What the model reads in the place of a result that waits for people.
    pub fn text_while_held(held: &HeldResult) -> String {
        let HeldResult { reason, code, .. } = held;
        format!(
            "the call has run, and a human has to approve its result ({reason}, code {code}): tell the \
             operator and wait; the same call, made again, gets the result and does not run again"
        )
    }

    /// What the model reads in the place of a result that is withheld.
    pub fn text_for_model(reason: &str) -> String {
        format!(
            "the call has run, and its result is withheld ({reason}): ask the operator; do not retry"
        )
    }
}

/// A result, and everything that those see who look at it.
struct Answer<'a> {
    done: &'a Done,
    content: &'a Json,
    subject: Json,
}

impl Engine {
    /// Shows the result to those who want to see it, and records both, in one write.
    pub(crate) fn settle_reviewed(
        &self,
        running: &Running,
        outcome: &Outcome,
        policies: &Policies,
    ) -> Result<Settled, Refusal> {
        self.keep(policies)?;
        for _ in 0..MAX_ATTEMPTS {
            match self.try_settle_reviewed(running, outcome, policies) {
                Err(Fault::Store(error)) if error.is_retryable() => {}
                settled => return Ok(settled?),
            }
        }
        Err(Fault::Busy.into())
    }

    fn try_settle_reviewed(
        &self,
        running: &Running,
        outcome: &Outcome,
        policies: &Policies,
    ) -> Result<Settled, Fault> {
        let now = self.clock.now_unix_ms()?;
        let scope = &running.permit.scope;
        let place = self.sessions.place(scope);
        let (Some(done), Some((content, is_error))) = (&running.permit.done, outcome.said()) else {
            return Err(Fault::History("there is no result to look at".to_owned()));
        };
        let answer = Answer::new(running, done, (content, is_error), now);
        let heard = match policies.asks_others() {
            false => None,
            true => {
                let hot = self.peek(&place, scope)?;
                let hearing = Hearing::default();
                let _found = answer.judged(policies, &hot, &hearing);
                Some((hot.head, hearing.into_record()))
            }
        };
        let grounds = running.permit.grounds.as_deref();
        let step = self.step(grounds, State::Started, outcome.ended())?;
        let mut guard = lock(&place);
        let hot = self.hot(&mut guard, scope)?;
        let hearing = match heard {
            Some((head, heard)) if head == hot.head => Hearing::again(heard.as_ref()),
            _ => Hearing::default(),
        };
        let (found, mut decision) = answer.judged(policies, &hot, &hearing);
        decision.heard = hearing.into_record();
        // The labels are those of the result, and come with it.
        let labels = decision.result_labels.take().unwrap_or_default();
        let warning = found.verdict.message().map(str::to_owned);
        let asked = match found.verdict.decision() {
            Decision::Escalate => {
                self.ask_about(running, &answer, (found, decision), (&hot, policies))
            }
            _ => Ok(answer.decided(running, found, decision)),
        };
        guard.hot = Some(hot);
        let (mut events, delivery) = asked?;
        let told = running.told(&delivery, (content, is_error), labels, now);
        let change = step.map(|(now, step)| step.change(now));
        events.push((EventType::ToolResult, Payload::ToolResult(told), change));
        let recorded = self.push_at(guard, &place, scope, now, events)?;
        Ok(Settled {
            recorded: Some(recorded),
            warning: warning.filter(|_| delivery.passes()),
            delivery,
        })
    }

    /// Asks people whether the agent may see a result. What they approve is the result as it is kept.
    fn ask_about(
        &self,
        running: &Running,
        answer: &Answer<'_>,
        judged: (Finding, PolicyDecision),
        state: (&Hot, &Policies),
    ) -> Result<(Events, Delivery), Fault> {
        let intervention = Intervention {
            scope: &running.permit.scope,
            point: Point::PostToolCall,
            origin: &answer.done.origin,
            subject: answer.subject.clone(),
            call_id: None,
        };
        let found = self.held(&intervention, judged, &running.permit.labels, state)?;
        let delivery = match found.asked {
            Some(Ok(envelope)) => {
                let verdict = &found.finding.verdict;
                Delivery::Held(HeldResult {
                    reason: verdict.reason().unwrap_or("APPROVAL_REQUIRED").to_owned(),
                    approval: envelope.id(),
                    code: envelope.plan().hash().short(),
                })
            }
            // FAIL-CLOSED: where nobody can be asked, nobody has approved.
            asked => {
                let problem = asked.and_then(Result::err).unwrap_or(Unaskable::Nobody);
                Delivery::Withheld(problem.reason().to_owned())
            }
        };
        Ok((found.events, delivery))
    }

    /// Gives a result that people have let pass: the one that was kept, once. Nothing runs.
    pub fn release(&self, id: ApprovalId, scope: &Scope) -> Result<Released, Refusal> {
        let unknown = || Fault::Approval(countersign_approval::Refusal::UnknownNonce);
        let standing = self.approval(id)?;
        let standing = standing.filter(|standing| standing.row.scope == *scope);
        let standing = standing.ok_or_else(unknown)?;
        let subject = kept(&standing.envelope).ok_or_else(unknown)?;
        let result = subject.get("tool_result").ok_or_else(unknown)?;
        let content = result.get("value").cloned().ok_or_else(unknown)?;
        let is_error = result.get("error") == Some(&Json::from(true));
        let intervention = Intervention {
            scope,
            point: Point::PostToolCall,
            origin: &standing.origin(),
            subject: subject.clone(),
            call_id: None,
        };
        let passed = self.try_resume(id, &intervention)?;
        Ok(Released {
            content,
            is_error,
            decision: passed.decision,
        })
    }

    /// The request about the result of exactly this call, if people are asked about one or have let it
    /// pass: whoever makes the call again wants that result.
    pub fn held_result(
        &self,
        scope: &Scope,
        tool_name: &str,
        args: &Json,
    ) -> Result<Option<ApprovalId>, Refusal> {
        // Nobody was asked about what no plan can hold.
        let Ok(wanted) = Arguments::new(args.clone()) else {
            return Ok(None);
        };
        let reader = self.store().reader();
        for row in reader.open_approvals(scope).map_err(Fault::from)? {
            let Some(standing) = self.approval(row.id)? else {
                continue;
            };
            let call = kept(&standing.envelope).and_then(|subject| subject.get("tool_call"));
            let is_same = call.is_some_and(|call| {
                let args = call
                    .get("args")
                    .cloned()
                    .and_then(|args| Arguments::new(args).ok());
                call.get("name").and_then(Json::as_str) == Some(tool_name)
                    && args.is_some_and(|args| args.digest() == wanted.digest())
            });
            if is_same {
                return Ok(Some(row.id));
            }
        }
        Ok(None)
    }
}

/// The call and its result, of a request that is about a result.
pub(crate) fn kept(envelope: &Envelope) -> Option<&Json> {
    let call = envelope.plan().calls().first()?;
    let is_result = call.tool.server.is_none()
        && call.tool.name.strip_prefix(POINT_TOOL) == Some(Point::PostToolCall.as_str());
    is_result.then(|| call.args.value())
}

impl<'a> Answer<'a> {
    fn new(
        running: &Running,
        done: &'a Done,
        (content, is_error): (&'a Json, bool),
        now: u64,
    ) -> Self {
        let took = now.saturating_sub(running.began_unix_ms);
        let call = running.seen_with_result().unwrap_or(Json::Null);
        let result = Json::object([
            ("duration_ms", Json::from(took)),
            ("error", Json::from(is_error)),
            ("value", content.clone()),
        ]);
        Self {
            done,
            content,
            subject: Json::object([("tool_call", call), ("tool_result", result)]),
        }
    }

    fn judged(
        &self,
        policies: &Policies,
        hot: &Hot,
        hearing: &Hearing,
    ) -> (Finding, PolicyDecision) {
        policies.attend(
            (Point::PostToolCall, &self.subject),
            Some(&self.done.origin.agent_name),
            hot.snapshot(),
            hearing,
            ENGINE,
        )
    }

    fn decided(
        &self,
        running: &Running,
        found: Finding,
        mut decision: PolicyDecision,
    ) -> (Events, Delivery) {
        decision.call_id = Some(running.permit.call_id.clone());
        let decision = Payload::PolicyDecision(decision);
        let events = vec![(EventType::PolicyDecision, decision, None)];
        (events, self.delivery(&found))
    }

    /// FAIL-CLOSED: what is neither passed nor changed in its value alone is withheld.
    fn delivery(&self, found: &Finding) -> Delivery {
        let verdict = &found.verdict;
        let withheld = |reason: &str| Delivery::Withheld(reason.to_owned());
        match verdict.decision() {
            Decision::Allow | Decision::Warn => Delivery::AsItCame,
            Decision::Transform => {
                let changed = found.changed.as_ref();
                let value = changed.and_then(|changed| changed.get("tool_result")?.get("value"));
                let mut rest = changed.cloned();
                let place = rest.as_mut().and_then(|rest| {
                    let result = rest.as_object_mut()?.get_mut("tool_result")?;
                    result.as_object_mut()?.get_mut("value")
                });
                if let Some(place) = place {
                    *place = self.content.clone();
                }
                match value.filter(|_| rest.as_ref() == Some(&self.subject)) {
                    Some(value) => Delivery::Changed(value.clone()),
                    None => withheld("runtime_error:adapter_unsupported"),
                }
            }
            Decision::Escalate | Decision::Deny => withheld(verdict.reason().unwrap_or("DENIED")),
        }
    }
}
