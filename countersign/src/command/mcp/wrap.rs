//! `countersign mcp -- COMMAND`

use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::process::Command;

use clap::Args;
use countersign_canon::Json;
use countersign_mcp::stdio::Door;
use countersign_mcp::{Gate, Session};

use super::host::Wrapper;
use super::identity::Identity;
use super::reload::{Hangups, Journal, Watch};
use super::rules::{Rules, origin, say_what_holds};
use super::{guard, identity};
use crate::books::Books;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output;

pub(super) const HELP: &str = "\
Stands between an MCP client and a server that it starts: put `countersign mcp --` in front of the
server's command. What is allowed passes byte by byte as it came; every call is decided and recorded
first. Standard output carries the protocol alone. The exit code is the server's.

Without a manifest every call is recorded, and held for a human unless somebody has said that the tool
only reads (`countersign tools accept SERVER TOOL DIGEST --reads`). A tool is pinned when it is first seen; when its definition changes, calls of it
are refused. A server is known by its command: another command gets another name, and under a name that
is given with --server it is held until `countersign tools accept-command` says that it is the same.

Examples:
  countersign mcp -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
  countersign mcp --manifest manifest.yaml --hide-undeclared -- ./server
  countersign mcp serve --upstream http://127.0.0.1:3000/mcp";

#[derive(Args)]
pub(crate) struct Wrap {
    #[command(flatten)]
    rules: Rules,
    /// What the server is called [default: from its command]
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// The server's command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Wrap {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        let (program, arguments) = self.split_command()?;
        let folder = self.rules.folder()?;
        let watch = Watch::new(self.rules.files());
        let engine = self.rules.engine()?;
        let books = Books::new(folder.path());
        let identity = identity::command(&self.command, None);
        let server = match &self.server {
            Some(name) => name.clone(),
            None => identity::name(&self.command, identity, &books)?,
        };
        let identity = Identity::started(&server, identity, &books, &self.rules.data_option())?;
        let has_manifest = self.rules.has_manifest();
        let wrapper = Wrapper::new(books, identity, engine.clone(), has_manifest);
        let shelf = wrapper.shelf()?;
        wrapper.follow_book()?;
        let scope = self.rules.scope()?;
        say_what_holds(&self.rules, &engine.policies(), &server);
        if !has_manifest {
            output::stderr(&format!(
                "countersign: session {} in {}",
                scope.session.as_str(),
                folder.path().display()
            ));
        }
        let follower = self.rules.follower(&engine)?;
        if let Some(follower) = &follower {
            follower.follow(&scope);
        }
        let journal = Journal::of_session(engine.clone(), scope.clone());
        let gate = Gate::new(engine.clone(), scope, server.as_str(), origin()?);
        let about = self.about(&server);
        gate.introduce(&about)
            .map_err(|refusal| Failure::new(Code::Database, refusal.message().to_owned()))?;
        let settings = self.rules.settings(&server, &engine)?;
        let mut command = Command::new(program);
        command.args(arguments);
        watch.start(vec![engine], journal.into(), Hangups::NotOurs)?;
        let door = Door {
            command,
            guard: Some(guard::command()?),
            gate,
            max_frame_bytes: self.rules.max_frame,
            session: Session::new(settings, shelf),
            host: Box::new(wrapper),
        };
        let ending = std::io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .and_then(|input| {
                let output = std::io::stdout().as_fd().try_clone_to_owned()?;
                door.run(input, output)
            });
        // Everything is told before this process ends as the server did.
        drop(follower);
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

/// A name for the server: the program, or what an interpreter or a package runner is told to run.
pub(super) fn name_of(command: &[OsString]) -> String {
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
