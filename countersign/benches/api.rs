//! The daemon under load, over loopback, beside what a peer was measured at on such a machine.
//!
//! `COUNTERSIGN_BENCH_REQUESTS` (default 2000, for each connection count together) and
//! `COUNTERSIGN_BENCH_CONNECTIONS` (default `1,16,64`) say how much is measured.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark may stop at once, and prints"
)]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Requests in a second that a peer answered: `decide` at 16 connections, and its best ingest, which
/// does not wait for the disk.
const PEER_DECIDE: f64 = 1210.0;
const PEER_INGEST: f64 = 1624.0;

fn main() {
    let requests = numbers("COUNTERSIGN_BENCH_REQUESTS", "2000")[0];
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(folder.path().join("manifest.json"), MANIFEST).unwrap();
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder.path().join("data"))
        .arg("--manifest")
        .arg(folder.path().join("manifest.json"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (address, token) = opened(&mut daemon);
    let fsync = fsync(folder.path());
    println!("bare fsync: p50 {:.2} ms", fsync.as_secs_f64() * 1e3);
    println!(
        "{:<34} {:>9} {:>9} {:>9} {:>12}",
        "", "per s", "p50 ms", "p99 ms", "times peer"
    );
    for connections in numbers("COUNTERSIGN_BENCH_CONNECTIONS", "1,16,64") {
        for (name, peer) in [("decide", PEER_DECIDE), ("durable event", PEER_INGEST)] {
            let (total, mut times) = measure(address, &token, name, connections, requests);
            times.sort_unstable();
            let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e3;
            let rate = times.len() as f64 / total.as_secs_f64();
            println!(
                "{:<34} {rate:>9.0} {:>9.3} {:>9.3} {:>12.1}",
                format!("{name}, {connections} connection(s)"),
                at(50),
                at(99),
                rate / peer,
            );
        }
    }
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

fn measure(
    to: SocketAddr,
    token: &str,
    name: &'static str,
    connections: usize,
    requests: usize,
) -> (Duration, Vec<Duration>) {
    let began = Instant::now();
    let threads: Vec<_> = (0..connections)
        .map(|number| {
            let mut client = Client::new(to, token);
            thread::spawn(move || {
                let session = format!("bench-{connections}-{number}");
                let (path, status, body) = match name {
                    "decide" => ("/v1/policy/decide", "200", DECIDE.to_owned()),
                    _ => ("/v1/events", "201", EVENT.replace("SESSION", &session)),
                };
                client.ask(path, status, &body);
                let times = (0..requests.div_ceil(connections)).map(|_| {
                    let start = Instant::now();
                    client.ask(path, status, &body);
                    start.elapsed()
                });
                times.collect::<Vec<_>>()
            })
        })
        .collect();
    let times: Vec<Duration> = threads
        .into_iter()
        .flat_map(|thread| thread.join().unwrap())
        .collect();
    (began.elapsed(), times)
}

struct Client {
    stream: BufReader<TcpStream>,
    token: String,
    body: Vec<u8>,
}

impl Client {
    fn new(to: SocketAddr, token: &str) -> Self {
        let stream = TcpStream::connect(to).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
            token: token.to_owned(),
            body: Vec::new(),
        }
    }

    fn ask(&mut self, path: &str, status: &str, body: &str) {
        let text = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
        let (mut line, mut length) = (String::new(), 0);
        self.stream.read_line(&mut line).unwrap();
        assert!(line.contains(status), "{line}");
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).unwrap();
    }
}

fn opened(daemon: &mut Child) -> (SocketAddr, String) {
    let mut line = String::new();
    let mut out = BufReader::new(daemon.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let token = line.trim_end().rsplit(' ').next().unwrap().to_owned();
    let mut said = BufReader::new(daemon.stderr.take().unwrap());
    line.clear();
    said.read_line(&mut line).unwrap();
    let address = line.strip_prefix("countersign: http://").unwrap();
    let address = address.split(' ').next().unwrap().parse().unwrap();
    // What it says later must not fill the pipe.
    thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    (address, token)
}

/// What the disk alone takes.
fn fsync(folder: &std::path::Path) -> Duration {
    let mut file = File::create(folder.join("fsync")).unwrap();
    let mut times: Vec<Duration> = (0..200)
        .map(|_| {
            let start = Instant::now();
            file.write_all(&[0; 4096]).unwrap();
            file.sync_data().unwrap();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[100]
}

fn numbers(name: &str, default: &str) -> Vec<usize> {
    let text = std::env::var(name).unwrap_or_else(|_| default.to_owned());
    text.split(',')
        .map(|number| number.parse().unwrap())
        .collect()
}

const MANIFEST: &str = r#"{"schema":"countersign/manifest/v1","name":"bench","version":"1.0.0","publisher":"bench","permissions":{"tools":{"read_file":{"side_effect":"read"}},"fs":{"read_roots":["/workspace"]}}}"#;
const DECIDE: &str = r#"{"event":{"event_type":"TOOL_CALL_PROPOSED","payload":{"tool_name":"read_file","args":{"page":7}}},"snapshot":{"steps_consumed":1,"tool_calls_consumed":1,"wall_time_ms":10}}"#;
const EVENT: &str = r#"{"session_id":"SESSION","event_type":"MODEL_CALL_STARTED","payload":{"model_id":"m","provider":"p","prompt":"what is the weather like today, and should an umbrella be taken along?"}}"#;
