//! Connections to a server, which stay open between two requests.
//!
//! A session has its own, and in it each thread that carries messages: what one of them opened wakes no other.
//! A connection goes with the body of its response and comes back at its end, so that no request pays for a
//! task that waits for that.
//!
//! SECURITY: a server may answer more than it was asked, or know somebody by their connection. What is left on a
//! connection never meets another session, nor somebody else who has the same session.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::rt::{Read, Write};
use hyper::{Request, Response, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::runtime::{self, Handle};
use tower_service::Service;

use super::heads::Heads;

/// An open connection.
struct Connection {
    requests: SendRequest<Full<Bytes>>,
    heads: Heads,
}

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
    /// Those of sessions that were begun here, as long as the sessions are there.
    sessions: Arc<Mutex<Vec<Weak<Quiets>>>>,
}

/// The connections of a session on which nothing is asked.
#[derive(Clone, Default)]
pub(in crate::http) struct Idle(Arc<Quiets>);

type Quiets = Mutex<HashMap<Owner, Vec<Quiet>>>;

/// The thread that opened a connection, and the credential that came with the request for it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Owner {
    thread: runtime::Id,
    credential: Option<HeaderValue>,
}

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
    owner: Owner,
    idle: Idle,
}

impl Connections {
    pub(super) fn new(connector: Connector) -> Self {
        Self {
            connector: Arc::new(connector),
            sessions: Arc::default(),
        }
    }

    /// A session begins, which has no connection.
    pub(super) fn begin(&self, session: &Idle) {
        self.sessions().push(Arc::downgrade(&session.0));
    }

    /// Sends a request of a session to the server at `address` and gives the head of the response.
    ///
    /// INVARIANT: a request goes again only if its connection had ended before any of it was sent.
    pub(super) async fn send(
        &self,
        idle: Idle,
        address: &Uri,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Served>, Unreachable> {
        let owner = Owner {
            thread: Handle::current().id(),
            credential: request.headers().get(AUTHORIZATION).cloned(),
        };
        while let Some(mut connection) = idle.take(&owner) {
            connection.heads.expected();
            match connection.requests.try_send_request(request).await {
                Ok(response) => return Ok(served(response, connection, owner, idle)),
                Err(mut error) => request = error.take_message().ok_or(Unreachable)?,
            }
        }
        // It is rare, and what every request takes along stays small.
        let mut connection = Box::pin(self.open(address)).await?;
        connection.heads.expected();
        let response = connection.requests.send_request(request).await;
        let response = response.map_err(|_| Unreachable)?;
        Ok(served(response, connection, owner, idle))
    }

    /// Lets go of what nobody has used for long.
    pub(super) fn sweep(&self, now: Instant) {
        let is_old = |quiet: &Quiet| now.saturating_duration_since(quiet.since) > IDLE;
        self.sessions().retain(|session| {
            let Some(session) = session.upgrade() else {
                return false;
            };
            Idle(session).all().retain(|_, all| {
                all.retain(|quiet| !is_old(quiet) && !quiet.connection.requests.is_closed());
                !all.is_empty()
            });
            true
        });
    }

    fn sessions(&self) -> MutexGuard<'_, Vec<Weak<Quiets>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open(&self, address: &Uri) -> Result<Connection, Unreachable> {
        match self.connector.as_ref() {
            Connector::Clear(connector) => open(connector.clone(), address).await,
            Connector::Secure(connector) => open(connector.clone(), address).await,
        }
    }
}

fn served(
    response: Response<Incoming>,
    connection: Connection,
    owner: Owner,
    idle: Idle,
) -> Response<Served> {
    connection.heads.came();
    let on = Some(Busy {
        connection,
        owner,
        idle,
    });
    response.map(|body| Served { body, on })
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
    let heads = Heads::default();
    let stream = heads.counted(stream);
    let (requests, driver) = handshake(stream).await.map_err(|_| Unreachable)?;
    // Whoever waits for an answer hears how it ended.
    tokio::spawn(async { drop(driver.await) });
    Ok(Connection { requests, heads })
}

impl Idle {
    fn all(&self) -> MutexGuard<'_, HashMap<Owner, Vec<Quiet>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection of this owner that was used last: the others grow old.
    fn take(&self, owner: &Owner) -> Option<Connection> {
        let mut all = self.all();
        let own = all.get_mut(owner)?;
        let usable = std::iter::from_fn(|| own.pop());
        usable
            .map(|quiet| quiet.connection)
            .find(|connection| connection.requests.is_ready())
    }

    fn put(&self, owner: Owner, connection: Connection) {
        let since = Instant::now();
        let quiet = Quiet { connection, since };
        self.all().entry(owner).or_default().push(quiet);
    }
}

impl Busy {
    fn give_back(self) {
        self.idle.put(self.owner, self.connection);
    }
}

impl Served {
    /// The body has ended: the connection can be used again, as soon as it knows.
    fn ended(&mut self) {
        let Some(mut busy) = self.on.take() else {
            return;
        };
        if busy.connection.requests.is_ready() {
            busy.give_back();
        } else if !busy.connection.requests.is_closed()
            && let Ok(here) = Handle::try_current()
        {
            here.spawn(async move {
                if busy.connection.requests.ready().await.is_ok() {
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
