//! `countersign evidence push`
//!
//! What is sent is written down first, as the very bytes; it is forgotten when the endpoint has taken it.
//! So an event may be sent twice, with the same id and the same content, and none is left out.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use countersign_canon::{Hash, Json, Limits};
use countersign_evidence::cloudevents::{CloudEvent, Request, batch, binary, structured};

use super::exchange::convert;
use super::session::{Session, Signer};
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::folder;
use crate::output::{self, Format};

#[derive(Args)]
#[command(after_help = "\
Sends what the endpoint has not taken yet, in order, and notes how far it came in the data folder. An
endpoint that fails, answers 408, 425, 429 or 5xx, or says nothing is tried again; any other answer stops.
Running the command again goes on where it stopped. An event that is sent twice has the same id and the
same content.

Examples:
  countersign evidence push --session s1 --to https://events.example/ingest
  countersign evidence push --session s1 --to http://127.0.0.1:8080/ --batch 100")]
pub(crate) struct Push {
    #[command(flatten)]
    session: Session,
    /// The endpoint
    #[arg(long, value_name = "URL")]
    to: String,
    /// Attributes as headers and data as the body
    #[arg(long, conflicts_with = "batch")]
    binary: bool,
    /// So many events in one request
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    batch: Option<u32>,
    /// A file with a bearer token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// How often to try before giving up
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100))]
    attempts: u32,
}

impl Push {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let endpoint = endpoint(&self.to)?;
        let scope = self.session.scope()?;
        let folder = self.session.folder()?;
        let producer = Signer::open(&folder)?.producer();
        let events = convert(&scope, &self.session.events()?, &producer)?;
        let parts = [&endpoint, scope.tenant.as_str(), scope.session.as_str()];
        let name = Hash::of(parts.join("\0").as_bytes()).to_string();
        let mut cursor = Cursor::open(&folder.path().join("push"), &name)?;
        let courier = Courier::new(&endpoint, self.token_file.as_deref(), self.attempts)?;
        let before = cursor.next;
        if let Some(pending) = cursor.pending.clone() {
            courier.deliver(&pending.request)?;
            cursor.taken(pending.through)?;
        }
        let size = self.batch.map_or(1, |size| size as usize);
        let rest = events.get(cursor.next..).unwrap_or_default().to_vec();
        for some in rest.chunks(size) {
            let through = cursor.next + some.len();
            let request = self.request(some)?;
            cursor.sending(request.clone(), through)?;
            courier.deliver(&request)?;
            cursor.taken(through)?;
        }
        let sent = cursor.next - before;
        match format {
            Format::Text => output::text(&format!("sent {sent} of {} events", events.len()))?,
            Format::Json => output::json(&Json::object([
                ("sent", Json::from(sent as u64)),
                ("next", Json::from(cursor.next as u64)),
            ]))?,
        }
        Ok(Exit::Done)
    }

    fn request(&self, events: &[CloudEvent]) -> Result<Request, Failure> {
        Ok(match events {
            [event] if self.binary => binary(event)?,
            [event] if self.batch.is_none() => structured(event)?,
            events => batch(events)?,
        })
    }
}

/// How far an endpoint has come with a session.
struct Cursor {
    path: PathBuf,
    next: usize,
    pending: Option<Pending>,
    /// Held as long as this process sends.
    _lock: File,
}

#[derive(Clone)]
struct Pending {
    request: Request,
    through: usize,
}

impl Cursor {
    fn open(folder: &Path, name: &str) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            let message = format!("cannot use `{}`: {error}", folder.display());
            Failure::new(Code::Folder, message)
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = File::create(folder.join(format!("{name}.lock"))).map_err(failed)?;
        lock.try_lock().map_err(|_| {
            let message = "another process sends this session to this endpoint";
            Failure::new(Code::Busy, message)
        })?;
        let path = folder.join(format!("{name}.json"));
        let (next, pending) = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => (0, None),
            text => read(&text.map_err(failed)?).ok_or_else(|| {
                let message = format!("`{}` was changed", path.display());
                Failure::new(Code::Damaged, message)
            })?,
        };
        Ok(Self {
            path,
            next,
            pending,
            _lock: lock,
        })
    }

    fn sending(&mut self, request: Request, through: usize) -> Result<(), Failure> {
        self.pending = Some(Pending { request, through });
        self.write()
    }

    fn taken(&mut self, through: usize) -> Result<(), Failure> {
        self.next = through;
        self.pending = None;
        self.write()
    }

    fn write(&self) -> Result<(), Failure> {
        let pending = self.pending.as_ref().map(|pending| {
            let headers = pending.request.headers.iter();
            let headers = headers.map(|(name, value)| (name.as_str(), Json::from(value.as_str())));
            Json::object([
                ("headers", Json::object(headers)),
                (
                    "body",
                    Json::from(String::from_utf8_lossy(&pending.request.body).into_owned()),
                ),
                ("through", Json::from(pending.through as u64)),
            ])
        });
        let cursor = Json::object([
            ("next", Json::from(self.next as u64)),
            ("pending", Json::from(pending)),
        ]);
        folder::replace(&self.path, &cursor.to_jcs()?).map_err(|error| {
            let message = format!("cannot write `{}`: {error}", self.path.display());
            Failure::new(Code::Folder, message)
        })
    }
}

fn read(text: &[u8]) -> Option<(usize, Option<Pending>)> {
    let limits = Limits {
        max_bytes: usize::MAX,
        ..Limits::event()
    };
    let json = Json::admit(text, &limits).ok()?;
    let number = |json: &Json, name: &str| usize::try_from(json.get(name)?.as_u64()?).ok();
    let next = number(&json, "next")?;
    let pending = json.get("pending")?;
    if pending.is_null() {
        return Some((next, None));
    }
    let headers = pending.get("headers")?.as_object()?.iter();
    let headers = headers.map(|(name, value)| Some((name.to_owned(), value.as_str()?.to_owned())));
    let request = Request {
        headers: headers.collect::<Option<_>>()?,
        body: pending.get("body")?.as_str()?.as_bytes().to_vec(),
    };
    let through = number(pending, "through")?;
    Some((next, Some(Pending { request, through })))
}

/// Takes requests to the endpoint.
struct Courier {
    agent: ureq::Agent,
    endpoint: String,
    token: Option<String>,
    attempts: u32,
}

impl Courier {
    fn new(endpoint: &str, token: Option<&Path>, attempts: u32) -> Result<Self, Failure> {
        let token = token.map(|path| {
            fs::read_to_string(path)
                .map(|text| text.trim().to_owned())
                .map_err(|error| crate::input::unreadable(&path.display().to_string(), &error))
        });
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            // SECURITY: what is meant for one address goes to no other.
            .max_redirects(0)
            .build();
        Ok(Self {
            agent: agent.into(),
            endpoint: endpoint.to_owned(),
            token: token.transpose()?,
            attempts,
        })
    }

    fn deliver(&self, request: &Request) -> Result<(), Failure> {
        let mut pause = FIRST_PAUSE;
        let mut last = String::new();
        for attempt in 1..=self.attempts {
            match self.send(request) {
                Ok(status) if (200..300).contains(&status) => return Ok(()),
                Ok(status) if is_passing(status) => last = format!("it answers {status}"),
                Ok(status) => {
                    let message = format!("`{}` does not take it: {status}", self.endpoint);
                    return Err(Failure::new(Code::Push, message));
                }
                Err(error) => last = error.to_string(),
            }
            if attempt < self.attempts {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        let message = format!("cannot reach `{}`: {last}", self.endpoint);
        Err(Failure::new(Code::Push, message))
    }

    fn send(&self, request: &Request) -> Result<u16, ureq::Error> {
        let mut post = self.agent.post(&self.endpoint);
        for (name, value) in &request.headers {
            post = post.header(name, value);
        }
        if let Some(token) = &self.token {
            post = post.header("authorization", format!("Bearer {token}"));
        }
        let response = post.send(&request.body[..])?;
        Ok(response.status().as_u16())
    }
}

/// Whether an answer may be another one soon.
fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 425 | 429) || status >= 500
}

/// SECURITY: events leave in clear only to this machine.
fn endpoint(address: &str) -> Result<String, Failure> {
    let wrong = || Failure::new(Code::Endpoint, format!("`{address}` cannot be used"));
    let url = url::Url::parse(address).map_err(|_| wrong())?;
    let near = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match url.scheme() == "https" || (url.scheme() == "http" && near) {
        true => Ok(url.into()),
        false => Err(wrong()),
    }
}

const TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
