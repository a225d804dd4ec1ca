//! The shape of the command line.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use countersign_display::shell;
use countersign_engine::{Desk, SystemClock, reserved};
use countersign_event::{Scope, TenantId};
use countersign_store::{Folder, Options, Reader, Store};

use crate::command::evidence::Exchange;
use crate::command::{
    acs, action, approval, approver, backtest, canon, checkpoint, config, conformance, connect,
    demo, doctor, evidence, explain, keys, lease, log, manifest, mcp, policy, prove, replay, rerun,
    serve, session, token, tools, verify,
};
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input::default_data_folder;
use crate::output::{Format, inline, stderr};

mod help;

/// Countersign stands between an AI agent and everything the agent can touch.
///
/// This version wraps MCP servers: it decides every call by policy, lets people decide the rest, and
/// keeps a sealed event log that is durable, hash-chained, encrypted where it is not public, and
/// verifiable offline.
#[derive(Parser)]
#[command(name = "countersign", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// How to print results
    #[arg(long, global = true, value_enum, default_value = "text")]
    format: Choice,
    #[command(subcommand)]
    command: Command,
}

/// What `--format` may be. Two of them make sense for one command only, whose help tells of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Choice {
    /// For people. May change between versions.
    Text,
    /// For programs: one JSON value, or one a line where a command prints a stream.
    Json,
    /// In the place of a pack: the events of a session as CloudEvents 1.0, one a line
    #[value(hide = true)]
    Cloudevents,
    /// In the place of a pack: an archive that `assay evidence verify` checks
    #[value(hide = true)]
    AssayBundle,
}

impl Choice {
    /// Reads `--format` where all of them make sense.
    pub(crate) fn any() -> impl TypedValueParser<Value = Self> {
        let all = Self::value_variants().iter();
        let all = all.filter_map(ValueEnum::to_possible_value);
        PossibleValuesParser::new(all.map(|value| value.hide(false)))
            .try_map(|text| Self::from_str(&text, false))
    }
}

#[derive(Subcommand)]
enum Command {
    /// Watch an agent at work: what runs, what is stopped, what waits for you, and what can be checked
    Demo(demo::Demo),
    #[command(hide = true)]
    DemoServer(demo::DemoServer),
    /// Stand between an MCP client and a server
    Mcp(Box<mcp::Mcp>),
    #[command(hide = true)]
    McpGuard(mcp::McpGuard),
    /// Serve the HTTP API
    Serve(serve::Serve),
    /// Check that everything is as it must be, and that forbidden actions are refused
    Doctor(doctor::Doctor),
    /// See how the daemon is configured
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Make tokens for the HTTP API, and take them back
    #[command(subcommand)]
    Token(token::Token),
    /// Put Countersign in front of the MCP servers of a client
    Connect(connect::Connect),
    /// See which tools of MCP servers are accepted, and accept changes
    #[command(subcommand)]
    Tools(tools::Tools),
    /// Append to the log and read it
    #[command(subcommand)]
    Log(log::Log),
    /// List sessions, look at one, erase its content
    #[command(subcommand)]
    Session(session::Session),
    /// Check a log or an export offline
    Verify(verify::Verify),
    /// Take the decisions of a recorded session again, and compare
    Replay(replay::Replay),
    /// Make the calls of a recorded session again, against a live server, and compare
    Rerun(Box<rerun::Rerun>),
    /// Ask what other policies would have said to the recorded actions
    Backtest(backtest::Backtest),
    /// Run conformance packs against a server, ours or another
    #[command(subcommand)]
    Conformance(conformance::Conformance),
    /// Sign what the log holds now, so that anybody can notice if it changes
    #[command(subcommand)]
    Checkpoint(checkpoint::Checkpoint),
    /// Prove that an event is in the log
    Prove(prove::Prove),
    /// Write evidence for somebody who has nothing else, in our format and in those of others
    #[command(subcommand)]
    Evidence(evidence::Evidence),
    /// Look at the master key and replace it
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Ask what the rules would decide, check and test policies
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Write, check and sign what an agent may use
    #[command(subcommand)]
    Manifest(manifest::Manifest),
    /// Check Agent Control manifests, and ask what they decide
    #[command(subcommand)]
    Acs(acs::Acs),
    /// Run a command only if the policies, or people, allow it
    #[command(subcommand)]
    Action(action::Action),
    /// See what is held, and decide
    #[command(subcommand)]
    Approval(approval::Approval),
    /// Approve ahead of time what is bounded
    #[command(subcommand)]
    Lease(lease::Lease),
    /// Keep the list of the people who may decide
    #[command(subcommand)]
    Approver(approver::Approver),
    /// Print the canonical form or the digest of JSON
    Canon(canon::Canon),
    /// Explain an error code, or a reason that an agent was told
    Explain(explain::Explain),
}

impl Cli {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let (format, exchange) = match (self.format, &self.command) {
            (Choice::Text, _) => (Format::Text, None),
            (Choice::Json, _) => (Format::Json, None),
            (Choice::Cloudevents, Command::Evidence(_)) => {
                (Format::Json, Some(Exchange::CloudEvents))
            }
            (Choice::AssayBundle, Command::Evidence(_)) => {
                (Format::Json, Some(Exchange::AssayBundle))
            }
            _ => {
                stderr("error: only `countersign evidence export` has this --format");
                return Ok(Exit::Usage);
            }
        };
        match self.command {
            Command::Demo(_) if format == Format::Json => {
                stderr("error: `countersign demo` plays for people and has no --format json");
                Ok(Exit::Usage)
            }
            Command::Mcp(_) if format == Format::Json => {
                stderr(
                    "error: `countersign mcp` has no --format json: its standard output carries the protocol, and \
                     nothing else",
                );
                Ok(Exit::Usage)
            }
            Command::Demo(demo) => demo.run(),
            Command::DemoServer(server) => server.run(),
            Command::Mcp(mcp) => mcp.run(),
            Command::McpGuard(guard) => guard.run(),
            Command::Serve(serve) => serve.run(),
            Command::Doctor(doctor) => doctor.run(format),
            Command::Config(config) => config.run(format),
            Command::Token(token) => token.run(format),
            Command::Connect(connect) => connect.run(format),
            Command::Tools(tools) => tools.run(format),
            Command::Log(log) => log.run(format),
            Command::Session(session) => session.run(format),
            Command::Verify(verify) => verify.run(format),
            Command::Replay(replay) => replay.run(format),
            Command::Rerun(rerun) => rerun.run(format),
            Command::Backtest(backtest) => backtest.run(format),
            Command::Conformance(conformance) => conformance.run(format),
            Command::Checkpoint(checkpoint) => checkpoint.run(format),
            Command::Prove(prove) => prove.run(format),
            Command::Keys(keys) => keys.run(format),
            Command::Policy(policy) => policy.run(format),
            Command::Manifest(manifest) => manifest.run(format),
            Command::Acs(acs) => acs.run(format),
            Command::Action(action) => action.run(format),
            Command::Approval(approval) => approval.run(format),
            Command::Lease(lease) => lease.run(format),
            Command::Approver(approver) => approver.run(format),
            Command::Evidence(evidence) => evidence.run(format, exchange),
            Command::Canon(canon) => canon.run(),
            Command::Explain(explain) => explain.run(format),
        }
    }
}

/// Reads the arguments. Wrong usage has an exit code of its own: clap's would read as "denied".
pub(crate) fn parse() -> Result<Cli, Exit> {
    let command = help::flowing(Cli::command());
    let matches = command.try_get_matches();
    matches
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .map_err(|error| {
            // There is nowhere to report that the message could not be printed.
            let _ = error.print();
            if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            }
        })
}

/// Where the log is.
#[derive(Args, Clone)]
pub(crate) struct DataFolder {
    /// The data folder [default: countersign in the user's data folder]
    #[arg(
        long = "data",
        env = "COUNTERSIGN_DATA",
        hide_env_values = true,
        value_name = "DIR"
    )]
    path: Option<PathBuf>,
}

impl DataFolder {
    #[cfg(test)]
    pub(crate) fn at(path: &Path) -> Self {
        Self {
            path: Some(path.to_owned()),
        }
    }

    /// The folder as an option of the commands that are printed next; nothing where they find it untold.
    pub(crate) fn option(&self) -> String {
        match &self.path {
            Some(path) if !is_found(path) => data_option(path),
            _ => String::new(),
        }
    }

    pub(crate) fn folder(&self) -> Result<Folder, Failure> {
        self.path
            .clone()
            .or_else(default_data_folder)
            .map(Folder::new)
            .ok_or_else(|| {
                Failure::new(
                    Code::Folder,
                    "there is no home folder: say where the log is with --data",
                )
            })
    }

    pub(crate) fn store(&self) -> Result<Store, Failure> {
        Ok(Store::open(&self.folder()?, Options::default())?)
    }

    /// Where people decide.
    pub(crate) fn desk(&self) -> Result<Desk, Failure> {
        Ok(Desk::new(self.store()?, SystemClock)?)
    }

    pub(crate) fn reader(&self) -> Result<Reader, Failure> {
        Ok(Reader::open(&self.folder()?)?)
    }
}

/// ` --data FOLDER`, to stand behind the name of a command.
pub(crate) fn data_option(folder: &Path) -> String {
    let folder = inline(&folder.display().to_string());
    format!(" --data {}", shell(&folder))
}

/// Whether a command that is told nothing takes this folder.
fn is_found(folder: &Path) -> bool {
    let told = std::env::var_os("COUNTERSIGN_DATA").filter(|told| !told.is_empty());
    let found = told.map(PathBuf::from).or_else(default_data_folder);
    found.is_some_and(|found| found == folder)
}

/// Whose sessions.
#[derive(Args, Clone)]
pub(crate) struct Tenant {
    /// The tenant
    #[arg(long, value_name = "TENANT", default_value = "default")]
    tenant: String,
}

impl Tenant {
    pub(crate) fn id(&self) -> Result<TenantId, Failure> {
        Ok(TenantId::new(self.tenant.as_str())?)
    }

    pub(crate) fn scope(&self, session: &str) -> Result<Scope, Failure> {
        Ok(Scope::new(self.tenant.as_str(), session)?)
    }

    /// A session to write in, or to erase: none of those that are Countersign's own.
    pub(crate) fn open_scope(&self, session: &str) -> Result<Scope, Failure> {
        let scope = self.scope(session)?;
        match reserved::is_reserved(&scope) {
            true => Err(Failure::new(
                Code::Reserved,
                format!("the session `{session}` is for what Countersign itself records"),
            )),
            false => Ok(scope),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  countersign demo
  countersign mcp -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
  countersign connect claude-code --dry-run
  countersign log append --session s1 --type MEMORY_WRITE --payload '{\"memory_key\":\"k\"}'
  countersign log list --session s1
  countersign verify
  countersign policy eval --manifest manifest.yaml --tool read_file --args '{\"path\":\"/etc/passwd\"}'
  countersign approval watch

Exit codes: 0 done or allowed, 1 failed, 2 denied, 3 invalid input, 4 held for a human,
  5 verification failed, 64 wrong usage, 69 daemon not reachable, 130 interrupted.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_how_it_is_used_and_is_in_the_reference() {
        let reference = include_str!("../../docs/command-line.md");
        let leaves = leaves(Cli::command(), "");
        assert!(leaves.len() > 80, "the commands were not found");
        for (path, help) in leaves {
            assert!(help.contains("Example"), "`{path}` shows no example");
            let section = format!("\n## {path}\n");
            assert!(reference.contains(&section), "`{path}` has no section");
        }
    }

    /// The commands that do something, each with what its help ends with.
    fn leaves(command: clap::Command, before: &str) -> Vec<(String, String)> {
        let path = format!("{before} {}", command.get_name());
        let path = path.trim_start().to_owned();
        if command.is_hide_set() {
            return Vec::new();
        }
        if !command.has_subcommands() {
            let help = command.get_after_help().map(ToString::to_string);
            return vec![(path, help.unwrap_or_default())];
        }
        let parts = command.get_subcommands().cloned();
        parts.flat_map(|part| leaves(part, &path)).collect()
    }
}
