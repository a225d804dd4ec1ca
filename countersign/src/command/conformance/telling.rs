//! What is told while packs run, and whether somebody has ended it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use countersign_conformance::{Case, Outcome, PackReport, Tested};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::errors::Failure;
use crate::output::{self, Format, inline};

/// Tells of packs one by one; until then, of cases to whoever is at the terminal.
pub(super) struct Telling {
    format: Format,
    bar: ProgressBar,
    ended: Arc<AtomicBool>,
}

impl Telling {
    pub(super) fn new(format: Format, cases: usize) -> Result<Self, Failure> {
        let ended = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // Whoever says so twice does not wait for the case that runs.
            flag::register_conditional_default(signal, Arc::clone(&ended))?;
            flag::register(signal, Arc::clone(&ended))?;
        }
        let bar = match output::is_watched() {
            true => ProgressBar::new(cases as u64).with_style(style()),
            false => ProgressBar::hidden(),
        };
        Ok(Self { format, bar, ended })
    }

    /// Whether somebody has ended it: what runs is cleared away first.
    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// A case begins, unless it is over.
    pub(super) fn begins(&self, case: &Case) -> bool {
        self.bar.set_message(inline(&case.id));
        self.bar.inc(1);
        !self.is_ended()
    }

    /// A pack is done.
    pub(super) fn tell(&self, pack: &PackReport) -> Result<(), Failure> {
        match self.format {
            Format::Json => Ok(()),
            Format::Text => Ok(self.bar.suspend(|| output::text(&lines(pack).join("\n")))?),
        }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style() -> ProgressStyle {
    // A template that does not parse would cost the looks, not the result.
    ProgressStyle::with_template("{bar:30} {pos} of {len}  {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn lines(pack: &PackReport) -> Vec<String> {
    let count = |outcome: Outcome| {
        let tested = pack.tested.iter();
        tested.filter(|one| one.outcome == outcome).count()
    };
    let passed = count(Outcome::Passed);
    let word = match (count(Outcome::Failed), count(Outcome::Skipped)) {
        (0, skipped) if skipped > 0 && skipped == pack.tested.len() => "UNTRIED –",
        (0, _) => "HOLDS ✓",
        _ => "FAILS ✗",
    };
    let (name, all) = (inline(&pack.name), pack.tested.len());
    let mut lines = vec![format!("{word}  {name:<14} {passed} of {all}")];
    let told = pack.tested.iter();
    let told = told.filter(|one| one.outcome != Outcome::Passed);
    lines.extend(told.flat_map(case));
    lines
}

fn case(tested: &Tested) -> Vec<String> {
    let Tested { id, req_id, .. } = tested;
    let word = tested.outcome.as_str();
    let about = inline(&tested.description);
    let mut lines = vec![format!("  {word} {id} ({req_id}): {about}")];
    if let Some(reason) = &tested.reason {
        lines.push(format!("       known: {}", inline(reason)));
    }
    if tested.outcome != Outcome::ExpectedFailure {
        let step = tested
            .step
            .map_or_else(String::new, |step| format!("step {step}: "));
        lines.push(format!("       {step}{}", inline(&tested.detail)));
    }
    lines
}
