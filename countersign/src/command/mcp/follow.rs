//! Spans of what the doors for MCP record, if somebody asks for them.

use std::collections::HashSet;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use countersign_engine::Engine;
use countersign_event::{EventType, Line, Scope};
use countersign_redact::Redactor;
use countersign_store::{Error, Filter};
use countersign_telemetry::{File, Level, Log, LogFormat, Settings, Telemetry};

use crate::command::serve::report;
use crate::errors::{Code, Failure};

/// Reads what is recorded in the sessions of this process, and tells it. The log is read, so that no
/// call waits for it.
pub(super) struct Follower {
    sessions: Arc<Mutex<HashSet<(String, String)>>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    pub(super) fn start(engine: Arc<Engine>, path: &Path) -> Result<Self, Failure> {
        let wrong = |error: &dyn ToString| Failure::new(Code::Input, error.to_string());
        let log = Log::new(LogFormat::Text, Level::Info, Box::new(std::io::stderr()));
        let settings = Settings {
            file: Some(File {
                path: path.to_owned(),
                max_bytes: MAX_BYTES,
            }),
            collector: None,
            redactor: Redactor::default(),
            open: None,
            report: report(Arc::new(log), Redactor::default()),
        };
        let telemetry = Telemetry::start(settings, Arc::default());
        let telemetry = telemetry.map_err(|error| wrong(&error))?;
        let sessions: Arc<Mutex<HashSet<(String, String)>>> = Arc::default();
        let (stop, stopped) = channel();
        let mut last = engine.store().reader().last_id()?;
        let known = Arc::clone(&sessions);
        let work = move || {
            loop {
                let is_over = stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected);
                let filter = Filter::default();
                // What cannot be read now is read the next time.
                let _ = engine.store().reader().each(&filter, last, |event| {
                    last = event.id;
                    if is_known(&known, &event.line) {
                        telemetry.event(&event.line, None);
                    }
                    Ok::<_, Error>(())
                });
                if is_over {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("follow".to_owned());
        Ok(Self {
            sessions,
            stop: Some(stop),
            thread: Some(thread.spawn(work).map_err(|error| wrong(&error))?),
        })
    }

    /// Tells of a session from now on.
    pub(super) fn follow(&self, scope: &Scope) {
        let name = (
            scope.tenant.as_str().to_owned(),
            scope.session.as_str().to_owned(),
        );
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(name);
    }
}

/// Everything that was recorded is told before the process ends.
impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn is_known(sessions: &Mutex<HashSet<(String, String)>>, line: &[u8]) -> bool {
    let Ok(line) = Line::read(line) else {
        return false;
    };
    let name = (line.tenant_id.into_owned(), line.session_id.into_owned());
    let mut sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
    match line.event_type {
        // Nothing comes after it.
        EventType::Termination => sessions.remove(&name),
        _ => sessions.contains(&name),
    }
}

const LOOK: Duration = Duration::from_millis(250);
const MAX_BYTES: u64 = 64 << 20;
