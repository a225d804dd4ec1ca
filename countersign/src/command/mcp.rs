//! `countersign mcp`

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use countersign_canon::Json;
use countersign_engine::{Engine, Origin, SystemClock};
use countersign_event::Scope;
use countersign_mcp::stdio::{Door, Host};
use countersign_mcp::tools::{Book, Shelf};
use countersign_mcp::{FrameLimits, Gate, RefusalForm, Session, Settings, ToolNames, Unknown};
use countersign_policy::Policies;
use countersign_policy::manifest::Manifest;

use super::manifest;
use crate::books::Books;
use crate::cli::{DataFolder, Tenant};
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output;

mod guard;
mod policies;

pub(crate) use guard::McpGuard;

use policies::Recipe;

#[derive(Args)]
#[command(after_help = "\
Stands between an MCP client and a server that it starts: put `countersign mcp --` in front of the
server's command. What is allowed passes byte by byte as it came; every call is decided and recorded
first. Standard output carries the protocol alone. The exit code is the server's.

Without a manifest every call is recorded, and held for a human unless somebody has said that the tool
only reads (`countersign tools accept SERVER TOOL DIGEST --reads`). A tool is pinned when it is first seen; when its definition changes, calls of it
are refused.

Examples:
  countersign mcp -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
  countersign mcp --manifest manifest.yaml --hide-undeclared -- ./server")]
pub(crate) struct Mcp {
    #[command(flatten)]
    data: DataFolder,
    #[command(flatten)]
    tenant: Tenant,
    /// What the agent may use
    #[arg(long, value_name = "FILE")]
    manifest: Option<String>,
    /// Rego that has a say beside the manifest
    #[arg(long, value_name = "FILE")]
    policy: Vec<String>,
    /// What the server is called [default: from its command]
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Whether calls are stopped, or only recorded with what would have stopped them
    #[arg(long, value_enum, default_value = "enforce")]
    mode: Mode,
    /// How a refused call is answered
    #[arg(long, value_enum, default_value = "error")]
    refusals: Refusals,
    /// What becomes of methods that the protocol does not name
    #[arg(long, value_enum, default_value = "refuse")]
    unknown_methods: UnknownMethods,
    /// How long a held call is kept open for a human, in seconds; 0 refuses it at once
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    hold_wait: u64,
    /// Leave tools out of the list that the manifest does not declare
    #[arg(long, requires = "manifest")]
    hide_undeclared: bool,
    /// The largest frame, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = FrameLimits::default().max_bytes)]
    max_frame: usize,
    /// The server's command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// What is not allowed does not reach the server
    Enforce,
    /// Everything reaches the server
    Observe,
}

impl Mode {
    fn of(self, policies: Policies) -> Policies {
        match self {
            Self::Enforce => policies,
            Self::Observe => policies.observing(),
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Refusals {
    /// As an error of the protocol
    Error,
    /// As a result of the tool that says that it failed
    Result,
}

#[derive(Clone, Copy, ValueEnum)]
enum UnknownMethods {
    /// They are refused
    Refuse,
    /// They pass
    Pass,
}

impl Mcp {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let manifest = self.manifest.as_deref().map(manifest::read).transpose()?;
        let recipe = Recipe::read(&self.policy)?;
        let policies = self.mode.of(recipe.policies(manifest.clone())?);
        if policies.is_observing() {
            output::stderr("countersign: observing: every call reaches the server");
        }
        let (program, arguments) = self.split_command()?;
        let server = self
            .server
            .clone()
            .unwrap_or_else(|| name_of(&self.command));
        let folder = self.data.folder()?;
        let engine = Arc::new(Engine::new(self.data.store()?, policies, SystemClock));
        let books = Books::new(folder.path());
        let (mut book, others) = books.of(&server)?;
        pin(&mut book, manifest.as_ref());
        let session_id = format!("ses_{}", random()?);
        let scope = self.tenant.scope(&session_id)?;
        if manifest.is_none() {
            say_what_holds(&scope, folder.path());
        }
        let gate = Gate::new(Arc::clone(&engine), scope, server.as_str(), origin()?);
        let about = self.about(&server);
        gate.introduce(&about)
            .map_err(|refusal| Failure::new(Code::Database, refusal.message().to_owned()))?;
        let settings = self.settings(&server, manifest.as_ref())?;
        let mut command = Command::new(program);
        command.args(arguments);
        let door = Door {
            command,
            guard: Some(guard::command()?),
            gate,
            max_frame_bytes: self.max_frame,
            session: Session::new(settings, Shelf::new(book, others)),
            host: Box::new(Wrapper {
                observed: manifest.is_none().then_some((engine, recipe)),
                mode: self.mode,
                books,
            }),
        };
        let ending = door.run(std::io::stdin(), std::io::stdout());
        let ending = ending.map_err(|error| {
            let shown = program.to_string_lossy();
            Failure::new(Code::Server, format!("`{shown}` cannot be run: {error}"))
        })?;
        Ok(Exit::Passed(ending.code()))
    }

    fn split_command(&self) -> Result<(&OsString, &[OsString]), Failure> {
        self.command
            .split_first()
            .ok_or_else(|| Failure::new(Code::Server, "there is no command"))
    }

    fn settings(&self, server: &str, manifest: Option<&Manifest>) -> Result<Settings, Failure> {
        let mut settings = Settings::new(server, random()?);
        settings.limits.max_bytes = self.max_frame;
        settings.hold_wait = Duration::from_secs(self.hold_wait);
        settings.refusals = match self.refusals {
            Refusals::Error => RefusalForm::Error,
            Refusals::Result => RefusalForm::ToolResult,
        };
        settings.unknown = match self.unknown_methods {
            UnknownMethods::Refuse => Unknown::Refuse,
            UnknownMethods::Pass => Unknown::Pass,
        };
        if let Some(manifest) = manifest.cloned() {
            let manifest = Arc::new(manifest);
            let declared = Arc::clone(&manifest);
            let server = server.to_owned();
            settings.elsewhere = ToolNames::new(move |tool| {
                let declared = manifest.tool(tool).and_then(|tool| tool.server.as_deref());
                declared.is_some_and(|declared| declared != server)
            });
            if self.hide_undeclared {
                settings.shown = Some(ToolNames::new(move |tool| declared.tool(tool).is_some()));
            }
        }
        Ok(settings)
    }

    /// What the log keeps about this connection.
    fn about(&self, server: &str) -> Json {
        let words = self.command.iter();
        let words = words.map(|word| Json::from(word.to_string_lossy().as_ref()));
        let folder = std::env::current_dir().ok();
        let folder = folder.map(|folder| folder.to_string_lossy().into_owned());
        Json::object([
            ("command", Json::from(words.collect::<Vec<_>>())),
            ("folder", Json::from(folder)),
            ("server", Json::from(server)),
            ("transport", Json::from("stdio")),
            ("version", Json::from(env!("CARGO_PKG_VERSION"))),
        ])
    }
}

/// What is done with what a session learns.
struct Wrapper {
    books: Books,
    /// Without a manifest, what the server says about its tools decides which of them are held.
    observed: Option<(Arc<Engine>, Recipe)>,
    mode: Mode,
}

impl Host for Wrapper {
    fn keep(&mut self, book: &Book) {
        if let Err(failure) = self.books.keep(book) {
            failure.report();
        }
    }

    fn listed(&mut self, shelf: &Shelf) {
        let Some((engine, recipe)) = &self.observed else {
            return;
        };
        let policies =
            policies::observed(shelf).and_then(|manifest| recipe.policies(Some(manifest)));
        match policies {
            Ok(policies) => engine.replace_policies(self.mode.of(policies)),
            // FAIL-CLOSED: the policies in force hold every call.
            Err(failure) => drop(failure.report()),
        }
    }
}

/// Whoever runs this program answers for what the client's agent does.
fn origin() -> Result<Origin, Failure> {
    let folder = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let user = std::env::var("USER").unwrap_or_default();
    Origin::new(&user, AGENT, &folder)
        .or_else(|_| Origin::new("operator", AGENT, &folder))
        .map_err(|error| Failure::new(Code::Server, error.to_string()))
}

fn pin(book: &mut Book, manifest: Option<&Manifest>) {
    let tools = manifest.map(|manifest| &manifest.permissions().tools);
    for (name, tool) in tools.into_iter().flatten() {
        if let Some(digest) = tool.definition {
            book.pin_digest(name.as_str(), digest);
        }
    }
}

fn say_what_holds(scope: &Scope, folder: &Path) {
    output::stderr(&format!(
        "countersign: no manifest, so every call is recorded, and held unless somebody has said that \
         its tool only reads\ncountersign: session {} in {}",
        scope.session.as_str(),
        folder.display()
    ));
}

/// A name for the server: the program, or what an interpreter or a package runner is told to run.
fn name_of(command: &[OsString]) -> String {
    let mut words = command.iter().map(|word| word.to_string_lossy());
    let program = words.next().unwrap_or_default();
    let stem = |word: &str| {
        let file = word.rsplit(['/', '\\']).next().unwrap_or(word).to_owned();
        let file = file
            .split('@')
            .find(|part| !part.is_empty())
            .unwrap_or("server")
            .to_owned();
        file.strip_suffix(".js")
            .or(file.strip_suffix(".py"))
            .unwrap_or(&file)
            .to_owned()
    };
    let program = stem(&program);
    match RUNNERS.contains(&program.as_str()) {
        true => words
            .find(|word| !word.starts_with('-') && word != "run" && word != "exec")
            .map_or(program, |word| stem(&word)),
        false => program,
    }
}

/// A text that nobody can guess.
fn random() -> Result<String, Failure> {
    let mut bytes = [0; 12];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(Code::Server, format!("there is no randomness: {error}")))?;
    Ok(base16ct::lower::encode_string(&bytes))
}

const AGENT: &str = "mcp-client";
const RUNNERS: [&str; 10] = [
    "npx", "npm", "node", "bun", "bunx", "deno", "uv", "uvx", "python", "python3",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_readable_names() {
        let check = |command: &[&str], expect: &str| {
            let command: Vec<OsString> = command.iter().map(OsString::from).collect();
            assert_eq!(name_of(&command), expect);
        };
        check(
            &["npx", "-y", "@modelcontextprotocol/server-memory"],
            "server-memory",
        );
        check(&["npx", "-y", "server-memory@1.2.3"], "server-memory");
        check(&["uvx", "mcp-server-git"], "mcp-server-git");
        check(&["/usr/bin/node", "dist/index.js", "stdio"], "index");
        check(&["./bin/server", "--flag"], "server");
        check(&["python3", "-m", "thing"], "thing");
        check(&["npx"], "npx");
    }
}
