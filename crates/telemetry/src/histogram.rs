//! Durations, counted by how long they were.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often something took at most so long.
pub(crate) struct Histogram {
    name: &'static str,
    about: &'static str,
    /// Upper bounds, in microseconds.
    bounds: &'static [u64],
    /// One more than bounds: what took longer than all of them.
    counts: Vec<AtomicU64>,
    sum_micros: AtomicU64,
}

impl Histogram {
    pub(crate) fn new(name: &'static str, about: &'static str, bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0));
        Self {
            name,
            about,
            bounds,
            counts: counts.collect(),
            sum_micros: AtomicU64::new(0),
        }
    }

    pub(crate) fn add(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let place = self.bounds.partition_point(|bound| *bound < micros);
        if let Some(count) = self.counts.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn write(&self, out: &mut String) {
        let name = self.name;
        head(out, name, self.about, "histogram");
        let mut total = 0;
        for (place, count) in self.counts.iter().enumerate() {
            total += count.load(Ordering::Relaxed);
            let bound = self.bounds.get(place).copied().map(seconds);
            let bound = bound.unwrap_or_else(|| "+Inf".to_owned());
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {total}");
        }
        let sum = seconds(self.sum_micros.load(Ordering::Relaxed));
        let _ = writeln!(out, "{name}_sum {sum}\n{name}_count {total}");
    }
}

/// What a metric is, as Prometheus wants to be told.
pub(crate) fn head(out: &mut String, name: &str, about: &str, kind: &str) {
    let _ = writeln!(out, "# HELP {name} {about}\n# TYPE {name} {kind}");
}

fn seconds(micros: u64) -> String {
    let (whole, part) = (micros / 1_000_000, micros % 1_000_000);
    match part {
        0 => whole.to_string(),
        part => format!("{whole}.{part:06}")
            .trim_end_matches('0')
            .to_owned(),
    }
}

/// From fifty microseconds to ten seconds.
pub(crate) const SHORT: &[u64] = &[
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// From ten milliseconds to a day.
pub(crate) const LONG: &[u64] = &[
    10_000,
    50_000,
    100_000,
    500_000,
    1_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
    1_800_000_000,
    3_600_000_000,
    86_400_000_000,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_as_long_as_a_bound_is_within_it() {
        let histogram = Histogram::new("x_seconds", "About x", &[100, 1_000_000]);
        for micros in [1, 100, 101, 2_500_000] {
            histogram.add(Duration::from_micros(micros));
        }
        let mut out = String::new();
        histogram.write(&mut out);
        let expect = "# HELP x_seconds About x\n# TYPE x_seconds histogram\n\
            x_seconds_bucket{le=\"0.0001\"} 2\nx_seconds_bucket{le=\"1\"} 3\n\
            x_seconds_bucket{le=\"+Inf\"} 4\nx_seconds_sum 2.500202\nx_seconds_count 4\n";
        assert_eq!(out, expect);
    }
}
