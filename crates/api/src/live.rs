//! The live stream: every event as it is recorded, to whoever listens and may see it.
//!
//! One task reads what is new and tells all listeners. A listener that falls behind reads the log
//! until it has caught up, so nothing is lost and nothing is kept for it in memory; what it cannot be
//! given is marked by a `gap`.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::header::HeaderName;
use bytes::Bytes;
use countersign_event::Line;
use countersign_store::{Filter, Observer, Step, Stored};
use hyper::body::Frame;
use tokio::sync::{Notify, broadcast, mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::Role;
use crate::api::{Api, now_unix_ms};
use crate::call::Call;
use crate::observe::Observed;
use crate::problem::{Kind, Problem};
use crate::query::{About, Asked, Query};
use crate::reply::Reply;

/// Wakes the live stream when something was recorded.
#[derive(Clone, Default)]
pub struct Wake(Arc<Notify>);

impl Wake {
    /// Is given to the store.
    pub fn observer(&self) -> Observer {
        let wake = Arc::clone(&self.0);
        Arc::new(move |step| {
            if step == Step::Synced {
                wake.notify_one();
            }
        })
    }
}

/// What listeners share.
pub(crate) struct Live {
    wake: Wake,
    news: broadcast::Sender<Arc<Moment>>,
    /// The last event before the door was opened.
    before: Option<u64>,
    /// Listeners end when this does.
    pub(crate) closing: watch::Sender<bool>,
}

/// An event, read once for all listeners.
struct Moment {
    id: u64,
    line: Vec<u8>,
    about: About,
}

/// Somebody who listens.
struct Listener {
    api: Arc<Api>,
    call: Call,
    asked: Asked,
    tenant: Option<String>,
    session: Option<String>,
    /// The last event that was looked at.
    at: u64,
    pieces: mpsc::Sender<Bytes>,
}

/// The listener is gone, or has to go.
struct Gone;

impl Live {
    pub(crate) fn new(wake: Wake, before: Option<u64>) -> Self {
        Self {
            wake,
            before,
            news: broadcast::Sender::new(NEWS),
            closing: watch::Sender::new(false),
        }
    }
}

/// Tells listeners what is new, as long as the door is open.
pub(crate) async fn tell(api: Arc<Api>) {
    let mut at = api.live.before;
    let mut is_behind = false;
    loop {
        if !is_behind {
            // Other processes write too, and nobody wakes us for them.
            let woken = api.live.wake.0.notified();
            let _ = timeout(LOOK, woken).await;
        }
        let is_heard = api.is_heard();
        let engine = Arc::clone(&api.engine);
        let read = move || match (at, is_heard) {
            (Some(at), true) => news(&engine, at),
            // Nobody listens: what comes is not read, only passed.
            _ => engine
                .store()
                .reader()
                .last_id()
                .map(|last| (Vec::new(), last)),
        };
        let Ok(Ok((events, last))) = api.workers.run(read).await else {
            tokio::time::sleep(LOOK).await;
            continue;
        };
        if at.is_some() && !is_heard && api.is_heard() {
            // Whoever began to listen meanwhile may have looked before the last of these came.
            is_behind = true;
            continue;
        }
        is_behind = events.len() >= PAGE;
        for event in events {
            if let Some(observer) = &api.settings.observer {
                observer(&Observed::Event(&event));
            }
            // With nobody there, nobody hears it.
            let _ = Moment::of(event).map(|moment| api.live.news.send(Arc::new(moment)));
        }
        at = Some(last);
    }
}

impl Api {
    /// Whether somebody wants to hear what is new.
    fn is_heard(&self) -> bool {
        self.live.news.receiver_count() > 0 || self.settings.observer.is_some()
    }
}

pub(crate) async fn listen(call: Call) -> Result<Reply, Problem> {
    let parameters = &call.parameters;
    let query: Query = parameters
        .query("q")
        .unwrap_or_default()
        .parse()
        .map_err(unreadable)?;
    let session = parameters.query("session_id");
    let tenant = match (parameters.query("tenant_id"), &call.caller.tenant, session) {
        (None, None, None) => None,
        (named, _, _) => Some(call.caller.tenant(named)?.as_str().to_owned()),
    };
    let session = match (&call.caller.session, session) {
        (Some(only), None) => Some(only.as_str().to_owned()),
        (_, session) => session.map(str::to_owned),
    };
    if let Some(session) = &session {
        let scope = call.caller.scope(tenant.as_deref(), session)?;
        call.api.check_owner(&call.caller, &scope).await?;
    } else if call.caller.role == Role::Agent {
        let text = "an agent listens to one session: name it with `session_id`";
        return Err(Problem::new(Kind::Parameter, text));
    }
    let known = call.header(&LAST_EVENT_ID).or(parameters.query("after"));
    let known = known.map(str::parse::<u64>).transpose();
    let known = known.map_err(|_| Problem::new(Kind::Parameter, "an event id is a number"))?;
    let engine = Arc::clone(&call.api.engine);
    let news = call.api.live.news.subscribe();
    let last = call
        .api
        .workers
        .run(move || engine.store().reader().last_id())
        .await??;
    let (pieces, receiver) = mpsc::channel(PIECES);
    let listener = Listener {
        asked: query.at(now_unix_ms()?),
        api: Arc::clone(&call.api),
        tenant,
        session,
        at: known.unwrap_or(last),
        pieces,
        call,
    };
    tokio::spawn(listener.run(news, last));
    Ok(Reply::stream(
        "text/event-stream",
        Body::new(Pieces(receiver)),
    ))
}

impl Listener {
    async fn run(mut self, news: broadcast::Receiver<Arc<Moment>>, last: u64) {
        // However it ends, the channel is closed and the client sees the end.
        let _ = self.serve(news, last).await;
    }

    async fn serve(
        &mut self,
        mut news: broadcast::Receiver<Arc<Moment>>,
        last: u64,
    ) -> Result<(), Gone> {
        self.send(Bytes::from_static(b": countersign\nretry: 1000\n\n"))
            .await?;
        if self.at > last {
            // The client knows events that the log does not have: it was another log, or an older one.
            self.gap(self.at, last).await?;
        } else {
            self.catch_up(last).await?;
        }
        let mut closing = self.api.live.closing.subscribe();
        let mut beat = Instant::now() + BEAT;
        loop {
            let moment = tokio::select! {
                moment = news.recv() => moment,
                () = sleep_until(beat) => {
                    beat = Instant::now() + BEAT;
                    self.check()?;
                    self.send(Bytes::from_static(b": still here\n\n")).await?;
                    continue;
                }
                () = async { drop(closing.wait_for(|closing| *closing).await) } => {
                    return self.send(Bytes::from_static(b": the door closes\n\n")).await;
                }
                () = self.pieces.closed() => return Err(Gone),
            };
            match moment {
                Ok(moment) if moment.id <= self.at => {}
                Ok(moment) => {
                    if moment.id > self.at + 1 {
                        self.catch_up(moment.id - 1).await?;
                    }
                    self.show(&moment).await?;
                }
                // The log has what was missed; the next event says how much that is.
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            }
        }
    }

    /// Whoever may not listen any more does not.
    fn check(&self) -> Result<(), Gone> {
        let call = &self.call;
        let now = now_unix_ms().map_err(|_| Gone)?;
        let peer = call.peer.address.ip();
        let caller = self.api.doorkeeper.caller(&call.headers, peer, now);
        match caller {
            Ok(caller) if caller.id == call.caller.id => Ok(()),
            _ => Err(Gone),
        }
    }

    /// Reads the log until this event.
    async fn catch_up(&mut self, until: u64) -> Result<(), Gone> {
        if until.saturating_sub(self.at) > MAX_CATCH_UP {
            self.gap(self.at, until - MAX_CATCH_UP).await?;
        }
        while self.at < until {
            let (engine, at) = (Arc::clone(&self.api.engine), self.at);
            let read = move || news(&engine, at);
            let (events, _) = match self.api.workers.run(read).await {
                Ok(Ok(found)) => found,
                _ => return Err(Gone),
            };
            if events.is_empty() {
                return Ok(());
            }
            for event in events {
                if event.id > until {
                    return Ok(());
                }
                match Moment::of(event) {
                    Some(moment) => self.show(&moment).await?,
                    None => return Err(Gone),
                }
            }
        }
        Ok(())
    }

    async fn show(&mut self, moment: &Moment) -> Result<(), Gone> {
        self.at = moment.id;
        let (tenant, session) = moment.about.session();
        let is_meant = self.tenant.as_deref().is_none_or(|wanted| wanted == tenant)
            && self
                .session
                .as_deref()
                .is_none_or(|wanted| wanted == session)
            && self.asked.fits(&moment.about);
        if !is_meant {
            return Ok(());
        }
        let mut piece = format!("id: {}\nevent: event\ndata: ", moment.id).into_bytes();
        piece.extend_from_slice(&moment.line);
        piece.extend_from_slice(b"\n\n");
        self.send(piece.into()).await
    }

    /// Says that events are left out, and goes on after them.
    async fn gap(&mut self, from: u64, to: u64) -> Result<(), Gone> {
        self.at = to;
        let text = format!("id: {to}\nevent: gap\ndata: {{\"after\":{from},\"until\":{to}}}\n\n");
        self.send(text.into()).await
    }

    /// A client that does not read is let go.
    async fn send(&self, piece: Bytes) -> Result<(), Gone> {
        match timeout(WRITE, self.pieces.send(piece)).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Gone),
        }
    }
}

impl Moment {
    fn of(event: Stored) -> Option<Self> {
        let about = About::of(&Line::read(&event.line).ok()?);
        Some(Self {
            id: event.id,
            line: event.line,
            about,
        })
    }
}

/// Some events after this one, and the last of them.
fn news(
    engine: &countersign_engine::Engine,
    after: u64,
) -> Result<(Vec<Stored>, u64), countersign_store::Error> {
    enum Enough {
        Enough,
        Failed(countersign_store::Error),
    }
    impl From<countersign_store::Error> for Enough {
        fn from(error: countersign_store::Error) -> Self {
            Self::Failed(error)
        }
    }
    let mut events: Vec<Stored> = Vec::new();
    let read = engine
        .store()
        .reader()
        .each(&Filter::default(), after, |event| {
            events.push(event);
            match events.len() < PAGE {
                true => Ok(()),
                false => Err(Enough::Enough),
            }
        });
    match read {
        Err(Enough::Failed(error)) => Err(error),
        Ok(()) | Err(Enough::Enough) => {
            let last = events.last().map_or(after, |event| event.id);
            Ok((events, last))
        }
    }
}

fn unreadable(error: crate::query::QueryError) -> Problem {
    Problem::new(Kind::Query, error.to_string())
}

/// A body that comes piece by piece.
struct Pieces(mpsc::Receiver<Bytes>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// As many events wait for slow listeners before they have to read the log.
const NEWS: usize = 1024;
const PIECES: usize = 64;
const PAGE: usize = 500;
const MAX_CATCH_UP: u64 = 100_000;
const LOOK: Duration = Duration::from_millis(250);
const BEAT: Duration = Duration::from_secs(15);
const WRITE: Duration = Duration::from_secs(60);
