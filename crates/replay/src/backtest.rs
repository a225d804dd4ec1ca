//! What other policies would have said.

mod tally;
mod walk;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use countersign_event::Scope;
use countersign_policy::Policies;
use countersign_store::{Reader, SessionSummary};

use crate::Error;
pub use tally::{Change, Changes};

/// What is asked.
pub struct Question<'a> {
    /// The policies to try.
    pub policies: &'a Policies,
    /// How their verdicts are carried on.
    pub reading: Reading,
    /// Only actions from this time on.
    pub since_unix_ms: Option<u64>,
    /// Only actions before this time.
    pub until_unix_ms: Option<u64>,
    /// Only actions of this tool.
    pub tool: Option<String>,
    /// Only this session.
    pub scope: Option<Scope>,
    /// Only actions that this says yes to.
    pub wanted: Option<&'a Wanted<'a>>,
}

/// Says which actions are asked about.
pub type Wanted<'a> = dyn Fn(&RecordedAction<'_>) -> bool + Sync + 'a;

/// An action as it was recorded, and what was decided about it.
#[derive(Debug, Clone, Copy)]
pub struct RecordedAction<'a> {
    /// The session.
    pub scope: &'a Scope,
    /// When it was proposed.
    pub ts_unix_ms: u64,
    /// The tool.
    pub tool: &'a str,
    /// The server that offers it.
    pub server: Option<&'a str>,
    /// The call.
    pub call: &'a str,
    /// The agent, if the log knows it.
    pub agent: Option<&'a str>,
    /// What was decided.
    pub outcome: &'a str,
    /// The reason code.
    pub reason: Option<&'a str>,
}

/// How verdicts are carried on to later actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Each action is judged in the state that was recorded before it.
    Independent,
    /// Each action is judged in the state that the new verdicts would have led to: what would not
    /// have run has no result, and leaves neither taint nor progress.
    FeedForward,
}

/// What came out.
#[derive(Debug, Default)]
#[must_use]
pub struct Backtest {
    /// Sessions that were read.
    pub sessions: u64,
    /// Actions that were judged.
    pub actions: u64,
    /// Actions that the policies would have judged differently.
    pub changes: Changes,
    /// Sessions that could not be read, and why; the first thousand. Their actions are not counted.
    pub unread: Vec<(Scope, String)>,
    /// How many sessions could not be read.
    pub unread_sessions: u64,
    /// Whether somebody stopped it: what is told is what was found until then.
    pub interrupted: bool,
}

/// How far it has come, for whoever watches.
#[derive(Debug, Default)]
pub struct Progress {
    /// Events of all the sessions that are looked at.
    pub total_events: AtomicU64,
    /// Events of the sessions that are done.
    pub events: AtomicU64,
    /// Sessions that are done.
    pub sessions: AtomicU64,
    /// Actions that were judged.
    pub actions: AtomicU64,
    /// Set to stop it.
    pub stop: Arc<AtomicBool>,
}

/// Asks the policies about every recorded action, on every processor there is.
pub fn backtest(
    question: &Question<'_>,
    reader: &Reader,
    progress: &Progress,
) -> Result<Backtest, Error> {
    let sessions = sessions(question, reader)?;
    let all = sessions.iter().map(|session| session.events).sum();
    progress.total_events.store(all, Ordering::Relaxed);
    let next = AtomicUsize::new(0);
    let total = Mutex::new(Backtest::default());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(sessions.len()) {
            scope.spawn(|| {
                let mut mine = Backtest::default();
                while !progress.stop.load(Ordering::Relaxed)
                    && let Some(session) = sessions.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    mine.add(&session.scope, question, reader, progress);
                    progress.sessions.fetch_add(1, Ordering::Relaxed);
                    progress.events.fetch_add(session.events, Ordering::Relaxed);
                }
                lock(&total).merge(mine);
            });
        }
    });
    let mut total = total.into_inner().unwrap_or_default();
    total.interrupted = progress.stop.load(Ordering::Relaxed);
    total
        .unread
        .sort_by(|one, other| one.0.session.as_str().cmp(other.0.session.as_str()));
    Ok(total)
}

impl Backtest {
    fn add(
        &mut self,
        scope: &Scope,
        question: &Question<'_>,
        reader: &Reader,
        progress: &Progress,
    ) {
        match walk::session(scope, question, reader, progress) {
            Ok(walked) => {
                self.sessions += 1;
                self.actions += walked.actions;
                self.changes.merge(walked.changes);
            }
            Err(error) => {
                self.unread_sessions += 1;
                if self.unread.len() < MOST_UNREAD {
                    self.unread.push((scope.clone(), error.to_string()));
                }
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.actions += other.actions;
        self.changes.merge(other.changes);
        self.unread_sessions += other.unread_sessions;
        self.unread.extend(other.unread);
        self.unread.truncate(MOST_UNREAD);
    }
}

fn sessions(question: &Question<'_>, reader: &Reader) -> Result<Vec<SessionSummary>, Error> {
    if let Some(scope) = &question.scope {
        let found = reader.session(scope)?;
        let gone = || Error::NoSession(Box::new(scope.clone()));
        return Ok(vec![found.ok_or_else(gone)?]);
    }
    let mut sessions = reader.sessions(None)?;
    sessions.retain(|session| {
        question
            .since_unix_ms
            .is_none_or(|since| session.last_unix_ms >= since)
            && question
                .until_unix_ms
                .is_none_or(|until| session.first_unix_ms < until)
    });
    // Long sessions first, so that no processor is left alone with one at the end.
    sessions.sort_by_key(|session| std::cmp::Reverse(session.events));
    Ok(sessions)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

const MOST_UNREAD: usize = 1000;
