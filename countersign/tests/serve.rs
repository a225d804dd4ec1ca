//! `countersign mcp serve` as a process, before a server that it starts for each session.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod wrapped;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use wrapped::Place;

struct Door {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: String,
}

impl Door {
    fn open(scene: &Place, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["mcp", "serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(scene.path("data"))
            .arg("--manifest")
            .arg(scene.path("manifest.json"))
            .args(more)
            .arg("--")
            .args(scene.server())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).expect(&line);
        let address = address.split('/').next().unwrap().to_owned();
        Self {
            child,
            stderr,
            address,
        }
    }

    /// Ends as it should, with everything written.
    fn close(mut self) {
        let id = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(told.success());
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{rest}");
    }

    fn client(&self) -> Client {
        Client {
            stream: BufReader::new(TcpStream::connect(&self.address).unwrap()),
            address: self.address.clone(),
            session: None,
        }
    }
}

struct Client {
    stream: BufReader<TcpStream>,
    address: String,
    session: Option<String>,
}

impl Client {
    fn send(&mut self, verb: &str, body: &str) {
        let session = self.session.as_ref();
        let session =
            session.map_or_else(String::new, |name| format!("mcp-session-id: {name}\r\n"));
        let request = format!(
            "{verb} /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n{session}content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let stream = self.stream.get_mut();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream.write_all(request.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn head(&mut self) -> (u16, usize) {
        let status = self.line().split(' ').nth(1).unwrap().parse().unwrap();
        let mut length = 0;
        loop {
            let line = self.line();
            match line.split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("mcp-session-id", value)) => self.session = Some(value.to_owned()),
                Some(_) => {}
                None => return (status, length),
            }
        }
    }

    fn post(&mut self, body: &str) -> (u16, String) {
        self.send("POST", body);
        let (status, length) = self.head();
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        (status, String::from_utf8(body).unwrap())
    }

    fn initialize(&mut self) -> String {
        let (status, body) = self.post(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#,
        );
        assert_eq!(status, 200, "{body}");
        assert!(self.session.is_some());
        body
    }

    fn call(&mut self, id: usize, tool: &str) -> String {
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\n\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{{\"n\":{id}}}}}}}"
        );
        let (status, body) = self.post(&body);
        assert_eq!(status, 200, "{body}");
        body
    }
}

#[test]
fn a_program_serves_http_clients_each_its_own() {
    let scene = Place::new();
    let door = Door::open(&scene, &[]);
    let (mut first, mut second) = (door.client(), door.client());
    // Each session has a server of its own: the toy says which process it is.
    assert_ne!(first.initialize(), second.initialize());
    assert_ne!(first.session, second.session);
    for id in 1..5 {
        assert!(first.call(id, "echo").contains(&format!("\"id\":{id}")));
        assert!(second.call(id, "echo").contains("result"));
    }
    assert!(first.call(9, "undeclared").contains("-32000"));
    assert_eq!(scene.lines("effects").len(), 8);
    // One server dies; the other session does not notice.
    let died = first.call(10, "die");
    assert!(
        died.contains("\"id\":10") && died.contains("SERVER_GONE"),
        "{died}"
    );
    assert!(first.call(11, "echo").contains("SERVER_GONE"));
    assert!(second.call(12, "echo").contains("result"));
    second.send("DELETE", "");
    assert_eq!(second.head().0, 200);
    let (status, _) = second.post(r#"{"jsonrpc":"2.0","id":13,"method":"ping"}"#);
    assert_eq!(status, 404);
    drop((first, second));
    door.close();
    scene.verify();
    assert_eq!(
        scene.count("TOOL_CALL_EXECUTED"),
        scene.lines("effects").len()
    );
    assert_eq!(scene.count("TERMINATION"), 2);
}

#[test]
fn an_address_that_is_taken_is_an_error_with_a_hint() {
    let scene = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["mcp", "serve", "--listen", &address, "--data"])
        .arg(scene.path("data"))
        .args(["--upstream", "http://127.0.0.1:1/mcp"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error[C0814]"));
}
