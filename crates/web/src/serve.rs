//! Accepts connections, serves them, and lets them end.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Body, Incoming};
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::Carriers;
use crate::seats::{Seat, Seats};

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
    let mut seats = Seats::new(limits.max_connections);
    let (closing, closed) = watch::channel(());
    let service = Arc::new(service);
    tokio::pin!(stop);
    loop {
        let accepted = async {
            let accepted = listener.accept().await;
            (accepted, seats.take().await)
        };
        let (accepted, seat) = tokio::select! {
            () = &mut stop => break,
            accepted = accepted => accepted,
        };
        match (accepted, seat) {
            (Ok((stream, address)), Some(seat)) => {
                let (tls, service) = (tls.clone(), Arc::clone(&service));
                let closed = closed.clone();
                let inside = Arc::clone(&seat);
                let carry = move |stream| async move {
                    let served =
                        connection(stream, address, tls, &*service, limits, closed, inside);
                    tokio::select! {
                        biased;
                        () = served => {}
                        () = seat.is_given_away() => {}
                    }
                };
                // A stream that no thread can take is closed.
                let _ = carriers.carry(stream, carry);
            }
            // Out of files, or a client that left at once: others may still come.
            (Err(_), _) => tokio::time::sleep(PAUSE).await,
            (_, None) => break,
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
    seat: Arc<Seat>,
) where
    M: Fn(Peer) -> S,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
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
        let service = counted(service(peer), seat);
        return requests(TokioIo::new(stream), service, limits, closed).await;
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
        let service = counted(service(peer), seat);
        requests(TokioIo::new(stream), service, limits, closed).await;
    }
}

/// The same service. As long as an answer is not all there, the connection keeps its seat.
fn counted<S, B>(
    service: S,
    seat: Arc<Seat>,
) -> impl Service<
    Request<Incoming>,
    Response = Response<impl Body<Data = B::Data, Error = B::Error> + Send>,
    Error = Infallible,
    Future: Send,
>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S::Future: Send,
    B: Body + Send,
{
    service_fn(move |request| {
        let visit = seat.visit();
        let answer = service.call(request);
        async move {
            let answer = answer.await?;
            // Errors are what they were; the visit ends with the body.
            Ok(answer.map(|body| {
                body.map_err(move |error| {
                    let _visit = &visit;
                    error
                })
            }))
        }
    })
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

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use http_body_util::Full;
    use http_body_util::combinators::BoxBody;
    use hyper::body::Frame;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::oneshot;

    use super::*;
    use crate::seats::QUIET;

    /// A body whose end never comes.
    struct Endless;

    impl Body for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Pending
        }
    }

    async fn answer(
        request: Request<Incoming>,
    ) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
        Ok(Response::new(match request.uri().path() {
            "/stream" => Endless.boxed(),
            "/never" => std::future::pending().await,
            _ => Full::new(Bytes::from_static(b"here")).boxed(),
        }))
    }

    /// A door with so many places.
    async fn open(max_connections: usize) -> (SocketAddr, oneshot::Sender<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = Limits {
            max_connections,
            head_time: Duration::from_secs(300),
            max_head_bytes: 16 << 10,
            grace: Duration::ZERO,
        };
        let (open, closing) = oneshot::channel();
        tokio::spawn(async move {
            let carriers = Carriers::of_this_runtime();
            let stop = async move { drop(closing.await) };
            let service = |_| service_fn(answer);
            serve(listener, &carriers, limits, None, service, stop).await;
        });
        (address, open)
    }

    async fn connect(address: SocketAddr, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn hear(stream: &mut TcpStream) -> String {
        let mut bytes = [0; 1024];
        let read = stream.read(&mut bytes);
        let read = tokio::time::timeout(Duration::from_secs(30), read).await;
        // An end by reset is an end, too.
        let count = read.unwrap().unwrap_or_default();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }

    #[tokio::test]
    async fn who_asks_gets_the_place_of_somebody_who_does_not() {
        let (address, _open) = open(2).await;
        let mut patient = connect(address, "/").await;
        assert!(hear(&mut patient).await.ends_with("here"));
        let mut silent = TcpStream::connect(address).await.unwrap();
        tokio::time::sleep(2 * QUIET).await;
        let mut slow = TcpStream::connect(address).await.unwrap();
        // Of two who wait, the one who has never asked leaves.
        assert_eq!(hear(&mut silent).await, "");
        slow.write_all(b"GET / HT").await.unwrap();
        tokio::time::sleep(2 * QUIET).await;
        let mut third = connect(address, "/").await;
        assert!(hear(&mut third).await.ends_with("here"));
        assert_eq!(hear(&mut slow).await, "");
        // And then the one who has been silent for the longest time.
        let mut fourth = connect(address, "/").await;
        assert!(hear(&mut fourth).await.ends_with("here"));
        assert_eq!(hear(&mut patient).await, "");
    }

    #[tokio::test]
    async fn nobody_leaves_before_the_answer_is_all_there() {
        let (address, _open) = open(2).await;
        let mut stream = connect(address, "/stream").await;
        assert!(hear(&mut stream).await.starts_with("HTTP/1.1 200"));
        let mut never = connect(address, "/never").await;
        let mut third = connect(address, "/").await;
        let wait = tokio::time::timeout(5 * PAUSE, hear(&mut third)).await;
        assert!(wait.is_err(), "{wait:?}");
        for busy in [&mut stream, &mut never] {
            let end = tokio::time::timeout(PAUSE, hear(busy)).await;
            assert!(end.is_err(), "{end:?}");
        }
        drop(never);
        assert!(hear(&mut third).await.ends_with("here"));
    }

    #[tokio::test]
    async fn a_crowd_that_only_stands_there_locks_nobody_out() {
        let (address, _open) = open(8).await;
        let mut crowd = Vec::new();
        for number in 0..64 {
            crowd.push(TcpStream::connect(address).await.unwrap());
            if number % 8 == 7 {
                let mut client = connect(address, "/").await;
                assert!(hear(&mut client).await.ends_with("here"));
            }
        }
    }
}
