//! A server that counts connections and requests, and leaves when it should not.

use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::BodyExt as _;
use hyper::header::AUTHORIZATION;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// What the server does once it has read a request.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    /// Answers, and stays.
    Stay,
    /// Answers, and closes the connection without a word about it.
    Leave,
    /// Closes the connection without an answer.
    Fail,
    /// Says without an end that it will answer.
    Promise,
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    requests: AtomicUsize,
}

struct Server {
    remote: Remote,
    idle: Idle,
    counts: Arc<Counts>,
}

impl Server {
    /// The first request of a connection has `first` as its consequence, all later ones `later`.
    async fn start(first: Then, later: Then) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::new(Counts::default());
        let counted = Arc::clone(&counts);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, Arc::clone(&counted), first, later));
            }
        });
        let remote = Remote::new(&format!("http://{address}/mcp?k=v")).unwrap();
        let idle = Idle::default();
        remote.begin(&idle);
        Self {
            remote,
            idle,
            counts,
        }
    }

    async fn begin(&self) -> Result<Response<Served>, Unreachable> {
        let body = Bytes::from_static(b"{}");
        let idle = self.idle.clone();
        let headers = HeaderMap::new();
        self.remote.send(idle, Method::POST, headers, body).await
    }

    /// The head of the request as the server has seen it.
    async fn ask(&self) -> String {
        let response = self.begin().await.unwrap();
        let body = response.into_body().collect().await.unwrap();
        String::from_utf8(body.to_bytes().to_vec()).unwrap()
    }

    /// How many connections and requests there were.
    fn counts(&self) -> (usize, usize) {
        let count = |number: &AtomicUsize| number.load(Ordering::SeqCst);
        (
            count(&self.counts.connections),
            count(&self.counts.requests),
        )
    }
}

static PROMISES: [u8; 25 << 10] = {
    let mut all = [0; 25 << 10];
    let mut at = 0;
    while at < all.len() {
        all[at] = b"HTTP/1.1 100 Continue\r\n\r\n"[at % 25];
        at += 1;
    }
    all
};

async fn serve(stream: TcpStream, counts: Arc<Counts>, first: Then, later: Then) {
    let mut stream = BufReader::new(stream);
    let mut then = first;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if !matches!(stream.read_line(&mut head).await, Ok(1..)) {
                return;
            }
        }
        stream.read_until(b'}', &mut Vec::new()).await.unwrap();
        counts.requests.fetch_add(1, Ordering::SeqCst);
        if then == Then::Fail {
            return;
        }
        if then == Then::Promise {
            while stream.write_all(&PROMISES).await.is_ok() {}
            return;
        }
        let length = head.len();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{head}");
        stream.write_all(answer.as_bytes()).await.unwrap();
        if then == Then::Leave {
            return;
        }
        then = later;
    }
}

#[tokio::test]
async fn requests_one_after_the_other_share_a_connection() {
    let server = Server::start(Then::Stay, Then::Stay).await;
    let head = server.ask().await;
    assert!(head.starts_with("POST /mcp?k=v HTTP/1.1\r\n"), "{head}");
    let host = server.remote.address().authority().unwrap();
    assert!(head.contains(&format!("host: {host}\r\n")), "{head}");
    for _ in 0..4 {
        assert_eq!(server.ask().await, head);
    }
    assert_eq!(server.counts(), (1, 5));
}

#[tokio::test]
async fn sessions_and_credentials_share_no_connection() {
    let mut server = Server::start(Then::Stay, Then::Stay).await;
    server.ask().await;
    let first = std::mem::take(&mut server.idle);
    server.ask().await;
    assert_eq!(server.counts(), (2, 2));
    for (credential, connections) in [("alice", 3), ("bob", 4), ("alice", 4)] {
        let headers = [(AUTHORIZATION, HeaderValue::from_static(credential))];
        let sent = server.remote.send(
            server.idle.clone(),
            Method::POST,
            headers.into_iter().collect(),
            Bytes::from_static(b"{}"),
        );
        sent.await.unwrap().into_body().collect().await.unwrap();
        assert_eq!(server.counts().0, connections, "{credential}");
    }
    server.idle = first;
    server.ask().await;
    assert_eq!(server.counts().0, 4);
}

#[tokio::test]
async fn requests_at_the_same_time_have_a_connection_each() {
    let server = Server::start(Then::Stay, Then::Stay).await;
    for connections in [3, 3] {
        let (a, b, c) = tokio::join!(server.begin(), server.begin(), server.begin());
        for response in [a, b, c] {
            response.unwrap().into_body().collect().await.unwrap();
        }
        assert_eq!(server.counts().0, connections);
    }
}

#[tokio::test]
async fn a_connection_that_the_server_has_closed_is_not_used_again() {
    let server = Server::start(Then::Leave, Then::Leave).await;
    for count in 1..=3 {
        server.ask().await;
        assert_eq!(server.counts(), (count, count));
        // Its end is heard of.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_request_that_the_server_has_seen_is_not_sent_again() {
    let server = Server::start(Then::Stay, Then::Fail).await;
    server.ask().await;
    assert!(server.begin().await.is_err());
    assert_eq!(server.counts(), (1, 2));
    let fresh = Server::start(Then::Fail, Then::Fail).await;
    assert!(fresh.begin().await.is_err());
    assert_eq!(fresh.counts(), (1, 1));
}

#[tokio::test]
async fn a_server_that_only_promises_to_answer_is_given_up() {
    let server = Server::start(Then::Stay, Then::Promise).await;
    server.ask().await;
    assert!(server.begin().await.is_err());
    let server = Server::start(Then::Promise, Then::Stay).await;
    assert!(server.begin().await.is_err());
}

#[tokio::test]
async fn a_body_that_nobody_reads_takes_its_connection_along() {
    let server = Server::start(Then::Stay, Then::Stay).await;
    drop(server.begin().await.unwrap());
    server.ask().await;
    assert_eq!(server.counts(), (2, 2));
}

#[tokio::test]
async fn a_connection_that_nobody_uses_is_closed_in_time() {
    let server = Server::start(Then::Stay, Then::Stay).await;
    server.ask().await;
    server.remote.sweep(Instant::now());
    server.ask().await;
    assert_eq!(server.counts(), (1, 2));
    server
        .remote
        .sweep(Instant::now() + Duration::from_secs(61));
    server.ask().await;
    assert_eq!(server.counts(), (2, 3));
}

#[test]
fn a_server_is_called_as_its_address_says() {
    for (address, name) in [
        ("http://127.0.0.1:3000/mcp", "127.0.0.1:3000"),
        ("http://localhost:80/mcp", "localhost"),
        ("http://[::1]:443", "[::1]:443"),
        ("https://mcp.example:443/", "mcp.example"),
    ] {
        assert_eq!(host(&address.parse().unwrap()).unwrap(), name);
    }
    assert_eq!(path(&"http://a".parse().unwrap()).unwrap(), "/");
}
