//! Durable append: many sessions at once, one session alone, one session that runs ahead.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use countersign_store::{At, Draft, Folder, Observer, Options, Pending, Step, Store};

use crate::limit::{self, RawSqlite, Write};
use crate::measure::{Latencies, Pair, Result, middle, rate};
use crate::report::{Report, milliseconds, progress, ratio, thousands};
use crate::workload::Workload;

/// Measures append and prints it.
pub(crate) fn section(place: &Path, report: &mut Report<'_>) -> Result<()> {
    report.table(
        "Durable append, one event on its way per session",
        &[
            "sessions",
            "events/s",
            "p50",
            "p99",
            "events per commit",
            "limit",
            "events/s",
            "ratio",
        ],
    )?;
    for sessions in [1, 16, 64, 512] {
        progress(&format!("append, {sessions} session(s)"));
        append_row(
            &sessions.to_string(),
            Shape {
                sessions,
                outstanding: sessions,
            },
            place,
            report,
        )?;
    }
    report.table(
        "One session",
        &[
            "what",
            "events/s",
            "p50",
            "p99",
            "events per commit",
            "limit",
            "events/s",
            "ratio",
        ],
    )?;
    progress("one session");
    latency_row("bare fsync, appending 4 KiB", Write::Append, place, report)?;
    latency_row(
        "bare fsync, overwriting 4 KiB",
        Write::Overwrite,
        place,
        report,
    )?;
    append_row(
        "256 on their way",
        Shape {
            sessions: 1,
            outstanding: 256,
        },
        place,
        report,
    )
}

/// How many sessions append, and how many events are on their way in all of them together.
#[derive(Clone, Copy)]
struct Shape {
    sessions: usize,
    outstanding: usize,
}

struct Append {
    run: Run,
    raw: f64,
}

impl Pair for Append {
    fn ratio(&self) -> f64 {
        self.run.rate() / self.raw
    }
}

fn append_row(name: &str, shape: Shape, place: &Path, report: &mut Report<'_>) -> Result<()> {
    let append = middle(|| against_raw(shape, place))?;
    report.row(&[
        name.to_owned(),
        thousands(append.run.rate()),
        milliseconds(append.run.latencies.percentile(0.50)),
        milliseconds(append.run.latencies.percentile(0.99)),
        format!("{:.1}", append.run.per_commit()),
        "raw SQLite, same rows, same events per commit".to_owned(),
        thousands(append.raw),
        ratio(append.ratio()),
    ])
}

/// A new store, and then raw SQLite with the rows that the store has written.
fn against_raw(shape: Shape, place: &Path) -> Result<Append> {
    let folder = tempfile::tempdir_in(place)?;
    let bench = StoreBench::open(folder.path())?;
    let mut workload = Workload::new(shape.sessions)?;
    let warm_up = bench.fill(&mut workload, shape.outstanding.max(64), shape.outstanding)?;
    let run = bench.drive(
        workload.by_ref().take(MAX_EVENTS),
        shape.outstanding,
        DURATION,
    )?;
    let database = bench.close();

    let mut raw = RawSqlite::open(folder.path())?;
    raw.insert(
        &limit::rows(&database, 0, warm_up)?,
        shape.outstanding as f64,
    )?;
    let rows = limit::rows(&database, warm_up, warm_up + run.latencies.len())?;
    let elapsed = raw.insert(&rows, run.per_commit())?;
    Ok(Append {
        run,
        raw: rate(rows.len(), elapsed),
    })
}

struct Alone {
    run: Run,
    fsync: Latencies,
}

impl Alone {
    fn limit(&self) -> f64 {
        rate(self.fsync.len(), DURATION)
    }
}

impl Pair for Alone {
    fn ratio(&self) -> f64 {
        self.run.rate() / self.limit()
    }
}

fn latency_row(name: &str, write: Write, place: &Path, report: &mut Report<'_>) -> Result<()> {
    let alone = middle(|| {
        let folder = tempfile::tempdir_in(place)?;
        let bench = StoreBench::open(folder.path())?;
        let mut workload = Workload::new(1)?;
        bench.fill(&mut workload, 64, 1)?;
        let run = bench.drive(workload.take(MAX_EVENTS), 1, DURATION)?;
        let fsync = limit::bare_fsync(write, folder.path(), DURATION)?;
        Ok(Alone { run, fsync })
    })?;
    let latencies = [&alone.run.latencies, &alone.fsync]
        .map(|latencies| [0.50, 0.99].map(|share| milliseconds(latencies.percentile(share))));
    let [[p50, p99], [bare_p50, bare_p99]] = latencies;
    report.row(&[
        "1 on its way".to_owned(),
        thousands(alone.run.rate()),
        p50,
        p99,
        format!("{:.1}", alone.run.per_commit()),
        format!("{name}: p50 {bare_p50}, p99 {bare_p99}"),
        thousands(alone.limit()),
        ratio(alone.ratio()),
    ])
}

/// A store under measurement.
pub(crate) struct StoreBench {
    store: Store,
    folder: Folder,
    commits: Arc<AtomicUsize>,
}

/// What driving a store gave.
pub(crate) struct Run {
    pub(crate) latencies: Latencies,
    elapsed: Duration,
    commits: usize,
}

impl Run {
    pub(crate) fn rate(&self) -> f64 {
        rate(self.latencies.len(), self.elapsed)
    }

    /// How many events shared one transaction, on average.
    pub(crate) fn per_commit(&self) -> f64 {
        self.latencies.len() as f64 / self.commits.max(1) as f64
    }
}

impl StoreBench {
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let folder = Folder::new(folder.join("store"));
        let commits = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&commits);
        let observer: Observer = Arc::new(move |step| {
            if step == Step::Synced {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        let store = Store::open(
            &folder,
            Options {
                observer: Some(observer),
                ..Options::default()
            },
        )?;
        Ok(Self {
            store,
            folder,
            commits,
        })
    }

    /// Appends without measuring; returns how many.
    pub(crate) fn fill(
        &self,
        workload: &mut Workload,
        events: usize,
        outstanding: usize,
    ) -> Result<usize> {
        let run = self.drive(workload.take(events), outstanding, Duration::MAX)?;
        Ok(run.latencies.len())
    }

    /// Keeps that many events on their way, from one thread, until the drafts or the time end.
    ///
    /// The drafts are made beforehand. Sessions take turns, so each has the same share of the
    /// events that are on their way. One thread shows the store and not the scheduler: a thread per
    /// session would spend its time in being woken.
    pub(crate) fn drive(
        &self,
        drafts: impl Iterator<Item = Draft>,
        outstanding: usize,
        duration: Duration,
    ) -> Result<Run> {
        let mut drafts = drafts.collect::<Vec<_>>().into_iter();
        let mut latencies = Latencies::default();
        let mut on_their_way: VecDeque<(Instant, Pending)> = VecDeque::with_capacity(outstanding);
        let commits = self.commits.load(Ordering::Relaxed);
        let begin = Instant::now();
        loop {
            while on_their_way.len() < outstanding && begin.elapsed() < duration {
                let Some(draft) = drafts.next() else {
                    break;
                };
                let start = Instant::now();
                on_their_way.push_back((start, self.store.append(draft, At::Next)?));
            }
            let Some((start, pending)) = on_their_way.pop_front() else {
                break;
            };
            let _recorded = pending.wait()?;
            latencies.push(start.elapsed());
        }
        let commits = self.commits.load(Ordering::Relaxed) - commits;
        Ok(Run {
            latencies,
            elapsed: begin.elapsed(),
            commits,
        })
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Closes the store; its database stays.
    fn close(self) -> std::path::PathBuf {
        self.folder.database()
    }
}

const DURATION: Duration = Duration::from_millis(1000);
/// More than any machine appends meanwhile.
const MAX_EVENTS: usize = 60_000;
