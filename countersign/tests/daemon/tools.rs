//! Tools of MCP servers, on the console.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::{Daemon, replayed};

/// Whoever may press the button can accept a tool; that cannot be done unseen.
#[test]
fn a_tool_that_is_accepted_on_the_console_is_in_the_log() {
    let place = replayed::folder();
    let data = place.path().join("data");
    let run = |words: &[&str], said: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        let mut child = command
            .args(words)
            .env("COUNTERSIGN_DATA", &data)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(said.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{words:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let list = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";
    for text in ["one", "another"] {
        let server = SHOWING.replace("TEXT", text);
        let words = ["mcp", "--server", "files", "--", "python3", "-c", &server];
        assert!(run(&words, list).contains(text));
    }
    let listed = run(&["tools", "list"], "");
    let waiting = listed
        .lines()
        .find(|line| line.contains("waiting, changed"));
    let digest = waiting.unwrap().split_whitespace().last().unwrap();
    let daemon = Daemon::start(&data, &["--no-auth"]);
    let accept = |digest: &str| {
        let form = format!(
            "server=files&tool=look&digest={}",
            digest.replace(':', "%3A")
        );
        daemon.submit("/policy/tools", &form)
    };
    let unknown = format!("sha256:{}", "0".repeat(64));
    assert!(
        accept(&unknown).starts_with("HTTP/1.1 412"),
        "{}",
        accept(&unknown)
    );
    assert!(accept(digest).starts_with("HTTP/1.1 303"));
    assert!(daemon.end().success());
    let listed = run(&["tools", "list"], "");
    assert!(!listed.contains("waiting"), "{listed}");
    let log = run(&["log", "list", "--type", "MEMORY_WRITE"], "");
    let said = "memory_key=mcp/accepted/look memory_store=files";
    let row = log.lines().find(|row| row.contains(said)).unwrap();
    let hash = row.split_whitespace().nth(4).unwrap();
    let event = run(&["log", "show", hash, "--open"], "");
    assert!(event.contains(digest), "{event}");
    assert!(event.contains("\"accepted_by\": \"local\""), "{event}");
}

/// A server with a tool.
const SHOWING: &str = r#"
import json, sys
for line in sys.stdin:
    ask = json.loads(line)
    tools = [{"name": "look", "description": "TEXT"}]
    print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "result": {"tools": tools}}), flush=True)
"#;
