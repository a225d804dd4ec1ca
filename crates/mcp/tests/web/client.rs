//! A client that speaks HTTP byte by byte.

use super::*;

/// A client that says exactly what it is told to.
pub struct Client {
    wire: Wire,
    door: SocketAddr,
    pub session: Option<String>,
}

/// A response.
#[derive(Debug)]
pub struct Got {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Client {
    pub async fn to(door: SocketAddr) -> Self {
        Self {
            wire: Wire::new(TcpStream::connect(door).await.unwrap()),
            door,
            session: None,
        }
    }

    pub async fn send_raw(&mut self, bytes: impl AsRef<[u8]>) {
        // A door that has answered already may have closed.
        let _ = self.wire.stream.write_all(bytes.as_ref()).await;
    }

    /// Sends a request; its answer is not waited for.
    pub async fn start(&mut self, verb: &str, more: &str, body: &str) {
        let session = match &self.session {
            Some(session) => format!("mcp-session-id: {session}\r\n"),
            None => String::new(),
        };
        let json = match more.to_lowercase().contains("content-type") {
            true => "",
            false => "content-type: application/json\r\n",
        };
        let host = match more.to_lowercase().contains("host:") {
            true => String::new(),
            false => format!("host: {}\r\n", self.door),
        };
        let length = body.len();
        self.send_raw(format!(
            "{verb} /mcp HTTP/1.1\r\n{host}{json}accept: application/json, text/event-stream\r\n{session}{more}content-length: {length}\r\n\r\n{body}"
        ))
        .await;
    }

    pub async fn head(&mut self) -> (u16, String) {
        let head = tokio::time::timeout(PATIENCE, self.wire.head()).await;
        let head = head.expect("no response came").expect("the door closed");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head)
    }

    /// The next piece of a stream; `None` at its end.
    pub async fn piece(&mut self) -> Option<String> {
        tokio::time::timeout(PATIENCE, async {
            let size = self.wire.until(b"\r\n").await?;
            let size = std::str::from_utf8(&size).unwrap().trim();
            let size = usize::from_str_radix(size, 16).unwrap();
            let piece = self.wire.exactly(size + 2).await?;
            (size > 0).then(|| String::from_utf8(piece[..size].to_vec()).unwrap())
        })
        .await
        .expect("no piece came")
    }

    pub async fn finish(&mut self) -> Got {
        let (status, head) = self.head().await;
        let body = match length(&head) {
            Some(length) => {
                let body = tokio::time::timeout(PATIENCE, self.wire.exactly(length)).await;
                String::from_utf8(body.expect("no body came").unwrap()).unwrap()
            }
            None if status == 204 => String::new(),
            None => {
                let mut body = String::new();
                while let Some(piece) = self.piece().await {
                    body.push_str(&piece);
                }
                body
            }
        };
        Got { status, head, body }
    }

    pub async fn ask(&mut self, verb: &str, more: &str, body: &str) -> Got {
        self.start(verb, more, body).await;
        self.finish().await
    }

    pub async fn post(&mut self, body: &str) -> Got {
        self.ask("POST", "", body).await
    }

    /// Begins a session as clients before 2026-07-28 do.
    pub async fn initialize(&mut self) {
        let got = self
            .post(r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"clever-client"}}}"#)
            .await;
        assert_eq!(got.status, 200, "{got:?}");
        self.session = header(&got.head, "mcp-session-id");
        assert!(self.session.is_some());
    }

    /// Whether the door has closed the connection.
    pub async fn is_closed(&mut self) -> bool {
        let closed = async { while self.wire.more().await {} };
        tokio::time::timeout(PATIENCE, closed).await.is_ok()
    }
}
