//! Several messages in one body, which one revision has. Each becomes an exchange of its own, as if it
//! had come alone, and what they come to is one response: one body, or one stream as soon as one of
//! them has a stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use countersign_web::{Held, only};
use hyper::Response;
use hyper::StatusCode;
use hyper::header::{HeaderMap, WWW_AUTHENTICATE};
use hyper::http::request::Parts;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::frame::{self, Fault, Frame, FrameError, Id};
use crate::{Era, FrameLimits};

use super::body::Sent;
use super::early::pass;
use super::exchange::{Exchange, answered, is_message};
use super::headers::VERSION;
use super::link::{Form, Link};
use super::lobby::Lobby;
use super::loss::UNREADABLE;
use super::request::{Connection, Message, exchange, mismatched, no_session};
use super::route::stream_of;
use super::sse;
use super::{mirror, reply};

/// What comes of the messages, each when it comes.
type Heads = JoinSet<Head>;

/// What one message came to.
struct Head {
    /// Under which its client waits for an answer.
    id: Option<Id>,
    /// Nothing, where whoever made it broke off.
    response: Option<Response<Sent>>,
}

impl Connection {
    /// A body with several messages.
    pub(super) async fn post_batch(
        &self,
        lobby: Arc<Lobby>,
        head: &Parts,
        Held { bytes, mut share }: Held,
        limits: &FrameLimits,
        waiting: reply::Waiting,
    ) -> Result<(), Response<Sent>> {
        let link = self.link_of_fault(&lobby, &head.headers).await;
        let link = link.map_err(|why| no_session(why, None))?;
        let messages = match speaks_batches(&link, &head.headers) {
            true => frame::batch(&bytes, limits),
            false => Err(FrameError::of(Fault::Batch, &bytes)),
        };
        let messages = match messages {
            Ok(messages) => messages,
            Err(fault) => return Err(self.faulty(&lobby, &head.headers, &fault).await),
        };
        let messages = messages.into_iter();
        let messages: Vec<Result<Message, FrameError>> = messages
            .map(|one| Frame::read(one, limits).map(Message::new))
            .collect();
        for message in messages.iter().flatten() {
            if let Err(mismatch) = mirror::check(&message.frame, &head.headers) {
                return Err(mismatched(&link, &mismatch, None).await);
            }
        }
        if link.route.is_full() {
            return Err(reply::unread(None));
        }
        self.note_calls(&link, messages.iter().flatten());
        let time = lobby.limits.write_time;
        let mut heads = Heads::new();
        share.shrink(bytes.len());
        let share = Arc::new(share);
        for message in messages {
            match message {
                Ok(message) => {
                    let (mut exchange, frame) =
                        exchange(&lobby, &link, head, message, Form::Batched);
                    exchange.held = Some(Arc::clone(&share));
                    begin(exchange, frame, &mut heads);
                }
                Err(fault) => refuse(&link, fault, &mut heads),
            }
        }
        tokio::spawn(collect(heads, waiting, time));
        Ok(())
    }
}

/// Whether the peers of a session speak batches, also as far as this request says.
fn speaks_batches(link: &Link, headers: &HeaderMap) -> bool {
    let said = match only(headers, &VERSION) {
        Ok(None) => true,
        Ok(Some(version)) => Era::of(version).is_some_and(|era| era.batches),
        Err(_) => false,
    };
    said && link.session().speaks_batches()
}

/// INVARIANT: the session hears of the messages in their order.
fn begin(mut exchange: Box<Exchange>, frame: Frame, heads: &mut Heads) {
    let (sender, response) = oneshot::channel();
    let id = exchange.id.clone();
    let effects = exchange.tell(frame);
    tokio::spawn(exchange.go_on(effects, sender));
    heads.spawn(async move {
        Head {
            id,
            response: response.await.ok(),
        }
    });
}

/// Something in the batch is not a message.
fn refuse(link: &Arc<Link>, fault: FrameError, heads: &mut Heads) {
    let effects = link.session().fault_from_client(&fault);
    let link = Arc::clone(link);
    heads.spawn(async move {
        // Runs to its end by itself, whoever waits.
        let driven = tokio::spawn(async move { link.drive(effects, None).await });
        let said = driven.await.ok().and_then(|mut came| came.to_client.pop());
        Head {
            id: None,
            response: said.map(|said| reply::message(StatusCode::OK, said)),
        }
    });
}

/// Puts the responses together. When the client is gone, whoever makes them hears it.
async fn collect(mut heads: Heads, mut waiting: reply::Waiting, time: Duration) {
    let (mut answers, mut is_answered) = (Vec::new(), false);
    let mut other = None;
    loop {
        let head = tokio::select! {
            biased;
            head = heads.join_next() => head,
            () = waiting.closed() => return,
        };
        match head {
            Some(Ok(head)) => match head.read() {
                Read::Nothing => {}
                Read::Answer(answer) => {
                    answers.push(answer);
                    is_answered = true;
                }
                Read::Other(answer, response) => {
                    answers.extend(answer);
                    other.get_or_insert(response);
                }
                Read::Stream(pieces) => {
                    let stream = Stream::open(waiting, time);
                    return stream.run(heads, answers, pieces).await;
                }
            },
            Some(Err(_)) => {}
            None => break,
        }
    }
    // What the server says outside the protocol is the response where nothing else is.
    let response = match other.filter(|_| !is_answered) {
        Some(response) => response,
        None if answers.is_empty() => reply::bare(StatusCode::ACCEPTED),
        None => reply::message(StatusCode::OK, join(&answers)),
    };
    answered(waiting, response);
}

/// What a response is to a batch.
enum Read {
    /// Nobody waits for it.
    Nothing,
    /// One message, or several.
    Answer(Vec<u8>),
    /// Words outside the protocol, with what the client hears of them among answers.
    Other(Option<Vec<u8>>, Response<Sent>),
    /// A stream of messages.
    Stream(mpsc::Receiver<Bytes>),
}

impl Head {
    fn read(self) -> Read {
        let lost = |id: &Id| UNREADABLE.refused().to_error(Some(id));
        let Some(response) = self.response else {
            return self
                .id
                .as_ref()
                .map_or(Read::Nothing, |id| Read::Answer(lost(id)));
        };
        let (head, body) = response.into_parts();
        match body {
            Sent::Stream(pieces) => Read::Stream(pieces),
            // Whoever has to say who they are needs the response itself.
            Sent::Whole(Some(bytes))
                if head.headers.contains_key(WWW_AUTHENTICATE) && !head.status.is_success() =>
            {
                let answer = is_message(&bytes).then(|| bytes.to_vec());
                let answer = answer.or_else(|| self.id.as_ref().map(lost));
                let response = reply::passed(head.status, head.headers, Sent::Whole(Some(bytes)));
                Read::Other(answer, response)
            }
            Sent::Whole(Some(bytes)) if is_message(&bytes) => Read::Answer(bytes.to_vec()),
            Sent::Whole(_) if self.id.is_none() && head.status.is_success() => Read::Nothing,
            body @ Sent::Whole(_) => {
                let response = reply::passed(head.status, head.headers, body);
                Read::Other(self.id.as_ref().map(lost), response)
            }
        }
    }
}

/// One stream for all of them.
struct Stream {
    to_client: mpsc::Sender<Bytes>,
    streams: JoinSet<()>,
    time: Duration,
}

impl Stream {
    fn open(waiting: reply::Waiting, time: Duration) -> Self {
        let (to_client, pieces) = mpsc::channel(PIECES);
        answered(waiting, stream_of(pieces));
        Self {
            to_client,
            streams: JoinSet::new(),
            time,
        }
    }

    /// Gives what there is and what comes, until all have come to their end or the client is gone.
    async fn run(mut self, mut heads: Heads, answers: Vec<Vec<u8>>, first: mpsc::Receiver<Bytes>) {
        self.take_up(first);
        for answer in answers {
            self.give(&answer).await;
        }
        let to_client = self.to_client.clone();
        while !heads.is_empty() || !self.streams.is_empty() {
            let head = tokio::select! {
                biased;
                Some(head) = heads.join_next() => head,
                Some(_) = self.streams.join_next() => continue,
                () = to_client.closed() => return,
            };
            match head.map(Head::read) {
                Ok(Read::Answer(answer) | Read::Other(Some(answer), _)) => {
                    self.give(&answer).await;
                }
                Ok(Read::Stream(pieces)) => self.take_up(pieces),
                Ok(Read::Nothing | Read::Other(None, _)) | Err(_) => {}
            }
        }
    }

    fn take_up(&mut self, pieces: mpsc::Receiver<Bytes>) {
        let to_client = self.to_client.clone();
        self.streams
            .spawn(async move { pass(pieces, &to_client).await });
    }

    async fn give(&self, message: &[u8]) {
        let sending = self.to_client.send(sse::event(message).into());
        // A client that does not read is noticed when it has gone.
        let _ = tokio::time::timeout(self.time, sending).await;
    }
}

/// Several messages as one.
pub(super) fn join(messages: &[Vec<u8>]) -> Vec<u8> {
    let inner = messages.iter().map(|one| bare(one));
    let joined = inner.collect::<Vec<_>>().join(&b',');
    [&b"["[..], &joined, b"]"].concat()
}

/// The messages without what holds them together.
fn bare(message: &[u8]) -> &[u8] {
    let message = message.trim_ascii();
    let inner = message.strip_prefix(b"[");
    inner
        .and_then(|inner| inner.strip_suffix(b"]"))
        .unwrap_or(message)
}

const PIECES: usize = 8;

#[cfg(test)]
mod tests {
    #[test]
    fn messages_are_put_together_and_batches_are_taken_apart_first() {
        let join = |all: &[&str]| {
            let all: Vec<Vec<u8>> = all.iter().map(|one| one.as_bytes().to_vec()).collect();
            String::from_utf8(super::join(&all)).unwrap()
        };
        assert_eq!(join(&["{}"]), "[{}]");
        assert_eq!(join(&["{\"a\":[]}", " [1,2] ", "3"]), "[{\"a\":[]},1,2,3]");
    }
}
