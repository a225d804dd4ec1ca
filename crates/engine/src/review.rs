//! What a tool answered is looked at before the agent sees it.

use countersign_approval::State;
use countersign_canon::Json;
use countersign_event::payload::PolicyDecision;
use countersign_event::{EventType, Payload};
use countersign_policy::{Decision, Finding, Hearing, Point, Policies};
use countersign_store::Recorded;

use crate::admission::Done;
use crate::decide::ENGINE;
use crate::engine::MAX_ATTEMPTS;
use crate::hot::{Hot, lock};
use crate::refusal::Fault;
use crate::{Engine, Outcome, Refusal, Running};

/// An outcome that is recorded, or on its way, and what of it the agent may see.
#[derive(Debug)]
#[must_use = "what the agent may see is in it"]
pub struct Settled {
    recorded: Option<Recorded>,
    delivery: Delivery,
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
}

impl Settled {
    pub(crate) fn as_it_came(recorded: Option<Recorded>) -> Self {
        Self {
            recorded,
            delivery: Delivery::AsItCame,
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

    /// What the agent may see.
    pub fn into_delivery(self) -> Delivery {
        self.delivery
    }
}

impl Delivery {
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
        running: Running,
        outcome: Outcome,
        policies: &Policies,
    ) -> Result<Settled, Refusal> {
        self.keep(policies)?;
        for _ in 0..MAX_ATTEMPTS {
            match self.try_settle_reviewed(&running, &outcome, policies) {
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
        guard.hot = Some(hot);
        decision.heard = hearing.into_record();
        decision.call_id = Some(running.permit.call_id.clone());
        // The labels are those of the result, and come with it.
        let labels = decision.result_labels.take().unwrap_or_default();
        let delivery = answer.delivery(&found);
        let told = running.told(&delivery, (content, is_error), labels, now);
        let change = step.map(|(now, step)| step.change(now));
        let events = vec![
            (
                EventType::PolicyDecision,
                Payload::PolicyDecision(decision),
                None,
            ),
            (EventType::ToolResult, Payload::ToolResult(told), change),
        ];
        let recorded = self.push_at(guard, &place, scope, now, events)?;
        Ok(Settled {
            recorded: Some(recorded),
            delivery,
        })
    }
}

impl<'a> Answer<'a> {
    fn new(
        running: &Running,
        done: &'a Done,
        (content, is_error): (&'a Json, bool),
        now: u64,
    ) -> Self {
        let took = now.saturating_sub(running.began_unix_ms);
        let call = Json::object([
            ("args", done.args.clone()),
            ("id", Json::from(running.permit.call_id.as_str())),
            ("name", Json::from(running.permit.tool_name.as_str())),
        ]);
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
            Some(&self.done.agent),
            &hot.snapshot,
            hearing,
            ENGINE,
        )
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
            // What has run cannot wait for people: nobody is asked whether it may be seen.
            Decision::Escalate => withheld("runtime_error:approval_resolver_missing"),
            Decision::Deny => withheld(verdict.reason().unwrap_or("DENIED")),
        }
    }
}
