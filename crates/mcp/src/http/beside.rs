//! Messages of ours to the server, and what it says to them.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::Method as Verb;
use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use crate::frame::{Frame, FrameLimits, Id, Kind};
use crate::outbound::Outbound;

use super::headers::{self, SESSION};
use super::link::Link;
use super::lobby::Lobby;
use super::sse::{Events, Item};
use super::upstream::{Served, Upstream};

/// A message on its own way.
#[derive(Clone)]
pub(super) struct Beside {
    pub(super) lobby: Arc<Lobby>,
    pub(super) link: Arc<Link>,
    pub(super) headers: HeaderMap,
}

impl Beside {
    /// For a message that no request of the client's has caused.
    pub(super) fn of_session(lobby: &Arc<Lobby>, link: &Arc<Link>, name: &str) -> Self {
        let mut headers = HeaderMap::new();
        // The server does not hear of names that are ours.
        if let Ok(name) = HeaderValue::try_from(name)
            && name != link.name()
        {
            headers.insert(SESSION, name);
        }
        Self {
            lobby: Arc::clone(lobby),
            link: Arc::clone(link),
            headers,
        }
    }

    /// Sends each on its own way.
    pub(super) fn send_all(&self, messages: Vec<Outbound>) {
        for outbound in messages {
            let bytes = outbound.into_bytes();
            if self.link.route.has_program() {
                self.link.route.send(bytes);
                continue;
            }
            let next = Self {
                lobby: Arc::clone(&self.lobby),
                link: Arc::clone(&self.link),
                headers: headers::of_ours(&self.headers, &bytes),
            };
            tokio::spawn(next.send(bytes));
        }
    }

    /// Sends it, and tells the session what comes back.
    pub(super) fn send(self, bytes: Vec<u8>) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        // What comes back may want to be answered in the same way.
        Box::pin(async move {
            let limit = self.lobby.limits.response_time;
            let asked = asked(bytes.clone());
            let heard = async {
                let Upstream::Http(remote) = &self.lobby.upstream else {
                    return;
                };
                let sending = {
                    let (idle, headers) = (self.link.idle.clone(), self.headers.clone());
                    remote.send(idle, Verb::POST, headers, bytes.into())
                };
                if let Ok(response) = sending.await {
                    self.hear(response).await;
                }
            };
            // Too late is as good as never.
            let _ = tokio::time::timeout(limit, heard).await;
            if let Some(id) = asked {
                let effects = self.link.session().own_unanswered(&id);
                self.apply(effects).await;
            }
        })
    }

    async fn hear(&self, response: Response<Served>) {
        let content = response.headers().get(CONTENT_TYPE);
        let is_stream =
            content.is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
        let max = self.lobby.limits.max_frame_bytes;
        let mut body = response.into_body();
        if !is_stream {
            let time = self.lobby.limits.response_time;
            if let Ok(held) = self.lobby.room.read(body, max, time).await
                && !held.bytes.is_empty()
            {
                self.tell(held.bytes).await;
            }
            return;
        }
        let mut events = Events::new(max, &self.lobby.events);
        while let Some(Ok(frame)) = body.frame().await {
            let mut items = Vec::new();
            let data = frame.into_data().unwrap_or_default();
            events.feed(&data, |item| items.push(item));
            for item in items {
                if let Item::Event(event) = item
                    && let Some(data) = event.data
                {
                    self.tell(data).await;
                }
            }
            events.passed_on();
        }
    }

    /// INVARIANT: runs to its end, also when the time for the answer is over meanwhile.
    async fn tell(&self, message: Vec<u8>) {
        let one = self.clone();
        let told = tokio::spawn(async move {
            let effects = one.link.server_says(message).await;
            one.apply(effects).await;
        });
        // Whoever breaks off has told nothing.
        let _ = told.await;
    }

    async fn apply(&self, effects: Vec<crate::Effect>) {
        let came = self.link.drive(effects, None).await;
        self.send_all(came.to_server);
    }
}

/// The id of a request of ours.
pub(super) fn asked(bytes: Vec<u8>) -> Option<Id> {
    let frame = Frame::read(bytes, &FrameLimits::default()).ok()?;
    match frame.kind() {
        Kind::Request { id, .. } => Some(id.clone()),
        _ => None,
    }
}
