//! A client of a server, wrapped or not.
#![allow(dead_code, unreachable_pub, reason = "several tests share it")]

#[path = "../../../tests/replayed.rs"]
mod replayed;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

pub struct Place {
    pub folder: replayed::Kept,
}

pub struct Client {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Option<std::thread::JoinHandle<String>>,
}

impl Place {
    pub fn new() -> Self {
        let folder = replayed::folder();
        std::fs::write(folder.path().join("manifest.json"), MANIFEST).unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read(self.path(name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        text.lines().map(str::to_owned).collect()
    }

    pub fn server(&self) -> Vec<std::ffi::OsString> {
        vec![
            toy().into(),
            "--effects".into(),
            self.path("effects").into(),
            "--received".into(),
            self.path("received").into(),
        ]
    }

    pub fn direct(&self) -> Client {
        let words = self.server();
        Client::start(Command::new(&words[0]).args(&words[1..]))
    }

    pub fn wrapped(&self, options: &[&str], more: &[&str]) -> Client {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command.arg("mcp").arg("--data").arg(self.path("data"));
        command
            .args(options)
            .arg("--")
            .args(self.server())
            .args(more);
        Client::start(&mut command)
    }

    /// With the manifest, which allows every tool.
    pub fn guarded(&self, options: &[&str]) -> Client {
        let manifest = self.path("manifest.json").to_str().unwrap().to_owned();
        let options = [&["--manifest", &manifest], options].concat();
        self.wrapped(&options, &[])
    }

    /// What the program prints that is asked to do this in the data folder.
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(arguments)
            .arg("--data")
            .arg(self.path("data"))
            .env("HOME", self.folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The log verifies.
    pub fn verify(&self) {
        let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .arg("verify")
            .arg("--data")
            .arg(self.path("data"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
    }

    /// How many events of a type the log has.
    pub fn count(&self, event_type: &str) -> usize {
        let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["log", "export", "--data"])
            .arg(self.path("data"))
            .output()
            .unwrap();
        assert!(output.status.success());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let wanted = format!("\"event_type\":\"{event_type}\"");
        text.lines().filter(|line| line.contains(&wanted)).count()
    }

    /// The log has so many events of a type before long, although nobody does anything.
    pub fn waits_for(&self, count: usize, event_type: &str) {
        let has_all = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            self.count(event_type) == count
        });
        assert!(has_all, "{} {event_type}", self.count(event_type));
    }
}

impl Client {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::with_capacity(1 << 16, stdout).split(b'\n') {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            stderr: Some(stderr),
        }
    }

    pub fn send(&mut self, line: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_ref()).unwrap();
        stdin.write_all(b"\n").unwrap();
        stdin.flush().unwrap();
    }

    pub fn receive(&self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => String::from_utf8(line).unwrap(),
            Err(error) => panic!("no line came: {error}"),
        }
    }

    /// The next line that is no notification.
    pub fn answer(&self) -> String {
        loop {
            let line = self.receive();
            if !line.contains("\"method\":\"notifications/") {
                return line;
            }
        }
    }

    pub fn ask(&mut self, line: impl AsRef<[u8]>) -> String {
        self.send(line);
        self.answer()
    }

    pub fn hears_nothing(&self, time: Duration) -> bool {
        matches!(
            self.lines.recv_timeout(time),
            Err(RecvTimeoutError::Timeout)
        )
    }

    pub fn call(&mut self, id: usize, tool: &str) -> String {
        self.ask(call(id, tool))
    }

    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// Closes the pipe and waits for the end: how it ended, and what was said on standard error.
    pub fn end(mut self) -> (ExitStatus, String) {
        self.close();
        self.wait()
    }

    pub fn wait(&mut self) -> (ExitStatus, String) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        (status, self.stderr.take().unwrap().join().unwrap())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn call(id: usize, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"n":{id}}}}}}}"#
    )
}

pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#;

/// The example of this package. A run of all tests has built it; a run of one test alone has not.
fn toy() -> PathBuf {
    static TOY: OnceLock<PathBuf> = OnceLock::new();
    TOY.get_or_init(|| {
        let bin = Path::new(env!("CARGO_BIN_EXE_countersign"));
        let folder = bin.parent().unwrap();
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let toy = folder.join("examples/toy_mcp_server");
        let source = package.join("examples/toy_mcp_server.rs");
        if !is_newer(&toy, &source) {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--quiet", "--locked", "--package", "countersign"]);
            build.args(["--example", "toy_mcp_server"]);
            if folder.ends_with("release") {
                build.arg("--release");
            }
            assert!(build.current_dir(package).status().unwrap().success());
        }
        toy
    })
    .clone()
}

fn is_newer(built: &Path, source: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|metadata| metadata.modified());
    changed(built).is_ok_and(|built| built > changed(source).unwrap())
}

const PATIENCE: Duration = Duration::from_secs(60);

const MANIFEST: &str = r#"{"schema":"countersign/manifest/v1","name":"toy","version":"1","publisher":"tests",
  "permissions":{"tools":{
    "resources/read":{"side_effect":"read"},"prompts/get":{"side_effect":"read"},
    "echo":{"side_effect":"mutate-local"},"write":{"side_effect":"mutate-local"},"die":{"side_effect":"mutate-local"},
    "hang":{"side_effect":"mutate-local"},"sleep":{"side_effect":"mutate-local"},"garbage":{"side_effect":"mutate-local"},
    "flood":{"side_effect":"mutate-local"},"big":{"side_effect":"mutate-local"},"deaf":{"side_effect":"mutate-local"}},
  "budgets":{"max_tool_calls":100000,"max_steps":100000,"max_wall_time_ms":100000000,"timeout_ms":1500,"max_output_bytes":100000000}},
  "loops":{"identical_calls":0,"no_progress_steps":0,"sequence_min":0,"sequence_max":0}}"#;

/// A server with resources and no tools, for Python: `toy:big` is large, `toy:never` does not come,
/// `toy:slow` tells how far it is first, and after `toy:hang` nothing is heard.
pub const RESOURCES: &str = r#"
import json, sys, time
def say(message): print(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, params = message["method"], message.get("params", {})
    uri, token = params.get("uri"), params.get("_meta", {}).get("progressToken")
    text = "x" * 2_000_000 if uri == "toy:big" else "found"
    answer = {"result": {"contents": [{"uri": uri, "text": text}]}}
    if method == "initialize": answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"resources": {}}}}
    if method == "tools/list": answer = {"error": {"code": -32601, "message": "no tools"}}
    if uri == "toy:hang": time.sleep(600)
    if uri == "toy:slow":
        for _ in range(3):
            time.sleep(0.7)
            say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
    if "id" in message and uri != "toy:never": say({"id": message["id"], **answer})
"#;

pub fn read(id: usize, uri: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/read","params":{{"uri":"{uri}"}}}}"#)
}
