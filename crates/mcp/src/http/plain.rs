//! Responses that are one body.

use std::pin::pin;

use countersign_canon::{Json, Limits};
use countersign_web::{Held, ReadError};
use hyper::header::{CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};

use crate::frame::{self, Frame, Id, Kind};
use crate::reply::Refused;
use crate::session::{Instead, Unanswered, asks_anything};

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
            Ok(held) => match self.said(head.status, &held) {
                Said::Message => {
                    self.pass_message(head.status, headers, held, waiting).await;
                }
                said => {
                    let words = (said == Said::Words).then_some(held.bytes);
                    Box::pin(self.pass_other(head.status, headers, words, waiting)).await;
                }
            },
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
    /// revision a server speaks. In the place of an answer that is looked at, and of words that are not passed on,
    /// the client has our word only.
    async fn pass_other(
        self: Box<Self>,
        status: StatusCode,
        mut headers: HeaderMap,
        words: Option<Vec<u8>>,
        waiting: Waiting,
    ) {
        let is_withheld = words.is_none();
        let mut body = words.unwrap_or_default();
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
            let why = Unanswered {
                code: &code,
                was_not_run: NOT_RUN.contains(&status),
            };
            // SECURITY: an agent would read what nobody has judged, and what the log does not have.
            let looks_at = self.link.session().looks_at(&id);
            let instead = match is_withheld || looks_at {
                true => Instead::Error(not_answered(status)),
                false => Instead::Served(body.clone()),
            };
            let effects = self.link.session().unanswered(&id, &why, instead);
            let came = self.link.drive(effects, Some(&id)).await;
            let told = self.sort(came).1.unwrap_or_default();
            if told != body && is_message(&told) {
                // The client hears of it from us, and still what it would need to be let in or to begin anew.
                let challenges = headers.get_all(WWW_AUTHENTICATE);
                let is_challenged = challenges.iter().next().is_some();
                let is_about_client = is_challenged || ABOUT_CLIENT.contains(&status);
                // By the status of other requests clients tell which revision a server speaks.
                let status = match is_about_client || !looks_at {
                    true => status,
                    false => StatusCode::OK,
                };
                let mut response = reply::message(status, told);
                for challenge in challenges {
                    let challenge = challenge.clone();
                    response.headers_mut().append(WWW_AUTHENTICATE, challenge);
                }
                return answered(waiting, response);
            }
            body = told;
        } else if is_withheld {
            let effects = self.link.session().words_refused(status.as_u16());
            self.link.drive(effects, None).await;
            headers.remove(CONTENT_TYPE);
        }
        answered(waiting, reply::passed(status, headers, body.into()));
    }
}

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    /// A message of the protocol, for the session.
    Message,
    /// What a server says when it has no message: a page, a line of text, nothing.
    Words,
    /// Something that a client may take for a message, and that is none for this request.
    Neither,
}

impl Exchange {
    fn said(&self, status: StatusCode, held: &Held) -> Said {
        if status.is_success() {
            return match held.bytes.is_empty() {
                true => Said::Words,
                false => Said::Message,
            };
        }
        let limits = crate::FrameLimits::default();
        let Ok(frame) = Frame::read(held.bytes.clone(), &limits) else {
            return Said::unread(&held.bytes);
        };
        let told = match frame.kind() {
            Kind::Response { id, .. } | Kind::Error { id: Some(id), .. } => Some(id),
            _ => None,
        };
        if told.is_some() && told == self.id.as_ref() {
            return Said::Message;
        }
        let is_waited_for = |id: &Id| self.link.session().waits(id);
        match frame.kind() {
            // Servers say so whom they do not let in, and which revision they speak. Some of them make up an id.
            Kind::Error { .. } if !told.is_some_and(is_waited_for) && !asks_anything(&frame) => {
                Said::Words
            }
            _ => Said::Neither,
        }
    }
}

impl Said {
    /// SECURITY: clients read JSON less strictly than we do, and look for messages in what comes with an error. An
    /// object that no message begins like is not one to anybody.
    fn unread(body: &[u8]) -> Self {
        if body.contains(&0) || std::str::from_utf8(body).is_err() {
            // Some readers find JSON in other alphabets.
            return Self::Neither;
        }
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        let is_like_json = matches!(body.trim_ascii_start().first(), Some(b'{' | b'['));
        let is_like_events = body.split(|byte| matches!(byte, b'\n' | b'\r'));
        let is_like_events = is_like_events.map(<[u8]>::trim_ascii_start);
        let is_like_events = is_like_events
            .into_iter()
            .any(|line| line.starts_with(b"data:"));
        if is_like_events {
            return Self::Neither;
        }
        let is_other = || {
            let json = Json::admit(body, &Limits::event()).ok()?;
            let members = json.as_object()?;
            let is_message = members
                .iter()
                .any(|(key, _)| MEMBERS.contains(&key) || frame::poses(key, &MEMBERS));
            Some(!is_message)
        };
        match !is_like_json || is_other() == Some(true) {
            true => Self::Words,
            false => Self::Neither,
        }
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
/// A server that says so has not run what it was asked.
const NOT_RUN: [StatusCode; 8] = [
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    StatusCode::UNPROCESSABLE_ENTITY,
];
/// What every message has one of. An `error` alone is what authorization servers say.
const MEMBERS: [&str; 4] = ["jsonrpc", "method", "params", "result"];
/// The most that a server may say instead of a message.
const MAX_ERROR: usize = 1 << 20;
