//! What `countersign mcp serve` adds to a request, beside the same server without it and beside the disk.
//!
//! `COUNTERSIGN_BENCH_REQUESTS` (default 1000), `COUNTERSIGN_BENCH_CONNECTIONS` (default `1,32`),
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

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use door::Way;

fn main() {
    let stub = stub();
    let (folder, manifest) = door::place();
    let mut door = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["mcp", "serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder.path().join("data"))
        .arg("--manifest")
        .arg(manifest)
        .args(["--upstream", &format!("http://{stub}/mcp")])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let proxy = address(&mut door);
    let plan = door::Plan::new(folder.path(), "1,32");
    let relay = relay(stub);
    plan.run(&|way| {
        Client::new(match way {
            Way::Direct => stub,
            Way::Relay => relay,
            Way::Door => proxy,
        })
    });
    door.kill().unwrap();
    door.wait().unwrap();
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
}

impl door::Client for Client {
    fn ask(&mut self, id: &str, method: &str) {
        let body = door::request(id, method);
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

/// Copies bytes between clients and a server.
fn relay(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(to).unwrap());
            let (back, there) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || copy(client, server));
            thread::spawn(move || copy(back, there));
        }
    });
    address
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    to.set_nodelay(true).unwrap();
    let mut buffer = [0; 16 << 10];
    // Where one side goes, so does the other.
    while let Ok(count @ 1..) = from.read(&mut buffer)
        && to.write_all(&buffer[..count]).is_ok()
    {}
    let _ = to.shutdown(std::net::Shutdown::Both);
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
