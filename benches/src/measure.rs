//! Clocks, percentiles and medians.

use std::time::{Duration, Instant};

/// A benchmark stops at the first error, whatever it is.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Something measured, and its limit measured right after it.
pub(crate) trait Pair {
    /// How much of the limit was reached.
    fn ratio(&self) -> f64;
}

/// Repeats a measurement and its limit in turn, and returns the pair with the middle ratio.
///
/// Whatever else the machine does hits both halves of a pair alike, so ratios are steadier than
/// rates; and the rates that are printed belong together.
pub(crate) fn middle<P: Pair>(mut measure: impl FnMut() -> Result<P>) -> Result<P> {
    let mut pairs = (0..ROUNDS).map(|_| measure()).collect::<Result<Vec<P>>>()?;
    pairs.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    Ok(pairs.swap_remove(ROUNDS / 2))
}

/// How long each of many steps took.
#[derive(Default)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(crate) fn push(&mut self, latency: Duration) {
        self.0.push(latency);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The latency that this share of the steps did not exceed.
    pub(crate) fn percentile(&self, share: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        sorted
            .get((last as f64 * share).round() as usize)
            .copied()
            .unwrap_or_default()
    }
}

/// Wall clock and processor time of one piece of work.
#[derive(Clone, Copy)]
pub(crate) struct Spent {
    pub(crate) wall: Duration,
    /// Of all threads; zero where the system does not tell.
    pub(crate) cpu: Duration,
}

impl Spent {
    /// Runs something several times.
    pub(crate) fn on(times: u32, mut work: impl FnMut() -> Result<()>) -> Result<Self> {
        let (start, cpu) = (Instant::now(), cpu_time());
        for _ in 0..times {
            work()?;
        }
        Ok(Self {
            wall: start.elapsed(),
            cpu: cpu_time().saturating_sub(cpu),
        })
    }
}

/// Events, bytes or steps per second.
pub(crate) fn rate(count: usize, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64()
}

/// User and system time of this process, threads that have ended included.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may itself hold spaces.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * MS_PER_TICK)
}

const ROUNDS: usize = 3;
/// Linux reports in hundredths of a second on every architecture of today.
const MS_PER_TICK: u64 = 10;
