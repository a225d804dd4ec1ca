//! Opens the door, and closes it.

use std::io;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use countersign_web::{Carriers, Limits, Peer, TlsAcceptor};
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tower_service::Service as _;

use crate::api::Api;
use crate::{gate, live};

/// Where the door is, and how it ends.
pub struct Door {
    /// What is behind it.
    pub api: Arc<Api>,
    /// How many connections, and how long they may take.
    pub limits: Limits,
    /// Only who speaks TLS is let in.
    pub tls: Option<TlsAcceptor>,
    /// How long those who run actions have to tell how they went, once nobody is let in.
    pub drain: Duration,
}

impl Door {
    /// A door with usual limits.
    pub fn new(api: Arc<Api>) -> Self {
        Self {
            api,
            limits: Limits {
                max_connections: 1024,
                head_time: Duration::from_secs(30),
                max_head_bytes: 64 << 10,
                grace: Duration::from_secs(10),
            },
            tls: None,
            drain: Duration::from_secs(10),
        }
    }

    /// Keeps the door open until the process is told to end. `reload` is called when it is told to look
    /// at its files again.
    pub fn run(self, listener: StdListener, reload: impl Fn() + Send + 'static) -> io::Result<()> {
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
        let threads = self.api.settings.threads.saturating_add(SPARE_THREADS);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(threads)
            .build()?;
        listener.set_nonblocking(true)?;
        let (stop, stopping) = oneshot::channel();
        let closing = signals.handle();
        let watcher = std::thread::spawn(move || {
            for signal in signals.forever() {
                match signal {
                    SIGHUP => reload(),
                    _ => break,
                }
            }
            // The door may have closed by itself.
            let _ = stop.send(());
        });
        let opened = runtime.block_on(async {
            let listener = TcpListener::from_std(listener)?;
            self.open(listener, async move { drop(stopping.await) })
                .await;
            Ok(())
        });
        closing.close();
        drop(watcher.join());
        // What waits for the disk is finished first.
        runtime.shutdown_timeout(Duration::from_secs(10));
        opened
    }

    /// Lets callers in until `stop` says so, then waits a moment for those who are inside.
    pub async fn open(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let api = self.api;
        let tasks = [
            tokio::spawn(learn(Arc::clone(&api))),
            tokio::spawn(live::tell(Arc::clone(&api))),
            tokio::spawn(look_after(Arc::clone(&api))),
        ];
        let (closing, drained) = (Arc::clone(&api), Arc::clone(&api));
        let drain = self.drain;
        let stop = async move {
            stop.await;
            // Who waits for people is told where things stand; who listens is let go.
            closing.live.closing.send_replace(true);
            // Who runs something may still tell how it went; nothing new is begun.
            let _ = tokio::time::timeout(drain, idle(&closing)).await;
        };
        let router = gate::router(&api);
        let service = move |peer: Peer| {
            let router = router.clone();
            service_fn(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(peer.clone());
                let mut router = router.clone();
                async move { router.call(request).await }
            })
        };
        let carriers = Carriers::of_this_runtime();
        countersign_web::serve(listener, &carriers, self.limits, self.tls, service, stop).await;
        for task in tasks {
            task.abort();
        }
        let worker = Arc::clone(&drained);
        let _ = tokio::task::spawn_blocking(move || worker.abandon(true)).await;
    }
}

/// Tells the truth about what time has overtaken.
async fn look_after(api: Arc<Api>) {
    loop {
        tokio::time::sleep(LOOK_AFTER).await;
        let worker = Arc::clone(&api);
        let looked = api.workers.run(move || {
            worker.abandon(false);
            worker.engine.sweep()
        });
        // What fails now is tried again.
        let _ = looked.await;
    }
}

async fn idle(api: &Arc<Api>) {
    while !api.is_idle() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Keeps up with tokens that other processes make and take back.
async fn learn(api: Arc<Api>) {
    loop {
        // While it fails, what is known grows old, and then nobody is let in.
        let _ = api.learn_tokens().await;
        tokio::time::sleep(LEARN).await;
    }
}

/// For what is not bounded by `threads`.
const SPARE_THREADS: usize = 8;
const LOOK_AFTER: Duration = Duration::from_secs(10);
const LEARN: Duration = Duration::from_millis(500);
