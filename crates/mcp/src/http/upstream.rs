//! The server behind the door.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, Uri};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::HttpConnector;

use connections::{Connections, Connector};
pub(super) use connections::{Idle, Served, Unreachable};

mod connections;
mod heads;
#[cfg(test)]
mod tests;

/// The server behind a door.
#[derive(Clone)]
pub enum Upstream {
    /// It is reached by HTTP.
    Http(Remote),
    /// It is started for each session and speaks over its pipes.
    Command(Program),
}

/// A program that is a server.
#[derive(Clone)]
pub struct Program {
    /// What is shown of it.
    pub shown: String,
    /// Its command.
    pub command: Arc<dyn Fn() -> Command + Send + Sync>,
    /// A command that ends in [`guard`](crate::stdio::guard()), to end the server when we are killed.
    pub guard: Arc<dyn Fn() -> Option<Command> + Send + Sync>,
}

/// A server that is reached by HTTP.
#[derive(Clone)]
pub struct Remote {
    address: Uri,
    /// What a request asks for there.
    path: Uri,
    /// How the server is called there.
    host: HeaderValue,
    connections: Connections,
    /// What it gets with every request, in the place of what a client says.
    headers: Arc<Vec<(HeaderName, HeaderValue)>>,
}

/// Why a server cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The address cannot be used.
    #[error("`{0}` is not an address such as http://127.0.0.1:3000/mcp")]
    Address(String),
    /// A header cannot be sent. Its value may be a secret, and is not shown.
    #[error("the header `{0}` cannot be sent")]
    Header(String),
    /// The certificates of this machine cannot be read.
    #[error("the certificates of this machine cannot be read: {0}")]
    Certificates(#[from] std::io::Error),
}

impl Remote {
    /// A server at this address. Nothing is connected yet.
    pub fn new(address: &str) -> Result<Self, UpstreamError> {
        let wrong = || UpstreamError::Address(address.to_owned());
        let uri: Uri = address.parse().map_err(|_| wrong())?;
        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        // A user name or a password would end up in the log.
        let is_plain = uri
            .authority()
            .is_some_and(|one| !one.as_str().contains('@'));
        if !is_web || !is_plain {
            return Err(wrong());
        }
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT));
        connector.set_keepalive(Some(KEEPALIVE));
        // Nobody may be left who waits for the answer.
        connector.set_tcp_user_timeout(Some(UNREAD));
        let connector = match uri.scheme_str() {
            Some("https") => {
                let secure = HttpsConnectorBuilder::new()
                    .with_native_roots()?
                    .https_only()
                    .enable_http1();
                Connector::Secure(secure.wrap_connector(connector))
            }
            _ => Connector::Clear(connector),
        };
        Ok(Self {
            path: path(&uri).ok_or_else(wrong)?,
            host: host(&uri).ok_or_else(wrong)?,
            address: uri,
            connections: Connections::new(connector),
            headers: Arc::default(),
        })
    }

    /// Sends this header with every request, such as the credential that we hold for the server.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, UpstreamError> {
        let wrong = || UpstreamError::Header(name.to_owned());
        let key: HeaderName = name.parse().map_err(|_| wrong())?;
        let mut value: HeaderValue = value.parse().map_err(|_| wrong())?;
        value.set_sensitive(true);
        Arc::make_mut(&mut self.headers).push((key, value));
        Ok(self)
    }

    /// The same server at another path.
    pub(super) fn at(&self, path: &str) -> Option<Self> {
        let mut parts = self.address.clone().into_parts();
        parts.path_and_query = Some(path.parse().ok()?);
        let address = Uri::from_parts(parts).ok()?;
        Some(Self {
            path: self::path(&address)?,
            address,
            ..self.clone()
        })
    }

    /// Where it is.
    pub fn address(&self) -> &Uri {
        &self.address
    }

    /// A session begins, which has no connection.
    pub(super) fn begin(&self, session: &Idle) {
        self.connections.begin(session);
    }

    /// Sends a request on a connection of a session and gives the head of the response.
    pub(super) async fn send(
        &self,
        idle: Idle,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Served>, Unreachable> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = headers;
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        for (name, value) in &*self.headers {
            headers.insert(name, value.clone());
        }
        if request.method() == Method::POST && !request.headers().contains_key(CONTENT_TYPE) {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
        }
        self.connections.send(idle, &self.address, request).await
    }

    /// Lets go of connections that nobody has used for long.
    pub(super) fn sweep(&self, now: Instant) {
        self.connections.sweep(now);
    }
}

/// What a request to this address asks for.
fn path(address: &Uri) -> Option<Uri> {
    let mut parts = hyper::http::uri::Parts::default();
    parts.path_and_query = address.path_and_query().cloned();
    Uri::from_parts(parts).ok()
}

/// What a request to this address calls the server.
fn host(address: &Uri) -> Option<HeaderValue> {
    let usual = match address.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    let host = address.host()?;
    let port = address.port_u16().filter(|port| *port != usual);
    let text = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    text.try_into().ok()
}

impl Upstream {
    /// Where or what it is.
    pub fn shown(&self) -> String {
        match self {
            Self::Http(remote) => remote.address.to_string(),
            Self::Command(program) => program.shown.clone(),
        }
    }
}

const CONNECT: Duration = Duration::from_secs(10);
/// A connection ends whose server does not take what was sent for so long.
const UNREAD: Duration = Duration::from_secs(30);
const KEEPALIVE: Duration = Duration::from_secs(60);
