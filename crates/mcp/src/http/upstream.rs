//! The server behind the door.

use std::collections::HashMap;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::runtime::{self, Handle};

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
    client: Box<Connections>,
    /// What it gets with every request, in the place of what a client says.
    headers: Arc<Vec<(HeaderName, HeaderValue)>>,
}

/// A server in the clear needs no certificates, which not every machine has.
#[derive(Clone)]
enum Connections {
    Clear(Pools<HttpConnector>),
    Secure(Pools<HttpsConnector<HttpConnector>>),
}

/// The connections of each thread that carries messages: what one of them opened wakes no other.
#[derive(Clone)]
struct Pools<C> {
    connector: C,
    all: Arc<Mutex<HashMap<runtime::Id, Pool<C>>>>,
}

type Pool<C> = Client<C, Full<Bytes>>;

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
        let client = match uri.scheme_str() {
            Some("https") => {
                let connector = HttpsConnectorBuilder::new()
                    .with_native_roots()?
                    .https_only()
                    .enable_http1()
                    .wrap_connector(connector);
                Connections::Secure(Pools::new(connector))
            }
            _ => Connections::Clear(Pools::new(connector)),
        };
        Ok(Self {
            address: uri,
            client: Box::new(client),
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
            address,
            ..self.clone()
        })
    }

    /// Where it is.
    pub fn address(&self) -> &Uri {
        &self.address
    }

    /// Sends a request and gives the head of the response.
    pub(super) async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, hyper_util::client::legacy::Error> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.address.clone();
        *request.headers_mut() = headers;
        for (name, value) in &*self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        if request.method() == Method::POST && !request.headers().contains_key(CONTENT_TYPE) {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
        }
        match self.client.as_ref() {
            Connections::Clear(pools) => pools.own().request(request).await,
            Connections::Secure(pools) => pools.own().request(request).await,
        }
    }
}

impl<C: Connect + Clone> Pools<C> {
    fn new(connector: C) -> Self {
        Self {
            connector,
            all: Arc::default(),
        }
    }

    /// The connections of this thread.
    fn own(&self) -> Pool<C> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.entry(Handle::current().id());
        let open = || {
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE)
                .build(self.connector.clone())
        };
        own.or_insert_with(open).clone()
    }
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
const IDLE: Duration = Duration::from_secs(60);
