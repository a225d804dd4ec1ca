//! `countersign replay`

use clap::Args;
use countersign_canon::Json;
use countersign_replay::{Diff, Report, exact};

use crate::cli::{DataFolder, Tenant};
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, inline};

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
    #[command(flatten)]
    tenant: Tenant,
    #[command(flatten)]
    data: DataFolder,
}

impl Replay {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let scope = self.tenant.scope(&self.session)?;
        let report = exact(&scope, &self.data.reader()?)?;
        match format {
            Format::Text => output::text(&text(&report))?,
            Format::Json => output::json(&report.to_json())?,
        }
        Ok(match report.is_identical() {
            true => Exit::Done,
            false => Exit::Unverified,
        })
    }
}

fn text(report: &Report) -> String {
    let headline = match report.is_identical() {
        true => "IDENTICAL ✓",
        false => "DIFFERENT ✗",
    };
    let mut lines = vec![
        format!("{headline}  {}", inline(report.scope.session.as_str())),
        format!(
            "  {} events, {} steps, {} decisions taken again",
            report.events, report.steps, report.decisions
        ),
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

fn diff(diff: &Diff) -> Vec<String> {
    vec![
        String::new(),
        format!("  event {}: {}", diff.seq, diff.field),
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
  countersign replay ses_1 --format json | jq .identical

Exit codes: 0 everything came out as it was recorded; 5 something did not, or the log is damaged.";
