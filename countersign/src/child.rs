//! Servers that a command starts for itself.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::errors::{Code, Failure};

/// A process that ends with us.
pub(crate) struct Process {
    child: Child,
    stdout: Option<BufReader<std::process::ChildStdout>>,
    stderr: Option<BufReader<std::process::ChildStderr>>,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Result<Self, Failure> {
        let piped = command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = piped.stderr(Stdio::piped()).spawn()?;
        Ok(Self {
            stdout: child.stdout.take().map(BufReader::new),
            stderr: child.stderr.take().map(BufReader::new),
            child,
        })
    }

    /// The next line of its output.
    pub(crate) fn out(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        let read = self.stdout.as_mut().map(|out| out.read_line(&mut line));
        match read {
            Some(Ok(length)) if length > 0 => Ok(line.trim_end().to_owned()),
            _ => Err(self.silent()),
        }
    }

    /// The next line on standard error that begins so.
    pub(crate) fn said(&mut self, beginning: &str) -> Result<String, Failure> {
        loop {
            let mut line = String::new();
            let read = self.stderr.as_mut().map(|said| said.read_line(&mut line));
            match read {
                Some(Ok(length)) if length > 0 => {}
                _ => return Err(self.silent()),
            }
            if line.starts_with(beginning) {
                return Ok(line.trim_end().to_owned());
            }
            if line.starts_with("error") {
                return Err(Failure::new(Code::NoDaemon, line.trim_end().to_owned()));
            }
        }
    }

    /// What it says from now on is read and dropped, so that it never waits for us.
    pub(crate) fn listen_no_more(&mut self) {
        let drain = |source: Option<Box<dyn Read + Send>>| {
            if let Some(mut source) = source {
                std::thread::spawn(move || std::io::copy(&mut source, &mut std::io::sink()));
            }
        };
        drain(self.stdout.take().map(|out| Box::new(out) as _));
        drain(self.stderr.take().map(|said| Box::new(said) as _));
    }

    pub(crate) fn end(mut self) -> Result<(), Failure> {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process};
            let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            if let Some(id) = id {
                kill_process(id, Signal::TERM).map_err(std::io::Error::from)?;
            }
        }
        #[cfg(not(unix))]
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    fn silent(&self) -> Failure {
        Failure::new(Code::NoDaemon, "the server does not start")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It keeps nothing that anybody needs.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This program, without the configuration of whoever runs it.
pub(crate) fn ours() -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"COUNTERSIGN_") {
            command.env_remove(name);
        }
    }
    Ok(command)
}
