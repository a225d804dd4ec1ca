//! Policies that change while a door is open.
//!
//! A thread looks at the files now and then. Once they have changed, and have stopped changing, they are
//! read, compiled and tested; only then they take the place of those in force, between two decisions. If
//! anything is wrong with them, those in force stay.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use countersign_canon::Json;
use countersign_engine::{Engine, PolicyFiles, Stamp};
use countersign_event::payload::{ErrorRaised, MemoryWrite, Termination};
use countersign_event::{EventType, Payload, Scope};
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;

use crate::errors::{Code, Failure};
use crate::output::{self, visible};

/// The files of a door, and how they stood before they were first read.
pub(super) struct Watch {
    files: PolicyFiles,
    seen: Stamp,
}

/// Whose `SIGHUP` is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hangups {
    /// It asks for the policies to be read again.
    Ours,
    /// It goes to the server that is wrapped.
    NotOurs,
}

/// What became of the files.
enum Outcome {
    Changed(String),
    Same,
    Refused(String),
}

impl Watch {
    /// To be called before the files are read, so that no change is missed.
    pub(super) fn new(files: PolicyFiles) -> Self {
        let seen = files.stamp();
        Self { files, seen }
    }

    /// Looks at the files as long as the process lives.
    pub(super) fn start(
        self,
        engines: Vec<Arc<Engine>>,
        journal: Arc<Journal>,
        hangups: Hangups,
    ) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::new(Code::Server, error.to_string());
        let (asked, asks) = channel();
        if hangups == Hangups::Ours {
            let signals = Signals::new([SIGHUP]).map_err(failed)?;
            let asked = asked.clone();
            spawn("hangups", move || tell_of_hangups(signals, &asked)).map_err(failed)?;
        }
        spawn("policies", move || {
            // Held, so that the wait below ends by time where no signal is ours.
            let _asked = asked;
            self.run(&engines, &journal, &asks);
        })
        .map_err(failed)
    }

    fn run(mut self, engines: &[Arc<Engine>], journal: &Journal, asks: &Receiver<()>) {
        let mut refused = false;
        loop {
            let asked = match asks.recv_timeout(LOOK) {
                Ok(()) => true,
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if !asked && self.files.stamp() == self.seen {
                continue;
            }
            self.seen = self.settled();
            let outcome = reload(engines, &self.files);
            let tell = asked || refused || !matches!(outcome, Outcome::Same);
            refused = matches!(outcome, Outcome::Refused(_));
            if tell {
                journal.tell(&outcome);
            }
        }
    }

    /// How the files stand once nobody has written for a moment; or after a while, because a file that is
    /// written all the time must not keep the others out.
    fn settled(&self) -> Stamp {
        let mut stamp = self.files.stamp();
        for _ in 0..MOST_PAUSES {
            thread::sleep(PAUSE);
            let again = self.files.stamp();
            if again == stamp {
                break;
            }
            stamp = again;
        }
        stamp
    }
}

fn reload(engines: &[Arc<Engine>], files: &PolicyFiles) -> Outcome {
    let mut outcome = Outcome::Same;
    for engine in engines {
        match engine.reload(files) {
            Ok(true) => outcome = Outcome::Changed(engine.policies().digest().to_string()),
            Ok(false) => {}
            Err(error) => return Outcome::Refused(error.to_string()),
        }
    }
    outcome
}

/// Where changes of policies are told of: on standard error, and in a session of the log.
pub(super) struct Journal {
    engine: Option<Arc<Engine>>,
    scope: Scope,
    /// Whether the session is there for this alone, and has begun.
    begun: Option<AtomicBool>,
}

impl Journal {
    /// The session of the one client that the door has.
    pub(super) fn of_session(engine: Arc<Engine>, scope: Scope) -> Self {
        Self {
            engine: Some(engine),
            scope,
            begun: None,
        }
    }

    /// A session of its own, which begins with the first change: a door has many clients, or none.
    pub(super) fn of_door(engines: &[Arc<Engine>], scope: Scope) -> Self {
        Self {
            engine: engines.first().cloned(),
            scope,
            begun: Some(AtomicBool::new(false)),
        }
    }

    /// Ends a session of its own, if it has begun.
    pub(super) fn end(&self) {
        let begun = self.begun.as_ref();
        if begun.is_some_and(|begun| begun.load(Ordering::Acquire)) {
            let termination = Termination {
                reason_code: Some("door_closed".to_owned()),
                ..Termination::default()
            };
            self.record(EventType::Termination, Payload::Termination(termination));
        }
    }

    fn tell(&self, outcome: &Outcome) {
        let line = match outcome {
            Outcome::Changed(digest) => format!("the policies were reloaded: {digest}"),
            Outcome::Same => "the policies are those that are in force".to_owned(),
            Outcome::Refused(error) => {
                format!("the policies were not reloaded, and those in force stay: {error}")
            }
        };
        output::stderr(&visible(&format!("countersign: {line}")));
        match outcome {
            Outcome::Changed(digest) => {
                let written = MemoryWrite {
                    memory_key: Some("mcp/policies".to_owned()),
                    memory_store: Some(digest.clone()),
                    ..MemoryWrite::default()
                };
                self.record(EventType::MemoryWrite, Payload::MemoryWrite(written));
            }
            Outcome::Refused(error) => {
                let raised = ErrorRaised {
                    code: Some("policy_reload_refused".to_owned()),
                    fatal: Some(false),
                    message: Some(Json::from(error.as_str())),
                    ..ErrorRaised::default()
                };
                self.record(EventType::ErrorRaised, Payload::ErrorRaised(raised));
            }
            Outcome::Same => {}
        }
    }

    /// Every decision names the policies it was made by, so a change that could not be noted is said and
    /// no more.
    fn record(&self, event_type: EventType, payload: Payload) {
        let Some(engine) = &self.engine else { return };
        match engine.record(&self.scope, event_type, payload) {
            Ok(_) => {
                if let Some(begun) = &self.begun {
                    begun.store(true, Ordering::Release);
                }
            }
            Err(refusal) => output::stderr(&visible(&format!(
                "countersign: the log does not tell of it: {}",
                refusal.message()
            ))),
        }
    }
}

fn tell_of_hangups(mut signals: Signals, asked: &Sender<()>) {
    for _ in signals.forever() {
        if asked.send(()).is_err() {
            return;
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let builder = thread::Builder::new().name(name.to_owned());
    builder.spawn(work).map(drop)
}

/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How long nobody must have written.
const PAUSE: Duration = Duration::from_millis(200);
const MOST_PAUSES: usize = 25;
