//! Policies that change while a door is open, by the real program.
#![cfg(unix)]
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
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use wrapped::Place;

const DENY: &str =
    "package shop\nimport rego.v1\nverdict := {\"decision\": \"deny\", \"reason\": \"CLOSED\"}\n";
const ALLOW: &str = "package shop\nimport rego.v1\nverdict := {\"decision\": \"allow\"}\n";

fn write(place: &Place, name: &str, text: &str) {
    // As editors do: a new file takes the place of the old one.
    let path = place.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(place.path("written"), text).unwrap();
    std::fs::rename(place.path("written"), path).unwrap();
}

/// Asks until the answer is the one that is waited for.
fn until(expect: &str, mut ask: impl FnMut(usize) -> String) {
    let start = Instant::now();
    for id in 1.. {
        let answer = ask(id);
        if answer.contains(expect) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "still {answer}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until a text is in the log of changes.
fn exported(place: &Place) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["log", "export", "--data"])
        .arg(place.path("data"))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn an_edit_changes_the_next_decision_and_a_broken_edit_changes_nothing() {
    let place = Place::new();
    write(&place, "rules/shop.rego", DENY);
    let rules = place.path("rules");
    let mut client = place.guarded(&["--policy", text(&rules)]);
    let mut id = 0;
    let mut ask = |client: &mut wrapped::Client| {
        id += 1;
        client.call(id, "echo")
    };
    assert!(ask(&mut client).contains("CLOSED"));

    write(&place, "rules/shop.rego", ALLOW);
    until("done", |_| ask(&mut client));

    // Does not compile; fails its test; is not there.
    let before = exported(&place).matches("policy_reload_refused").count();
    assert_eq!(before, 0);
    for (name, content) in [
        ("rules/shop.rego", "package shop\nverdict := {"),
        (
            "rules/shop_test.rego",
            "package shop_test\nimport rego.v1\ntest_no if data.shop.verdict.decision == \"deny\"\n",
        ),
    ] {
        let count = exported(&place).matches("policy_reload_refused").count();
        write(&place, name, content);
        let start = Instant::now();
        while exported(&place).matches("policy_reload_refused").count() == count {
            assert!(start.elapsed() < PATIENCE, "no refusal for {name}");
            assert!(ask(&mut client).contains("done"));
        }
        // What was in force stays in force, also later.
        assert!(ask(&mut client).contains("done"));
        write(&place, "rules/shop.rego", ALLOW);
    }

    // Mended, and the test fits now.
    write(&place, "rules/shop.rego", DENY);
    until("CLOSED", |_| ask(&mut client));
    let (_, stderr) = client.end();
    assert!(stderr.contains("those in force stay"), "{stderr}");
    assert!(stderr.contains("`test_no` fails"), "{stderr}");
    assert_eq!(stderr.matches("reloaded: sha256:").count(), 2, "{stderr}");
    // The log names the policies that came into force, and the decisions that they made.
    let log = exported(&place);
    let told: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("mcp/policies"))
        .collect();
    assert_eq!(told.len(), 2, "{told:?}");
    for line in told {
        let digest = line.split("\"memory_store\":\"").nth(1).unwrap();
        let digest = digest.split('"').next().unwrap();
        let decided = format!("\"policy_digest\":\"{digest}\"");
        assert!(log.contains(&decided), "{decided}");
    }
    place.verify();
}

#[test]
fn a_door_that_observes_goes_on_observing_after_an_edit() {
    let place = Place::new();
    write(&place, "rules/shop.rego", DENY);
    let rules = place.path("rules");
    let mut client = place.guarded(&["--mode", "observe", "--policy", text(&rules)]);
    assert!(client.call(1, "echo").contains("done"));
    write(&place, "rules/shop.rego", &DENY.replace("CLOSED", "SHUT"));
    let start = Instant::now();
    for id in 2.. {
        assert!(client.call(id, "echo").contains("done"));
        if exported(&place).contains("mcp/policies") {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "the edit was not noticed");
    }
    assert!(client.call(0, "echo").contains("done"));
    client.end();
    place.verify();
}

#[test]
fn a_manifest_is_reloaded_and_a_hangup_goes_to_the_server() {
    let place = Place::new();
    let manifest = std::fs::read_to_string(place.path("manifest.json")).unwrap();
    let mut client = place.guarded(&[]);
    assert!(client.call(1, "echo").contains("done"));
    let without = manifest.replace("\"echo\":{\"side_effect\":\"mutate-local\"},", "");
    write(&place, "manifest.json", &without);
    until("PERMISSION_UNDECLARED", |id| client.call(id + 1, "echo"));
    write(
        &place,
        "manifest.json",
        &manifest.replace("toy", "toy\",\"toy"),
    );
    std::thread::sleep(Duration::from_millis(1500));
    assert!(client.call(1000, "echo").contains("PERMISSION_UNDECLARED"));
    write(&place, "manifest.json", &manifest);
    until("done", |id| client.call(2000 + id, "echo"));
    signal("-HUP", client.child.id());
    let (_, stderr) = client.wait();
    // The toy does not know the signal, so it ends.
    assert!(!stderr.contains("end of input"), "{stderr}");
    assert_eq!(
        stderr.matches("not a valid manifest").count(),
        1,
        "{stderr}"
    );
    place.verify();
}

#[test]
fn the_http_door_reloads_by_itself_and_on_a_hangup() {
    let place = Place::new();
    write(&place, "shop.rego", DENY);
    let mut door = Door::open(&place);
    let mut client = door.client();
    client.initialize();
    assert!(client.call(1, "echo").contains("CLOSED"));
    write(&place, "shop.rego", ALLOW);
    until("result", |id| client.call(1 + id, "echo"));
    assert!(door.line().contains("reloaded: sha256:"));
    // A hang-up is answered although nothing has changed, and ends nothing.
    signal("-HUP", door.child.id());
    assert!(door.line().contains("those that are in force"));
    write(&place, "shop.rego", "package shop");
    signal("-HUP", door.child.id());
    let refused = door.line();
    assert!(refused.contains("those in force stay"), "{refused}");
    assert!(client.call(9000, "echo").contains("result"));
    write(&place, "shop.rego", DENY);
    until("CLOSED", |id| client.call(9000 + id, "echo"));
    assert!(door.line().contains("reloaded: sha256:"));
    drop(client);
    door.close();
    place.verify();
    let log = exported(&place);
    assert_eq!(log.matches("mcp/policies").count(), 2);
    assert_eq!(log.matches("policy_reload_refused").count(), 1);
    assert_eq!(log.matches("door_closed").count(), 1);
}

fn signal(name: &str, process: u32) {
    let told = Command::new("kill")
        .args([name, &process.to_string()])
        .status();
    assert!(told.unwrap().success());
}

struct Door {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: String,
}

impl Door {
    fn open(place: &Place) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["mcp", "serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(place.path("data"))
            .arg("--manifest")
            .arg(place.path("manifest.json"))
            .arg("--policy")
            .arg(place.path("shop.rego"))
            .arg("--")
            .args(place.server())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut door = Self {
            child,
            stderr,
            address: String::new(),
        };
        let line = door.line();
        let address = line.split("http://").nth(1).expect(&line);
        door.address = address.split('/').next().unwrap().to_owned();
        door
    }

    /// The next line that the door itself says.
    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "it has ended");
            if line.starts_with("countersign: ") {
                return line;
            }
        }
    }

    fn client(&self) -> Client {
        Client {
            stream: BufReader::new(TcpStream::connect(&self.address).unwrap()),
            address: self.address.clone(),
            session: None,
        }
    }

    fn close(mut self) {
        signal("-TERM", self.child.id());
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{rest}");
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Client {
    stream: BufReader<TcpStream>,
    address: String,
    session: Option<String>,
}

impl Client {
    fn post(&mut self, body: &str) -> String {
        let session = self.session.as_ref();
        let session =
            session.map_or_else(String::new, |name| format!("mcp-session-id: {name}\r\n"));
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n{session}content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let stream = self.stream.get_mut();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("mcp-session-id", value)) => self.session = Some(value.to_owned()),
                None if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        String::from_utf8(body).unwrap()
    }

    fn initialize(&mut self) {
        self.post(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#,
        );
        assert!(self.session.is_some());
    }

    fn call(&mut self, id: usize, tool: &str) -> String {
        self.post(&wrapped::call(id, tool))
    }
}

const PATIENCE: Duration = Duration::from_secs(60);
