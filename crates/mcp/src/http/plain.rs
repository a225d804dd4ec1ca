//! Responses that are one body.

use std::pin::pin;

use countersign_web::{Held, ReadError};
use hyper::header::{HeaderMap, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};

use crate::frame::{self, Frame, Kind};
use crate::reply::Refused;
use crate::session::Instead;

use super::batch;
use super::exchange::{Attended, Exchange, answered, is_message};
use super::loss::{BROKEN_OFF, TIMEOUT, UNREADABLE};
use super::metadata;
use super::reply::{self, Waiting};
use super::upstream::Served;

impl Exchange {
    /// Passes a body on, once the session has seen it.
    pub(super) async fn pass(
        mut self: Box<Self>,
        response: Response<Served>,
        mut waiting: Waiting,
    ) {
        let (head, body) = response.into_parts();
        let limits = &self.lobby.limits;
        let most = match head.status.is_success() {
            true => limits.max_frame_bytes,
            false => limits.max_frame_bytes.min(MAX_ERROR),
        };
        let (room, time) = (self.lobby.room.clone(), limits.response_time);
        let attended = {
            let reading = pin!(room.read(body, most, time));
            self.attend(&mut waiting, reading).await
        };
        let read = match attended {
            Attended::Server(read) => read,
            Attended::Answer(answer) => {
                return answered(waiting, reply::message(StatusCode::OK, answer));
            }
            Attended::Gone => return Box::pin(self.abandon()).await,
        };
        let mut headers = self.pass_headers(&head.headers);
        metadata::challenge(&mut headers, self.address.as_deref());
        match read {
            Ok(held) if self.is_message(head.status, &held) => {
                self.pass_message(head.status, headers, held, waiting).await;
            }
            Ok(held) => Box::pin(self.pass_other(head.status, headers, held, waiting)).await,
            Err(ReadError::TooLarge { beginning, .. }) => {
                let effects = self.link.session().too_long_from_server(&beginning, b"");
                let came = self.link.drive(effects, self.id.as_ref()).await;
                match self.sort(came).1 {
                    Some(answer) => answered(waiting, reply::message(StatusCode::OK, answer)),
                    None => Box::pin(self.fail(UNREADABLE, waiting)).await,
                }
            }
            Err(ReadError::TooSlow) => Box::pin(self.fail(TIMEOUT, waiting)).await,
            Err(ReadError::Broken | ReadError::NoRoom) => {
                Box::pin(self.fail(BROKEN_OFF, waiting)).await
            }
        }
    }

    /// Whether a body is a message of the protocol, and not what a server says when it has no
    /// message: a page, a line of text, nothing.
    fn is_message(&self, status: StatusCode, held: &Held) -> bool {
        if status.is_success() {
            return !held.bytes.is_empty();
        }
        let limits = crate::FrameLimits::default();
        let frame = Frame::read(held.bytes.clone(), &limits).ok();
        let answers = frame.and_then(|frame| match frame.kind() {
            Kind::Response { id, .. } | Kind::Error { id: Some(id), .. } => Some(id.clone()),
            _ => None,
        });
        answers.is_some() && answers == self.id
    }

    async fn pass_message(
        self: Box<Self>,
        status: StatusCode,
        headers: HeaderMap,
        held: Held,
        waiting: Waiting,
    ) {
        let is_batch = frame::is_batch(&held.bytes);
        let effects = self.link.server_says(held.bytes).await;
        let came = self.link.drive(effects, self.id.as_ref()).await;
        let mut messages = self.sort_all(came).1;
        let answer = match is_batch && messages.len() > 1 {
            true => Some(batch::join(&messages)),
            false => messages.pop(),
        };
        let waits = |id| self.link.session().waits(id);
        if self.id.as_ref().is_some_and(waits) {
            // It was an answer to something else, or none at all.
            return Box::pin(self.fail(UNREADABLE, waiting)).await;
        }
        match answer {
            Some(answer) => answered(waiting, reply::passed(status, headers, answer.into())),
            None if self.id.is_some() => Box::pin(self.fail(UNREADABLE, waiting)).await,
            None => answered(waiting, reply::bare(StatusCode::ACCEPTED)),
        }
    }

    /// What a server says outside the protocol goes to the client as it is: clients tell by it which
    /// revision a server speaks. In the place of an answer that is looked at, the client has our word only.
    async fn pass_other(
        self: Box<Self>,
        status: StatusCode,
        headers: HeaderMap,
        held: Held,
        waiting: Waiting,
    ) {
        let mut body = held.bytes;
        let id = self
            .id
            .as_ref()
            .filter(|id| self.link.session().waits(id))
            .cloned();
        if let Some(id) = id {
            if status.is_success() {
                return Box::pin(self.fail(UNREADABLE, waiting)).await;
            }
            if self.link.session().carries_task(&id) {
                // Whoever asks about a task hears how the task stands, not what the server says.
                return Box::pin(self.fail(UNREADABLE, waiting)).await;
            }
            let code = format!("http_{}", status.as_u16());
            // SECURITY: an agent would read what nobody has judged, and what the log does not have.
            let instead = match self.link.session().looks_at(&id) {
                true => Instead::Error(not_answered(status)),
                false => Instead::Served(body.clone()),
            };
            let effects = self.link.session().unanswered(&id, &code, instead);
            let came = self.link.drive(effects, Some(&id)).await;
            let told = self.sort(came).1.unwrap_or_default();
            if told != body && is_message(&told) {
                // The client hears of it from us, and still what it would need to be let in or to begin anew.
                let challenge = headers.get(WWW_AUTHENTICATE).cloned();
                let is_about_client = challenge.is_some() || ABOUT_CLIENT.contains(&status);
                let status = if is_about_client {
                    status
                } else {
                    StatusCode::OK
                };
                let mut response = reply::message(status, told);
                let challenge = challenge.map(|challenge| (WWW_AUTHENTICATE, challenge));
                response.headers_mut().extend(challenge);
                return answered(waiting, response);
            }
            body = told;
        }
        answered(waiting, reply::passed(status, headers, body.into()));
    }
}

/// What a client hears where the server has refused its request.
fn not_answered(status: StatusCode) -> Refused {
    let text = format!(
        "the server refused the request with the HTTP status {}; what it said beside that was not passed on; \
         tell the operator",
        status.as_u16()
    );
    Refused::denied("SERVER_ERROR", text)
}

/// The client is not let in, or its session is over.
const ABOUT_CLIENT: [StatusCode; 3] = [
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
];
/// The most that a server may say instead of a message.
const MAX_ERROR: usize = 1 << 20;
