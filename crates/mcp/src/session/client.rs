//! What comes from the client.

use crate::frame::{self, Frame, FrameError, Id, Kind, Params};
use crate::gate::{Delivery, Job};
use crate::lines::Line;
use crate::method::{Method, Route};
use crate::outbound::Outbound;
use crate::reply::{INVALID_REQUEST, METHOD_NOT_FOUND, Refused};
use crate::{Era, Fault};

use super::ask::Abilities;
use super::list::cursor_at;
use super::open::name_of;
use super::pending::{Asked, CallState, NoPlace, Page, ServerAsked};
use super::{Effect, Session, Unknown};
use std::ops::ControlFlow;
use std::time::Instant;

impl Session {
    /// A frame came from the client.
    pub fn from_client(&mut self, bytes: Vec<u8>, now: Instant) -> Vec<Effect> {
        // SECURITY: a server that ends lines there would see messages that nobody has decided about.
        if !Line::is_one(&bytes) {
            let error = FrameError::of(Fault::CarriageReturn, &bytes);
            return vec![self.client_fault(&error)];
        }
        match self.batch(&bytes) {
            None => self.client_bytes(bytes, now),
            Some(Err(error)) => vec![self.client_fault(&error)],
            Some(Ok(messages)) => messages
                .into_iter()
                .flat_map(|one| match Frame::read(one, &self.settings.limits) {
                    Ok(frame) => self.batched_from_client(frame, now),
                    Err(error) => vec![self.client_fault(&error)],
                })
                .collect(),
        }
    }

    /// The messages of a batch, where the peers speak a revision that has them. Each goes its own
    /// way, as if it had come alone; so no message hides behind another.
    pub(super) fn batch(&self, bytes: &[u8]) -> Option<Result<Vec<Vec<u8>>, FrameError>> {
        let is_one = self.speaks_batches() && frame::is_batch(bytes);
        is_one.then(|| frame::batch(bytes, &self.settings.limits))
    }

    /// Whether the peers speak a revision that has batches.
    pub(crate) fn speaks_batches(&self) -> bool {
        self.era.is_some_and(|era| era.batches)
    }

    /// A message of a batch, which was read before.
    pub(crate) fn batched_from_client(&mut self, frame: Frame, now: Instant) -> Vec<Effect> {
        match frame.check_batched() {
            Ok(()) => self.frame_from_client(frame, now),
            Err(fault) => vec![self.client_fault(&FrameError::of(fault, frame.bytes()))],
        }
    }

    /// The client has closed its end: nobody waits for a human any more.
    pub fn client_closed(&mut self) -> Vec<Effect> {
        self.client_gone = true;
        let held: Vec<Id> = self
            .asked
            .iter()
            .filter(|(_, asked)| matches!(asked, Asked::Call(_, CallState::Held(_))))
            .map(|(id, _)| id.clone())
            .collect();
        let mut effects = self.withdraw_tasks();
        let unawaited = self.unawaited.take_all();
        effects.extend(unawaited.map(|approval| Effect::job(Job::Withdraw(approval))));
        for id in held {
            effects.extend(self.take_back(&id, &left()));
        }
        effects
    }

    fn client_bytes(&mut self, bytes: Vec<u8>, now: Instant) -> Vec<Effect> {
        match Frame::read(bytes, &self.settings.limits) {
            Ok(frame) => self.frame_from_client(frame, now),
            Err(error) => vec![self.client_fault(&error)],
        }
    }

    /// A frame from the client was over the limit; these are its first bytes and its last.
    pub fn too_long_from_client(&mut self, beginning: &[u8], end: &[u8]) -> Vec<Effect> {
        let limit = self.settings.limits.max_bytes;
        let error = FrameError::of_cut(Fault::TooLarge { limit }, beginning, end);
        vec![self.client_fault(&error)]
    }

    /// A frame that was read before. The limits were those of this session.
    pub(crate) fn frame_from_client(&mut self, frame: Frame, now: Instant) -> Vec<Effect> {
        match frame.kind().clone() {
            Kind::Request {
                id, method, params, ..
            } => self.client_request(frame, id, method, params, now),
            Kind::Notification { method, .. } => self.client_notification(frame, method),
            Kind::Response { id, .. } | Kind::Error { id: Some(id), .. } => {
                self.client_answer(frame, &id)
            }
            Kind::Error { id: None, .. } => vec![self.pass(frame)],
        }
    }

    /// A frame that could not be read.
    pub(crate) fn fault_from_client(&mut self, error: &FrameError) -> Vec<Effect> {
        vec![self.client_fault(error)]
    }

    /// What stands beside a message says something else than it does.
    pub(crate) fn headers_differ(&mut self, message: String, then: Delivery) -> Vec<Effect> {
        vec![self.complain("header_mismatch", message, then)]
    }

    fn client_request(
        &mut self,
        frame: Frame,
        id: Id,
        method: Method,
        params: Params,
        now: Instant,
    ) -> Vec<Effect> {
        if let Err(no_place) = self.asked.check(&id) {
            return vec![self.no_place(&id, no_place)];
        }
        if !self.closes && self.late.contains(&id) {
            // SECURITY: on a way that all requests share, the answer to the other one may still come.
            return vec![self.no_place(&id, NoPlace::Taken)];
        }
        if self.server_gone {
            let refused = Refused::denied("SERVER_GONE", SERVER_GONE);
            let then = match method.is_decided() {
                true => self.to_client(&id, self.refusals_of(method), refused),
                false => Delivery::error(Some(&id), refused),
            };
            let message = format!("{} {id}", shown_method(&frame));
            return vec![self.complain("client_request_too_late", message, then)];
        }
        self.note_era(&frame, &params);
        self.meet_client(&frame, &params);
        let frame = match self.at_start(frame, &id, &params) {
            ControlFlow::Break(effects) => return effects,
            ControlFlow::Continue(frame) => frame,
        };
        if self.is_new() && method != Method::Discover {
            let met = self.meet_in_passing();
            let effects = self.client_request_of(frame, id, method, params, now);
            return met.into_iter().chain(effects).collect();
        }
        self.client_request_of(frame, id, method, params, now)
    }

    fn client_request_of(
        &mut self,
        frame: Frame,
        id: Id,
        method: Method,
        params: Params,
        now: Instant,
    ) -> Vec<Effect> {
        if method == Method::Initialize {
            let capabilities = frame.member(params.whole, "capabilities");
            self.client = Abilities::read(&frame, capabilities);
        }
        if let Some(effects) = self.about_task(&frame, &id, method, &params, now) {
            return effects;
        }
        let asked = match method.from_client() {
            Route::Call => return self.call(frame, (id, method), params, now),
            Route::List => {
                let cursor = frame.member(params.whole, "cursor");
                let cursor = cursor.filter(|at| frame.part(*at) != b"null");
                Asked::List(Page {
                    cursor: cursor.map(|at| cursor_at(&frame, at)),
                    is_wanted: true,
                })
            }
            Route::Task => Asked::Task {
                task: name_of(&frame, params.task_id),
                key: task_key(&frame, method, &params),
            },
            Route::Open => Asked::Open,
            Route::Pass => Asked::Plain,
            Route::Unknown if self.settings.unknown == Unknown::Pass => Asked::Plain,
            Route::Unknown
            | Route::Refuse
            | Route::Notify
            | Route::Cancel
            | Route::Sample
            | Route::Elicit => return vec![self.unknown_request(&frame, &id)],
        };
        let patience = self.patience(&frame).map(|patience| patience.begun(now));
        self.asked.insert_until(id.clone(), asked, patience);
        match method {
            Method::TasksUpdate => vec![Effect::job(self.task_answered(frame, id, &params))],
            _ => vec![self.pass(frame)],
        }
    }

    fn client_notification(&mut self, frame: Frame, method: Method) -> Vec<Effect> {
        if !self.may_speak() {
            let message = format!("a notification of {}", shown_method(&frame));
            let then = Delivery::default();
            return vec![self.complain("client_notification_too_early", message, then)];
        }
        match method.from_client() {
            Route::Notify => vec![self.pass(frame)],
            Route::Cancel => self.client_cancels(frame),
            Route::Unknown if self.settings.unknown == Unknown::Pass => vec![self.pass(frame)],
            // A request without an id would be done by some servers, and nobody would hear of it.
            _ => vec![self.complain(
                "client_notification_refused",
                format!("a notification of {}", shown_method(&frame)),
                Delivery::default(),
            )],
        }
    }

    fn client_answer(&mut self, frame: Frame, id: &Id) -> Vec<Effect> {
        if let Some(call) = self.own_question(id) {
            return self.question_answered(&frame, &call);
        }
        let job = match self.server_asked.remove(id) {
            None => {
                let was_asked = self.taken_back.contains(id);
                let (code, text) = match was_asked {
                    true => ("client_answer_late", "which the server has taken back"),
                    false => ("client_answer_unasked", "which the server did not ask"),
                };
                let message = format!("an answer to {id}, {text}");
                return vec![self.complain(code, message, Delivery::default())];
            }
            Some(ServerAsked::Plain) => return vec![self.pass(frame)],
            Some(ServerAsked::Sample) => {
                let sight = self.sampled(Some(server_call(id)), answer_of(&frame));
                self.answered(frame, id, sight)
            }
            Some(ServerAsked::Elicit) => {
                let sight = self.elicited(answer_of(&frame));
                self.answered(frame, id, sight)
            }
        };
        vec![Effect::job(job)]
    }

    fn client_fault(&mut self, error: &FrameError) -> Effect {
        let refused = Refused::denied(
            "FRAME_REFUSED",
            format!("refused: {error}; do not send it again as it is"),
        )
        .with_code(error.code());
        // An answer that cannot be read is an answer to the server; the client does not wait.
        let then = match error.is_answer() {
            true => Delivery::default(),
            false => Delivery::error(self.nobody_waits(error.id()), refused),
        };
        self.complain("client_frame_refused", error.to_string(), then)
    }

    /// The id, unless another request waits under it: its answer must not be ours.
    fn nobody_waits<'a>(&self, id: Option<&'a Id>) -> Option<&'a Id> {
        id.filter(|id| self.asked.get(id).is_none())
    }

    fn no_place(&mut self, id: &Id, no_place: NoPlace) -> Effect {
        let (code, then) = match no_place {
            NoPlace::Taken => {
                let text =
                    format!("refused: another request waits under the id {id}; use a new one");
                let refused = Refused::denied("ID_IN_USE", text).with_code(INVALID_REQUEST);
                ("client_id_reused", Delivery::error(None, refused))
            }
            NoPlace::Full => {
                let text = "refused: too many requests wait; try again when some are answered";
                let refused = Refused::denied("TOO_MANY_REQUESTS", text);
                ("client_requests_full", Delivery::error(Some(id), refused))
            }
        };
        self.complain(code, format!("the request {id}"), then)
    }

    fn unknown_request(&mut self, frame: &Frame, id: &Id) -> Effect {
        let shown = shown_method(frame);
        let text = format!("refused: {shown} is not known; do without it, or ask the operator");
        let refused = Refused::denied("METHOD_UNKNOWN", text).with_code(METHOD_NOT_FOUND);
        let then = Delivery::error(Some(id), refused);
        self.complain("client_method_refused", shown, then)
    }

    /// A revision without a handshake is named by each request.
    fn note_era(&mut self, frame: &Frame, params: &Params) {
        let version = frame.text(frame.member(params.meta, Era::VERSION_KEY));
        let era = version.as_deref().and_then(Era::of);
        if let Some(era) = era.filter(|era| !era.handshake) {
            self.era = Some(era);
        }
    }

    /// Sends a frame to the server that needs no permit.
    pub(super) fn pass(&mut self, frame: Frame) -> Effect {
        match Outbound::passing(frame) {
            Some(outbound) => Effect::ToServer(outbound),
            // FAIL-CLOSED: a call does not come this way.
            None => self.complain(
                "client_call_refused",
                "a call without a permit".to_owned(),
                Delivery::default(),
            ),
        }
    }
}

/// What a call that was held hears when its client has closed its end.
pub(super) fn left() -> Refused {
    Refused::denied(
        "APPROVAL_WITHDRAWN",
        "the client closed its end before a human had decided; the request was taken back",
    )
}

/// The id under which the log knows a request of the server.
pub(super) fn server_call(id: &Id) -> String {
    format!("server:{id}")
}

/// The result or the error of an answer.
pub(super) fn answer_of(frame: &Frame) -> &[u8] {
    match frame.kind() {
        Kind::Response { result, .. } => frame.part(*result),
        Kind::Error { error, .. } => frame.part(*error),
        Kind::Request { .. } | Kind::Notification { .. } => b"null",
    }
}

/// The method as it stands in the frame, cut short.
pub(super) fn shown_method(frame: &Frame) -> String {
    let name = match frame.kind() {
        Kind::Request { name, .. } | Kind::Notification { name, .. } => frame.text(Some(*name)),
        Kind::Response { .. } | Kind::Error { .. } => None,
    };
    let name = name.unwrap_or_default();
    let short: String = name.chars().take(80).collect();
    format!("`{}`", short.escape_debug())
}

/// Under what the log keeps what is said about a task.
fn task_key(frame: &Frame, method: Method, params: &Params) -> String {
    let name = frame.text(params.task_id).unwrap_or_default();
    let short: String = name.chars().take(1024).collect();
    format!("{method} {short}")
}

pub(super) const SERVER_GONE: &str = "the server is gone; tell the operator, do not retry";
