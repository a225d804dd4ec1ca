//! Accepts connections.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

use super::access::Access;
use super::body::Room;
use super::link::{Census, Reception, Threads};
use super::lobby::{Lobby, SWEEP};
use super::metadata::WELL_KNOWN;
use super::request::Connection;
use super::upstream::Upstream;

/// A door that is open to HTTP clients.
pub struct Door {
    lobbies: Vec<(String, Arc<Lobby>)>,
    access: Access,
    limits: Limits,
    census: Census,
}

/// A server behind a door.
pub struct Served {
    /// Where clients find it, such as `/mcp`.
    pub path: String,
    /// Where it is.
    pub upstream: Upstream,
    /// Opens its sessions.
    pub reception: Arc<dyn Reception>,
    /// How long it may take to begin an answer, if not as long as the others.
    pub response_time: Option<Duration>,
}

/// What a door takes and how long it waits.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The most bytes of a message.
    pub max_frame_bytes: usize,
    /// The most bytes of all messages that are on their way from clients.
    pub max_held_bytes: usize,
    /// The most connections.
    pub max_connections: usize,
    /// The most sessions of one server.
    pub max_sessions: usize,
    /// How many threads wait for the disk.
    pub threads: usize,
    /// How long a client may take to send a body.
    pub body_time: Duration,
    /// How long a connection may be idle, or take to send a head.
    pub head_time: Duration,
    /// How long a server may take to begin an answer; a call may have less.
    pub response_time: Duration,
    /// How long a client may leave an event unread.
    pub write_time: Duration,
    /// How long a session may be unused.
    pub idle_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_frame_bytes: 64 << 20,
            max_held_bytes: 256 << 20,
            max_connections: 1024,
            max_sessions: 4096,
            threads: 64,
            body_time: Duration::from_secs(30),
            head_time: Duration::from_secs(300),
            response_time: Duration::from_secs(600),
            write_time: Duration::from_secs(60),
            idle_time: Duration::from_secs(3600),
        }
    }
}

impl Door {
    /// A door to these servers.
    pub fn new(served: Vec<Served>, access: Access, limits: Limits) -> Self {
        let room = Room::new(limits.max_held_bytes);
        let threads = Threads::new(limits.threads);
        let census = Census::default();
        let lobby = |served: Served| {
            let (room, threads) = (room.clone(), threads.clone());
            let own = Limits {
                response_time: served.response_time.unwrap_or(limits.response_time),
                ..limits.clone()
            };
            let lobby = Lobby::new(
                served.upstream,
                served.reception,
                own,
                room,
                threads,
                census.clone(),
            );
            (served.path, lobby)
        };
        Self {
            lobbies: served.into_iter().map(lobby).collect(),
            access,
            limits,
            census,
        }
    }

    /// Opens the door at this address and keeps it open until the process is told to end. `ready` is
    /// told where the door is.
    pub fn run(self, address: SocketAddr, ready: impl FnOnce(SocketAddr)) -> io::Result<()> {
        let mut signals = Signals::new([SIGTERM, SIGINT])?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(self.limits.threads.saturating_add(SPARE_THREADS))
            .build()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        ready(listener.local_addr()?);
        let (stop, stopping) = oneshot::channel();
        let closing = signals.handle();
        let watcher = std::thread::spawn(move || {
            let signal = signals.forever().next();
            // The door may have closed by itself.
            let _ = stop.send(signal);
        });
        runtime.block_on(self.open(listener, async move { drop(stopping.await) }));
        closing.close();
        drop(watcher.join());
        // The ends of sessions are written by threads that the runtime waits for.
        runtime.shutdown_timeout(GRACE);
        Ok(())
    }

    /// Lets clients in until `stop` says so, then waits a moment for those who are inside.
    pub async fn open(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let places = Arc::new(Semaphore::new(self.limits.max_connections));
        let (closing, closed) = watch::channel(());
        let door = Arc::new(self);
        let sweeper = tokio::spawn(Arc::clone(&door).sweep());
        tokio::pin!(stop);
        loop {
            let place = Arc::clone(&places).acquire_owned();
            let accepted = async {
                let place = place.await;
                (listener.accept().await, place)
            };
            let (accepted, place) = tokio::select! {
                () = &mut stop => break,
                accepted = accepted => accepted,
            };
            match (accepted, place) {
                (Ok((stream, peer)), Ok(place)) => {
                    let serving = Arc::clone(&door).serve(stream, peer, place, closed.clone());
                    tokio::spawn(serving);
                }
                // Out of files, or a client that left at once: others may still come.
                (Err(_), _) => tokio::time::sleep(PAUSE).await,
                (_, Err(_)) => break,
            }
        }
        sweeper.abort();
        drop(closed);
        // Who listens on connections hears this, and `closed` is dropped when they have ended.
        let _ = closing.send(());
        let _ = tokio::time::timeout(GRACE, closing.closed()).await;
        let _ = tokio::time::timeout(GRACE, door.ended()).await;
    }

    /// All sessions have ended, and the log says so.
    async fn ended(&self) {
        for (_, lobby) in &self.lobbies {
            lobby.close();
        }
        // The door and its lobbies know of it too.
        while self.census.count() > self.lobbies.len() + 1 {
            tokio::time::sleep(PAUSE / 10).await;
        }
    }

    async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        place: OwnedSemaphorePermit,
        mut closed: watch::Receiver<()>,
    ) {
        let _place = place;
        // A head and a small event are sent at once, each as it comes.
        if set_up(&stream).is_err() {
            return;
        }
        let connection = Arc::new(Connection::new(peer));
        let door = Arc::clone(&self);
        let service = service_fn(move |request: Request<Incoming>| {
            let (door, connection) = (Arc::clone(&door), Arc::clone(&connection));
            async move {
                let lobby = door.lobby(request.uri().path());
                let response = connection.answer(lobby, &door.access, request).await;
                Ok::<_, Infallible>(response)
            }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head_time)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(served);
        tokio::select! {
            // A connection that fails has ended; what it carried is settled by whom it concerns.
            _ = served.as_mut() => return,
            _ = closed.changed() => served.as_mut().graceful_shutdown(),
        }
        let _ = tokio::time::timeout(GRACE, served).await;
    }

    fn lobby(&self, path: &str) -> Option<Arc<Lobby>> {
        let path = match path.strip_prefix(WELL_KNOWN) {
            Some("" | "/") => "/mcp",
            Some(path) => path,
            None => path,
        };
        let path = path.strip_suffix('/').unwrap_or(path);
        let found = self.lobbies.iter().find(|(served, _)| served == path);
        found.map(|(_, lobby)| Arc::clone(lobby))
    }

    async fn sweep(self: Arc<Self>) {
        loop {
            tokio::time::sleep(SWEEP).await;
            for (_, lobby) in &self.lobbies {
                lobby.sweep().await;
            }
        }
    }
}

fn set_up(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)
}

const GRACE: Duration = Duration::from_secs(5);
/// For what is not bounded by `threads`: names of servers, ends of sessions.
const SPARE_THREADS: usize = 16;
const PAUSE: Duration = Duration::from_millis(100);
const MAX_HEAD: usize = 64 << 10;
