//! A command as a process group of its own, so that all of it can be told to end.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use countersign_mcp::stdio::Guard;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::command::mcp::guard_command;

/// What is meant for the command, and sent to us: we stand in front of it.
pub(super) struct Heard(Signals);

impl Heard {
    /// From now on. What was ignored when we were started stays so, for the command too: `nohup` and
    /// jobs in the background rely on it.
    pub(super) fn listen() -> io::Result<Self> {
        let ignored = ignored();
        let is_heard = |signal: &i32| ignored & (1 << (signal - 1)) == 0;
        let signals = [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP];
        Signals::new(signals.into_iter().filter(is_heard)).map(Self)
    }

    /// Passes on what has come. Gives the last of those that end most programs.
    pub(super) fn pass_on(&mut self, group: &Group) -> Option<i32> {
        let mut last = None;
        for number in self.0.pending() {
            if let Some(signal) = Signal::from_named_raw(number) {
                group.signal(signal);
            }
            if number == SIGTSTP {
                // Both pause, and go on together.
                let _ = emulate_default_handler(SIGTSTP);
                group.signal(Signal::CONT);
            } else {
                last = Some(number);
            }
        }
        last
    }
}

/// The signals that are ignored, a bit each.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or_default()
}

/// A running command and what it starts, unless that leaves the group.
pub(super) struct Group {
    child: Child,
    id: Pid,
    guard: Guard,
}

/// How a command is doing.
pub(super) enum Doing {
    /// It runs.
    Runs,
    /// It is over.
    Ended,
    /// The terminal stopped it: it reads from there, and its group is not the one that may.
    WantsTerminal,
}

impl Group {
    /// Starts it, with a guard that ends it when we are killed.
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        let guard =
            guard_command().map_err(|failure| io::Error::other(failure.message().to_owned()))?;
        let mut child = command.process_group(0).spawn()?;
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let guarded = id
            .ok_or_else(|| io::Error::other("the command has no id"))
            .and_then(|id| Ok((id, Guard::start(guard, id)?)));
        match guarded {
            Ok((id, guard)) => Ok(Self { child, id, guard }),
            Err(error) => {
                // FAIL-CLOSED: a command that could outlive us is not left running.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends a signal to all of it. Who is gone hears nothing.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.id, signal);
    }

    /// Looks, and leaves the child to be reaped.
    pub(super) fn look(&self) -> io::Result<Doing> {
        let options = WaitIdOptions::EXITED
            | WaitIdOptions::STOPPED
            | WaitIdOptions::NOHANG
            | WaitIdOptions::NOWAIT;
        let Some(status) = waitid(WaitId::Pid(self.id), options)? else {
            return Ok(Doing::Runs);
        };
        let by = status.stopping_signal().and_then(Signal::from_named_raw);
        Ok(match by {
            Some(Signal::TTIN | Signal::TTOU) => Doing::WantsTerminal,
            Some(_) => Doing::Runs,
            None => Doing::Ended,
        })
    }

    /// Ends all of it: tells it to, waits a little, and ends what is left then. `is_quiet` says whether
    /// nobody holds its pipes any more.
    pub(super) fn end(&self, is_quiet: impl Fn() -> bool) {
        self.signal(Signal::TERM);
        // Who is stopped hears nothing before that.
        self.signal(Signal::CONT);
        let told = Instant::now();
        while told.elapsed() < GRACE {
            if matches!(self.look(), Ok(Doing::Ended)) && is_quiet() {
                break;
            }
            thread::sleep(POLL);
        }
        // INVARIANT: the child was not waited for before, so its id still is its group's.
        self.signal(Signal::KILL);
    }

    /// How the child itself ended.
    pub(super) fn reap(mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait();
        self.guard.dismiss();
        status
    }
}

/// How long a command may take to end when it was told to.
pub(super) const GRACE: Duration = Duration::from_secs(2);
pub(super) const POLL: Duration = Duration::from_millis(5);
