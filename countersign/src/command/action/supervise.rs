//! Runs a command within what its permit allows.

use std::io::{self, Write as _};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use countersign_policy::capability::Constraints;
use signal_hook::consts::SIGTERM;

use super::group::{Doing, Group, Heard, POLL};
use super::invocation::Invocation;

/// How a command ended.
pub(super) enum Ended {
    /// By itself.
    Exit(i32),
    /// It did not start, or was stopped.
    Broken {
        /// A short name for it.
        code: &'static str,
        /// What is known about it.
        message: String,
    },
}

/// What a command has printed, where nobody may see it yet.
#[derive(Clone, Default)]
pub(super) struct Kept {
    output: Arc<Mutex<Vec<u8>>>,
    errors: Arc<Mutex<Vec<u8>>>,
}

impl Kept {
    /// What it printed so far: its output, and its errors.
    pub(super) fn take(&self) -> [Vec<u8>; 2] {
        [&self.output, &self.errors]
            .map(|all| std::mem::take(&mut *all.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// How a command ended, and whether somebody wanted it to.
pub(super) struct Over {
    /// How it ended.
    pub(super) ended: Ended,
    /// The signal that came for it last, and was passed on.
    pub(super) signal: Option<i32>,
}

/// Runs the command with these bytes on its standard input. It has so much time, and may print so much:
/// through us, or to be kept. What we hear meanwhile is passed on.
pub(super) fn supervise(
    invocation: &Invocation,
    bytes: &[u8],
    constraints: Constraints,
    kept: Option<&Kept>,
    heard: &mut Heard,
) -> Over {
    match start(invocation, kept.is_some()) {
        Ok(group) => watch(group, bytes, constraints, kept, heard),
        Err(error) => Over {
            ended: Ended::Broken {
                code: NOT_STARTED,
                message: format!("cannot start the command: {error}"),
            },
            signal: None,
        },
    }
}

fn start(invocation: &Invocation, is_kept: bool) -> io::Result<Group> {
    let mut command = invocation.command()?;
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(match is_kept {
            true => Stdio::piped(),
            false => Stdio::inherit(),
        });
    Group::start(&mut command)
}

fn watch(
    mut group: Group,
    bytes: &[u8],
    constraints: Constraints,
    kept: Option<&Kept>,
    heard: &mut Heard,
) -> Over {
    let started = Instant::now();
    let too_much = Arc::new(AtomicBool::new(false));
    let input = group.child().stdin.take();
    let bytes = bytes.to_vec();
    let feeder = thread::spawn(move || {
        // A command that does not read its input closes it.
        let _ = input.map(|mut input| input.write_all(&bytes));
    });
    let copiers = copiers(group.child(), constraints.max_output_bytes, &too_much, kept);
    let is_quiet = || copiers.iter().all(JoinHandle::is_finished);
    let limit = Duration::from_millis(constraints.timeout_ms);
    let mut signal = None;
    let mut told_at = None;
    let stopped = loop {
        if let Some(number) = heard.pass_on(&group) {
            signal = Some(number);
            // What it does about the others is its own.
            if number == SIGTERM {
                told_at.get_or_insert_with(Instant::now);
            }
        }
        let is_late = told_at.is_some_and(|at: Instant| at.elapsed() >= AFTER_TERM);
        match group.look() {
            Ok(Doing::Ended) => break None,
            Ok(Doing::WantsTerminal) => break Some(Stopped::NoTerminal),
            Ok(Doing::Runs) if too_much.load(Ordering::SeqCst) => break Some(Stopped::TooMuch),
            Ok(Doing::Runs) if started.elapsed() >= limit => break Some(Stopped::TooLong),
            Ok(Doing::Runs) if is_late => break Some(Stopped::Told),
            Ok(Doing::Runs) => thread::sleep(POLL),
            Err(error) => break Some(Stopped::Lost(error)),
        }
    };
    if stopped.is_some() {
        group.end(is_quiet);
    } else {
        // The rest of what it printed; a grandchild that keeps the pipe open is not waited for.
        let patience = Instant::now();
        while !(feeder.is_finished() && is_quiet()) && patience.elapsed() < REST {
            thread::sleep(POLL);
        }
    }
    let status = group.reap();
    let is_too_much = too_much.load(Ordering::SeqCst);
    let stopped = stopped.or_else(|| is_too_much.then_some(Stopped::TooMuch));
    let ended = match (stopped, status) {
        (Some(stopped), _) => stopped.ended(constraints),
        (None, Err(error)) => Stopped::Lost(error).ended(constraints),
        (None, Ok(status)) => match status.code() {
            Some(code) => Ended::Exit(code),
            None => Ended::Broken {
                code: "killed",
                message: format!("the command was killed: {status}"),
            },
        },
    };
    Over { ended, signal }
}

enum Stopped {
    TooLong,
    TooMuch,
    /// It did not end when it was told to.
    Told,
    NoTerminal,
    Lost(io::Error),
}

impl Stopped {
    fn ended(self, constraints: Constraints) -> Ended {
        let Constraints {
            timeout_ms,
            max_output_bytes,
            ..
        } = constraints;
        let (code, message) = match self {
            Self::TooLong => (
                "timeout",
                format!("the command was stopped after {timeout_ms} ms"),
            ),
            Self::TooMuch => (
                "output_too_large",
                format!("the command was stopped: it printed more than {max_output_bytes} bytes"),
            ),
            Self::Told => (
                "interrupted",
                "the command was stopped: it did not end when it was told to".to_owned(),
            ),
            Self::NoTerminal => (
                "no_terminal",
                "the command was stopped: it asks in the terminal, which it does not have"
                    .to_owned(),
            ),
            Self::Lost(error) => ("lost", format!("the command was lost: {error}")),
        };
        Ended::Broken { code, message }
    }
}

/// Threads that read what a command prints.
fn copiers(
    child: &mut Child,
    limit: u64,
    too_much: &Arc<AtomicBool>,
    kept: Option<&Kept>,
) -> Vec<JoinHandle<()>> {
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let (too_much, kept) = (Arc::clone(too_much), kept.cloned());
    let Some(kept) = kept else {
        let through = move || copy(output, limit, &too_much, &mut io::stdout());
        return vec![thread::spawn(through)];
    };
    let (output_kept, errors_kept) = (Keeper(kept.output), Keeper(kept.errors));
    let also_too_much = Arc::clone(&too_much);
    vec![
        thread::spawn(move || copy(output, limit, &too_much, &mut { output_kept })),
        thread::spawn(move || copy(errors, limit, &also_too_much, &mut { errors_kept })),
    ]
}

/// Keeps what is written.
struct Keeper(Arc<Mutex<Vec<u8>>>);

impl io::Write for Keeper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Passes on what a command prints, up to the limit.
fn copy(from: Option<impl io::Read>, limit: u64, too_much: &AtomicBool, to: &mut impl io::Write) {
    let Some(mut from) = from else { return };
    let mut left = limit;
    let mut buffer = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let fits = usize::try_from(left).map_or(read, |left| left.min(read));
        left = left.saturating_sub(fits as u64);
        let part = buffer.get(..fits).unwrap_or_default();
        // The reader may be gone; the command goes on.
        let _ = to.write_all(part).and_then(|()| to.flush());
        if fits < read {
            too_much.store(true, Ordering::SeqCst);
            return;
        }
    }
}

/// Nothing of the command ran.
pub(super) const NOT_STARTED: &str = "not_started";
/// How long a command may take to end that somebody else tells to.
const AFTER_TERM: Duration = Duration::from_secs(5);
const REST: Duration = Duration::from_secs(2);

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn run(script: &str, timeout_ms: u64, max_output_bytes: u64) -> Ended {
        let command = Invocation::here(&["sh", "-c", script].map(str::to_owned)).unwrap();
        let constraints = Constraints {
            timeout_ms,
            max_output_bytes,
        };
        over(&command, b"{}", constraints, None)
    }

    fn over(
        invocation: &Invocation,
        bytes: &[u8],
        constraints: Constraints,
        kept: Option<&Kept>,
    ) -> Ended {
        let mut heard = Heard::listen().unwrap();
        supervise(invocation, bytes, constraints, kept, &mut heard).ended
    }

    fn code(ended: &Ended) -> &'static str {
        match ended {
            Ended::Exit(0) => "done",
            Ended::Exit(_) => "failed",
            Ended::Broken { code, .. } => code,
        }
    }

    #[test]
    fn a_command_keeps_to_its_limits() {
        let check = |script, expect| assert_eq!(code(&run(script, 20_000, 10)), expect, "{script}");
        check(r#"test "$(cat)" = '{}'"#, "done");
        check("exit 7", "failed");
        check("printf 1234567890", "done");
        check("printf 12345678901; sleep 30", "output_too_large");
        check("printf 12345678901", "output_too_large");
        check("kill -9 $$", "killed");
        assert_eq!(code(&run("sleep 30", 50, 10)), "timeout");
        let nothing = Invocation::here(&["/nowhere/nothing".to_owned()]).unwrap();
        let constraints = Constraints {
            timeout_ms: 1,
            max_output_bytes: 1,
        };
        let ended = over(&nothing, b"", constraints, None);
        assert_eq!(code(&ended), "not_started");
    }

    #[test]
    fn what_is_kept_is_all_that_a_command_prints() {
        let kept = Kept::default();
        let command = ["sh", "-c", "printf seen; printf wrong >&2"].map(str::to_owned);
        let command = Invocation::here(&command).unwrap();
        let constraints = Constraints {
            timeout_ms: 20_000,
            max_output_bytes: 10,
        };
        let ended = over(&command, b"{}", constraints, Some(&kept));
        assert_eq!(code(&ended), "done");
        assert_eq!(kept.take(), [b"seen".to_vec(), b"wrong".to_vec()]);
    }
}
