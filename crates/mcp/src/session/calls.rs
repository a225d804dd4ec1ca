//! Calls: from the client's request to the server's answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use countersign_canon::{Digest, Json, Limits};
use countersign_engine::{Outcome, Running};
use countersign_event::fetching;

use crate::frame::{Frame, Id, Kind, Params, Span};
use crate::gate::{Call, Delivery, Job, Waits};
use crate::outbound::{Begun, Outbound};
use crate::record;
use crate::reply::{INVALID_PARAMS, Notice, RefusalForm, Refused};
use crate::tools::{Definition, Objection};
use crate::{Method, beside};

use super::ask::Back;
use super::client::SERVER_GONE;
use super::pending::{Asked, CallState};
use super::{Asks, Effect, Session, observed};

impl Session {
    /// The client calls a tool, or fetches something.
    pub(super) fn call(
        &mut self,
        frame: Frame,
        (id, method): (Id, Method),
        params: Params,
        now: Instant,
    ) -> Vec<Effect> {
        // What was ours is taken out before anybody looks at the rest.
        let came = match Self::comes_back(&frame, &params) {
            None => None,
            Some(state) => match self.come_back(&frame, &params, state) {
                Some(came) => Some(came),
                None => return vec![self.refuse_state(&id)],
            },
        };
        let (frame, came) = match came {
            None => (frame, None),
            Some((bare, came)) => (bare, Some(came)),
        };
        let params = match frame.kind() {
            Kind::Request { params, .. } => *params,
            _ => params,
        };
        match self.answers_in(&frame, (method, &params)) {
            Some(answers) => vec![self.bring(frame, (&id, method), answers)],
            None => self.call_of(frame, (id, method), (params, came), now),
        }
    }

    /// The same, when what it brings beside may pass.
    pub(super) fn call_of(
        &mut self,
        frame: Frame,
        (id, method): (Id, Method),
        (params, came): (Params, Option<Back>),
        now: Instant,
    ) -> Vec<Effect> {
        let understood = match method.reads() {
            true => beside::whole(&frame, &params).map(|args| (method.to_string(), args)),
            false => understood(&frame, &params),
        };
        let (tool, args) = match understood {
            Ok(understood) => understood,
            Err(message) => {
                let refused = Refused::denied("ARGUMENTS_INVALID", format!("refused: {message}"))
                    .with_code(INVALID_PARAMS);
                let then = Delivery::error(Some(&id), refused);
                return vec![self.complain("client_call_refused", message, then)];
            }
        };
        let back = match came {
            None => None,
            Some(came) => match self.open_state(&came, (&tool, &args), now) {
                None => return vec![self.refuse_state(&id)],
                Some(approval) if came.is_declined() => {
                    return self.declined((&id, method), &came, approval);
                }
                Some(approval) => Some(approval),
            },
        };
        let approval = frame.member(params.meta, APPROVAL);
        let approval = approval.map(|span| frame.text(Some(span)).and_then(|it| it.parse().ok()));
        let approval = match approval {
            // FAIL-CLOSED: what is not an approval is not left out.
            Some(None) => {
                let refused = Refused::denied("APPROVAL_UNKNOWN", "refused: no such approval")
                    .with_code(INVALID_PARAMS);
                let then = Delivery::error(Some(&id), refused);
                let message = "not the id of an approval".to_owned();
                return vec![self.complain("client_call_refused", message, then)];
            }
            approval => approval.flatten(),
        };
        let call = Call {
            id: id.clone(),
            method,
            tool,
            args,
            frame,
            definition: None,
            approval,
            objection: None,
            cancelled: Arc::new(AtomicBool::new(false)),
            back,
            again: None,
            awaited: Vec::new(),
            seen: None,
        };
        self.submit_known(call, now)
    }

    /// Submits a call when its tool is known; some clients never ask for the tools.
    pub(super) fn submit_known(&mut self, call: Call, now: Instant) -> Vec<Effect> {
        self.heed_sights();
        if call.method.reads() || self.shelf.is_complete() {
            return vec![self.submit(call)];
        }
        let waiting = Asked::Call(self.refusals_of(call.method), CallState::Waiting);
        self.asked.insert(call.id.clone(), waiting);
        self.wait_for_list(call, now)
    }

    /// Sends a call to the engine.
    pub(super) fn submit(&mut self, mut call: Call) -> Effect {
        call.seen = None;
        call.objection = self.objection(&call);
        call.definition = self.definition(&call);
        self.made_again(&mut call);
        let cancelled = Arc::clone(&call.cancelled);
        let deciding = CallState::Deciding { cancelled };
        self.asked.insert_until(
            call.id.clone(),
            Asked::Call(self.refusals_of(call.method), deciding),
            self.patience(&call.frame),
        );
        match call.back.filter(|_| call.objection.is_none()) {
            Some(approval) => Effect::job(Job::Look(Box::new(call), approval)),
            None => Effect::job(Job::Decide(Box::new(call))),
        }
    }

    /// Why what is called is not to be trusted.
    fn objection(&self, call: &Call) -> Option<Objection> {
        let reads = call.method.reads();
        match self.settings.elsewhere.include(&call.tool) {
            true => Some(Objection {
                reason: "TOOL_OF_ANOTHER_SERVER",
                because: "the manifest expects it of another server",
            }),
            false if reads => None,
            false => self.shelf.standing(&call.tool).objection(),
        }
    }

    /// What is called, as the server shows it or as the protocol has it.
    fn definition(&self, call: &Call) -> Option<Digest> {
        match call.method.reads() {
            true => fetching(&call.tool),
            false => self.shelf.definition(&call.tool).map(Definition::digest),
        }
    }

    /// Whether what is called is known to be what it was when the call was submitted.
    pub(super) fn is_unchanged(&self, call: &Call) -> bool {
        let is_known = call.method.reads() || self.shelf.is_complete();
        is_known && self.definition(call) == call.definition && self.objection(call).is_none()
    }

    /// The engine has begun a call: now, and not before, it goes to the server.
    pub(super) fn begun(&mut self, id: Id, begun: Begun, now: Instant) -> Vec<Effect> {
        let is_timed = self.settings.timed_by_policy && !begun.running().is_observed();
        let timeout = begun.running().constraints().timeout_ms;
        let timeout = self.settings.timed_by_policy.then_some(timeout);
        let (outbound, running) = Outbound::begun(id.clone(), begun);
        let (form, cancelled) = match self.asked.get(&id) {
            Some(Asked::Call(form, CallState::Deciding { cancelled })) => (*form, Some(cancelled)),
            Some(Asked::Call(form, CallState::Held(held))) => (*form, Some(&held.cancelled)),
            _ => (self.settings.refusals, None),
        };
        let wanted = cancelled.is_some_and(|cancelled| !cancelled.load(Ordering::Acquire));
        if !wanted {
            self.asked.remove(&id);
            let then = match self.carries_task(&id) {
                // Whoever asks about a task waits for an answer, whatever became of the call.
                true => {
                    let refused = Refused::denied("CANCELLED", "the call was cancelled");
                    self.to_client(&id, form, refused)
                }
                false => Delivery::default(),
            };
            return vec![settle(running, failed("cancelled"), then)];
        }
        if self.server_gone {
            self.asked.remove(&id);
            let refused = Refused::denied("SERVER_GONE", SERVER_GONE);
            let then = self.to_client(&id, form, refused);
            return vec![settle(running, failed("server_gone"), then)];
        }
        let state = CallState::Running {
            running,
            deadline: timeout.and_then(|ms| now.checked_add(Duration::from_millis(ms))),
            is_unwanted: false,
        };
        if let Some(patience) = self.asked.advance(&id, Asked::Call(form, state)) {
            patience.begin_call(is_timed, now);
        }
        vec![Effect::ToServer(outbound)]
    }

    /// The client no longer wants something.
    pub(super) fn client_cancels(&mut self, frame: Frame) -> Vec<Effect> {
        let id = frame.cancelled();
        if id.as_ref().is_some_and(|id| self.carries_task(id)) {
            // Who stops asking about a task does not stop the task.
            return Vec::new();
        }
        match id.as_ref().and_then(|id| self.asked.get_mut(id)) {
            Some(Asked::Call(_, CallState::Deciding { cancelled })) => {
                cancelled.store(true, Ordering::Release);
                Vec::new()
            }
            Some(Asked::Call(_, CallState::Held(_))) => {
                id.map(|id| self.withdraw(&id)).unwrap_or_default()
            }
            Some(Asked::Call(_, CallState::Waiting)) => {
                if let Some(id) = id {
                    self.asked.remove(&id);
                    self.list.forget(&id);
                }
                Vec::new()
            }
            Some(Asked::List(_)) => {
                let list = id.and_then(|id| self.list_unwanted(&id));
                std::iter::once(self.pass(frame)).chain(list).collect()
            }
            // The server may still answer, and then it is known how the call went.
            _ => vec![self.pass(frame)],
        }
    }

    /// The server answered a call.
    pub(super) fn call_answered(
        &mut self,
        frame: Frame,
        id: &Id,
        form: RefusalForm,
        running: Running,
    ) -> Vec<Effect> {
        let (part, is_error) = match frame.kind() {
            Kind::Response { result, .. } => {
                let flag = frame.member(Some(*result), "isError");
                (
                    *result,
                    flag.is_some_and(|flag| frame.part(flag) == b"true"),
                )
            }
            Kind::Error { error, .. } => (*error, true),
            // FAIL-CLOSED: nothing else is an answer.
            Kind::Request { .. } | Kind::Notification { .. } => {
                let text = "the answer was refused; tell the operator, do not retry";
                let refused = Refused::denied("SERVER_FRAME_REFUSED", text);
                let then = self.to_client(id, form, refused);
                return vec![settle(running, lost("server_frame_refused"), then)];
            }
        };
        let (length, most) = (
            part.end - part.start,
            running.constraints().max_output_bytes,
        );
        let too_large = output_too_large(length, most);
        let noted = match too_large {
            Some(_) if running.is_observed() => {
                Some(observed::large(&observed::called(&running), length, most))
            }
            Some(refused) => {
                let then = self.to_client(id, form, refused);
                return vec![settle(running, lost("output_too_large"), then)];
            }
            None => None,
        };
        let (content, is_whole) = record::told(frame.part(part));
        let is_whole = is_whole && !frame.has_others();
        let is_open = is_open(&frame, part);
        if is_open {
            self.open.note(&frame, part, &running);
        }
        let asks = Asks::of_call(running.tool_name(), id).in_frame(&frame);
        let then = Delivery {
            to_client: Some(frame.into_bytes()),
            warning: running.warning().map(str::to_owned),
            asks: Some(asks),
            waits: Waits::Client(id.clone()),
            form,
            ..Delivery::default()
        };
        let outcome = match is_open {
            true => Outcome::Open { content },
            false => Outcome::Result { content, is_error },
        };
        let settled = Effect::job(Job::Settle {
            running,
            outcome,
            is_whole,
            then,
        });
        noted.into_iter().chain([settled]).collect()
    }

    /// A refusal for a client that waits.
    pub(super) fn to_client(&self, id: &Id, form: RefusalForm, refused: Refused) -> Delivery {
        Delivery {
            refusal: Some(Box::new(Notice::answer(id, refused, form, self.era))),
            is_ours: true,
            waits: Waits::Client(id.clone()),
            ..Delivery::default()
        }
    }
}

/// The tool and the arguments of a call, if they are what they must be.
fn understood(frame: &Frame, params: &Params) -> Result<(String, Json), String> {
    let tool = frame.text(params.name);
    let tool = tool.ok_or("a call needs the `name` of a tool")?;
    if tool.is_empty() || tool.len() > LONGEST_NAME {
        return Err(format!("the name of a tool has 1 to {LONGEST_NAME} bytes"));
    }
    let args = match params.arguments {
        None => Json::object::<String>([]),
        Some(span) => Json::admit(frame.part(span), &Limits::event())
            .map_err(|error| beside::misread(&error.within("/params/arguments")))?,
    };
    if !matches!(args, Json::Object(_) | Json::Null) {
        return Err("`arguments` must be an object".to_owned());
    }
    Ok((tool.into_owned(), beside::join(args, frame, params)?))
}

/// Why a server may not say so much about a call.
pub(super) fn output_too_large(length: usize, most: u64) -> Option<Refused> {
    (length as u64 > most).then(|| {
        let text = format!(
            "the result has {length} bytes and was refused, {most} are allowed; ask for less"
        );
        Refused::denied("OUTPUT_TOO_LARGE", text)
    })
}

pub(super) fn settle(running: Running, outcome: Outcome, then: Delivery) -> Effect {
    Effect::job(Job::Settle {
        running,
        outcome,
        is_whole: true,
        then,
    })
}

/// Whether a result says that the tool is not done.
fn is_open(frame: &Frame, result: Span) -> bool {
    let kind = frame.text(frame.member(Some(result), "resultType"));
    let is_task = frame.member(Some(result), "task").is_some();
    matches!(kind.as_deref(), Some("task" | "input_required")) || (kind.is_none() && is_task)
}

/// It was sent, and nobody knows how it went.
pub(super) fn lost(code: &str) -> Outcome {
    Outcome::Lost {
        code: code.to_owned(),
        message: "the call has no result that can be believed".to_owned(),
    }
}

pub(super) fn failed(code: &str) -> Outcome {
    Outcome::Failed {
        code: code.to_owned(),
        message: "the call has no result".to_owned(),
    }
}

const LONGEST_NAME: usize = 1024;
/// Where a client says which approval a call is for.
pub(crate) const APPROVAL: &str = "countersign/approval";
