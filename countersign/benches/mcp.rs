//! What `countersign mcp` adds to a request, beside the same server without it and beside the disk.
//!
//! `COUNTERSIGN_BENCH_REQUESTS` (default 1000), `COUNTERSIGN_BENCH_CONNECTIONS` (default `1,8`),
//! `COUNTERSIGN_BENCH_PACES` (requests of a connection in a second, 0 is full speed; default `50,0`) and
//! `COUNTERSIGN_BENCH_METHODS` (default `ping,tools/call`) say what is measured.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark may stop at once, and prints"
)]

mod door;

use std::io::{BufRead as _, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use door::Way;

fn main() {
    let (folder, manifest) = door::place();
    let plan = door::Plan::new(folder.path(), "1,8");
    plan.run(&|way| Client::start(folder.path(), &manifest, way));
}

struct Client {
    child: Child,
    stdin: Option<Box<dyn Write + Send>>,
    stdout: BufReader<Box<dyn Read + Send>>,
    line: String,
}

impl Client {
    fn start(folder: &Path, manifest: &Path, way: Way) -> Self {
        let mut command = Command::new(toy());
        if way == Way::Door {
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
        let mut stdin: Box<dyn Write + Send> = Box::new(child.stdin.take().unwrap());
        let mut stdout: Box<dyn Read + Send> = Box::new(child.stdout.take().unwrap());
        if way == Way::Relay {
            let (there, to_there) = std::io::pipe().unwrap();
            let (back, to_back) = std::io::pipe().unwrap();
            thread::spawn(move || copy(there, stdin));
            thread::spawn(move || copy(stdout, to_back));
            (stdin, stdout) = (Box::new(to_there), Box::new(back));
        }
        Self {
            stdin: Some(stdin),
            stdout: BufReader::new(stdout),
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

/// Copies what comes at once, until one side is gone.
fn copy(mut from: impl Read, mut to: impl Write) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer)
        && to.write_all(&buffer[..count]).is_ok()
    {}
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
