//! Runs a command within what its permit allows.

use std::io::{self, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use countersign_policy::capability::Constraints;

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

/// Runs the command with these bytes on its standard input. It has so much time, and may print so much.
pub(super) fn supervise(command: &[String], bytes: &[u8], constraints: Constraints) -> Ended {
    match start(command) {
        Ok(child) => watch(child, bytes, constraints),
        Err(error) => Ended::Broken {
            code: "not_started",
            message: format!("cannot start the command: {error}"),
        },
    }
}

fn start(command: &[String]) -> io::Result<Child> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| io::Error::other("there is none"))?;
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
}

fn watch(mut child: Child, bytes: &[u8], constraints: Constraints) -> Ended {
    let started = Instant::now();
    let too_much = Arc::new(AtomicBool::new(false));
    let input = child.stdin.take();
    let output = child.stdout.take();
    let bytes = bytes.to_vec();
    let feeder = thread::spawn(move || {
        // A command that does not read its input closes it.
        let _ = input.map(|mut input| input.write_all(&bytes));
    });
    let copier = {
        let too_much = Arc::clone(&too_much);
        let limit = constraints.max_output_bytes;
        thread::spawn(move || output.map(|output| copy(output, limit, &too_much)))
    };
    let limit = Duration::from_millis(constraints.timeout_ms);
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if too_much.load(Ordering::SeqCst) => break Err(Stopped::TooMuch),
            Ok(None) if started.elapsed() >= limit => break Err(Stopped::TooLong),
            Ok(None) => thread::sleep(POLL),
            Err(error) => break Err(Stopped::Lost(error)),
        }
    };
    if ended.is_err() {
        // It may have ended meanwhile, which is as good.
        let _ = child.kill();
        let _ = child.wait();
    } else {
        // The rest of what it printed; a grandchild that keeps the pipe open is not waited for.
        let patience = Instant::now();
        while !(feeder.is_finished() && copier.is_finished()) && patience.elapsed() < REST {
            thread::sleep(POLL);
        }
    }
    match ended {
        Ok(_) if too_much.load(Ordering::SeqCst) => Stopped::TooMuch.ended(constraints),
        Ok(status) => match status.code() {
            Some(code) => Ended::Exit(code),
            None => Ended::Broken {
                code: "killed",
                message: format!("the command was killed: {status}"),
            },
        },
        Err(stopped) => stopped.ended(constraints),
    }
}

enum Stopped {
    TooLong,
    TooMuch,
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
            Self::Lost(error) => ("lost", format!("the command was lost: {error}")),
        };
        Ended::Broken { code, message }
    }
}

/// Passes on what a command prints, up to the limit.
fn copy(mut from: impl io::Read, limit: u64, too_much: &AtomicBool) {
    let mut left = limit;
    let mut buffer = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let fits = usize::try_from(left).map_or(read, |left| left.min(read));
        left = left.saturating_sub(fits as u64);
        let part = buffer.get(..fits).unwrap_or_default();
        let mut out = io::stdout().lock();
        // The reader may be gone; the command goes on.
        let _ = out.write_all(part).and_then(|()| out.flush());
        if fits < read {
            too_much.store(true, Ordering::SeqCst);
            return;
        }
    }
}

const POLL: Duration = Duration::from_millis(5);
const REST: Duration = Duration::from_secs(2);

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn run(script: &str, timeout_ms: u64, max_output_bytes: u64) -> Ended {
        let command = ["sh", "-c", script].map(str::to_owned);
        let constraints = Constraints {
            timeout_ms,
            max_output_bytes,
        };
        supervise(&command, b"{}", constraints)
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
        let nothing = ["/nowhere/nothing".to_owned()];
        let constraints = Constraints {
            timeout_ms: 1,
            max_output_bytes: 1,
        };
        assert_eq!(code(&supervise(&nothing, b"", constraints)), "not_started");
    }
}
