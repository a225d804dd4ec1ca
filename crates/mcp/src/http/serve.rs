//! Accepts connections.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use countersign_web::{Access, Carriers, Peer, Room};
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::reply::Refused;

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
    threads: Threads,
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
    /// The most bytes of all bodies that are on their way, from clients and from servers.
    pub max_held_bytes: usize,
    /// The most connections.
    pub max_connections: usize,
    /// The most sessions of one server.
    pub max_sessions: usize,
    /// So many programs of a server, each started for a session, run at the same time.
    pub max_programs: usize,
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
            max_programs: 256,
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
            threads,
            census,
        }
    }

    /// Opens the door at this address and keeps it open until the process is told to end. `ready` is
    /// told where the door is.
    pub fn run(self, address: SocketAddr, ready: impl FnOnce(SocketAddr)) -> io::Result<()> {
        let mut signals = Signals::new([SIGTERM, SIGINT])?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(self.limits.threads.saturating_add(SPARE_THREADS))
            .build()?;
        let carriers = Carriers::start(SPARE_THREADS, GRACE)?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        ready(listener.local_addr()?);
        let (stop, stopping) = oneshot::channel();
        let closing = signals.handle();
        let watcher = std::thread::spawn(move || {
            let signal = signals.forever().next();
            // The door may have closed by itself.
            let _ = stop.send(signal);
        });
        let stop = async move { drop(stopping.await) };
        runtime.block_on(self.open_with(carriers, listener, stop));
        closing.close();
        drop(watcher.join());
        // The ends of sessions are written by threads that the runtime waits for.
        runtime.shutdown_timeout(GRACE);
        Ok(())
    }

    /// Lets clients in until `stop` says so, then waits a moment for those who are inside.
    pub async fn open(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let carriers = Carriers::start(SPARE_THREADS, GRACE)?;
        self.open_with(carriers, listener, stop).await;
        Ok(())
    }

    async fn open_with(
        self,
        carriers: Carriers,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) {
        self.threads.start_here();
        let limits = countersign_web::Limits {
            max_connections: self.limits.max_connections,
            head_time: self.limits.head_time,
            max_head_bytes: MAX_HEAD,
            grace: GRACE,
        };
        let door = Arc::new(self);
        let sweeper = tokio::spawn(Arc::clone(&door).sweep());
        let inside = Arc::clone(&door);
        let service = move |peer: Peer| {
            let door = Arc::clone(&inside);
            let connection = Arc::new(Connection::new(peer.address));
            service_fn(move |request: Request<Incoming>| {
                let (door, connection) = (Arc::clone(&door), Arc::clone(&connection));
                async move {
                    let lobby = door.lobby(request.uri().path());
                    let response = connection.answer(lobby, &door.access, request).await;
                    Ok::<_, Infallible>(response)
                }
            })
        };
        let stop = async {
            stop.await;
            for (_, lobby) in &door.lobbies {
                lobby.close_soon();
            }
        };
        countersign_web::serve(listener, &carriers, limits, None, service, stop).await;
        sweeper.abort();
        let _ = tokio::time::timeout(GRACE, door.ended()).await;
        // Who still waits for a server is let go, and so are the sessions that only they know.
        let _ = tokio::time::timeout(2 * GRACE, carriers.end()).await;
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

    /// Where a path leads. Who comes to no server hears where there are some.
    fn lobby(&self, path: &str) -> Result<Arc<Lobby>, Refused> {
        let path = match path.strip_prefix(WELL_KNOWN) {
            Some("" | "/") => "/mcp",
            Some(path) => path,
            None => path,
        };
        let path = path.strip_suffix('/').unwrap_or(path);
        let found = self.lobbies.iter().find(|(served, _)| served == path);
        found
            .map(|(_, lobby)| Arc::clone(lobby))
            .ok_or_else(|| self.nowhere())
    }

    fn nowhere(&self) -> Refused {
        let paths: Vec<_> = self.lobbies.iter().map(|(path, _)| &**path).collect();
        let text = format!(
            "nothing is at this path; servers are at {}",
            paths.join(", ")
        );
        Refused::denied("NO_SUCH_PATH", text)
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

const GRACE: Duration = Duration::from_secs(5);
/// For what is not bounded by `threads`: names of servers, ends of sessions.
const SPARE_THREADS: usize = 16;
const PAUSE: Duration = Duration::from_millis(100);
const MAX_HEAD: usize = 64 << 10;
