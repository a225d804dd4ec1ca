//! A watcher that outlives us, if only just: when we are killed, it ends the server.
//!
//! A process that is killed cannot tidy up. The guard is another process that holds the reading end
//! of a pipe; when the pipe ends without a word, we are gone.

use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::child::pid;

/// A running guard.
pub struct Guard(Child);

impl Guard {
    /// Starts a guard over a process group. `command` must end in [`guard`].
    pub fn start(mut command: Command, group: Pid) -> io::Result<Self> {
        let child = command
            .arg(group.as_raw_nonzero().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self(child))
    }

    /// Says that nothing is left to guard.
    pub fn dismiss(mut self) {
        if let Some(mut pipe) = self.0.stdin.take() {
            // A guard that is gone needs no word.
            let _ = pipe.write_all(b".");
        }
        let _ = self.0.wait();
    }
}

/// What the guard's process does: waits for the end of `pipe`, then ends the process group.
pub fn guard(group: u32, mut pipe: impl Read) {
    let Some(group) = pid(group) else { return };
    let mut word = [0];
    loop {
        match pipe.read(&mut word) {
            Ok(0) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A word: everything ended as it should.
            Ok(_) => return,
            Err(_) => break,
        }
    }
    let _ = kill_process_group(group, Signal::TERM);
    for _ in 0..GRACE_STEPS {
        if test_kill_process_group(group).is_err() {
            return;
        }
        std::thread::sleep(STEP);
    }
    let _ = kill_process_group(group, Signal::KILL);
}

const STEP: Duration = Duration::from_millis(50);
const GRACE_STEPS: usize = 40;
