//! Points of an agent's life at which somebody may want to be asked: its start and end, what its model and
//! its human are asked, and what tools answer.

use countersign_engine as engine;

use super::*;
use crate::reply::HELD;

impl Gate {
    pub(super) fn attends(&self, point: Point) -> bool {
        self.engine.policies().attends(point)
    }

    pub(super) fn intervene(
        &self,
        point: Point,
        subject: Json,
        call_id: Option<String>,
    ) -> Intervened {
        let intervened = self.engine.intervene(&Intervention {
            scope: &self.scope,
            point,
            origin: &self.origin,
            subject,
            call_id,
        });
        if let Intervened::Held(hold) = &intervened {
            self.take_back(hold);
        }
        intervened
    }

    /// The peers cannot wait here, so nobody needs to decide.
    fn take_back(&self, hold: &Hold) {
        if let Ok(envelope) = &hold.approval {
            let _ = self.engine.cancel(envelope.id());
        }
    }

    /// Whether the agent may begin. Asked once; everybody else hears the same.
    pub(super) fn open(&self, about: Json) -> Result<(), Refused> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = &*opened {
            return opened.clone();
        }
        let subject = Json::object([("agent_init", about)]);
        let answer = match self.attends(Point::AgentStartup) {
            false => Ok(()),
            true => match self.intervene(Point::AgentStartup, subject, None) {
                // There is nothing of the agent's start that could be changed.
                Intervened::Passed(passed) if passed.changed.is_some() => Err(unsupported()),
                Intervened::Passed(_) => Ok(()),
                Intervened::Held(hold) => Err(hold::refused(&hold)),
                Intervened::Refused(refusal) => Err(refused(&refusal)),
            },
        };
        *opened = Some(answer.clone());
        answer
    }

    /// Shows what came of a task to those who look at results.
    pub(super) fn review(&self, late: Late) -> Done {
        let Late {
            subject,
            is_plain,
            entry,
            then,
        } = late;
        if !self.attends(Point::PostToolCall) {
            return deliver(self.record(vec![entry]), then);
        }
        // FAIL-CLOSED: what nobody could look at is not delivered.
        let Some(subject) = subject else {
            let fault = record::fault(UNSEEN, "the result of a task".to_owned());
            let event = self.record(vec![fault]).ok().flatten();
            let refused = Refused {
                event,
                ..withheld("runtime_error:adapter_unsupported")
            };
            return Done::Instead(then, Instead::Nothing(refused));
        };
        let reviewed = self
            .engine
            .review(&self.scope, &self.origin, subject.clone());
        let (changed, warning) = match self.answered(reviewed) {
            Ok(answered) => answered,
            Err(refused) => return Done::Instead(then, Instead::Nothing(refused)),
        };
        let then = then.warning_of(warning.as_deref());
        match (self.record(vec![entry]), changed) {
            (Ok(_), Some(changed)) => {
                let result = changed_part(Point::PostToolCall, &changed, &subject);
                let instead = match result.filter(|_| is_plain) {
                    Some(result) => Instead::Result(result),
                    None => Instead::Nothing(unsupported()),
                };
                Done::Instead(then, instead)
            }
            (recorded, None) | (recorded @ Err(_), _) => deliver(recorded, then),
        }
    }

    /// What those said who were shown a result: what they changed, and what they warn of.
    fn answered(&self, reviewed: Intervened) -> Result<(Option<Json>, Option<String>), Refused> {
        match reviewed {
            Intervened::Passed(passed) => {
                let warning = passed.verdict.message().map(str::to_owned);
                Ok((passed.changed, warning))
            }
            Intervened::Held(hold) => {
                self.take_back(&hold);
                Err(hold::refused(&hold))
            }
            Intervened::Refused(refusal) => Err(Refused {
                event: refusal.event().map(|event| event.hash()),
                ..withheld(refusal.reason())
            }),
        }
    }

    pub(super) fn settle(
        &self,
        running: Running,
        outcome: Outcome,
        is_whole: bool,
        then: Delivery,
    ) -> Done {
        let unseen = self.is_unseen(is_whole);
        let outcome = match unseen {
            false => outcome,
            // FAIL-CLOSED: what nobody could look at is not delivered.
            true => Outcome::Lost {
                code: UNSEEN.to_owned(),
                message: NOT_WHOLE.to_owned(),
            },
        };
        let settled = match then.refusal {
            None => self.engine.settle_soon(running, outcome),
            // The client hears which event records it, so there has to be one.
            Some(_) => self.engine.settle(running, outcome),
        };
        match settled {
            Ok(settled) => self.settled(settled, unseen, then),
            Err(refusal) => deliver(Err(refusal), then),
        }
    }

    /// Whether somebody wants to see a result that is not all there.
    pub(super) fn is_unseen(&self, is_whole: bool) -> bool {
        !is_whole && self.attends(Point::PostToolCall)
    }

    /// What is delivered of an outcome that is recorded, or on its way.
    pub(super) fn settled(&self, settled: engine::Settled, unseen: bool, then: Delivery) -> Done {
        if unseen {
            let withheld = withheld("runtime_error:resource_limit_exceeded");
            return Done::Instead(then, Instead::Nothing(withheld));
        }
        let event = settled.recorded().map(|recorded| recorded.hash());
        let then = then.warning_of(settled.warning());
        match settled.into_delivery() {
            engine::Delivery::AsItCame => Done::Deliver(then.recorded_in(event)),
            engine::Delivery::Changed(result) => Done::Instead(then, Instead::Result(result)),
            engine::Delivery::Held(held) => {
                self.has_asked.store(true, Ordering::Release);
                self.has_kept.store(true, Ordering::Release);
                let refused = Refused {
                    code: HELD,
                    event,
                    approval: Some(held.approval.to_string()),
                    ..Refused::denied(
                        held.reason.as_str(),
                        engine::Delivery::text_while_held(&held),
                    )
                };
                Done::Instead(then, Instead::Nothing(refused))
            }
            engine::Delivery::Withheld(reason) => {
                let refused = Refused {
                    event,
                    ..withheld(&reason)
                };
                Done::Instead(then, Instead::Nothing(refused))
            }
        }
    }
}

impl Gate {
    /// The request about the result of this very call, which has run before.
    pub(super) fn held_result(&self, call: &Call) -> Option<ApprovalId> {
        if !self.has_kept.load(Ordering::Acquire) {
            return None;
        }
        let found = self.engine.held_result(&self.scope, &call.tool, &call.args);
        // Whatever fails here fails again where the call is decided.
        found.ok().flatten()
    }

    /// Delivers a result that people have let pass. The server is not asked again.
    pub(super) fn release(&self, call: Call, approval: ApprovalId) -> Done {
        match self.engine.release(approval, &self.scope) {
            Ok(released) => Done::Released(call.id, call.tool, released.content, released.is_error),
            Err(refusal) => Done::Refused(call.id, refused(&refusal)),
        }
    }
}

/// The one part that is delivered, as it is now; `None` if anything else was changed.
pub(super) fn changed_part(point: Point, changed: &Json, before: &Json) -> Option<Json> {
    let path: &[&str] = match point {
        Point::PreModelCall => &["messages"],
        Point::PostModelCall => &["response"],
        Point::Input => &["input", "body"],
        Point::Output => &["response", "content"],
        Point::PostToolCall => &["tool_result", "value"],
        _ => return None,
    };
    let old = path.iter().try_fold(before, |json, name| json.get(name))?;
    let mut rest = changed.clone();
    let place = path.iter().try_fold(&mut rest, |json, name| {
        json.as_object_mut()
            .and_then(|members| members.get_mut(name))
    })?;
    let new = std::mem::replace(place, old.clone());
    (rest == *before).then_some(new)
}

/// Why nobody could look at a result.
const NOT_WHOLE: &str =
    "the result is too large, has numbers that are not exact, or something stands beside it";
/// A result that somebody should have seen, and nobody could.
pub(super) const UNSEEN: &str = "result_not_judged";

pub(super) fn withheld(reason: &str) -> Refused {
    Refused::denied(reason, engine::Delivery::text_for_model(reason))
}

pub(crate) fn unsupported() -> Refused {
    Refused::denied(
        "runtime_error:adapter_unsupported",
        "refused: ask the operator; do not retry",
    )
}
