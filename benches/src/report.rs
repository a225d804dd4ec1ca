//! Markdown out.

use std::io::Write;
use std::time::Duration;

use crate::measure::Result;

/// Tables on one stream, progress on the standard error.
pub(crate) struct Report<'o> {
    out: &'o mut dyn Write,
}

impl<'o> Report<'o> {
    pub(crate) fn new(out: &'o mut dyn Write) -> Self {
        Self { out }
    }

    /// Starts a table.
    pub(crate) fn table(&mut self, title: &str, columns: &[&str]) -> Result<()> {
        writeln!(self.out, "\n### {title}\n\n| {} |", columns.join(" | "))?;
        writeln!(self.out, "|{}", "---|".repeat(columns.len()))?;
        Ok(())
    }

    pub(crate) fn row(&mut self, cells: &[String]) -> Result<()> {
        writeln!(self.out, "| {} |", cells.join(" | "))?;
        Ok(self.out.flush()?)
    }
}

/// Says what is going on.
pub(crate) fn progress(what: &str) {
    // Nobody may be there to read it.
    let _ = writeln!(std::io::stderr(), "measuring {what}");
}

/// Thousands per second.
pub(crate) fn thousands(rate: f64) -> String {
    let decimals = if rate < 10_000.0 { 2 } else { 1 };
    format!("{:.decimals$} k/s", rate / 1e3)
}

pub(crate) fn gigabytes(rate: f64) -> String {
    format!("{:.2} GB/s", rate / 1e9)
}

pub(crate) fn microseconds(seconds: f64) -> String {
    format!("{:.2} µs", seconds * 1e6)
}

pub(crate) fn milliseconds(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
}

pub(crate) fn ratio(ratio: f64) -> String {
    format!("{ratio:.2}")
}
