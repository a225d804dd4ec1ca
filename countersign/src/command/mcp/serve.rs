//! `countersign mcp serve`

use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use countersign_canon::Json;
use countersign_engine::Engine;
use countersign_mcp::http::{
    Access, Door, Limits, Opened, Program, Reception, Remote, Served, Upstream,
};
use countersign_mcp::stdio::Host;
use countersign_mcp::tools::{Book, Shelf};
use countersign_mcp::{Gate, Session};
use countersign_store::Folder;

use super::guard;
use super::host::Wrapper;
use super::reload::{Hangups, Journal, Watch};
use super::rules::{Rules, observed, origin, pin, random};
use super::wrap::name_of;
use crate::books::Books;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output;

#[derive(Args)]
#[command(after_help = "\
Stands between MCP clients that speak Streamable HTTP and servers. Clients are pointed at the address
that is printed; what they may do is decided as with `countersign mcp --`.

One server without a name is at /mcp. Servers with names are at /mcp/NAME, and the names stand in the
log and in manifests.

Only requests to names of this machine, and from pages of this machine, are let in; see --allow-host
and --allow-origin.

Examples:
  countersign mcp serve --upstream http://127.0.0.1:3000/mcp
  countersign mcp serve --manifest manifest.yaml --upstream files=http://127.0.0.1:3000/mcp \\
    --upstream web=https://mcp.example.com/mcp
  countersign mcp serve -- npx -y @modelcontextprotocol/server-filesystem /srv/docs")]
pub(crate) struct Serve {
    /// Where clients find it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7300")]
    listen: SocketAddr,
    /// A server: its address, with a name in front if there are several
    #[arg(long, value_name = "[NAME=]URL", required_unless_present = "command")]
    upstream: Vec<String>,
    /// A name, other than this machine's own, that clients may call this by
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// An origin whose web pages may call this
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    #[command(flatten)]
    rules: Rules,
    /// A server that is started for each session, in the place of --upstream
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "upstream")]
    command: Vec<OsString>,
}

impl Serve {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        let watch = Watch::new(self.rules.files());
        let folder = self.rules.folder()?;
        let mut engines: Vec<Arc<Engine>> = Vec::new();
        let mut served: Vec<Served> = Vec::new();
        for (name, path, upstream) in self.servers()? {
            if served.iter().any(|one| one.path == path) {
                let text = format!("`{path}` is there twice: give each server a name of its own");
                return Err(Failure::new(Code::Server, text));
            }
            // Without a manifest each server's tools decide for themselves.
            let engine = match engines.first() {
                Some(engine) if self.rules.has_manifest() => Arc::clone(engine),
                _ => self.rules.engine()?,
            };
            if !self.rules.has_manifest() || engines.is_empty() {
                engines.push(Arc::clone(&engine));
            }
            let reception = Desk {
                server: name,
                engine,
                folder: folder.clone(),
                rules: self.rules.clone(),
                keeping: Arc::default(),
            };
            served.push(Served {
                path,
                upstream,
                reception: Arc::new(reception),
            });
        }
        let journal = Arc::new(Journal::of_door(&engines, self.rules.scope()?));
        watch.start(engines, Arc::clone(&journal), Hangups::Ours)?;
        if !self.rules.has_manifest() {
            output::stderr(&observed(folder.path()));
        }
        let shown: Vec<_> = served
            .iter()
            .map(|one| (one.path.clone(), one.upstream.shown()))
            .collect();
        let door = Door::new(served, self.access(), self.limits());
        let listen = self.listen;
        door.run(listen, |address| {
            for (path, upstream) in shown {
                let line = format!("countersign: http://{address}{path} stands before {upstream}");
                output::stderr(&line);
            }
        })
        .map_err(|error| Failure::new(Code::Listen, format!("`{listen}`: {error}")))?;
        journal.end();
        Ok(Exit::Done)
    }

    /// The name, the path and the place of each server.
    fn servers(&self) -> Result<Vec<(String, String, Upstream)>, Failure> {
        let Some((program, arguments)) = self.command.split_first() else {
            return self.upstream.iter().map(|text| named(text)).collect();
        };
        // What cannot be found is noticed before anybody calls.
        let _found = guard::command()?;
        let (program, arguments) = (program.clone(), arguments.to_vec());
        let shown = program.to_string_lossy().into_owned();
        let command = move || {
            let mut command = Command::new(&program);
            command.args(&arguments);
            command
        };
        let upstream = Upstream::Command(Program {
            shown,
            command: Arc::new(command),
            guard: Arc::new(|| guard::command().ok()),
        });
        Ok(vec![(name_of(&self.command), "/mcp".to_owned(), upstream)])
    }

    fn access(&self) -> Access {
        let mut access = Access::default();
        for host in &self.allow_host {
            access = access.with_host(host);
        }
        for origin in &self.allow_origin {
            access = access.with_origin(origin);
        }
        access
    }

    fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            max_frame_bytes: self.rules.max_frame,
            max_held_bytes: usual.max_held_bytes.max(self.rules.max_frame),
            ..usual
        }
    }
}

/// Opens the sessions of one server.
struct Desk {
    server: String,
    engine: Arc<Engine>,
    folder: Folder,
    rules: Rules,
    /// Held while the book is written: sessions learn at the same time.
    keeping: Arc<Mutex<()>>,
}

impl Reception for Desk {
    fn receive(&self, about: Vec<(&'static str, Json)>) -> Result<Opened, String> {
        self.open(about).map_err(|failure| {
            let text = failure.message().to_owned();
            failure.report();
            text
        })
    }
}

impl Desk {
    fn open(&self, mut about: Vec<(&'static str, Json)>) -> Result<Opened, Failure> {
        let books = Books::new(self.folder.path());
        let (mut book, others) = {
            let _reading = self.keeping.lock().unwrap_or_else(PoisonError::into_inner);
            books.of(&self.server)?
        };
        if self.rules.has_manifest() {
            pin(&mut book, &self.engine.policies());
        }
        let (scope, server) = (self.rules.scope()?, self.server.as_str());
        let gate = Gate::new(Arc::clone(&self.engine), scope, server, origin()?);
        about.push(("server", Json::from(server)));
        about.push(("version", Json::from(env!("CARGO_PKG_VERSION"))));
        gate.introduce(&Json::object(about))
            .map_err(|refusal| Failure::new(Code::Database, refusal.message().to_owned()))?;
        let settings = self.rules.settings(server, &self.engine)?;
        let observed = (!self.rules.has_manifest()).then(|| Arc::clone(&self.engine));
        Ok(Opened {
            gate,
            session: Session::new(settings, Shelf::new(book, others)),
            host: Box::new(OneAtATime {
                wrapper: Wrapper::new(books, observed),
                keeping: Arc::clone(&self.keeping),
            }),
            name: random()?,
        })
    }
}

/// Sessions of one server share its book.
struct OneAtATime {
    wrapper: Wrapper,
    keeping: Arc<Mutex<()>>,
}

impl Host for OneAtATime {
    fn keep(&mut self, book: &Book) {
        let _keeping = self.keeping.lock().unwrap_or_else(PoisonError::into_inner);
        self.wrapper.keep(book);
    }

    fn listed(&mut self, shelf: &Shelf) {
        self.wrapper.listed(shelf);
    }
}

/// The name, the path and the address of a server.
fn named(text: &str) -> Result<(String, String, Upstream), Failure> {
    let invalid = |message: String| Failure::new(Code::Server, message);
    let is_name = |name: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        !name.is_empty() && name.len() <= 100 && name.bytes().all(plain)
    };
    let (name, address) = match text.split_once('=') {
        Some((name, address)) if is_name(name) => (Some(name), address),
        _ => (None, text),
    };
    let upstream = Remote::new(address).map_err(|error| invalid(error.to_string()))?;
    Ok(match name {
        Some(name) => (
            name.to_owned(),
            format!("/mcp/{name}"),
            Upstream::Http(upstream),
        ),
        None => {
            let host = upstream.address().authority();
            let host = host.map_or_else(|| "server".to_owned(), ToString::to_string);
            (host, "/mcp".to_owned(), Upstream::Http(upstream))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_names_and_paths() {
        let check = |text: &str, expect: Option<(&str, &str)>| {
            let found = named(text).ok().map(|(name, path, _)| (name, path));
            let expect = expect.map(|(name, path)| (name.to_owned(), path.to_owned()));
            assert_eq!(found, expect, "{text}");
        };
        check(
            "http://127.0.0.1:3000/mcp",
            Some(("127.0.0.1:3000", "/mcp")),
        );
        check(
            "files=http://localhost/mcp?a=b",
            Some(("files", "/mcp/files")),
        );
        check("https://example.com/mcp?a=b", Some(("example.com", "/mcp")));
        check("files=ftp://localhost/", None);
        check("http://user:secret@example.com/mcp", None);
        check("../x=http://localhost/", None);
        check("localhost:3000", None);
    }
}
