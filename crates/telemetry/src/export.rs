//! Exporting, on threads of its own: whoever sees an event hands it over and goes on.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use countersign_canon::Json;
use countersign_event::Line;
use countersign_redact::Redactor;

use crate::fold::Fold;
use crate::metrics::{Cause, Metrics};
use crate::span::Span;

mod collector;
mod file;

pub use collector::{Collector, Protocol};
use file::Lines;

/// Opens what was sealed in an event: its line and its ciphertext.
pub type OpenContent = Arc<dyn Fn(&[u8], Option<&[u8]>) -> Option<Json> + Send + Sync>;

/// Is told when exporting begins to fail, with the reason, and when it works again.
pub type Report = Arc<dyn Fn(&'static str, Option<&str>) + Send + Sync>;

/// What is exported, and where to.
pub struct Settings {
    /// A file, if any.
    pub file: Option<File>,
    /// A collector, if any.
    pub collector: Option<Collector>,
    /// Takes secrets out.
    pub redactor: Redactor,
    /// Tells arguments and results too, made general; not at all if absent.
    pub open: Option<OpenContent>,
    /// Hears of trouble.
    pub report: Report,
}

/// A file of one span a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Where it is.
    pub path: PathBuf,
    /// When it is as large as this, it makes room for a new one; one old one is kept.
    pub max_bytes: u64,
}

/// What is configured cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The file cannot be written.
    #[error("`{}`: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// There is no such collector.
    #[error("{0}")]
    Collector(String),
    /// There is no thread for it.
    #[error("cannot start: {0}")]
    Thread(std::io::Error),
}

/// Takes events, and exports what may be told of them.
pub struct Telemetry {
    queue: Option<SyncSender<Seen>>,
    load: Arc<Load>,
    metrics: Arc<Metrics>,
    has_content: bool,
    thread: Option<JoinHandle<()>>,
}

/// An event that waits.
struct Seen {
    line: Vec<u8>,
    ciphertext: Option<Vec<u8>>,
}

/// How much waits.
#[derive(Default)]
struct Load {
    events: AtomicUsize,
    bytes: AtomicUsize,
}

impl Telemetry {
    /// Starts to export. Without file and collector nothing leaves, and the rest works all the same.
    pub fn start(settings: Settings, metrics: Arc<Metrics>) -> Result<Self, StartError> {
        let lines = settings.file.map(Lines::open).transpose()?;
        let collector = settings.collector;
        let sender = collector.map(|collector| {
            collector::start(
                collector,
                Arc::clone(&metrics),
                Arc::clone(&settings.report),
            )
        });
        let load = Arc::new(Load::default());
        let (queue, waiting) = sync_channel(MAX_EVENTS);
        let has_content = settings.open.is_some();
        let exporter = Exporter {
            fold: Fold::new(settings.redactor),
            open: settings.open,
            lines,
            sender: sender.transpose()?,
            load: Arc::clone(&load),
            metrics: Arc::clone(&metrics),
            report: settings.report,
            is_failing: false,
        };
        let thread = std::thread::Builder::new().name("telemetry".to_owned());
        let thread = thread.spawn(move || exporter.run(&waiting));
        Ok(Self {
            queue: Some(queue),
            load,
            metrics,
            has_content,
            thread: Some(thread.map_err(StartError::Thread)?),
        })
    }

    /// An event was recorded. Never waits: what there is no room for is counted and dropped.
    pub fn event(&self, line: &[u8], ciphertext: Option<&[u8]>) {
        if let Ok(line) = Line::read(line) {
            self.metrics.event(&line);
        }
        let ciphertext = ciphertext.filter(|_| self.has_content);
        let bytes = line.len() + ciphertext.map_or(0, <[u8]>::len);
        let before = self.load.bytes.fetch_add(bytes, Ordering::Relaxed);
        let seen = Seen {
            line: line.to_vec(),
            ciphertext: ciphertext.map(<[u8]>::to_vec),
        };
        self.load.events.fetch_add(1, Ordering::Relaxed);
        let sent = match &self.queue {
            Some(queue) if before + bytes <= MAX_BYTES => queue.try_send(seen),
            _ => Err(TrySendError::Full(seen)),
        };
        if sent.is_err() {
            self.load.events.fetch_sub(1, Ordering::Relaxed);
            self.load.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.metrics.add_dropped(Cause::QueueFull, 1);
        }
        self.metrics
            .set_waiting(self.load.events.load(Ordering::Relaxed));
    }
}

/// What was taken is exported before the last one who knows of it goes on.
impl Drop for Telemetry {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Exporter {
    fold: Fold,
    open: Option<OpenContent>,
    lines: Option<Lines>,
    sender: Option<collector::Sender>,
    load: Arc<Load>,
    metrics: Arc<Metrics>,
    report: Report,
    is_failing: bool,
}

impl Exporter {
    fn run(mut self, waiting: &Receiver<Seen>) {
        let mut batch: Vec<Span> = Vec::new();
        let mut since = Instant::now();
        loop {
            let wait = match batch.is_empty() {
                true => IDLE,
                false => LINGER.saturating_sub(since.elapsed()),
            };
            let is_over = match waiting.recv_timeout(wait) {
                Ok(seen) => {
                    if batch.is_empty() {
                        since = Instant::now();
                    }
                    self.take(&seen, &mut batch);
                    false
                }
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => true,
            };
            let is_due = since.elapsed() >= LINGER || batch.len() >= MAX_BATCH || is_over;
            if is_due && !batch.is_empty() {
                self.export(std::mem::take(&mut batch));
            }
            if is_over {
                return;
            }
        }
    }

    fn take(&mut self, seen: &Seen, batch: &mut Vec<Span>) {
        let bytes = seen.line.len() + seen.ciphertext.as_ref().map_or(0, Vec::len);
        self.load.bytes.fetch_sub(bytes, Ordering::Relaxed);
        let before = self.load.events.fetch_sub(1, Ordering::Relaxed);
        self.metrics.set_waiting(before.saturating_sub(1));
        let Ok(line) = Line::read(&seen.line) else {
            return;
        };
        let open = self.open.as_ref();
        let content = open.and_then(|open| open(&seen.line, seen.ciphertext.as_deref()));
        let told = self.fold.take(&line, content.as_ref());
        if let Some(held) = told.held {
            self.metrics.held(held);
        }
        if let Some(took) = told.upstream {
            self.metrics.answered(took);
        }
        batch.extend(told.spans);
    }

    fn export(&mut self, batch: Vec<Span>) {
        let spans = batch.len();
        let mut is_out = false;
        if let Some(lines) = &mut self.lines {
            match lines.write(&batch) {
                Ok(()) => {
                    is_out = true;
                    if std::mem::take(&mut self.is_failing) {
                        (self.report)("spans are written again", None);
                    }
                }
                Err(error) => {
                    self.metrics.add_dropped(Cause::FileFailed, spans);
                    if !std::mem::replace(&mut self.is_failing, true) {
                        (self.report)("spans cannot be written", Some(&error.to_string()));
                    }
                }
            }
        }
        match &self.sender {
            Some(sender) => sender.send(batch, !is_out),
            None if is_out => self.metrics.add_exported(spans),
            None => {}
        }
        if self.sender.is_some() && is_out {
            self.metrics.add_exported(spans);
        }
    }
}

const MAX_EVENTS: usize = 8192;
const MAX_BYTES: usize = 64 << 20;
const MAX_BATCH: usize = 512;
const LINGER: Duration = Duration::from_millis(200);
const IDLE: Duration = Duration::from_secs(60);
