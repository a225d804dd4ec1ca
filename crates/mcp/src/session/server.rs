//! What comes from the server.

use std::sync::atomic::Ordering;

use crate::frame::{Frame, FrameError, Id, Kind, Params, Span};
use crate::gate::{Delivery, Job, Waits};
use crate::lines::Line;
use crate::method::{Method, Route};
use crate::outbound::Outbound;
use crate::reply::{METHOD_NOT_FOUND, Refused};
use crate::{Era, Fault, record};

use super::calls::{lost, settle};
use super::client::{SERVER_GONE, answer_of, server_call, shown_method};
use super::list::listing;
use super::pending::{Asked, CallState, Page, ServerAsked};
use super::{Asks, Effect, Session, Unknown, record_then_client};

impl Session {
    /// A frame came from the server.
    pub fn from_server(&mut self, bytes: Vec<u8>) -> Vec<Effect> {
        if !Line::is_one(&bytes) {
            let error = FrameError::of(Fault::CarriageReturn, &bytes);
            return self.server_fault(&error);
        }
        self.message_from_server(bytes)
    }

    /// A message came from the server, or a batch of them, on a transport that knows where it ends.
    pub(crate) fn message_from_server(&mut self, bytes: Vec<u8>) -> Vec<Effect> {
        match self.batch(&bytes) {
            None => self.server_bytes(bytes),
            Some(Err(error)) => self.server_fault(&error),
            Some(Ok(messages)) => messages
                .into_iter()
                .flat_map(|one| self.server_bytes(one))
                .collect(),
        }
    }

    fn server_bytes(&mut self, bytes: Vec<u8>) -> Vec<Effect> {
        match Frame::read(bytes, &self.settings.limits) {
            Ok(frame) => self.server_frame(frame),
            Err(error) => self.server_fault(&error),
        }
    }

    /// A frame from the server was over the limit; these are its first bytes and its last.
    pub fn too_long_from_server(&mut self, beginning: &[u8], end: &[u8]) -> Vec<Effect> {
        let limit = self.settings.limits.max_bytes;
        let error = FrameError::of_cut(Fault::TooLarge { limit }, beginning, end);
        self.server_fault(&error)
    }

    /// The same for a frame for which there was no room.
    pub(crate) fn no_room_from_server(&mut self, beginning: &[u8], end: &[u8]) -> Vec<Effect> {
        let error = FrameError::of_cut(Fault::NoRoom, beginning, end);
        self.server_fault(&error)
    }

    /// The server wants the client to go elsewhere, as servers of an older transport do.
    pub(crate) fn endpoint_from_server(&mut self) -> Vec<Effect> {
        let message = "an event that names another address".to_owned();
        vec![self.complain("server_endpoint_refused", message, Delivery::default())]
    }

    /// A body that came with this status, and that a client may take for a message.
    pub(crate) fn words_refused(&mut self, status: u16) -> Vec<Effect> {
        let message = format!("a body with the status {status} that may be taken for a message");
        vec![self.complain("server_words_refused", message, Delivery::default())]
    }

    /// A message that belongs to no request is too large to be kept for a client that may listen later.
    pub(crate) fn nobody_listens(&mut self, length: usize) -> Vec<Effect> {
        let message = format!("{length} bytes for a stream that no client has opened");
        vec![self.complain("server_message_dropped", message, Delivery::default())]
    }

    /// Some readers would find other lines in an event than most do.
    pub(crate) fn odd_lines_from_server(&mut self) -> Vec<Effect> {
        let message = "an event whose lines not everybody reads alike".to_owned();
        vec![self.complain("server_event_refused", message, Delivery::default())]
    }

    /// The server is gone: whoever waits for it gets an error.
    pub fn server_closed(&mut self) -> Vec<Effect> {
        self.server_gone = true;
        let refused = Refused::denied("SERVER_GONE", SERVER_GONE);
        // Calls that wait for the list are among those that are answered here.
        self.list.forget_all();
        self.questions.clear();
        let mut effects = self.withdraw_tasks();
        for (id, asked) in self.asked.drain() {
            match asked {
                Asked::Call(form, CallState::Running { running, .. }) => {
                    let then = self.to_client(&id, form, refused.clone());
                    effects.push(settle(running, lost("server_gone"), then));
                }
                // The decision is on its way; what it begins is settled when it arrives.
                deciding @ Asked::Call(_, CallState::Deciding { .. }) => {
                    self.asked.insert(id, deciding);
                }
                Asked::Call(form, CallState::Held(held)) => {
                    held.cancelled.store(true, Ordering::Release);
                    effects.push(Effect::job(Job::Withdraw(held.approval)));
                    effects.push(Effect::ToClient(self.answer(&id, form, &refused)));
                }
                Asked::Call(form, CallState::Waiting) => {
                    effects.push(Effect::ToClient(self.answer(&id, form, &refused)));
                }
                Asked::List(_) | Asked::Task { .. } | Asked::Open | Asked::Plain => {
                    effects.push(Effect::ToClient(refused.to_error(Some(&id))));
                }
            }
        }
        effects
    }

    fn server_frame(&mut self, frame: Frame) -> Vec<Effect> {
        match frame.kind().clone() {
            Kind::Request {
                id, method, params, ..
            } => vec![self.server_request(frame, id, method, params)],
            Kind::Notification { method, .. } => self.server_notification(frame, method),
            Kind::Response { id, .. } | Kind::Error { id: Some(id), .. } => {
                self.server_answer(frame, &id)
            }
            Kind::Error { id: None, .. } => vec![self.server_error(frame)],
        }
    }

    /// An error that answers nobody known. What it says is recorded, and what it asks is looked at, before the
    /// client hears it.
    fn server_error(&mut self, frame: Frame) -> Effect {
        if self.strays >= MOST_STRAYS {
            let message = "more errors that answer nobody than the log takes".to_owned();
            return self.complain("server_error_refused", message, Delivery::default());
        }
        self.strays += 1;
        let entry = record::read("error".to_owned(), &self.settings.server, answer_of(&frame));
        let asks = Asks::of_nobody().in_frame(&frame);
        Effect::job(Job::Record {
            entries: vec![entry],
            then: Delivery {
                asks: Some(asks),
                to_client: Some(frame.into_bytes()),
                ..Delivery::default()
            },
        })
    }

    fn server_answer(&mut self, frame: Frame, id: &Id) -> Vec<Effect> {
        if let Some(own) = self.list.take_own(id) {
            return self.own_listed(&frame, own);
        }
        if matches!(
            self.asked.get(id),
            Some(Asked::Call(
                _,
                CallState::Waiting | CallState::Deciding { .. } | CallState::Held(_)
            ))
        ) {
            // The server cannot know this id yet: it guesses.
            return vec![self.unasked(id)];
        }
        let Some(asked) = self.asked.remove(id) else {
            return vec![self.unasked(id)];
        };
        if !matches!(asked, Asked::Call(..) | Asked::Task { .. })
            && let Some(asking) = self.asks_out_of_place(&frame, id)
        {
            return asking.into_iter().chain(self.ask_for_list()).collect();
        }
        match asked {
            Asked::Call(form, CallState::Running { running, .. }) => {
                self.call_answered(frame, id, form, running)
            }
            Asked::Call(..) => Vec::new(),
            Asked::List(page) => self.page_answered(frame, id, &page),
            Asked::Task { task, key } => self.task_told(frame, id, &task, key),
            Asked::Open => {
                self.note_handshake(&frame);
                match self.meet_server(&frame) {
                    Some(entry) => vec![record_then_client(entry, frame.into_bytes(), id.clone())],
                    None => vec![Effect::ToCaller(id.clone(), frame.into_bytes())],
                }
            }
            Asked::Plain => vec![Effect::ToCaller(id.clone(), frame.into_bytes())],
        }
    }

    fn page_answered(&mut self, frame: Frame, id: &Id, page: &Page) -> Vec<Effect> {
        let listing = match listing(&frame) {
            Ok(listing) => listing,
            Err(fault) => {
                let error = FrameError::of_answer(fault, id.clone());
                let told = instead(id, &error);
                let complaint = self.complain("server_frame_refused", error.to_string(), told);
                let list = self.ask_for_list();
                return std::iter::once(complaint).chain(list).collect();
            }
        };
        let Some(listing) = listing else {
            let told = Effect::ToCaller(id.clone(), frame.into_bytes());
            return std::iter::once(told).chain(self.ask_for_list()).collect();
        };
        let listed = self.client_listed(&frame, &listing, page.cursor.as_deref());
        let bytes = listed.shown.unwrap_or_else(|| frame.into_bytes());
        let shown = std::iter::once(Effect::ToCaller(id.clone(), bytes));
        shown.chain(listed.effects).collect()
    }

    pub(super) fn unasked(&mut self, id: &Id) -> Effect {
        let late = self.late.iter().position(|late| late == id);
        let code = match late.and_then(|at| self.late.remove(at)) {
            Some(_) => "server_answer_late",
            None => "server_answer_unasked",
        };
        self.complain(code, format!("an answer to {id}"), Delivery::default())
    }

    fn server_request(&mut self, frame: Frame, id: Id, method: Method, params: Params) -> Effect {
        if self.server_asked.check(&id).is_err() {
            let message = format!("the request {id} cannot wait");
            return self.complain("server_request_refused", message, Delivery::default());
        }
        let allowed = self.era.is_none_or(|era| era.server_requests);
        let route = match method.from_server() {
            Route::Unknown if self.settings.unknown == Unknown::Pass => Route::Pass,
            route => route,
        };
        let whole = params.whole.map(|whole| frame.part(whole));
        let content = whole.unwrap_or(b"null");
        let (asked, job) = match route {
            Route::Pass if allowed => {
                self.server_asked.insert(id, ServerAsked::Plain);
                return Effect::ToClient(frame.into_bytes());
            }
            Route::Sample if allowed => {
                let sight = self.sampling(server_call(&id), content);
                (ServerAsked::Sample, self.asked(&frame, &id, sight))
            }
            Route::Elicit if allowed => {
                let sight = self.elicitation(content);
                (ServerAsked::Elicit, self.asked(&frame, &id, sight))
            }
            _ => return self.refuse_server(&frame, &id),
        };
        self.server_asked.insert(id, asked);
        Effect::job(job)
    }

    fn refuse_server(&mut self, frame: &Frame, id: &Id) -> Effect {
        let shown = shown_method(frame);
        let refused = Refused::denied("METHOD_UNKNOWN", format!("refused: {shown} is not known"))
            .with_code(METHOD_NOT_FOUND);
        let then = Delivery {
            to_server: Some(Outbound::own(refused.to_error(Some(id)))),
            ..Delivery::default()
        };
        self.complain("server_method_refused", shown, then)
    }

    fn server_notification(&mut self, frame: Frame, method: Method) -> Vec<Effect> {
        if let Some(params) = about_task(&frame) {
            return self.task_notified(frame, params);
        }
        match method.from_server() {
            Route::Notify | Route::Cancel => {
                match method {
                    Method::ToolsListChanged => self.list_changed(),
                    Method::Cancelled => self.server_cancels(&frame),
                    _ => self.note_progress(&frame),
                }
                vec![Effect::ToClient(frame.into_bytes())]
            }
            Route::Unknown if self.settings.unknown == Unknown::Pass => {
                vec![Effect::ToClient(frame.into_bytes())]
            }
            _ => vec![self.complain(
                "server_notification_refused",
                format!("a notification of {}", shown_method(&frame)),
                Delivery::default(),
            )],
        }
    }

    /// The server no longer wants an answer: nobody waits for one, and a question that is still looked at is
    /// not asked any more.
    fn server_cancels(&mut self, frame: &Frame) {
        let Some(id) = frame.cancelled() else { return };
        if self.server_asked.remove(&id).is_some() {
            if self.taken_back.len() >= MOST_TAKEN_BACK {
                self.taken_back.pop_front();
            }
            self.taken_back.push_back(id);
        }
    }

    /// Whether this is a question that the server has taken back.
    pub(super) fn is_taken_back(&self, delivery: &Delivery) -> bool {
        let asks = delivery.to_client.is_some();
        matches!(&delivery.waits, Waits::Server(id) if asks && self.server_asked.get(id).is_none())
    }

    /// A frame that cannot be read. If it answers somebody, they get an error in its place.
    fn server_fault(&mut self, error: &FrameError) -> Vec<Effect> {
        let (then, after) = match error.id().filter(|_| error.is_answer()) {
            Some(id) => self.unreadable(id, error),
            None => Default::default(),
        };
        let complaint = self.complain("server_frame_refused", error.to_string(), then);
        std::iter::once(complaint).chain(after).collect()
    }

    /// What is told in the place of an answer that cannot be read, and what follows.
    fn unreadable(&mut self, id: &Id, error: &FrameError) -> (Delivery, Vec<Effect>) {
        if let Some(own) = self.list.take_own(id) {
            return (Delivery::default(), self.own_lost(&own));
        }
        if matches!(
            self.asked.get(id),
            Some(Asked::Call(
                _,
                CallState::Waiting | CallState::Deciding { .. } | CallState::Held(_)
            ))
        ) {
            return Default::default();
        }
        let refused = unreadable(error);
        let after = match self.asked.remove(id) {
            None => return Default::default(),
            Some(Asked::Call(form, CallState::Running { running, .. })) => {
                let then = self.to_client(id, form, refused);
                let settled = settle(running, lost("server_frame_refused"), then);
                return (Delivery::default(), vec![settled]);
            }
            Some(Asked::List(_)) => self.ask_for_list().into_iter().collect(),
            Some(_) => Vec::new(),
        };
        (instead(id, error), after)
    }

    /// The server's answer to the handshake says which revision is spoken.
    fn note_handshake(&mut self, frame: &Frame) {
        let Kind::Response { result, .. } = frame.kind() else {
            return;
        };
        let version = frame.text(frame.member(Some(*result), "protocolVersion"));
        if let Some(era) = version.as_deref().and_then(Era::of) {
            self.era = Some(era);
        }
    }
}

fn unreadable(error: &FrameError) -> Refused {
    Refused::denied(
        "SERVER_FRAME_REFUSED",
        format!("the server's answer was refused: {error}; tell the operator, do not retry"),
    )
}

/// What is told in the place of an answer.
fn instead(id: &Id, error: &FrameError) -> Delivery {
    Delivery {
        waits: Waits::Client(id.clone()),
        ..Delivery::error(Some(id), unreadable(error))
    }
}

/// What a server tells about a task without being asked.
fn about_task(frame: &Frame) -> Option<Span> {
    let Kind::Notification { name, params, .. } = frame.kind() else {
        return None;
    };
    let name = frame.text(Some(*name))?;
    let rest = name.strip_prefix("notifications/tasks")?;
    let is_one = rest.is_empty() || rest.starts_with('/');
    params.whole.filter(|_| is_one)
}

/// So many requests that were taken back are known as such.
const MOST_TAKEN_BACK: usize = 64;
/// So many errors that answer nobody are recorded and told.
const MOST_STRAYS: usize = 100;
