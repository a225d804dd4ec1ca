//! The Merkle tree: whether integrating keeps up with appending, and what a proof costs.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::append::StoreBench;
use crate::measure::{Latencies, Pair, Result, middle, rate};
use crate::report::{Report, milliseconds, progress, ratio, thousands};
use crate::workload::Workload;

/// Measures the tree and prints it.
pub(crate) fn section(events: usize, place: &Path, report: &mut Report<'_>) -> Result<()> {
    report.table(
        "The tree: 64 sessions, 512 events on their way",
        &[
            "events",
            "append, every event integrated",
            "limit",
            "events/s",
            "ratio",
            "longest wait for the tree",
        ],
    )?;
    progress(&format!("tree, {events} events"));
    let pair = middle(|| Both::measure(events, place))?;
    report.row(&[
        events.to_string(),
        thousands(pair.integrated),
        "append alone".to_owned(),
        thousands(pair.alone),
        ratio(pair.ratio()),
        milliseconds(pair.behind),
    ])?;
    proofs(events, place, report)
}

struct Both {
    integrated: f64,
    alone: f64,
    /// From the last acknowledgement to the last leaf.
    behind: Duration,
}

impl Pair for Both {
    fn ratio(&self) -> f64 {
        self.integrated / self.alone
    }
}

impl Both {
    fn measure(events: usize, place: &Path) -> Result<Self> {
        let (integrated, behind) = append(events, Tree::Integrate, place)?;
        let (alone, _) = append(events, Tree::Leave, place)?;
        Ok(Self {
            integrated,
            alone,
            behind,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tree {
    Integrate,
    Leave,
}

/// Appends to a new log. Gives the rate until the last event is a leaf, or recorded.
fn append(events: usize, tree: Tree, place: &Path) -> Result<(f64, Duration)> {
    let folder = tempfile::tempdir_in(place)?;
    let bench = StoreBench::open(folder.path())?;
    let mut workload = Workload::new(64)?;
    let over = AtomicBool::new(tree == Tree::Leave);
    std::thread::scope(|scope| {
        let integrator = scope.spawn(|| -> Result<()> {
            while !over.load(Ordering::Acquire) {
                bench.store().integrate()?;
                std::thread::sleep(PAUSE);
            }
            Ok(())
        });
        let mut spent = Duration::ZERO;
        let mut left = events;
        while left > 0 {
            let some = left.min(MOST_AT_ONCE);
            // Making the drafts is no part of appending them.
            let drafts: Vec<_> = workload.by_ref().take(some).collect();
            let start = Instant::now();
            bench.drive(drafts.into_iter(), OUTSTANDING, Duration::MAX)?;
            spent += start.elapsed();
            left -= some;
        }
        let recorded = Instant::now();
        if tree == Tree::Integrate {
            bench.store().integrate()?;
        }
        let behind = recorded.elapsed();
        over.store(true, Ordering::Release);
        integrator.join().map_err(|_| "the integrator panicked")??;
        Ok((rate(events, spent + behind), behind))
    })
}

/// The path of one event at a time, as somebody asks for it.
fn proofs(events: usize, place: &Path, report: &mut Report<'_>) -> Result<()> {
    let folder = tempfile::tempdir_in(place)?;
    let bench = StoreBench::open(folder.path())?;
    let mut workload = Workload::new(64)?;
    let mut left = events;
    while left > 0 {
        left -= bench.fill(&mut workload, left.min(MOST_AT_ONCE), OUTSTANDING)?;
    }
    let start = Instant::now();
    let size = bench.store().integrate()?;
    let catching_up = start.elapsed();
    let start = Instant::now();
    bench.store().publish(None)?;
    let publishing = start.elapsed();
    let mut latencies = Latencies::default();
    let mut leaf = 1;
    for _ in 0..PROOFS {
        // Far apart, and the same in every run.
        leaf = (leaf + size / 3 + 7919) % size;
        let start = Instant::now();
        std::hint::black_box(bench.store().reader().prove_inclusion(leaf, size)?);
        latencies.push(start.elapsed());
    }
    report.table(
        "Proofs",
        &[
            "leaves",
            "inclusion proof p50",
            "p99",
            "integrating all at once",
            "checkpoint",
        ],
    )?;
    report.row(&[
        size.to_string(),
        milliseconds(latencies.percentile(0.50)),
        milliseconds(latencies.percentile(0.99)),
        thousands(rate(events, catching_up)),
        milliseconds(publishing),
    ])
}

const OUTSTANDING: usize = 512;
const MOST_AT_ONCE: usize = 50_000;
const PROOFS: usize = 2000;
/// Between two looks for new events.
const PAUSE: Duration = Duration::from_millis(200);
