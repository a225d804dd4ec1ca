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
        Self::start_some(count, waiting, grace)
    }

    fn start_some(count: usize, waiting: usize, grace: Duration) -> io::Result<Self> {
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
        let (sender, told) = oneshot::channel::<()>();
        let (started, starting) = std::sync::mpsc::channel();
        // The runtime is made where it may also be dropped.
        let carry = move || {
            let runtime = Builder::new_current_thread()
                .enable_io()
                .enable_time()
                .max_blocking_threads(waiting)
                .build();
            let handle = runtime.as_ref().map(|runtime| runtime.handle().clone());
            let _ = started.send(handle.map_err(|error| error.kind()));
            if let Ok(runtime) = runtime {
                runtime.block_on(until(told));
                runtime.shutdown_timeout(grace);
            }
        };
        let thread = thread::Builder::new().name(format!("carrier-{number}"));
        let thread = thread.spawn(carry)?;
        let runtime = starting.recv().map_err(io::Error::other)??;
        Ok(Self {
            runtime,
            connections: Arc::default(),
            thread: Some((sender, thread)),
        })
    }
}

/// Waits until the end is told.
///
/// A timer that ends before all others wakes its thread to say so. Those of messages come and go, and do not
/// have to while this one is there.
async fn until(mut told: oneshot::Receiver<()>) {
    while tokio::time::timeout(PULSE, &mut told).await.is_err() {}
}

/// Less than a message has, as a rule.
const PULSE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;

    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn connections_are_spread_and_stay_where_they_are() {
        let count = 3;
        let carriers = Carriers::start_some(count, 4, Duration::from_secs(5)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, heard) = channel();
        let mut clients = Vec::new();
        for _ in 0..2 * count {
            clients.push(TcpStream::connect(address).await.unwrap());
            let (stream, tell) = (listener.accept().await.unwrap().0, tell.clone());
            let carry = move |stream: TcpStream| async move {
                let here = thread::current().id();
                let task = tokio::spawn(async { thread::current().id() });
                let task = task.await.unwrap();
                // As long as the client is there.
                let _ = stream.readable().await;
                tell.send([here, task, thread::current().id()]).unwrap();
            };
            carriers.carry(stream, carry).unwrap();
        }
        drop(tell);
        let hear = move || heard.into_iter().collect::<Vec<_>>();
        let hearing = tokio::task::spawn_blocking(hear);
        drop(clients);
        let mut carried = HashMap::new();
        for [here, task, later] in hearing.await.unwrap() {
            assert_eq!([task, later], [here; 2]);
            *carried.entry(here).or_insert(0) += 1;
        }
        assert_eq!(carried.into_values().collect::<Vec<_>>(), vec![2; count]);
        carriers.end().await;
    }

    #[tokio::test]
    async fn work_that_has_begun_is_finished_before_the_end() {
        let carriers = Carriers::start(4, Duration::from_secs(30)).unwrap();
        let is_done = Arc::new(AtomicBool::new(false));
        let (begun, begins) = oneshot::channel();
        let done = Arc::clone(&is_done);
        carriers.0[0].runtime.spawn_blocking(move || {
            begun.send(()).unwrap();
            thread::sleep(Duration::from_millis(100));
            done.store(true, Ordering::SeqCst);
        });
        begins.await.unwrap();
        carriers.end().await;
        assert!(is_done.load(Ordering::SeqCst));
    }
}
