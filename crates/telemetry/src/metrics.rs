//! Numbers for Prometheus. Their labels are words of our own: no name that somebody else gave is in
//! them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use countersign_canon::Json;
use countersign_event::{EventType, Line};

use crate::histogram::{Histogram, LONG, SHORT, head};

/// Everything that is counted.
pub struct Metrics {
    decide: Histogram,
    append: Histogram,
    hold: Histogram,
    upstream: Histogram,
    request: Histogram,
    events: Vec<AtomicU64>,
    decisions: Vec<AtomicU64>,
    /// What policies in the shadow said otherwise, by what was decided and what they would have decided.
    shadows: Vec<AtomicU64>,
    requests: Mutex<BTreeMap<(&'static str, &'static str, u16), u64>>,
    exported: AtomicU64,
    dropped: Vec<AtomicU64>,
    waiting: AtomicU64,
}

/// Why a span was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Too much waited already.
    QueueFull,
    /// The file could not be written.
    FileFailed,
    /// The collector did not take it.
    CollectorFailed,
}

impl Cause {
    const ALL: [Self; 3] = [Self::QueueFull, Self::FileFailed, Self::CollectorFailed];

    const fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::FileFailed => "file_failed",
            Self::CollectorFailed => "collector_failed",
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        let histogram = |name, about, bounds| Histogram::new(name, about, bounds);
        Self {
            decide: histogram(
                "countersign_decide_seconds",
                "How long policies took to judge an action",
                SHORT,
            ),
            append: histogram(
                "countersign_append_seconds",
                "How long events took to be durable",
                SHORT,
            ),
            hold: histogram(
                "countersign_hold_seconds",
                "How long held actions waited for people",
                LONG,
            ),
            upstream: histogram(
                "countersign_upstream_seconds",
                "How long tools took to answer",
                LONG,
            ),
            request: histogram(
                "countersign_http_request_seconds",
                "How long requests took to be answered",
                SHORT,
            ),
            events: zeros(EventType::ALL.len()),
            decisions: zeros(OUTCOMES.len()),
            shadows: zeros(VERDICTS.len() * VERDICTS.len()),
            requests: Mutex::default(),
            exported: AtomicU64::new(0),
            dropped: zeros(Cause::ALL.len()),
            waiting: AtomicU64::new(0),
        }
    }
}

impl Metrics {
    /// Policies have judged an action.
    pub fn decided(&self, took: Duration) {
        self.decide.add(took);
    }

    /// Events are durable.
    pub fn appended(&self, took: Duration) {
        self.append.add(took);
    }

    /// People have decided.
    pub fn held(&self, took: Duration) {
        self.hold.add(took);
    }

    /// A tool has answered.
    pub fn answered(&self, took: Duration) {
        self.upstream.add(took);
    }

    /// A request was answered. Of a route that there is not, no path is told.
    pub fn request(&self, method: &str, route: Option<&'static str>, status: u16, took: Duration) {
        self.request.add(took);
        let method = METHODS.iter().find(|known| **known == method);
        let name = (route.unwrap_or("none"), method.unwrap_or(&"other"), status);
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((name.0, *name.1, name.2)).or_default() += 1;
    }

    /// An event was recorded.
    pub fn event(&self, line: &Line<'_>) {
        let place = EventType::ALL
            .iter()
            .position(|kind| *kind == line.event_type);
        if let Some(count) = place.and_then(|place| self.events.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if line.event_type == EventType::PolicyDecision {
            let payload = Json::admit(line.payload, &countersign_canon::Limits::event());
            let payload = payload.unwrap_or(Json::Null);
            let outcome = payload.get("outcome").and_then(Json::as_str);
            let known = OUTCOMES.iter().position(|known| Some(*known) == outcome);
            let place = known.unwrap_or(OUTCOMES.len() - 1);
            if let Some(count) = self.decisions.get(place) {
                count.fetch_add(1, Ordering::Relaxed);
            }
            self.compared(&payload);
        }
    }

    /// Counts what policies in the shadow would have decided otherwise: `NAME=VERDICT` in the decision.
    fn compared(&self, decision: &Json) {
        let place = |word: &str| VERDICTS.iter().position(|known| *known == word);
        let decided = decision.get("verdict").and_then(Json::as_str);
        let said = decision.get("reason_codes").and_then(Json::as_array);
        for said in said.unwrap_or_default().iter().filter_map(Json::as_str) {
            let would = said.rsplit_once('=').and_then(|(_, would)| place(would));
            let (Some(decided), Some(would)) = (decided.and_then(place), would) else {
                continue;
            };
            if let Some(count) = self.shadows.get(decided * VERDICTS.len() + would) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn write_shadows(&self, out: &mut String) {
        let name = "countersign_shadow_differences_total";
        let about = "What policies in the shadow would have decided otherwise";
        head(out, name, about, "counter");
        let pairs = VERDICTS
            .iter()
            .flat_map(|decided| VERDICTS.iter().map(move |would| (decided, would)));
        for ((decided, would), count) in pairs.zip(&self.shadows) {
            if decided != would {
                let count = count.load(Ordering::Relaxed);
                let _ = writeln!(
                    out,
                    "{name}{{decided=\"{decided}\",would=\"{would}\"}} {count}"
                );
            }
        }
    }

    /// Spans that were not exported.
    pub fn dropped(&self) -> u64 {
        let counts = self.dropped.iter();
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Spans that were exported.
    pub fn exported(&self) -> u64 {
        self.exported.load(Ordering::Relaxed)
    }

    pub(crate) fn add_exported(&self, spans: usize) {
        self.exported.fetch_add(spans as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_dropped(&self, cause: Cause, spans: usize) {
        let place = Cause::ALL.iter().position(|known| *known == cause);
        if let Some(count) = place.and_then(|place| self.dropped.get(place)) {
            count.fetch_add(spans as u64, Ordering::Relaxed);
        }
    }

    pub(crate) fn set_waiting(&self, events: usize) {
        self.waiting.store(events as u64, Ordering::Relaxed);
    }

    /// All of it, in the text format of Prometheus.
    pub fn text(&self) -> String {
        let mut out = String::with_capacity(8192);
        for histogram in [
            &self.decide,
            &self.append,
            &self.hold,
            &self.upstream,
            &self.request,
        ] {
            histogram.write(&mut out);
        }
        let values = |words: &[&'static str], counts: &[AtomicU64]| {
            let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
            words.iter().copied().zip(counts).collect::<Vec<_>>()
        };
        let types: Vec<&str> = EventType::ALL.iter().map(|kind| kind.as_str()).collect();
        let causes = Cause::ALL.map(Cause::as_str);
        family(
            &mut out,
            (
                "countersign_decisions_total",
                "Decisions by outcome",
                "outcome",
            ),
            &values(OUTCOMES, &self.decisions),
        );
        self.write_shadows(&mut out);
        family(
            &mut out,
            ("countersign_events_total", "Events by type", "type"),
            &values(&types, &self.events),
        );
        family(
            &mut out,
            (
                "countersign_spans_dropped_total",
                "Spans that were not exported",
                "cause",
            ),
            &values(&causes, &self.dropped),
        );
        single(
            &mut out,
            (
                "countersign_spans_exported_total",
                "Spans that were exported",
                "counter",
            ),
            self.exported(),
        );
        single(
            &mut out,
            (
                "countersign_telemetry_queue_events",
                "Events that wait to be exported",
                "gauge",
            ),
            self.waiting.load(Ordering::Relaxed),
        );
        let name = "countersign_http_requests_total";
        head(
            &mut out,
            name,
            "Requests by route, method and status",
            "counter",
        );
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for ((route, method, status), count) in requests.iter() {
            let labels = format!("route=\"{route}\",method=\"{method}\",status=\"{status}\"");
            let _ = writeln!(out, "{name}{{{labels}}} {count}");
        }
        out
    }
}

fn family(
    out: &mut String,
    (name, about, label): (&str, &str, &str),
    values: &[(&'static str, u64)],
) {
    head(out, name, about, "counter");
    for (word, count) in values {
        let _ = writeln!(out, "{name}{{{label}=\"{word}\"}} {count}");
    }
}

fn single(out: &mut String, (name, about, kind): (&str, &str, &str), value: u64) {
    head(out, name, about, kind);
    let _ = writeln!(out, "{name} {value}");
}

const VERDICTS: &[&str] = &["allow", "warn", "transform", "escalate", "deny"];
const OUTCOMES: &[&str] = &["allow", "deny", "require_approval", "other"];
const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
