//! `countersign verify`

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use countersign_canon::Json;
use countersign_store::{self as store, Folder, Reader};
use countersign_verify::pack::Noted;
use countersign_verify::{
    Expectation, Finding, Place, Problem, Progress, Report, Selection, database, verify_stream,
};
use indicatif::{ProgressBar, ProgressStyle};

use super::log::parse_hash;
use crate::cli::DataFolder;
use crate::command::trust::Trust;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output::{self, Format, Table, inline, short};

mod kept;
mod opener;
mod pack;
mod target;

use kept::KeptCheckpoint;
use opener::KeyOpener;
use target::Target;

#[derive(Args)]
#[command(after_help = "\
Recomputes every hash, link, order and, where the master key is at hand, every commitment. Prints
the first bad event, what was checked and what was not. Needs no network and no running program.

Examples:
  countersign verify s1.jsonl --head 3f2a… --count 12
  countersign verify s1.pack --trust log.keys --html s1.html
  countersign verify --data DIR
  countersign verify --checkpoint kept.checkpoint --trust log.keys
  countersign log export --session s1 | countersign verify -")]
pub(crate) struct Verify {
    /// An evidence pack, an export, a log database, a data folder, or - for standard input; without it, --data counts
    file: Option<String>,
    #[command(flatten)]
    data: DataFolder,
    /// Only sessions of this tenant
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Only this session
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// The hash that the last event must have
    #[arg(long, value_name = "HASH")]
    head: Option<String>,
    /// The number of events that there must be
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// A hash that some event must have: a head that you kept before the log grew
    #[arg(long, value_name = "HASH")]
    contains: Option<String>,
    /// A checkpoint of this log that you kept: the log must still begin with exactly its events
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<String>,
    /// Whose signatures count: keys of logs, witnesses and people, one a line
    #[arg(long, value_name = "KEYS")]
    trust: Option<String>,
    /// Write the report about an evidence pack as a page to this file, too; replaces the file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Verify {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let target = match &self.file {
            Some(file) => Target::of(file)?,
            None => Target::Folder(self.data.folder()?),
        };
        self.refuse_idle_options(&target)?;
        let trust = self.trust.as_deref().map(Trust::read).transpose()?;
        let kept = self.checkpoint.as_deref();
        let kept = kept.map(|path| KeptCheckpoint::read(path, trust.as_ref()));
        let kept = kept.transpose()?;
        let expectation = Expectation {
            head: self.head.as_deref().map(parse_hash).transpose()?,
            count: self.count,
            contains: self.contains.as_deref().map(parse_hash).transpose()?,
            checkpoint: kept.as_ref().map(|kept| kept.expected),
        };
        let selection = Selection {
            tenant_id: self.tenant,
            session_id: self.session,
        };
        let (name, mut report) = match target {
            Target::Pack(name, source) => {
                let noted = Noted {
                    selection,
                    head: expectation.head,
                    count: expectation.count,
                    contains: expectation.contains,
                };
                let page = self.html.as_deref();
                return pack::verify(&name, source, trust.as_ref(), &noted, page, format);
            }
            Target::Folder(folder) => {
                let report = verify_folder(&folder, &selection, &expectation)?;
                (folder.path().display().to_string(), report)
            }
            Target::Database(path) => {
                let report = verify_database(&path, &selection, &expectation, None);
                (path.display().to_string(), report)
            }
            Target::Stream(name, source) => {
                let report = verify_source(&name, source, &selection, &expectation)?;
                (name, report)
            }
        };
        if let Some(kept) = kept {
            kept.tell(&mut report);
        }
        let printed = print(&name, &report, format);
        // FAIL-CLOSED: a reader that went away does not make a bad log a good one.
        match report.is_good() {
            true => printed.map(|()| Exit::Done),
            false => Ok(outcome(&report)),
        }
    }

    /// FAIL-CLOSED: an option that changes nothing would look like a check that was made.
    fn refuse_idle_options(&self, target: &Target) -> Result<(), Failure> {
        let is_pack = matches!(target, Target::Pack(..));
        let idle = if is_pack && self.checkpoint.is_some() {
            "--checkpoint is for a log, and an evidence pack holds a part of one: verify the log \
             with it, or give --trust with the key of the log"
        } else if !is_pack && self.html.is_some() {
            "--html writes a page about an evidence pack, and this is none"
        } else if !is_pack && self.trust.is_some() && self.checkpoint.is_none() {
            "--trust says whose signatures count, and nothing here is signed: verify an evidence \
             pack with it, or give --checkpoint"
        } else {
            return Ok(());
        };
        Err(Failure::new(Code::Usage, idle))
    }
}

pub(crate) fn verify_folder(
    folder: &Folder,
    selection: &Selection,
    expectation: &Expectation,
) -> Result<Report, Failure> {
    let reader = match Reader::open(folder) {
        // FAIL-CLOSED: the report tells of a database that cannot even be opened.
        Err(store::Error::Database(_)) => None,
        // A precise error for a folder that holds no log.
        opened => Some(opened?),
    };
    let opener = reader.and_then(opener_of);
    let opener = opener
        .as_ref()
        .map(|opener| opener as &dyn countersign_verify::Opener);
    Ok(verify_database(
        &folder.database(),
        selection,
        expectation,
        opener,
    ))
}

/// What the key file could open stays on the list of what was not checked, if it does not fit.
fn opener_of(reader: Reader) -> Option<KeyOpener> {
    match reader.check_keys() {
        Ok(()) => Some(KeyOpener::new(reader)),
        Err(error) => {
            output::stderr(&format!(
                "warning: no sealed content can be checked: {}",
                inline(&error.to_string())
            ));
            None
        }
    }
}

pub(crate) fn verify_lines(
    path: &str,
    selection: &Selection,
    expectation: &Expectation,
) -> Result<Report, Failure> {
    verify_source(path, input::lines(path)?, selection, expectation)
}

fn verify_source(
    path: &str,
    source: impl BufRead + Send,
    selection: &Selection,
    expectation: &Expectation,
) -> Result<Report, Failure> {
    let size = std::fs::metadata(path).ok().map(|metadata| metadata.len());
    let mut bar = LateBar::new(size, "bytes");
    verify_stream(source, selection, expectation, &mut |progress| {
        bar.show(progress.bytes, progress)
    })
    .map_err(|error| input::unreadable(path, &error))
}

fn verify_database(
    path: &Path,
    selection: &Selection,
    expectation: &Expectation,
    opener: Option<&dyn countersign_verify::Opener>,
) -> Report {
    let mut bar = LateBar::new(database::count_events(path), "events");
    database::verify_database(path, selection, expectation, opener, &mut |progress| {
        bar.show(progress.events, progress);
    })
}

/// A progress bar that appears only when the work takes longer than two seconds.
struct LateBar {
    start: Instant,
    total: Option<u64>,
    unit: &'static str,
    bar: Option<ProgressBar>,
}

impl LateBar {
    fn new(total: Option<u64>, unit: &'static str) -> Self {
        Self {
            start: Instant::now(),
            total,
            unit,
            bar: None,
        }
    }

    fn show(&mut self, done: u64, progress: Progress) {
        if self.bar.is_none() && output::is_watched() && self.start.elapsed() > PATIENCE {
            self.bar = Some(self.make());
        }
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            bar.set_message(format!("{} events", progress.events));
        }
    }

    fn make(&self) -> ProgressBar {
        let bar = self
            .total
            .map_or_else(ProgressBar::no_length, ProgressBar::new);
        let template = format!(
            "verifying {{bar:30}} {{percent:>3}} %  {{per_sec}} {}  {{msg}}  {{eta}} left",
            self.unit
        );
        // A template that does not parse would cost the looks, not the result.
        bar.with_style(
            ProgressStyle::with_template(&template)
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        )
    }
}

impl Drop for LateBar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn outcome(report: &Report) -> Exit {
    match &report.failure {
        None => Exit::Done,
        Some(finding) => Failure::new(
            blamed(&finding.problem, Code::Unverified),
            format!("verification failed: {}", finding.problem),
        )
        .report(),
    }
}

/// Whoever has asked for what is not there may have misspelt it.
fn blamed(problem: &Problem, otherwise: Code) -> Code {
    match problem {
        Problem::NoneOfThose { .. } => Code::NoneOfThose,
        _ => otherwise,
    }
}

fn print(name: &str, report: &Report, format: Format) -> Result<(), Failure> {
    match format {
        Format::Text => output::text(&text(name, report))?,
        Format::Json => output::json(&json(report))?,
    }
    Ok(())
}

pub(crate) fn text(name: &str, report: &Report) -> String {
    let mut lines = vec![headline(name, report)];
    if let Some(finding) = &report.failure {
        lines.push(format!(
            "\nfirst bad event: {}\n  {}",
            whereabouts(finding),
            inline(&finding.problem.to_string())
        ));
    }
    lines.push("\nchecked:".to_owned());
    lines.extend(report.checked.iter().map(|what| format!("  ✓ {what}")));
    lines.push("not checked:".to_owned());
    lines.extend(report.not_checked.iter().map(|what| format!("  – {what}")));
    let mut shown = lines.join("\n");
    if !report.sessions.is_empty() {
        shown.push_str("\n\n");
        shown.push_str(&sessions(report).text());
    }
    if report.sessions.len() > MAX_SESSIONS {
        shown.push_str(&format!(
            "\n… and {} more",
            report.sessions.len() - MAX_SESSIONS
        ));
    }
    shown
}

fn headline(name: &str, report: &Report) -> String {
    let word = if report.is_good() {
        "VERIFIED ✓"
    } else {
        "FAILED ✗"
    };
    format!(
        "{word}  {}: {} good event(s) in {} session(s)",
        inline(name),
        report.events,
        report.sessions.len()
    )
}

fn whereabouts(finding: &Finding) -> String {
    let mut parts: Vec<String> = finding.place.iter().map(Place::to_string).collect();
    if let Some((tenant, session, seq)) = &finding.event {
        parts.push(format!(
            "tenant `{}`, session `{}`, event {seq}",
            inline(tenant),
            inline(session)
        ));
    }
    if parts.is_empty() {
        "none; something is missing".to_owned()
    } else {
        parts.join(", ")
    }
}

fn sessions(report: &Report) -> Table {
    let mut table = Table::new(&["TENANT", "SESSION", "EVENTS", "STATE", "HEAD"]);
    for session in report.sessions.iter().take(MAX_SESSIONS) {
        table.row([
            session.tenant_id.clone(),
            session.session_id.clone(),
            session.events.to_string(),
            if session.terminated { "ended" } else { "open" }.to_owned(),
            session.head.as_ref().map(short).unwrap_or_default(),
        ]);
    }
    table
}

fn json(report: &Report) -> Json {
    let texts = |texts: &[String]| Json::Array(texts.iter().cloned().map(Json::from).collect());
    let sessions = report.sessions.iter().map(|session| {
        Json::object([
            ("tenant_id", Json::from(session.tenant_id.as_str())),
            ("session_id", Json::from(session.session_id.as_str())),
            ("events", Json::from(session.events)),
            (
                "head",
                session
                    .head
                    .map_or(Json::Null, |hash| Json::from(hash.to_string())),
            ),
            ("terminated", Json::from(session.terminated)),
        ])
    });
    Json::object([
        ("ok", Json::from(report.is_good())),
        ("events", Json::from(report.events)),
        (
            "failure",
            report.failure.as_ref().map_or(Json::Null, failure_json),
        ),
        ("checked", texts(&report.checked)),
        ("not_checked", texts(&report.not_checked)),
        ("sessions", Json::Array(sessions.collect())),
    ])
}

fn failure_json(finding: &Finding) -> Json {
    let (line, row) = match finding.place {
        Some(Place::Line(line)) => (Json::from(line), Json::Null),
        Some(Place::Row(row)) => (Json::Null, Json::from(row)),
        None => (Json::Null, Json::Null),
    };
    let (tenant, session, seq) = match &finding.event {
        Some((tenant, session, seq)) => (
            Json::from(tenant.as_str()),
            Json::from(session.as_str()),
            Json::from(*seq),
        ),
        None => (Json::Null, Json::Null, Json::Null),
    };
    Json::object([
        ("problem", Json::from(finding.problem.name())),
        ("message", Json::from(finding.problem.to_string())),
        ("line", line),
        ("row", row),
        ("tenant_id", tenant),
        ("session_id", session),
        ("seq", seq),
    ])
}

const PATIENCE: Duration = Duration::from_secs(2);
const MAX_SESSIONS: usize = 20;
