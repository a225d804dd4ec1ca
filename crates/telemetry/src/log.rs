//! Log lines, for people or for programs.

use std::fmt;
use std::io::Write;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use countersign_canon::Json;
use countersign_redact::{Public, Record};

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Somebody has to look.
    Error,
    /// Something is not as it should be.
    Warn,
    /// What happens now and then.
    Info,
    /// Every request.
    Debug,
}

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Writes lines. What is in one is a word of ours or has a privacy class.
///
/// A thread of its own writes: whoever says something does not wait for whoever reads it. Lines that
/// there is no room for are dropped, and their number is said as soon as there is room again.
pub struct Log {
    format: LogFormat,
    most: Level,
    lines: Option<SyncSender<Vec<u8>>>,
    dropped: AtomicU64,
    /// Breaks off when everything was written.
    ended: Mutex<Receiver<()>>,
}

impl Log {
    /// Lines that matter at least so much.
    pub fn new(format: LogFormat, most: Level, out: Box<dyn Write + Send>) -> Self {
        let (lines, waiting) = sync_channel::<Vec<u8>>(MAX_LINES);
        let (ending, ended) = sync_channel(0);
        let mut out = out;
        let work = move || {
            for line in waiting {
                let _ = out.write_all(&line).and_then(|()| out.flush());
            }
            drop(ending);
        };
        let thread = std::thread::Builder::new().name("log".to_owned());
        Self {
            format,
            most,
            // Without a thread there are no lines; nothing else depends on them.
            lines: thread.spawn(work).ok().map(|_| lines),
            dropped: AtomicU64::new(0),
            ended: Mutex::new(ended),
        }
    }

    /// How lines look.
    pub fn format(&self) -> LogFormat {
        self.format
    }

    /// Whether a line of this level is written.
    pub fn is_on(&self, level: Level) -> bool {
        level <= self.most
    }

    /// Writes a line. There is nowhere to report its failure.
    pub fn write(&self, level: Level, message: &'static str, record: Record) {
        if !self.is_on(level) {
            return;
        }
        let lost = self.dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let record = Record::default().public("lines", Public::count(lost));
            let line = self.line(Level::Warn, "log lines were dropped", record);
            if !self.put(line) {
                self.dropped.fetch_add(lost, Ordering::Relaxed);
            }
        }
        if !self.put(self.line(level, message, record)) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn line(&self, level: Level, message: &str, record: Record) -> Vec<u8> {
        match self.format {
            LogFormat::Text => text(level, message, &record),
            LogFormat::Json => json(level, message, record),
        }
    }

    fn put(&self, line: Vec<u8>) -> bool {
        let lines = self.lines.as_ref();
        lines.is_some_and(|lines| lines.try_send(line).is_ok())
    }
}

/// What was said is written before the process ends, unless nobody reads it.
impl Drop for Log {
    fn drop(&mut self) {
        drop(self.lines.take());
        let ended = self.ended.get_mut();
        let _ = ended.map(|ended| ended.recv_timeout(FAREWELL));
    }
}

fn text(level: Level, message: &str, record: &Record) -> Vec<u8> {
    let mut line = match level {
        Level::Error | Level::Warn => format!("countersign: {level}: {message}"),
        Level::Info | Level::Debug => format!("countersign: {message}"),
    }
    .into_bytes();
    for (name, value) in record.fields() {
        line.extend_from_slice(format!(" {name}=").as_bytes());
        match value.as_str() {
            // A name with a line break in it must not look like two lines.
            Some(word) if word.bytes().all(is_plain) && !word.is_empty() => {
                line.extend_from_slice(word.as_bytes());
            }
            _ => line.extend_from_slice(&value.to_sorted_ascii()),
        }
    }
    line.push(b'\n');
    line
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'=')
}

fn json(level: Level, message: &str, record: Record) -> Vec<u8> {
    let mut members = vec![
        ("time", Json::from(jiff::Timestamp::now().to_string())),
        ("level", Json::from(level.as_str())),
        ("message", Json::from(message)),
    ];
    let fields = record.into_json().into_inner();
    if fields.as_object().is_some_and(|fields| !fields.is_empty()) {
        members.push(("fields", fields));
    }
    let mut line = Json::object(members).to_sorted_ascii();
    line.push(b'\n');
    line
}

/// A text that is no level or format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not one of: {1}")]
pub struct UnknownWord(String, &'static str);

impl Level {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Level {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let all = [Self::Error, Self::Warn, Self::Info, Self::Debug];
        let mut found = all.into_iter().filter(|level| level.as_str() == text);
        let unknown = || UnknownWord(text.to_owned(), "error, warn, info, debug");
        found.next().ok_or_else(unknown)
    }
}

impl FromStr for LogFormat {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(UnknownWord(text.to_owned(), "text, json")),
        }
    }
}

const MAX_LINES: usize = 4096;
const FAREWELL: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use countersign_redact::Redactor;

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn written(format: LogFormat, level: Level) -> String {
        let shared = Shared::default();
        let log = Log::new(format, Level::Info, Box::new(shared.clone()));
        let name = Public::name("a\nlevel=error password=hunter2", &Redactor::default());
        let record = Record::default()
            .public("name", name)
            .public("count", Public::count(3));
        log.write(level, "something happened", record);
        drop(log);
        let bytes = shared.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_line_is_one_line_and_has_no_secret() {
        let text = written(LogFormat::Text, Level::Warn);
        assert!(
            text.starts_with("countersign: warn: something happened count=3 name="),
            "{text}"
        );
        let json = written(LogFormat::Json, Level::Info);
        assert!(
            json.contains(r#""level":"info","message":"something happened""#),
            "{json}"
        );
        for text in [text, json] {
            assert_eq!(text.matches('\n').count(), 1, "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
        assert_eq!(written(LogFormat::Json, Level::Debug), "");
    }

    #[test]
    fn nobody_waits_for_whoever_does_not_read() {
        struct Stuck(std::sync::mpsc::Receiver<()>);
        impl Write for Stuck {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                let _ = self.0.recv();
                Ok(bytes.len())
            }

            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let (release, stuck) = std::sync::mpsc::channel();
        let log = Log::new(LogFormat::Text, Level::Info, Box::new(Stuck(stuck)));
        for _ in 0..2 * MAX_LINES {
            log.write(Level::Info, "again", Record::default());
        }
        assert!(log.dropped.load(Ordering::Relaxed) > 0);
        drop(release);
    }
}
