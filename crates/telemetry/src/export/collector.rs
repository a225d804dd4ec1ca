//! Sending spans to a collector: OTLP over HTTP or gRPC.
//!
//! gRPC is one POST over HTTP/2 whose status stands in the trailers; that much of it is here.

use std::sync::Arc;
use std::sync::mpsc as threads;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE, USER_AGENT};
use hyper::{Request, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::mpsc;

use super::{Report, StartError};
use crate::metrics::{Cause, Metrics};
use crate::otlp::{to_json, to_protobuf};
use crate::span::Span;

/// Where spans are sent to.
#[derive(Clone)]
pub struct Collector {
    address: Uri,
    protocol: Protocol,
    headers: HeaderMap,
}

/// How a collector is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// OTLP over HTTP, as protocol buffers.
    HttpProtobuf,
    /// OTLP over HTTP, as JSON.
    HttpJson,
    /// OTLP over gRPC.
    Grpc,
}

impl std::str::FromStr for Protocol {
    type Err = StartError;

    fn from_str(text: &str) -> Result<Self, StartError> {
        match text {
            "http/protobuf" => Ok(Self::HttpProtobuf),
            "http/json" => Ok(Self::HttpJson),
            "grpc" => Ok(Self::Grpc),
            _ => Err(StartError::Collector(format!(
                "`{text}` is not one of: http/protobuf, http/json, grpc"
            ))),
        }
    }
}

impl Collector {
    /// A collector. An address without a path gets the one that the protocol has.
    pub fn new(address: &str, protocol: Protocol) -> Result<Self, StartError> {
        let wrong = |text: &dyn std::fmt::Display| StartError::Collector(text.to_string());
        let uri: Uri = address.parse().map_err(|error| wrong(&error))?;
        let is_named = matches!(uri.scheme_str(), Some("http" | "https"));
        let Some(authority) = uri.authority().filter(|_| is_named) else {
            return Err(wrong(&"expected an address such as http://127.0.0.1:4318"));
        };
        if authority.as_str().contains('@') {
            return Err(wrong(
                &"a secret does not belong into an address: use a file of headers",
            ));
        }
        let path = match (protocol, uri.path()) {
            (Protocol::Grpc, "" | "/") => GRPC_PATH.to_owned(),
            (Protocol::Grpc, _) => return Err(wrong(&"an address for gRPC has no path")),
            (_, "" | "/") => HTTP_PATH.to_owned(),
            (_, path) => path.to_owned(),
        };
        let address = format!("{}://{authority}{path}", uri.scheme_str().unwrap_or("http"));
        Ok(Self {
            address: address.parse().map_err(|error| wrong(&error))?,
            protocol,
            headers: HeaderMap::new(),
        })
    }

    /// The same, with headers: `name: value` in lines, as a file has them. No message repeats them.
    pub fn with_headers(mut self, lines: &str) -> Result<Self, StartError> {
        for (number, line) in lines.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let wrong = || StartError::Collector(format!("line {}: not a header", number + 1));
            let (name, value) = line.split_once(':').ok_or_else(wrong)?;
            let name: HeaderName = name.trim().parse().map_err(|_| wrong())?;
            let mut value: HeaderValue = value.trim().parse().map_err(|_| wrong())?;
            value.set_sensitive(true);
            self.headers.insert(name, value);
        }
        Ok(self)
    }
}

/// Takes batches, a few of them at a time.
pub(super) struct Sender {
    queue: Option<mpsc::Sender<Batch>>,
    metrics: Arc<Metrics>,
    /// Breaks off when everything was sent.
    ended: threads::Receiver<()>,
}

struct Batch {
    spans: Vec<Span>,
    /// They are counted as exported when the collector has them; the file has not.
    counts: bool,
}

impl Sender {
    pub(super) fn send(&self, spans: Vec<Span>, counts: bool) {
        let count = spans.len();
        let batch = Batch { spans, counts };
        let sent = self.queue.as_ref().map(|queue| queue.try_send(batch));
        if !matches!(sent, Some(Ok(()))) {
            self.metrics.add_dropped(Cause::CollectorFailed, count);
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        drop(self.queue.take());
        // A collector that does not answer does not keep anybody from ending.
        let _ = self.ended.recv_timeout(FAREWELL);
    }
}

pub(super) fn start(
    collector: Collector,
    metrics: Arc<Metrics>,
    report: Report,
) -> Result<Sender, StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(StartError::Thread)?;
    let connections = Connections::new(&collector).map_err(StartError::Thread)?;
    let (queue, waiting) = mpsc::channel(MAX_BATCHES);
    let (ending, ended) = threads::channel::<()>();
    let courier = Courier {
        collector,
        connections,
        metrics: Arc::clone(&metrics),
        report,
        is_failing: false,
    };
    let thread = std::thread::Builder::new().name("telemetry-otlp".to_owned());
    let work = move || {
        runtime.block_on(courier.run(waiting));
        drop(ending);
    };
    thread.spawn(work).map_err(StartError::Thread)?;
    Ok(Sender {
        queue: Some(queue),
        metrics,
        ended,
    })
}

enum Connections {
    Clear(Client<HttpConnector, Full<Bytes>>),
    Secure(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl Connections {
    fn new(collector: &Collector) -> std::io::Result<Self> {
        let is_grpc = collector.protocol == Protocol::Grpc;
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(ATTEMPT));
        let mut client = Client::builder(TokioExecutor::new());
        client.http2_only(is_grpc);
        if collector.address.scheme_str() != Some("https") {
            return Ok(Self::Clear(client.build(connector)));
        }
        connector.enforce_http(false);
        let builder = HttpsConnectorBuilder::new()
            .with_native_roots()?
            .https_only();
        Ok(Self::Secure(client.build(match is_grpc {
            true => builder.enable_http2().wrap_connector(connector),
            false => builder.enable_http1().wrap_connector(connector),
        })))
    }

    async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, hyper_util::client::legacy::Error> {
        match self {
            Self::Clear(client) => client.request(request).await,
            Self::Secure(client) => client.request(request).await,
        }
    }
}

struct Courier {
    collector: Collector,
    connections: Connections,
    metrics: Arc<Metrics>,
    report: Report,
    is_failing: bool,
}

/// Why a batch was not taken.
enum Refused {
    /// Perhaps it is taken later.
    Later(String),
    /// It never is.
    Never(String),
}

impl Courier {
    async fn run(mut self, mut waiting: mpsc::Receiver<Batch>) {
        while let Some(batch) = waiting.recv().await {
            let sent = self.deliver(&batch.spans).await;
            match sent {
                Ok(()) => {
                    if batch.counts {
                        self.metrics.add_exported(batch.spans.len());
                    }
                    if std::mem::take(&mut self.is_failing) {
                        (self.report)("the collector takes spans again", None);
                    }
                }
                Err(why) => {
                    let count = batch.spans.len();
                    self.metrics.add_dropped(Cause::CollectorFailed, count);
                    if !std::mem::replace(&mut self.is_failing, true) {
                        (self.report)("the collector takes no spans", Some(&why));
                    }
                }
            }
        }
    }

    /// Tries for a while. What comes meanwhile waits, and is dropped when there is no room for it.
    async fn deliver(&self, spans: &[Span]) -> Result<(), String> {
        let body = match self.collector.protocol {
            Protocol::HttpJson => Bytes::from(to_json(spans).to_sorted_ascii()),
            Protocol::HttpProtobuf => Bytes::from(to_protobuf(spans)),
            Protocol::Grpc => framed(&to_protobuf(spans)),
        };
        let until = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        loop {
            let tried = tokio::time::timeout(ATTEMPT, self.post(body.clone())).await;
            match tried.unwrap_or_else(|_| Err(Refused::Later("no answer in time".to_owned()))) {
                Ok(()) => return Ok(()),
                Err(Refused::Never(why)) => return Err(why),
                Err(Refused::Later(why)) if Instant::now() + pause >= until => return Err(why),
                Err(Refused::Later(_)) => {}
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }

    async fn post(&self, body: Bytes) -> Result<(), Refused> {
        let later = |error: &dyn std::fmt::Display| Refused::Later(error.to_string());
        let kind = match self.collector.protocol {
            Protocol::HttpJson => "application/json",
            Protocol::HttpProtobuf => "application/x-protobuf",
            Protocol::Grpc => "application/grpc",
        };
        let mut request = Request::post(self.collector.address.clone())
            .body(Full::new(body))
            .map_err(|error| Refused::Never(error.to_string()))?;
        let headers = request.headers_mut();
        headers.extend(self.collector.headers.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if self.collector.protocol == Protocol::Grpc {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        let response = self.connections.send(request).await;
        let response = response.map_err(|error| later(&error))?;
        let (status, mut headers) = (response.status(), response.headers().clone());
        let body = Limited::new(response.into_body(), MAX_ANSWER)
            .collect()
            .await;
        let body = body.map_err(|error| later(&error))?;
        let is_grpc = self.collector.protocol == Protocol::Grpc;
        match status.as_u16() {
            200 if is_grpc => {
                headers.extend(body.trailers().cloned().unwrap_or_default());
                grpc(&headers)
            }
            200..=299 => Ok(()),
            429 | 502 | 503 | 504 => Err(Refused::Later(status.to_string())),
            _ => Err(Refused::Never(status.to_string())),
        }
    }
}

/// What the trailers say.
fn grpc(headers: &HeaderMap) -> Result<(), Refused> {
    let status = headers.get("grpc-status").and_then(|it| it.to_str().ok());
    let said = |status: &str| format!("grpc-status {status}");
    match status {
        Some("0") => Ok(()),
        // Cancelled, too slow, exhausted, aborted, out of range, unavailable, lost.
        Some(code @ ("1" | "4" | "8" | "10" | "11" | "14" | "15")) => {
            Err(Refused::Later(said(code)))
        }
        // FAIL-CLOSED: what nobody confirmed was not taken.
        other => Err(Refused::Never(said(other.unwrap_or("missing")))),
    }
}

/// One message, not compressed.
fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(message.len() + 5);
    frame.push(0);
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(message);
    frame.into()
}

const HTTP_PATH: &str = "/v1/traces";
const GRPC_PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const AGENT: &str = concat!("countersign/", env!("CARGO_PKG_VERSION"));
const MAX_BATCHES: usize = 16;
const MAX_ANSWER: usize = 1 << 20;
const ATTEMPT: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(8);
const FAREWELL: Duration = Duration::from_secs(3);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
