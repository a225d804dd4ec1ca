//! Responses that are streams of events.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Response;
use tokio::sync::mpsc;

use crate::gate::Waits;
use crate::kept::Cut;
use crate::{Effect, Id, Session};

use super::body::Sent;
use super::exchange;
use super::exchange::{Exchange, Turn};
use super::headers::LAST_EVENT_ID;
use super::link::Form;
use super::loss::BROKEN_OFF;
use super::reply::{self, Waiting};
use super::sse::{self, Events, Item};
use super::upstream::Served;

/// A stream on its way through.
struct Pump {
    exchange: Box<Exchange>,
    to_client: mpsc::Sender<Bytes>,
    /// Nobody reads any more.
    gone: bool,
    /// The client can take the stream up again where it ended.
    resumable: bool,
}

impl Exchange {
    /// Passes events on, each when it comes.
    pub(super) async fn pump(mut self: Box<Self>, response: Response<Served>, waiting: Waiting) {
        // Whoever takes a stream up again also hears what nobody else waits for.
        if self.id.is_none() && self.headers.contains_key(LAST_EVENT_ID) {
            self.mailbox = Some(self.link.resumed());
        }
        let (head, body) = response.into_parts();
        let (to_client, pieces) = mpsc::channel(PIECES);
        let headers = self.pass_headers(&head.headers);
        let response = reply::passed(head.status, headers, Sent::Stream(pieces));
        exchange::answered(waiting, response);
        let pump = Pump {
            exchange: self,
            to_client,
            gone: false,
            resumable: false,
        };
        pump.run(body).await;
    }
}

impl Pump {
    async fn run(mut self, mut body: Served) {
        let lobby = &self.exchange.lobby;
        let longest = lobby.limits.max_frame_bytes.saturating_add(SLACK);
        let mut events = Events::new(longest, &lobby.events);
        loop {
            let gone = self.gone;
            let to_client = self.to_client.clone();
            let closed = async {
                match gone {
                    true => std::future::pending().await,
                    false => to_client.closed().await,
                }
            };
            match self.exchange.turn(closed, body.frame()).await {
                Turn::Server(Some(Ok(frame))) => {
                    let mut items = Vec::new();
                    let data = frame.into_data().unwrap_or_default();
                    events.feed(&data, |item| items.push(item));
                    for item in items {
                        self.item(item).await;
                    }
                    events.passed_on();
                }
                Turn::Server(None | Some(Err(_))) => return self.ended().await,
                Turn::Came(came) => {
                    let (_, messages) = self.exchange.sort_all(came);
                    let is_answered = self.exchange.id.is_some() && !messages.is_empty();
                    for message in messages {
                        self.give(sse::event(&message)).await;
                    }
                    // Our answer in the place of the server's: nothing more follows.
                    if is_answered {
                        return;
                    }
                }
                Turn::Gone => self.gone = true,
            }
            if self.gone && !self.goes_on() {
                // The stream to the server is dropped with us: it hears that nobody listens.
                return self.left().await;
            }
        }
    }

    async fn item(&mut self, item: Item) {
        let event = match item {
            Item::Event(event) => event,
            Item::TooLong(cut) => return self.let_go(cut, Session::too_long_from_server).await,
            Item::NoRoom(cut) => return self.let_go(cut, Session::no_room_from_server).await,
        };
        let event = match self.exchange.form {
            Form::Alone => event,
            // A stream that several requests share cannot be taken up where one of them was.
            Form::Batched => event.without_position(),
        };
        if event.is_endpoint {
            // SECURITY: who follows it leaves by another door.
            let effects = self.exchange.link.session().endpoint_from_server();
            return self.apply(effects, |bytes| sse::event(&bytes)).await;
        }
        let event = match event.is_odd {
            false => event,
            true => {
                let effects = self.exchange.link.session().odd_lines_from_server();
                self.apply(effects, |bytes| sse::event(&bytes)).await;
                event.without_oddities()
            }
        };
        self.resumable |= event.id.is_some();
        let Some(data) = &event.data else {
            return self.give(event.raw).await;
        };
        if event.is_named && !sse::is_json(data) {
            // Not a message, and nobody could take it for one.
            return self.give(event.raw).await;
        }
        let effects = self.exchange.link.server_says(data.clone()).await;
        self.apply(effects, move |bytes| {
            match Some(&bytes) == event.data.as_ref() {
                true => event.raw.clone(),
                false => event.with_data(&bytes),
            }
        })
        .await;
    }

    /// An event was not kept.
    async fn let_go(
        &mut self,
        Cut { beginning, end }: Cut,
        tell: impl FnOnce(&mut Session, &[u8], &[u8]) -> Vec<Effect>,
    ) {
        let effects = tell(&mut self.exchange.link.session(), &beginning, &end);
        self.apply(effects, |bytes| sse::event(&bytes)).await;
    }

    async fn apply(&mut self, effects: Vec<Effect>, write: impl Fn(Vec<u8>) -> Vec<u8>) {
        // On a stream that was taken up again, because the old one may only seem to be open.
        let answered = match self.exchange.headers.contains_key(LAST_EVENT_ID) {
            true => effects.iter().find_map(answered),
            false => None,
        };
        let mine = self.exchange.id.as_ref().or(answered.as_ref());
        let mut came = self.exchange.link.drive(effects, mine).await;
        let messages = std::mem::take(&mut came.to_client);
        self.exchange.sort(came);
        for message in messages {
            self.give(write(message)).await;
        }
    }

    async fn give(&mut self, bytes: Vec<u8>) {
        if self.gone || bytes.is_empty() {
            return;
        }
        // A client that does not read makes the server wait, and nobody else; but not for ever.
        let time = self.exchange.lobby.limits.write_time;
        let given = tokio::time::timeout(time, self.to_client.send(bytes.into())).await;
        self.gone = !matches!(given, Ok(Ok(())));
    }

    /// Whether the server should be heard out although the client is gone.
    fn goes_on(&self) -> bool {
        let exchange = &self.exchange;
        let waits = |id| exchange.link.session().waits(id);
        !self.resumable && exchange.goes_on_alone() && exchange.id.as_ref().is_some_and(waits)
    }

    /// The client has left the stream.
    async fn left(self) {
        // Whoever can take it up again has not given it up.
        if !(self.resumable && self.exchange.is_legacy()) {
            self.exchange.abandon().await;
        }
    }

    /// The server has ended the stream.
    async fn ended(mut self) {
        if self.resumable && self.exchange.is_legacy() {
            return;
        }
        if let Some(answer) = self
            .exchange
            .lose(BROKEN_OFF.code, BROKEN_OFF.refused())
            .await
        {
            self.give(sse::event(&answer)).await;
        }
    }
}

/// The request of the client's that the server has answered.
fn answered(effect: &Effect) -> Option<Id> {
    match effect {
        Effect::Job(job) if job.call().is_none() => match job.waits() {
            Waits::Client(id) => Some(id),
            Waits::Server(_) | Waits::Nobody => None,
        },
        Effect::ToCaller(id, _) => Some(id.clone()),
        _ => None,
    }
}

/// How many events may wait for a client that reads slowly.
const PIECES: usize = 8;
/// What an event has beside its message.
pub(super) const SLACK: usize = 4096;
