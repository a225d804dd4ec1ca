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

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

fn main() {
    let requests = number("COUNTERSIGN_BENCH_REQUESTS", "300")[0];
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(folder.path().join("manifest.json"), MANIFEST).unwrap();
    println!("{:<44} {:>9} {:>9} {:>9}", "", "p50", "p90", "p99");
    report(
        "one write and fsync of 4 KiB",
        fsyncs(folder.path(), requests),
    );
    for connections in number("COUNTERSIGN_BENCH_CONNECTIONS", "1,8") {
        for (what, method) in [("ping", "ping"), ("call", "tools/call")] {
            for wrapped in [false, true] {
                let through = if wrapped { "wrapped" } else { "direct" };
                let name = format!("{what}, {connections} connection(s), {through}");
                report(
                    &name,
                    measure(folder.path(), method, wrapped, connections, requests),
                );
            }
        }
    }
}

fn measure(
    folder: &Path,
    method: &'static str,
    wrapped: bool,
    connections: usize,
    requests: usize,
) -> Vec<Duration> {
    let threads: Vec<_> = (0..connections)
        .map(|_| {
            let mut client = Client::start(folder, wrapped);
            std::thread::spawn(move || {
                client.ask("\"list\"", "tools/list");
                (0..requests)
                    .map(|id| {
                        let start = Instant::now();
                        client.ask(&id.to_string(), method);
                        start.elapsed()
                    })
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let times = threads.into_iter().map(|thread| thread.join().unwrap());
    times.flatten().collect()
}

struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    line: String,
}

impl Client {
    fn start(folder: &Path, wrapped: bool) -> Self {
        let mut command = Command::new(toy());
        if wrapped {
            command = Command::new(env!("CARGO_BIN_EXE_countersign"));
            command.arg("mcp").arg("--data").arg(folder.join("data"));
            command.arg("--manifest").arg(folder.join("manifest.json"));
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

    fn ask(&mut self, id: &str, method: &str) {
        let request = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"n\":{id}}}}}}}\n"
        );
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

fn fsyncs(folder: &Path, count: usize) -> Vec<Duration> {
    let mut file = File::create(folder.join("fsync")).unwrap();
    (0..count)
        .map(|_| {
            let start = Instant::now();
            file.write_all(&[0; 4096]).unwrap();
            file.sync_all().unwrap();
            start.elapsed()
        })
        .collect()
}

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |percent: usize| {
        let time = times[(times.len() - 1) * percent / 100];
        format!("{:.1} us", time.as_secs_f64() * 1e6)
    };
    println!("{name:<44} {:>9} {:>9} {:>9}", at(50), at(90), at(99));
}

fn number(variable: &str, default: &str) -> Vec<usize> {
    let text = std::env::var(variable).unwrap_or_else(|_| default.to_owned());
    text.split(',').map(|part| part.parse().unwrap()).collect()
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

const MANIFEST: &str = r#"{"schema":"countersign/manifest/v1","name":"toy","version":"1","publisher":"bench",
  "permissions":{"tools":{"echo":{"side_effect":"mutate-local"}},
  "budgets":{"max_tool_calls":100000000,"max_steps":100000000,"max_wall_time_ms":100000000}},
  "loops":{"identical_calls":0,"no_progress_steps":0,"sequence_min":0,"sequence_max":0}}"#;
