//! A door on a free port, tokens for everybody, and a client that says what it is told.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use countersign_api::{Api, Door, NewToken, PolicyBook, Role, Settings};
use countersign_canon::{Json, Limits, Numbers};
use countersign_engine::{Engine, SystemClock};
use countersign_event::{EventType, Payload, Scope, SessionId, TenantId};
use countersign_policy::Policies;
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_store::{Folder, Options, Store};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::replayed::{self, Kept};

pub(crate) struct Scene {
    pub(crate) address: SocketAddr,
    pub(crate) api: Arc<Api>,
    pub(crate) engine: Arc<Engine>,
    stop: Option<oneshot::Sender<()>>,
    runtime: Option<Runtime>,
    /// Goes last: what was recorded is looked at when nobody writes any more.
    pub(crate) folder: Kept,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Scene {
    pub(crate) fn new(manifest: Option<&str>) -> Self {
        Self::with(manifest, Settings::default())
    }

    pub(crate) fn with(manifest: Option<&str>, settings: Settings) -> Self {
        Self::opened(manifest, settings, |door| door)
    }

    pub(crate) fn opened(
        manifest: Option<&str>,
        settings: Settings,
        change: impl FnOnce(Door) -> Door,
    ) -> Self {
        let folder = replayed::folder();
        let options = Options {
            observer: Some(settings.wake.observer()),
            ..Options::default()
        };
        let store = Store::open(&Folder::new(folder.path()), options).unwrap();
        let manifest = manifest.map(|text| Manifest::partial(&json(text)).unwrap());
        let policies = Policies::new(Capability::new(manifest).unwrap());
        let engine = Arc::new(Engine::new(store, policies, SystemClock));
        let book = PolicyBook::in_folder(folder.path());
        let api = Api::new(Arc::clone(&engine), book, settings);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = oneshot::channel::<()>();
        let door = change(Door::new(Arc::clone(&api)));
        runtime.spawn(door.open(listener, async move { drop(stopping.await) }));
        Self {
            address,
            api,
            engine,
            folder,
            stop: Some(stop),
            runtime: Some(runtime),
        }
    }

    pub(crate) fn token(&self, role: Role) -> String {
        let tenant = role.needs_tenant().then_some("acme");
        self.token_for(role, role.as_str(), tenant, None)
    }

    pub(crate) fn token_for(
        &self,
        role: Role,
        name: &str,
        tenant: Option<&str>,
        session: Option<&str>,
    ) -> String {
        let token = NewToken {
            name: name.to_owned(),
            role,
            tenant: tenant.map(|id| TenantId::new(id).unwrap()),
            session: session.map(|id| SessionId::new(id).unwrap()),
            expires_unix_ms: None,
        };
        let (text, row) = token.issue(1).unwrap();
        assert!(self.engine.store().add_token(row).unwrap());
        text
    }

    /// The session takes nothing more.
    pub(crate) fn terminate(&self, tenant: &str, session: &str) {
        let scope = Scope::new(tenant, session).unwrap();
        let payload = Payload::admit(EventType::Termination, json("{}")).unwrap();
        let ended = self.engine.record(&scope, EventType::Termination, payload);
        assert!(ended.is_ok());
    }

    pub(crate) fn get(&self, path: &str, token: &str) -> Answer {
        self.ask("GET", path, Some(token), None)
    }

    pub(crate) fn post(&self, path: &str, token: &str, body: &str) -> Answer {
        self.ask("POST", path, Some(token), Some(body))
    }

    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: Option<&str>,
    ) -> Answer {
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        self.say(method, path, &token.unwrap_or_default(), body)
    }

    /// `headers` are lines that end with `\r\n`.
    pub(crate) fn say(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: Option<&str>,
    ) -> Answer {
        let length = body.map_or(String::new(), |body| {
            format!(
                "Content-Type: application/json\r\nContent-Length: {}\r\n",
                body.len()
            )
        });
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}{length}\r\n",
            self.address
        );
        let mut stream = self.connect();
        stream.write_all(head.as_bytes()).unwrap();
        // The door may answer before it has all of it.
        let _ = stream.write_all(body.unwrap_or_default().as_bytes());
        Answer::read(stream, method == "HEAD")
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
        let _flushed = self.engine.flush();
    }
}

impl Answer {
    pub(crate) fn read(stream: TcpStream, is_head: bool) -> Self {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let status = line
            .split(' ')
            .nth(1)
            .unwrap_or_default()
            .parse()
            .unwrap_or(0);
        let mut headers = Vec::new();
        loop {
            line.clear();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut body = Vec::new();
        // A stream of events has no end to wait for.
        let is_stream = headers
            .iter()
            .any(|(_, value)| value == "text/event-stream");
        if !is_head && !is_stream {
            let length = headers.iter().find(|(name, _)| name == "content-length");
            match length {
                Some((_, length)) => {
                    body.resize(length.parse().unwrap(), 0);
                    reader.read_exact(&mut body).unwrap();
                }
                None => drop(reader.read_to_end(&mut body)),
            }
        }
        Self {
            status,
            headers,
            body,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Json {
        json(&String::from_utf8_lossy(&self.body))
    }

    pub(crate) fn text(&self, member: &str) -> String {
        let json = self.json();
        let found = member
            .split('.')
            .try_fold(&json, |json, name| json.get(name));
        found.and_then(Json::as_str).unwrap_or_default().to_owned()
    }
}

pub(crate) fn json(text: &str) -> Json {
    let limits = Limits {
        max_bytes: usize::MAX,
        max_depth: 200,
        numbers: Numbers::Double,
    };
    Json::admit(text.as_bytes(), &limits).unwrap_or_else(|error| panic!("{error}: {text}"))
}
