//! Parts of a test that run in a process of their own: ignored tests of the same binary.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use countersign_approval::ApprovalId;

/// The command that runs an ignored test of this binary on a folder.
pub(crate) fn command(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            test,
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The folder that the parent gave; `None` when somebody runs the ignored tests by hand.
pub(crate) fn given_folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

pub(crate) fn given_approval() -> ApprovalId {
    std::env::var(APPROVAL).unwrap().parse().unwrap()
}

/// One line to the parent.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n> {line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Kills this process as the kernel would: no destructor runs, no buffer is written.
pub(crate) fn die() -> ! {
    let kill = format!("kill -9 {}", std::process::id());
    let _ = Command::new("sh").args(["-c", &kill]).status();
    loop {
        std::thread::park();
    }
}

/// A tool with an effect that can be counted: one more byte in a file.
pub(crate) fn effect(folder: &Path) {
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("effects"));
    let mut file = file.unwrap();
    file.write_all(b"x").unwrap();
    file.sync_all().unwrap();
}

pub(crate) fn effects(folder: &Path) -> usize {
    std::fs::read(folder.join("effects")).map_or(0, |bytes| bytes.len())
}

/// A child that waits for a word before it begins.
pub(crate) struct Waiting {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Waiting {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    pub(crate) fn hear(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.out.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let said = line.strip_prefix("> ");
            if let Some(said) = said.and_then(|said| said.strip_suffix('\n')) {
                return Some(said.to_owned());
            }
        }
    }

    /// Lets it begin.
    pub(crate) fn go(&mut self) {
        drop(self.child.stdin.take());
    }

    /// What else it says, and whether it was killed.
    pub(crate) fn end(mut self) -> (Vec<String>, bool, String) {
        let said = std::iter::from_fn(|| self.hear()).collect();
        let mut errors = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        std::io::Read::read_to_string(&mut stderr, &mut errors).unwrap();
        let status = self.child.wait().unwrap();
        let killed = std::os::unix::process::ExitStatusExt::signal(&status) == Some(9);
        (said, killed, errors)
    }
}

/// Waits for the word to begin.
pub(crate) fn wait_for_go() {
    let _ = std::io::Read::read(&mut std::io::stdin(), &mut [0]);
}

pub(crate) const APPROVAL: &str = "COUNTERSIGN_TEST_APPROVAL";
const FOLDER: &str = "COUNTERSIGN_TEST_FOLDER";
