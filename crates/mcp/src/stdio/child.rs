//! The server as a process: a group of its own, so that all of it can be told to stop.

use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With this code.
    Code(u8),
    /// By this signal.
    Signal(i32),
}

impl Ending {
    /// The exit code that says the same: a signal is 128 and its number, as in a shell.
    pub fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }
}

/// A process and what it starts. It does not outlive whoever has it.
pub(crate) struct Server {
    child: Child,
    group: Pid,
    is_reaped: bool,
}

/// The two ends that a session speaks to.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

impl Server {
    /// Starts it in a process group of its own. Environment, folder and standard error are ours.
    pub(crate) fn start(command: &mut Command) -> io::Result<(Self, Pipes)> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .process_group(0)
            .spawn()?;
        let missing = || io::Error::other("the child has no pipes");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let group = pid(child.id()).ok_or_else(|| io::Error::other("the child has no id"))?;
        let server = Self {
            child,
            group,
            is_reaped: false,
        };
        Ok((server, Pipes { stdin, stdout }))
    }

    pub(crate) fn group(&self) -> Pid {
        self.group
    }

    /// Sends a signal to all of it. Who is gone hears nothing.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.group, signal);
    }

    /// Ends what is left of it, and says how the child itself ended.
    pub(crate) fn reap(mut self) -> io::Result<Ending> {
        self.end().map(ending)
    }

    fn end(&mut self) -> io::Result<ExitStatus> {
        // INVARIANT: the child was not waited for before, so its id still is its group's.
        self.signal(Signal::KILL);
        self.is_reaped = true;
        self.child.wait()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.is_reaped {
            // Nobody is left to hear how it ended.
            let _ = self.end();
        }
    }
}

/// Waits until a child has ended, and leaves it to be reaped.
pub(crate) fn wait_for_end(group: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(group), options) {}
}

pub(crate) fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Code(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
        (None, Some(signal)) => Ending::Signal(signal),
        (None, None) => Ending::Code(1),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at once")]

    use rustix::process::test_kill_process_group;

    use super::*;

    #[test]
    fn a_server_ends_with_whoever_has_it() {
        let mut command = Command::new("sleep");
        let (server, pipes) = Server::start(command.arg("60")).unwrap();
        let group = server.group();
        test_kill_process_group(group).unwrap();
        drop((server, pipes));
        assert!(test_kill_process_group(group).is_err());
    }
}
