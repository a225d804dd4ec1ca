//! What `countersign mcp serve` adds to a request, beside the same server without it.
//!
//! `COUNTERSIGN_BENCH_REQUESTS` (default 300) and `COUNTERSIGN_BENCH_CONNECTIONS` (default `1,32`) say
//! how much is measured.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark may stop at once, and prints"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    let requests = numbers("COUNTERSIGN_BENCH_REQUESTS", "300")[0];
    let stub = stub();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(folder.path().join("manifest.json"), MANIFEST).unwrap();
    let mut door = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["mcp", "serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder.path().join("data"))
        .arg("--manifest")
        .arg(folder.path().join("manifest.json"))
        .args(["--upstream", &format!("http://{stub}/mcp")])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let proxy = address(&mut door);
    println!("{:<44} {:>9} {:>9} {:>9}", "", "p50", "p90", "p99");
    for connections in numbers("COUNTERSIGN_BENCH_CONNECTIONS", "1,32") {
        for method in ["ping", "tools/call"] {
            for (through, to) in [("direct", stub), ("through", proxy)] {
                let name = format!("{method}, {connections} connection(s), {through}");
                report(&name, measure(to, method, connections, requests));
            }
        }
    }
    door.kill().unwrap();
    door.wait().unwrap();
}

fn measure(
    to: SocketAddr,
    method: &'static str,
    connections: usize,
    requests: usize,
) -> Vec<Duration> {
    let threads: Vec<_> = (0..connections)
        .map(|_| {
            thread::spawn(move || {
                let mut client = Client::new(to);
                client.ask("\"list\"", "tools/list");
                let times = (0..requests).map(|id| {
                    let start = Instant::now();
                    client.ask(&id.to_string(), method);
                    start.elapsed()
                });
                times.collect::<Vec<_>>()
            })
        })
        .collect();
    let times = threads.into_iter().map(|thread| thread.join().unwrap());
    times.flatten().collect()
}

struct Client {
    stream: BufReader<TcpStream>,
    body: Vec<u8>,
}

impl Client {
    fn new(to: SocketAddr) -> Self {
        let stream = TcpStream::connect(to).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
            body: Vec::new(),
        }
    }

    fn ask(&mut self, id: &str, method: &str) {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"name":"echo","arguments":{{"n":{id}}}}}}}"#
        );
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        read(&mut self.stream, &mut self.body).unwrap();
        let text = String::from_utf8_lossy(&self.body);
        assert!(text.contains("\"result\""), "{text}");
    }
}

/// A server that answers at once.
fn stub() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || serve(stream.unwrap()));
        }
    });
    address
}

fn serve(stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut stream = BufReader::new(stream);
    let mut body = Vec::new();
    while read(&mut stream, &mut body).is_some() {
        let text = String::from_utf8_lossy(&body);
        let id = text.split("\"id\":").nth(1).unwrap();
        let id = id.split([',', '}']).next().unwrap();
        let result = match text.contains("tools/list") {
            true => r#"{"tools":[{"name":"echo"}]}"#,
            false => r#"{"content":[]}"#,
        };
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
        let response = format!("{head}: {}\r\n\r\n{answer}", answer.len());
        stream.get_mut().write_all(response.as_bytes()).unwrap();
    }
}

/// Reads a head and its body; `None` at the end of the stream.
fn read(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> Option<()> {
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    body.resize(length, 0);
    stream.read_exact(body).ok()
}

fn address(door: &mut Child) -> SocketAddr {
    let mut line = String::new();
    let mut stderr = BufReader::new(door.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).unwrap();
    address.split('/').next().unwrap().parse().unwrap()
}

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |percent: usize| {
        let time = times[(times.len() - 1) * percent / 100];
        format!("{:.1} us", time.as_secs_f64() * 1e6)
    };
    println!("{name:<44} {:>9} {:>9} {:>9}", at(50), at(90), at(99));
}

fn numbers(variable: &str, default: &str) -> Vec<usize> {
    let text = std::env::var(variable).unwrap_or_else(|_| default.to_owned());
    text.split(',').map(|part| part.parse().unwrap()).collect()
}

const MANIFEST: &str = r#"{"schema":"countersign/manifest/v1","name":"toy","version":"1","publisher":"bench",
  "permissions":{"tools":{"echo":{"side_effect":"mutate-local"}},
  "budgets":{"max_tool_calls":100000000,"max_steps":100000000,"max_wall_time_ms":100000000}},
  "loops":{"identical_calls":0,"no_progress_steps":0,"sequence_min":0,"sequence_max":0}}"#;
