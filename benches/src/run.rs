//! What is measured, and how much of it.

use std::io::Write;
use std::path::Path;

use crate::measure::Result;
use crate::report::Report;
use crate::{append, approval, canon, decision, growth, tree, verification};

/// How much to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Sizes of the log at which append and verification are compared.
    pub sizes: Vec<usize>,
    /// Only sections whose name contains this.
    pub only: Option<String>,
}

impl Plan {
    /// The usual plan, or the long one when `COUNTERSIGN_BENCH_FULL=1`. The first argument that is
    /// no option selects sections by name.
    pub fn from_env() -> Self {
        let full = std::env::var_os("COUNTERSIGN_BENCH_FULL").is_some_and(|value| value == "1");
        let mut sizes = vec![10_000, 100_000, 200_000];
        if full {
            sizes.push(1_000_000);
        }
        let only = std::env::args()
            .skip(1)
            .find(|argument| !argument.starts_with('-'));
        Self { sizes, only }
    }

    fn takes(&self, section: &str) -> bool {
        self.only
            .as_deref()
            .is_none_or(|only| section.contains(only))
    }
}

/// Runs the plan in a folder of its own inside `place`, and writes Markdown to `out`.
pub fn run(plan: &Plan, place: &Path, out: &mut dyn Write) -> Result<()> {
    let mut report = Report::new(out);
    if plan.takes("canon") {
        canon::section(&mut report)?;
    }
    if plan.takes("decision") {
        decision::section(place, &mut report)?;
    }
    if plan.takes("approval") {
        approval::section(place, &mut report)?;
    }
    if plan.takes("append") {
        append::section(place, &mut report)?;
    }
    if plan.takes("tree") {
        let events = plan.sizes.last().copied().unwrap_or_default();
        tree::section(events, place, &mut report)?;
    }
    if plan.takes("growth") || plan.takes("verify") {
        let folder = tempfile::tempdir_in(place)?;
        let grown = growth::section(&plan.sizes, folder.path(), &mut report)?;
        verification::section(&grown, &mut report)?;
    }
    Ok(())
}
