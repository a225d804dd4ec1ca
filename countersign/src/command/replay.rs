//! `countersign replay`

use std::path::PathBuf;

use clap::Args;
use countersign_canon::Json;
use countersign_replay::{Diff, Mode, Report, exact};

use crate::cli::{DataFolder, Tenant};
use crate::clock;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::folder;
use crate::output::{self, Format, inline};

mod html;

pub(crate) use html::html;

/// Fold a recorded session again and take every decision again.
///
/// Results of tools and models are read from the log; nothing is called. The policies are those that
/// decided then, which are kept in the data folder. State and verdict have to come out as they were
/// recorded, at every step.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Replay {
    /// The session
    session: String,
    /// Write the report as a page to this file, too; replaces the file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print every step, then and now
    #[arg(long)]
    timeline: bool,
    #[command(flatten)]
    tenant: Tenant,
    #[command(flatten)]
    data: DataFolder,
}

impl Replay {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let scope = self.tenant.scope(&self.session)?;
        let report = exact(&scope, &self.data.reader()?)?;
        if let Some(file) = &self.html {
            folder::replace(file, html(&report).as_bytes())?;
        }
        match format {
            Format::Text if self.timeline => {
                let all = [text(&report), timeline(&report)];
                output::text(&all.join("\n"))?;
            }
            Format::Text => output::text(&text(&report))?,
            Format::Json => output::json(&report.to_json())?,
        }
        Ok(match report.is_identical() {
            true => Exit::Done,
            false => Exit::Unverified,
        })
    }
}

pub(crate) fn text(report: &Report) -> String {
    let headline = match report.is_identical() {
        true => "IDENTICAL ✓",
        false => "DIFFERENT ✗",
    };
    let mut lines = vec![
        format!("{headline}  {}", inline(report.scope.session.as_str())),
        match report.mode {
            Mode::Exact => format!(
                "  {} events, {} steps, {} decisions taken again",
                report.events, report.steps, report.decisions
            ),
            Mode::Live => format!("  {} calls made again", report.steps),
        },
    ];
    if report.decided_at_the_door > 0 {
        lines.push(format!(
            "  {} refusals of a door, which asks no policy, were only folded",
            report.decided_at_the_door
        ));
    }
    lines.extend(report.diffs.iter().flat_map(diff));
    lines.join("\n")
}

/// A line a step: when, what was, what is.
fn timeline(report: &Report) -> String {
    let lines = report.timeline.iter().map(|taken| {
        let mark = if taken.same { '✓' } else { '✗' };
        let (when, tool) = (clock::text(taken.ts_unix_ms), inline(&taken.tool));
        let recorded = inline(&taken.recorded);
        let replayed = match taken.same {
            true => String::new(),
            false => format!(" → {}", inline(&taken.replayed)),
        };
        format!(
            "  {mark} {:>5}  {when}  {tool}  {recorded}{replayed}",
            taken.seq
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn diff(diff: &Diff) -> Vec<String> {
    vec![
        String::new(),
        format!(
            "  event {}: {} {}",
            diff.seq,
            diff.field,
            inline(&diff.pointer)
        )
        .trim_end()
        .to_owned(),
        format!("    recorded  {}", value(&diff.recorded)),
        format!("    replayed  {}", value(&diff.replayed)),
        format!("    {}", diff.cause),
    ]
}

fn value(value: &Json) -> String {
    match value.as_str() {
        Some(text) => inline(text),
        None => String::from_utf8_lossy(&value.to_sorted_ascii()).into_owned(),
    }
}

const EXAMPLES: &str = "\
Examples:
  countersign replay ses_1
  countersign replay ses_1 --timeline --html replay.html
  countersign replay ses_1 --format json | jq .identical

Exit codes: 0 everything came out as it was recorded; 5 something did not, or the log is damaged.";
