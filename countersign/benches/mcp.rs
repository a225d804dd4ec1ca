//! What `countersign mcp` adds to a request, beside the same server without it and beside one fsync.
//!
//! `COUNTERSIGN_BENCH_REQUESTS` (default 300) and `COUNTERSIGN_BENCH_CONNECTIONS` (default `1,8`) say
//! how much is measured.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark may stop at once, and prints"
)]

mod door;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

fn main() {
    let (folder, manifest) = door::place();
    let plan = door::Plan::new(folder.path(), "1,8");
    plan.run(&|wrapped| Client::start(folder.path(), &manifest, wrapped));
}

struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    line: String,
}

impl Client {
    fn start(folder: &Path, manifest: &Path, wrapped: bool) -> Self {
        let mut command = Command::new(toy());
        if wrapped {
            command = Command::new(env!("CARGO_BIN_EXE_countersign"));
            command.arg("mcp").arg("--data").arg(folder.join("data"));
            command.arg("--manifest").arg(manifest);
            command.arg("--").arg(toy());
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            line: String::new(),
        }
    }
}

impl door::Client for Client {
    fn ask(&mut self, id: &str, method: &str) {
        let request = door::request(id, method) + "\n";
        self.stdin
            .as_mut()
            .unwrap()
            .write_all(request.as_bytes())
            .unwrap();
        self.line.clear();
        self.stdout.read_line(&mut self.line).unwrap();
        assert!(self.line.contains("\"result\""), "{}", self.line);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
    }
}

fn toy() -> PathBuf {
    let toy = Path::new(env!("CARGO_BIN_EXE_countersign"))
        .parent()
        .unwrap();
    let toy = toy.join("examples/toy_mcp_server");
    assert!(
        toy.exists(),
        "first: cargo build --release --example toy_mcp_server"
    );
    toy
}
