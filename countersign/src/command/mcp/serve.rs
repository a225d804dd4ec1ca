//! `countersign mcp serve`

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use countersign_canon::Json;
use countersign_engine::Engine;
use countersign_mcp::http::{
    Access, Door, Limits, Opened, Program, Reception, Remote, Served, Upstream, UpstreamError,
};
use countersign_mcp::{Gate, Session};
use countersign_store::Folder;

use super::config::{self, Config, is_name};
use super::follow::Follower;
use super::host::Wrapper;
use super::identity::Identity;
use super::reload::{Hangups, Journal, Watch};
use super::rules::{Rules, origin, random, say_what_holds};
use super::{guard, identity};
use crate::books::{Books, CommandId};
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
  countersign mcp serve --config servers.toml
  countersign mcp serve -- npx -y @modelcontextprotocol/server-filesystem /srv/docs")]
pub(crate) struct Serve {
    /// Where clients find it [default: 127.0.0.1:7300]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// The servers, each with what holds for it alone
    #[arg(long, value_name = "FILE", conflicts_with_all = ["upstream", "command"])]
    config: Option<PathBuf>,
    /// A server: its address, with a name in front if there are several
    #[arg(long, value_name = "[NAME=]URL", required_unless_present_any = ["command", "config"])]
    upstream: Vec<String>,
    /// A file with a token that clients must bring, as `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Let in whoever reaches an address that is not this machine's own, also without a token
    #[arg(long)]
    no_auth: bool,
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

/// A server, where it is found, and what holds for it.
struct Place {
    name: String,
    path: String,
    upstream: Upstream,
    /// The digest of the command, if it is a program.
    command: Option<CommandId>,
    rules: Rules,
}

impl Serve {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        let mut config = match &self.config {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        let places = self.places(std::mem::take(&mut config.servers))?;
        let access = self.access(&config)?;
        let listen = self.listen.or(config.listen).unwrap_or(LISTEN);
        if !listen.ip().is_loopback() && !access.has_token() && !self.no_auth {
            // FAIL-CLOSED: names are compared, but everybody can claim them.
            let text =
                format!("whoever reaches {listen} could call, because no token is asked for");
            return Err(Failure::new(Code::OpenDoor, text));
        }
        let folder = self.rules.folder()?;
        let mut served: Vec<Served> = Vec::new();
        let mut watched: Vec<(Watch, Arc<Engine>)> = Vec::new();
        let mut shared: Option<Arc<Engine>> = None;
        let mut says_where = false;
        let mut follower: Option<Arc<Follower>> = None;
        for place in places {
            if served.iter().any(|one| one.path == place.path) {
                let path = place.path;
                let text = format!("`{path}` is there twice: give each server a name of its own");
                return Err(Failure::new(Code::Config, text));
            }
            let has_manifest = place.rules.has_manifest();
            // Servers without a manifest, or with rules of their own, are judged apart.
            let engine = match shared.as_ref().filter(|_| self.config.is_none()) {
                Some(engine) => Arc::clone(engine),
                None => {
                    let watch = Watch::new(place.rules.files());
                    let engine = place.rules.engine()?;
                    watched.push((watch, Arc::clone(&engine)));
                    engine
                }
            };
            shared = has_manifest.then(|| Arc::clone(&engine));
            if follower.is_none() {
                follower = self.rules.follower(&engine)?.map(Arc::new);
            }
            says_where |= !has_manifest;
            say_what_holds(&place.rules, &engine.policies(), &place.name);
            served.push(Served {
                path: place.path,
                upstream: place.upstream,
                response_time: Some(place.rules.response_time()),
                reception: Arc::new(Desk {
                    server: place.name,
                    command: place.command,
                    engine,
                    folder: folder.clone(),
                    rules: place.rules,
                    follower: follower.clone(),
                    follows_book: AtomicBool::new(false),
                }),
            });
        }
        let engines: Vec<_> = watched
            .iter()
            .map(|(_, engine)| Arc::clone(engine))
            .collect();
        let journal = Arc::new(Journal::of_door(&engines, self.rules.scope()?));
        for (watch, engine) in watched {
            watch.start(vec![engine], Arc::clone(&journal), Hangups::Ours)?;
        }
        if says_where {
            let folder = folder.path().display();
            output::stderr(&format!("countersign: the log is in {folder}"));
        }
        let shown: Vec<_> = served
            .iter()
            .map(|one| (one.path.clone(), one.upstream.shown()))
            .collect();
        let door = Door::new(served, access, self.limits());
        door.run(listen, |address| {
            for (path, upstream) in shown {
                let line = format!("countersign: http://{address}{path} stands before {upstream}");
                output::stderr(&line);
            }
        })
        .map_err(|error| Failure::new(Code::Listen, format!("`{listen}`: {error}")))?;
        journal.end();
        drop(follower);
        Ok(Exit::Done)
    }

    /// Where each server is, and what holds for it.
    fn places(&self, configured: Vec<config::Server>) -> Result<Vec<Place>, Failure> {
        if self.config.is_some() {
            return configured
                .into_iter()
                .map(|one| self.configured(one))
                .collect();
        }
        let place = |(name, path, upstream)| Place {
            name,
            path,
            upstream,
            command: None,
            rules: self.rules.clone(),
        };
        if self.command.is_empty() {
            let named = self.upstream.iter().map(|text| named(text).map(place));
            return named.collect();
        }
        let command = identity::command(&self.command, None);
        let books = Books::new(self.rules.folder()?.path());
        let name = identity::name(&self.command, command, &books)?;
        let upstream = program(self.command.clone(), Vec::new(), None)?;
        Ok(vec![Place {
            command: Some(command),
            ..place((name, "/mcp".to_owned(), upstream))
        }])
    }

    fn configured(&self, server: config::Server) -> Result<Place, Failure> {
        let mut identity = None;
        let upstream = match server.place {
            config::Place::Address { url, headers } => {
                let invalid = |error: UpstreamError| Failure::new(Code::Config, error.to_string());
                let mut remote = Remote::new(&url).map_err(invalid)?;
                for (name, secret) in headers {
                    let value = secret.reveal(&name)?;
                    remote = remote.with_header(&name, &value).map_err(invalid)?;
                }
                Upstream::Http(remote)
            }
            config::Place::Program {
                command,
                mut env,
                secrets,
                folder,
            } => {
                for (name, secret) in secrets {
                    let value = secret.reveal(&name)?;
                    env.push((name, value));
                }
                let command: Vec<_> = command.into_iter().map(OsString::from).collect();
                identity = Some(identity::command(&command, folder.as_deref()));
                program(command, env, folder)?
            }
        };
        Ok(Place {
            path: format!("/mcp/{}", server.name),
            name: server.name,
            upstream,
            command: identity,
            rules: self.rules.with(server.own),
        })
    }

    fn access(&self, config: &Config) -> Result<Access, Failure> {
        let mut access = Access::default();
        for host in self.allow_host.iter().chain(&config.allow_hosts) {
            access = access.with_host(host);
        }
        for origin in self.allow_origin.iter().chain(&config.allow_origins) {
            let named = access.with_origin(origin);
            access = named.map_err(|error| Failure::new(Code::Config, error.to_string()))?;
        }
        if let Some(path) = self.token_file.as_ref().or(config.token_file.as_ref()) {
            let token = config::Secret::File(path.clone()).reveal("token_file")?;
            if token.chars().count() < SHORTEST_TOKEN {
                let text = format!(
                    "the token in `{}` has less than {SHORTEST_TOKEN} characters",
                    path.display()
                );
                return Err(Failure::new(Code::Config, text));
            }
            access = access.with_token(&token);
        }
        Ok(access)
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
    /// The digest of the command, if it is a program.
    command: Option<CommandId>,
    engine: Arc<Engine>,
    folder: Folder,
    rules: Rules,
    follower: Option<Arc<Follower>>,
    /// Whether somebody looks at what people accept.
    follows_book: AtomicBool,
}

impl Reception for Desk {
    fn receive(&self, about: Vec<(&'static str, Json)>) -> Result<Opened, String> {
        self.open(about).map_err(|failure| {
            let text = failure.message().to_owned();
            failure.report();
            text
        })
    }

    fn server_not_started(&self, error: &std::io::Error) {
        let text = format!("`{}` cannot be started: {error}", self.server);
        Failure::new(Code::Server, text).report();
    }
}

impl Desk {
    fn open(&self, mut about: Vec<(&'static str, Json)>) -> Result<Opened, Failure> {
        let books = Books::new(self.folder.path());
        let identity = match self.command {
            Some(command) => {
                Identity::started(&self.server, command, &books, &self.rules.data_option())?
            }
            None => Identity::at_an_address(&self.server),
        };
        let (engine, has_manifest) = (Arc::clone(&self.engine), self.rules.has_manifest());
        let wrapper = Wrapper::new(books, identity, engine, has_manifest);
        let shelf = wrapper.shelf()?;
        if !self.follows_book.swap(true, Ordering::Relaxed) {
            wrapper.follow_book()?;
        }
        let (scope, server) = (self.rules.scope()?, self.server.as_str());
        if let Some(follower) = &self.follower {
            follower.follow(&scope);
        }
        let gate = Gate::new(Arc::clone(&self.engine), scope, server, origin()?);
        about.push(("server", Json::from(server)));
        about.push(("version", Json::from(env!("CARGO_PKG_VERSION"))));
        gate.introduce(&Json::object(about))
            .map_err(|refusal| Failure::new(Code::Database, refusal.message().to_owned()))?;
        let settings = self.rules.settings(server, &self.engine)?;
        Ok(Opened {
            gate,
            session: Session::new(settings, shelf),
            host: Box::new(wrapper),
            name: random()?,
        })
    }
}

/// A program that is started for each session.
fn program(
    command: Vec<OsString>,
    env: Vec<(String, String)>,
    folder: Option<PathBuf>,
) -> Result<Upstream, Failure> {
    // What cannot be found is noticed before anybody calls.
    let _found = guard::command()?;
    let mut words = command.into_iter();
    let program = words.next().unwrap_or_default();
    let arguments: Vec<OsString> = words.collect();
    let shown = program.to_string_lossy().into_owned();
    let command = move || {
        let mut command = Command::new(&program);
        command.args(&arguments).envs(env.iter().cloned());
        if let Some(folder) = &folder {
            command.current_dir(folder);
        }
        command
    };
    Ok(Upstream::Command(Program {
        shown,
        command: Arc::new(command),
        guard: Arc::new(|| guard::command().ok()),
    }))
}

/// The name, the path and the address of a server.
fn named(text: &str) -> Result<(String, String, Upstream), Failure> {
    let invalid = |message: String| Failure::new(Code::Config, message);
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

/// Shorter ones can be guessed.
const SHORTEST_TOKEN: usize = 16;
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7300);

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
