//! What both doors have in common: the rules, the log, and how a session behaves.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use countersign_engine::{Engine, Origin, PolicyFiles, SystemClock};
use countersign_event::Scope;
use countersign_mcp::tools::Book;
use countersign_mcp::{FrameLimits, RefusalForm, Seal, Settings, ToolNames, Unknown};
use countersign_policy::manifest::Tool;
use countersign_policy::{Point, Policies};
use countersign_store::Folder;

use super::follow::Follower;
use crate::cli::{DataFolder, Tenant};
use crate::command::evidence::States;
use crate::command::manifest::{self, Trust};
use crate::errors::{Code, Failure};
use crate::input;
use crate::output::{self, inline};

#[derive(Args, Clone)]
pub(super) struct Rules {
    #[command(flatten)]
    data: DataFolder,
    #[command(flatten)]
    tenant: Tenant,
    /// What the agent may use
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    #[command(flatten)]
    trust: Trust,
    /// A policy of your own, or a folder of them with their tests
    #[arg(long, value_name = "FILE|DIR")]
    policy: Vec<PathBuf>,
    /// A policy that is recorded and does not count
    #[arg(long, value_name = "FILE|DIR")]
    shadow: Vec<PathBuf>,
    /// An Agent Control manifest, which has a say beside them
    #[arg(long, value_name = "FILE")]
    acs: Option<PathBuf>,
    /// Whether calls are stopped, or only recorded with what would have stopped them
    #[arg(long, value_enum, default_value = "enforce")]
    mode: Mode,
    /// How long a held call is kept open for a human, in seconds; 0 refuses it at once. Otherwise 300, and 45 where its
    /// client hears nothing meanwhile, because many take it back after a minute
    #[arg(long, value_name = "SECONDS")]
    hold_wait: Option<u64>,
    /// How long a server may take to answer, in seconds; where a manifest says how long calls of tools may take, that
    /// holds for them
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    response_time: u64,
    /// Where people decide: clients that can show links show this one, with the id of the approval behind it
    #[arg(long, value_name = "URL")]
    approval_url: Option<String>,
    /// How a refused call is answered
    #[arg(long, value_enum, default_value = "error")]
    refusals: Refusals,
    /// What becomes of methods that the protocol does not name
    #[arg(long, value_enum, default_value = "refuse")]
    unknown_methods: UnknownMethods,
    /// Leave tools out of the list that the manifest does not declare
    #[arg(long, requires = "manifest")]
    hide_undeclared: bool,
    /// The largest frame, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = FrameLimits::default().max_bytes)]
    pub(super) max_frame: usize,
    /// Write spans of what is recorded into this file (OpenTelemetry, one a line)
    #[arg(long, value_name = "FILE")]
    telemetry: Option<PathBuf>,
}

/// What a server of a configuration has in the place of what holds for all.
#[derive(Default)]
pub(super) struct Own {
    pub(super) manifest: Option<PathBuf>,
    pub(super) policies: Option<Vec<PathBuf>>,
    pub(super) acs: Option<PathBuf>,
    pub(super) mode: Option<Mode>,
    pub(super) refusals: Option<Refusals>,
    pub(super) unknown_methods: Option<UnknownMethods>,
    pub(super) hide_undeclared: Option<bool>,
    pub(super) hold_wait: Option<u64>,
    pub(super) response_time: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Mode {
    /// What is not allowed does not reach the server
    Enforce,
    /// What was understood reaches the server, and the log says what would have stopped it
    Observe,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Refusals {
    /// As an error of the protocol
    Error,
    /// As a result of the tool that says that it failed
    Result,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum UnknownMethods {
    /// They are refused
    Refuse,
    /// They pass
    Pass,
}

impl Rules {
    /// The same, with a server's own words in their place.
    pub(super) fn with(&self, own: Own) -> Self {
        Self {
            manifest: own.manifest.or_else(|| self.manifest.clone()),
            policy: own.policies.unwrap_or_else(|| self.policy.clone()),
            acs: own.acs.or_else(|| self.acs.clone()),
            mode: own.mode.unwrap_or(self.mode),
            refusals: own.refusals.unwrap_or(self.refusals),
            unknown_methods: own.unknown_methods.unwrap_or(self.unknown_methods),
            hide_undeclared: own.hide_undeclared.unwrap_or(self.hide_undeclared),
            hold_wait: own.hold_wait.or(self.hold_wait),
            response_time: own.response_time.unwrap_or(self.response_time),
            ..self.clone()
        }
    }

    /// How long a server may take to begin an answer.
    pub(super) fn response_time(&self) -> Duration {
        Duration::from_secs(self.response_time)
    }

    pub(super) fn has_manifest(&self) -> bool {
        self.manifest.is_some()
    }

    pub(super) fn files(&self) -> PolicyFiles {
        PolicyFiles {
            manifest: self.manifest.clone(),
            enforced: self.policy.clone(),
            shadow: self.shadow.clone(),
            agent_control: self.acs.clone().map(input::agent_control),
            trust: self.trust.mode(),
            publishers: self.trust.list(),
            observing: self.mode == Mode::Observe,
        }
    }

    pub(super) fn folder(&self) -> Result<Folder, Failure> {
        self.data.folder()
    }

    pub(super) fn data_option(&self) -> String {
        self.data.option()
    }

    pub(super) fn engine(&self) -> Result<Arc<Engine>, Failure> {
        let engine = Engine::new(self.data.store()?, self.files().load()?, SystemClock);
        Ok(Arc::new(engine.with_watch(Arc::new(States))))
    }

    /// Tells what this process records, if somebody wants to know.
    pub(super) fn follower(&self, engine: &Arc<Engine>) -> Result<Option<Follower>, Failure> {
        let file = self.telemetry.as_deref();
        file.map(|file| Follower::start(Arc::clone(engine), file))
            .transpose()
    }

    /// A session that nobody has used.
    pub(super) fn scope(&self) -> Result<Scope, Failure> {
        self.tenant.scope(&format!("ses_{}", random()?))
    }

    pub(super) fn settings(&self, server: &str, engine: &Arc<Engine>) -> Result<Settings, Failure> {
        let mut settings = Settings::new(server, random()?, random()?);
        settings.limits.max_bytes = self.max_frame;
        settings.hold_wait = self.hold_wait.map(Duration::from_secs);
        settings.answer_wait = self.response_time();
        settings.timed_by_policy = self.has_manifest();
        settings.approval_url.clone_from(&self.approval_url);
        settings.seal = Some(Arc::new(Seal::new(&random_bytes()?)));
        settings.refusals = match self.refusals {
            Refusals::Error => RefusalForm::Error,
            Refusals::Result => RefusalForm::ToolResult,
        };
        settings.asks_first = engine.policies().attends(Point::AgentStartup);
        settings.unknown = match self.unknown_methods {
            UnknownMethods::Refuse => Unknown::Refuse,
            UnknownMethods::Pass => Unknown::Pass,
        };
        if self.has_manifest() {
            // Asked each time: the manifest may have been reloaded.
            let declares = |engine: &Arc<Engine>, is: fn(&Tool, &str) -> bool| {
                let (engine, server) = (Arc::clone(engine), server.to_owned());
                ToolNames::new(move |name| {
                    let policies = engine.policies();
                    let manifest = policies.capability().manifest();
                    let tool = manifest.and_then(|manifest| manifest.tool(name));
                    tool.is_some_and(|tool| is(tool, &server))
                })
            };
            settings.elsewhere = declares(engine, |tool, server| {
                tool.server.as_deref().is_some_and(|named| named != server)
            });
            if self.hide_undeclared {
                settings.shown = Some(declares(engine, |_, _| true));
            }
        }
        Ok(settings)
    }
}

/// Whoever runs this program answers for what the client's agent does.
pub(super) fn origin() -> Result<Origin, Failure> {
    let folder = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let user = std::env::var("USER").unwrap_or_default();
    Origin::new(&user, AGENT, &folder)
        .or_else(|_| Origin::new("operator", AGENT, &folder))
        .map_err(|error| Failure::new(Code::Server, error.to_string()))
}

/// What the manifest says about tools goes before what was seen.
pub(super) fn pin(book: &mut Book, policies: &Policies) {
    let manifest = policies.capability().manifest();
    let tools = manifest.map(|manifest| &manifest.permissions().tools);
    for (name, tool) in tools.into_iter().flatten() {
        if let Some(digest) = tool.definition {
            book.pin_digest(name.as_str(), digest);
        }
    }
}

/// What holds for a server, where that is not what its manifest says.
pub(super) fn say_what_holds(rules: &Rules, policies: &Policies, server: &str) {
    let manifest = policies.capability().manifest();
    if let Some(doubts) = manifest.and_then(manifest::doubts) {
        output::stderr(&format!("countersign: {doubts}"));
    }
    match rules.mode {
        Mode::Observe => output::stderr(&format!(
            "countersign: observing {}: calls pass, and are recorded with what would have stopped them",
            inline(server)
        )),
        Mode::Enforce if !rules.has_manifest() => {
            let data = rules.data_option();
            output::stderr(&format!(
                "countersign: no manifest for {}, so every call is recorded, and held unless somebody has said \
                 that its tool only reads\n\
                 countersign: to decide about calls: countersign approver init{data}, then countersign approval \
                 watch{data}\n\
                 countersign: to let a tool that only reads pass: countersign tools review{data}",
                inline(server)
            ));
        }
        Mode::Enforce => {}
    }
}

/// A text that nobody can guess.
pub(super) fn random() -> Result<String, Failure> {
    Ok(base16ct::lower::encode_string(&random_bytes::<12>()?))
}

fn random_bytes<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(Code::Server, format!("there is no randomness: {error}")))?;
    Ok(bytes)
}

const AGENT: &str = "mcp-client";
