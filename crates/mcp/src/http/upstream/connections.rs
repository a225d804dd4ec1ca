//! Connections to a server, which stay open between two requests.
//!
//! A thread that carries messages has its own: what one of them opened wakes no other. A connection goes
//! with the body of its response and comes back at its end, so that no request pays for a task that waits
//! for that.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::rt::{Read, Write};
use hyper::{Request, Response, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::runtime::{self, Handle};
use tower_service::Service;

type Connection = SendRequest<Full<Bytes>>;

/// How a server is reached. One in the clear needs no certificates, which not every machine has.
pub(super) enum Connector {
    Clear(HttpConnector),
    Secure(HttpsConnector<HttpConnector>),
}

/// The server cannot be reached, or left before it had answered.
#[derive(Debug)]
pub(in crate::http) struct Unreachable;

/// The connections to one server.
#[derive(Clone)]
pub(super) struct Connections {
    connector: Arc<Connector>,
    idle: Idle,
}

/// Connections on which nothing is asked, by the thread that opened them.
#[derive(Clone, Default)]
struct Idle(Arc<Mutex<HashMap<runtime::Id, Vec<Quiet>>>>);

struct Quiet {
    connection: Connection,
    since: Instant,
}

/// The body of a response.
pub(in crate::http) struct Served {
    body: Incoming,
    /// Where it comes from, until it has ended.
    on: Option<Busy>,
}

struct Busy {
    connection: Connection,
    thread: runtime::Id,
    idle: Idle,
}

impl Connections {
    pub(super) fn new(connector: Connector) -> Self {
        Self {
            connector: Arc::new(connector),
            idle: Idle::default(),
        }
    }

    /// Sends a request to the server at `address` and gives the head of the response.
    ///
    /// INVARIANT: a request goes again only if its connection had ended before any of it was sent.
    pub(super) async fn send(
        &self,
        address: &Uri,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Served>, Unreachable> {
        let thread = Handle::current().id();
        while let Some(mut connection) = self.idle.take(thread) {
            match connection.try_send_request(request).await {
                Ok(response) => return Ok(self.served(response, connection, thread)),
                Err(mut error) => request = error.take_message().ok_or(Unreachable)?,
            }
        }
        // It is rare, and what every request takes along stays small.
        let mut connection = Box::pin(self.open(address)).await?;
        let response = connection.send_request(request).await;
        let response = response.map_err(|_| Unreachable)?;
        Ok(self.served(response, connection, thread))
    }

    /// Lets go of what nobody has used for long.
    pub(super) fn sweep(&self, now: Instant) {
        let is_old = |quiet: &Quiet| now.saturating_duration_since(quiet.since) > IDLE;
        for all in self.idle.all().values_mut() {
            all.retain(|quiet| !is_old(quiet) && !quiet.connection.is_closed());
        }
    }

    async fn open(&self, address: &Uri) -> Result<Connection, Unreachable> {
        match self.connector.as_ref() {
            Connector::Clear(connector) => open(connector.clone(), address).await,
            Connector::Secure(connector) => open(connector.clone(), address).await,
        }
    }

    fn served(
        &self,
        response: Response<Incoming>,
        connection: Connection,
        thread: runtime::Id,
    ) -> Response<Served> {
        let on = Some(Busy {
            connection,
            thread,
            idle: self.idle.clone(),
        });
        response.map(|body| Served { body, on })
    }
}

/// A new connection, which a task of its own drives.
async fn open<C>(mut connector: C, address: &Uri) -> Result<Connection, Unreachable>
where
    C: Service<Uri>,
    C::Response: Read + Write + Unpin + Send + 'static,
{
    let is_ready = poll_fn(|context| connector.poll_ready(context)).await;
    is_ready.map_err(|_| Unreachable)?;
    let stream = connector.call(address.clone()).await;
    let stream = stream.map_err(|_| Unreachable)?;
    let (connection, driver) = handshake(stream).await.map_err(|_| Unreachable)?;
    // Whoever waits for an answer hears how it ended.
    tokio::spawn(async { drop(driver.await) });
    Ok(connection)
}

impl Idle {
    fn all(&self) -> MutexGuard<'_, HashMap<runtime::Id, Vec<Quiet>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection of this thread that was used last: the others grow old.
    fn take(&self, thread: runtime::Id) -> Option<Connection> {
        let mut all = self.all();
        let own = all.get_mut(&thread)?;
        let usable = std::iter::from_fn(|| own.pop());
        usable
            .map(|quiet| quiet.connection)
            .find(|connection| connection.is_ready())
    }

    fn put(&self, thread: runtime::Id, connection: Connection) {
        let since = Instant::now();
        let quiet = Quiet { connection, since };
        self.all().entry(thread).or_default().push(quiet);
    }
}

impl Busy {
    fn give_back(self) {
        self.idle.put(self.thread, self.connection);
    }
}

impl Served {
    /// The body has ended: the connection can be used again, as soon as it knows.
    fn ended(&mut self) {
        let Some(mut busy) = self.on.take() else {
            return;
        };
        if busy.connection.is_ready() {
            busy.give_back();
        } else if !busy.connection.is_closed()
            && let Ok(here) = Handle::try_current()
        {
            here.spawn(async move {
                if busy.connection.ready().await.is_ok() {
                    busy.give_back();
                }
            });
        }
    }
}

impl Body for Served {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() {
            self.ended();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Nobody reads on. A body that has not ended takes its connection along: the server hears of it.
impl Drop for Served {
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            self.ended();
        }
    }
}

const IDLE: Duration = Duration::from_secs(60);
