//! `countersign backtest`

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use countersign_api::query::{About, LoggedAction, Query, QueryError};
use countersign_canon::Json;
use countersign_engine::PolicyFiles;
use countersign_event::Scope;
use countersign_replay::{
    Backtest as Outcome, Change, Progress, Question, Reading, RecordedAction, backtest,
};
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::{DataFolder, Tenant};
use crate::clock;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output::{self, Format, inline};

/// Ask what other policies would have said to the recorded actions.
///
/// Every recorded action is decided again by the policies given here, and what would change is
/// counted. Nothing is called, and nothing is written.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Backtest {
    /// The manifest to try [default: none, so every tool is known and nothing about any]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// A policy to try: a file or a folder of Rego; may be given several times
    #[arg(long, value_name = "PATH")]
    policy: Vec<PathBuf>,
    /// An Agent Control manifest to try; what it would ask others about is refused
    #[arg(long, value_name = "FILE")]
    acs: Option<PathBuf>,
    /// Only actions from this time on: 2026-11-15T08:00:00Z, or 30d for thirty days ago
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only actions before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only actions that fit, such as `decision:allow tool:mcp.* agent:crawler`
    #[arg(long, value_name = "QUERY", default_value = "")]
    filter: String,
    /// Only actions of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only this session
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// How new verdicts are carried on to later actions of a session
    #[arg(long, value_enum, default_value = "independent")]
    reading: ReadingArg,
    /// Fail if more actions than this would be judged differently
    #[arg(long, value_name = "N")]
    max_changes: Option<u64>,
    #[command(flatten)]
    tenant: Tenant,
    #[command(flatten)]
    data: DataFolder,
}

#[derive(Clone, Copy, ValueEnum)]
enum ReadingArg {
    /// Each action in the state that was recorded before it
    Independent,
    /// Each action in the state that the new verdicts would have led to: what would not have run has
    /// no result, and leaves no taint
    FeedForward,
}

impl Backtest {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let policies = PolicyFiles {
            manifest: self.manifest.clone(),
            enforced: self.policy.clone(),
            agent_control: self.acs.clone().map(input::agent_control),
            ..PolicyFiles::default()
        }
        .load()?;
        let moment = |text: &Option<String>| text.as_deref().map(clock::parse_moment).transpose();
        let session = self.session.as_deref();
        let query: Query = self
            .filter
            .parse()
            .map_err(|error: QueryError| Failure::new(Code::Query, error.to_string()))?;
        let asked = query.at(clock::now_unix_ms()?);
        let wanted = |action: &RecordedAction<'_>| asked.fits(&about(action));
        let question = Question {
            policies: &policies,
            reading: match self.reading {
                ReadingArg::Independent => Reading::Independent,
                ReadingArg::FeedForward => Reading::FeedForward,
            },
            since_unix_ms: moment(&self.since)?,
            until_unix_ms: moment(&self.until)?,
            tool: self.tool.clone(),
            scope: session
                .map(|session| self.tenant.scope(session))
                .transpose()?,
            wanted: (!asked.is_everything()).then_some(&wanted),
        };
        let result = watched(&question, &self.data)?;
        match format {
            Format::Text => output::text(&text(&result))?,
            Format::Json => output::json(&document(&result, question.reading))?,
        }
        self.judge(&result)
    }

    fn judge(&self, result: &Outcome) -> Result<Exit, Failure> {
        let changes = result.changes.total();
        if result.interrupted {
            output::stderr("countersign: interrupted; this is what was found until then");
            return Ok(Exit::Interrupted);
        }
        match self.max_changes {
            Some(limit) if changes > limit => Err(Failure::new(
                Code::Changes,
                format!("{changes} actions would be judged differently, more than {limit}"),
            )),
            _ => Ok(Exit::Done),
        }
    }
}

/// Runs it, with a bar for whoever waits.
fn watched(question: &Question<'_>, data: &DataFolder) -> Result<Outcome, Failure> {
    let reader = data.reader()?;
    let progress = Progress::default();
    let done = AtomicBool::new(false);
    // Ctrl-C ends the search, not the telling.
    let stop = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&progress.stop));
    drop(stop);
    std::thread::scope(|threads| {
        if std::io::stderr().is_terminal() {
            threads.spawn(|| show(&progress, &done));
        }
        let result = backtest(question, &reader, &progress);
        done.store(true, Ordering::Relaxed);
        Ok(result?)
    })
}

fn show(progress: &Progress, done: &AtomicBool) {
    let bar = ProgressBar::new(0);
    let template = "{wide_bar} {percent}% {msg} {elapsed}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
        bar.set_length(read(&progress.total_events));
        bar.set_position(read(&progress.events));
        let (actions, sessions) = (read(&progress.actions), read(&progress.sessions));
        bar.set_message(format!("{actions} actions of {sessions} sessions"));
    }
    bar.finish_and_clear();
}

/// What an action is about, in the words of queries.
fn about(action: &RecordedAction<'_>) -> About {
    About::action(&LoggedAction {
        tenant: action.scope.tenant.as_str(),
        session: action.scope.session.as_str(),
        ts_unix_ms: action.ts_unix_ms,
        tool: action.tool,
        server: action.server,
        call: action.call,
        agent: action.agent,
        outcome: action.outcome,
        reason: action.reason,
    })
}

fn text(result: &Outcome) -> String {
    let changes = result.changes.total();
    let mut lines = vec![format!(
        "{} actions of {} sessions, {changes} would be judged differently",
        result.actions, result.sessions
    )];
    for (change, count, examples) in result.changes.iter() {
        lines.push(String::new());
        lines.push(format!("{count:>6}  {}", inline(&headline(change))));
        lines.push(format!(
            "        {} → {}",
            inline(&change.from_rule),
            inline(&change.to_rule)
        ));
        lines.extend(examples.iter().map(example));
    }
    for (scope, problem) in &result.unread {
        let session = inline(scope.session.as_str());
        lines.push(format!("\nnot read: {session}: {}", inline(problem)));
    }
    lines.join("\n")
}

/// `allow → deny  write_file`
fn headline(change: &Change) -> String {
    let agent = match change.agent.as_str() {
        "" => String::new(),
        agent => format!(" of {agent}"),
    };
    format!("{} → {}  {}{agent}", change.from, change.to, change.tool)
}

fn example((scope, seq): &(Scope, u64)) -> String {
    format!("        {} event {seq}", inline(scope.session.as_str()))
}

fn document(result: &Outcome, reading: Reading) -> Json {
    let unread = result.unread.iter().map(|(scope, problem)| {
        Json::object([
            ("tenant_id", Json::from(scope.tenant.as_str())),
            ("session_id", Json::from(scope.session.as_str())),
            ("problem", Json::from(problem.as_str())),
        ])
    });
    let counted = |key: fn(&Change) -> String| {
        let by = result.changes.by(key).into_iter();
        Json::object(by.map(|(name, count)| (name, Json::from(count))))
    };
    Json::object([
        (
            "reading",
            Json::from(match reading {
                Reading::Independent => "independent",
                Reading::FeedForward => "feed-forward",
            }),
        ),
        ("sessions", Json::from(result.sessions)),
        ("actions", Json::from(result.actions)),
        ("changed", Json::from(result.changes.total())),
        (
            "by_change",
            counted(|change| format!("{}→{}", change.from, change.to)),
        ),
        ("by_rule", counted(|change| change.to_rule.clone())),
        ("by_tool", counted(|change| change.tool.clone())),
        ("by_agent", counted(|change| change.agent.clone())),
        ("changes", result.changes.to_json()),
        ("unread", Json::Array(unread.collect())),
        ("unread_sessions", Json::from(result.unread_sessions)),
        ("interrupted", Json::from(result.interrupted)),
    ])
}

const EXAMPLES: &str = "\
Examples:
  countersign backtest --manifest new.yaml --since 30d
  countersign backtest --manifest agent.yaml --policy policies/ --reading feed-forward
  countersign backtest --manifest new.yaml --filter 'decision:allow tool:mcp.* -agent:tests'
  countersign backtest --manifest new.yaml --max-changes 0 --format json

Exit codes: 0 done; 3 the policies cannot be used, or more than --max-changes would change;
130 it was interrupted, and what was found until then is printed.";
