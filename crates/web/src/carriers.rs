//! The threads that carry messages.

use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Threads that carry messages, each with a runtime of its own: a connection stays with the thread that
/// got it, and so does everything that is done for it. A message wakes no other thread on its way.
pub struct Carriers(Vec<Carrier>);

struct Carrier {
    runtime: Handle,
    /// Each of its connections knows of it too.
    connections: Arc<()>,
    /// It ends when nobody can tell it so any more.
    thread: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Carriers {
    /// The runtime that is running here.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn of_this_runtime() -> Self {
        Self(vec![Carrier {
            runtime: Handle::current(),
            connections: Arc::default(),
            thread: None,
        }])
    }

    /// As many threads as there are processors. Each may start `waiting` more for work that has to wait,
    /// which get some time when it ends.
    pub fn start(waiting: usize, grace: Duration) -> io::Result<Self> {
        let count = thread::available_parallelism().map_or(1, NonZero::get);
        let started = (0..count).map(|number| Carrier::start(number, waiting, grace));
        started.collect::<io::Result<_>>().map(Self)
    }

    /// Gives a connection to the thread that has the fewest.
    pub(crate) fn carry<F>(
        &self,
        stream: TcpStream,
        connection: impl FnOnce(TcpStream) -> F + Send + 'static,
    ) -> io::Result<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let load = |carrier: &&Carrier| Arc::strong_count(&carrier.connections);
        let Some(carrier) = self.0.iter().min_by_key(load) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let (stream, counted) = (stream.into_std()?, Arc::clone(&carrier.connections));
        carrier.runtime.spawn(async move {
            let _counted = counted;
            // Only the runtime that carries it may hear of it.
            if let Ok(stream) = TcpStream::from_std(stream) {
                connection(stream).await;
            }
        });
        Ok(())
    }

    /// Waits until the threads have ended.
    pub async fn end(self) {
        let threads = self.0.into_iter().filter_map(|carrier| carrier.thread);
        // All are told before any is waited for.
        let threads: Vec<_> = threads.map(|(_told, thread)| thread).collect();
        let join = move || threads.into_iter().for_each(|thread| drop(thread.join()));
        let _ = tokio::task::spawn_blocking(join).await;
    }
}

impl Carrier {
    fn start(number: usize, waiting: usize, grace: Duration) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(waiting)
            .build()?;
        let handle = runtime.handle().clone();
        let (sender, told) = oneshot::channel::<()>();
        let carry = move || {
            let _ = runtime.block_on(told);
            runtime.shutdown_timeout(grace);
        };
        let thread = thread::Builder::new().name(format!("carrier-{number}"));
        Ok(Self {
            runtime: handle,
            connections: Arc::default(),
            thread: Some((sender, thread.spawn(carry)?)),
        })
    }
}
