//! Whether an event costs more when the log is longer.

use std::path::Path;
use std::time::Duration;

use crate::append::{Run, StoreBench};
use crate::limit::{self, RawSqlite};
use crate::measure::{Pair, Result, middle, rate};
use crate::report::{Report, progress, ratio, thousands};
use crate::verification::{self, Export};
use crate::workload::Workload;

/// A log that has grown to the last size.
pub(crate) struct Grown {
    pub(crate) bench: StoreBench,
    pub(crate) export: Export,
}

/// Grows a log, measures on the way and prints it.
pub(crate) fn section(sizes: &[usize], folder: &Path, report: &mut Report<'_>) -> Result<Grown> {
    report.table(
        "Growth: 64 sessions, 512 events on their way",
        &[
            "events stored",
            "append",
            "raw SQLite of the same size",
            "ratio",
            "verify",
            "SHA-256",
            "ratio",
        ],
    )?;
    let mut growth = Growth {
        bench: StoreBench::open(folder)?,
        raw: RawSqlite::open(folder)?,
        workload: Workload::new(64)?,
        stored: 0,
    };
    let mut export = Export::default();
    for size in sizes {
        progress(&format!("growth, {size} events"));
        growth.fill(*size)?;
        let appended = middle(|| growth.window())?;
        export = Export::of(growth.bench.store().reader())?;
        let verified = verification::of_stream(&export)?;
        report.row(&[
            size.to_string(),
            thousands(appended.run.rate()),
            thousands(appended.raw),
            ratio(appended.ratio()),
            thousands(verified.rate()),
            thousands(verified.limit_rate()),
            ratio(verified.ratio()),
        ])?;
    }
    Ok(Grown {
        bench: growth.bench,
        export,
    })
}

struct Growth {
    bench: StoreBench,
    raw: RawSqlite,
    workload: Workload,
    stored: usize,
}

struct Window {
    run: Run,
    raw: f64,
}

impl Pair for Window {
    fn ratio(&self) -> f64 {
        self.run.rate() / self.raw
    }
}

impl Growth {
    /// Both databases up to a size.
    fn fill(&mut self, size: usize) -> Result<()> {
        while self.stored < size {
            let missing = (size - self.stored).min(MOST_AT_ONCE);
            self.append(missing)?;
        }
        Ok(())
    }

    fn window(&mut self) -> Result<Window> {
        self.append(WINDOW)
    }

    fn append(&mut self, events: usize) -> Result<Window> {
        let drafts = self.workload.by_ref().take(events);
        let run = self.bench.drive(drafts, OUTSTANDING, Duration::MAX)?;
        let rows = limit::rows(
            &self.bench.folder().database(),
            self.stored,
            self.stored + events,
        )?;
        self.stored += events;
        let elapsed = self.raw.insert(&rows, run.per_commit())?;
        Ok(Window {
            run,
            raw: rate(events, elapsed),
        })
    }
}

const OUTSTANDING: usize = 512;
/// Long enough to see several checkpoints of the write-ahead log.
const WINDOW: usize = 20_000;
/// What is kept in memory while the databases grow.
const MOST_AT_ONCE: usize = 50_000;
