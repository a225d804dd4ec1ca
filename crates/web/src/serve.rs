//! Accepts connections, serves them, and lets them end.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::Carriers;

/// How many connections there may be, and how long they may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most connections.
    pub max_connections: usize,
    /// How long a connection may be idle, or take to send a head.
    pub head_time: Duration,
    /// The most bytes of a head.
    pub max_head_bytes: usize,
    /// How long those who are inside have to end once nobody is let in.
    pub grace: Duration,
}

/// The other end of a connection.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Where it is.
    pub address: SocketAddr,
    /// The certificate that it has shown and that was verified, in DER.
    pub certificate: Option<Arc<[u8]>>,
}

/// Lets clients in until `stop` says so, then waits a moment for those who are inside. `service`
/// makes what answers the requests of one connection.
pub async fn serve<M, S, B>(
    listener: TcpListener,
    carriers: &Carriers,
    limits: Limits,
    tls: Option<TlsAcceptor>,
    service: M,
    stop: impl Future<Output = ()>,
) where
    M: Fn(Peer) -> S + Send + Sync + 'static,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let places = Arc::new(Semaphore::new(limits.max_connections));
    let (closing, closed) = watch::channel(());
    let service = Arc::new(service);
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
            (Ok((stream, address)), Ok(place)) => {
                let (tls, service) = (tls.clone(), Arc::clone(&service));
                let closed = closed.clone();
                let carry = move |stream| async move {
                    let _place: OwnedSemaphorePermit = place;
                    connection(stream, address, tls, &*service, limits, closed).await;
                };
                // A stream that no thread can take is closed.
                let _ = carriers.carry(stream, carry);
            }
            // Out of files, or a client that left at once: others may still come.
            (Err(_), _) => tokio::time::sleep(PAUSE).await,
            (_, Err(_)) => break,
        }
    }
    drop(closed);
    // Who listens on connections hears this, and `closed` is dropped when they have ended.
    let _ = closing.send(());
    let _ = tokio::time::timeout(limits.grace, closing.closed()).await;
}

async fn connection<M, S, B>(
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    service: &M,
    limits: Limits,
    closed: watch::Receiver<()>,
) where
    M: Fn(Peer) -> S,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    // A head and a small event are sent at once, each as it comes.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let Some(tls) = tls else {
        let peer = Peer {
            address,
            certificate: None,
        };
        return requests(TokioIo::new(stream), service(peer), limits, closed).await;
    };
    // A client that never finishes its hello takes a place for a moment only.
    let shaken = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await;
    if let Ok(Ok(stream)) = shaken {
        let certificates = stream.get_ref().1.peer_certificates();
        let certificate = certificates.and_then(<[_]>::first);
        let peer = Peer {
            address,
            certificate: certificate.map(|one| Arc::from(one.as_ref())),
        };
        requests(TokioIo::new(stream), service(peer), limits, closed).await;
    }
}

async fn requests<I, S, B>(io: I, service: S, limits: Limits, mut closed: watch::Receiver<()>)
where
    I: Read + Write + Unpin,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(limits.max_head_bytes)
        .serve_connection(io, service);
    tokio::pin!(served);
    tokio::select! {
        // A connection that fails has ended; what it carried is settled by whom it concerns.
        _ = served.as_mut() => return,
        _ = closed.changed() => served.as_mut().graceful_shutdown(),
    }
    let _ = tokio::time::timeout(limits.grace, served).await;
}

const PAUSE: Duration = Duration::from_millis(100);
const HANDSHAKE: Duration = Duration::from_secs(10);
