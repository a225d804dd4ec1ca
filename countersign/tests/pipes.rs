//! What a command says by its exit code does not depend on who reads its output.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

#[path = "../../tests/replayed.rs"]
mod replayed;

use std::io::{BufRead as _, BufReader, PipeReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};

fn countersign(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command
        .args(arguments)
        .env("COUNTERSIGN_DATA", folder)
        .current_dir(folder);
    command
}

/// Runs a command whose standard output nobody reads.
fn unread(folder: &Path, arguments: &[&str], input: &str) -> Option<i32> {
    let mut child = countersign(folder, arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    // A command that has ended does not read on.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait().unwrap().code()
}

fn record(folder: &Path) {
    let payload = r#"{"memory_key":"k"}"#;
    let append = [
        "log",
        "append",
        "--session",
        "s",
        "--type",
        "MEMORY_WRITE",
        "--payload",
        payload,
    ];
    assert!(
        countersign(folder, &append)
            .output()
            .unwrap()
            .status
            .success()
    );
}

#[test]
fn a_bad_log_stays_bad_when_nobody_reads_the_report() {
    let folder = replayed::folder();
    for format in ["text", "json"] {
        let code = unread(
            folder.path(),
            &["verify", "-", "--format", format],
            "garbage\n",
        );
        assert_eq!(code, Some(5));
    }
}

#[test]
fn a_batch_that_was_cut_short_is_no_success() {
    let folder = replayed::folder();
    let lines = "{\"type\":\"MEMORY_WRITE\",\"payload\":{}}\n".repeat(50);
    let code = unread(
        folder.path(),
        &["log", "append", "--session", "s", "--batch", "-"],
        &lines,
    );
    assert_eq!(code, Some(1));
}

#[test]
fn a_verdict_is_the_same_when_nobody_reads_it() {
    let folder = replayed::folder();
    let manifest = r#"{"schema":"countersign/manifest/v1","name":"n","version":"1","publisher":"p",
        "permissions":{"tools":{}}}"#;
    std::fs::write(folder.path().join("m.json"), manifest).unwrap();
    std::fs::write(folder.path().join("bad.json"), "{}").unwrap();
    let denied = ["policy", "eval", "--manifest", "m.json", "--tool", "wipe"];
    let invalid = ["manifest", "validate", "bad.json"];
    for format in ["text", "json"] {
        for (arguments, expect) in [(&denied[..], 2), (&invalid[..], 3)] {
            let arguments = [arguments, &["--format", format]].concat();
            assert_eq!(
                unread(folder.path(), &arguments, ""),
                Some(expect),
                "{arguments:?}"
            );
        }
    }
}

#[test]
fn what_was_asked_for_is_done_when_nobody_reads_of_it() {
    let folder = replayed::folder();
    let file = folder.path().join("mcp.json");
    let unguarded = r#"{"mcpServers":{"files":{"command":"npx","args":["files"]}}}"#;
    std::fs::write(&file, unguarded).unwrap();
    let connect = ["connect", "cursor", "--config", "mcp.json", "--yes"];
    assert_eq!(unread(folder.path(), &connect, ""), Some(0));
    let guarded = std::fs::read_to_string(&file).unwrap();
    assert!(guarded.contains("--server=files"), "{guarded}");
    let undo = [&connect[..], &["--undo"]].concat();
    assert_eq!(unread(folder.path(), &undo, ""), Some(0));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), unguarded);
}

#[test]
fn a_token_that_nobody_has_read_is_good_for_nothing() {
    let folder = replayed::folder();
    record(folder.path());
    let create = ["token", "create", "--name", "ci", "--role", "auditor"];
    assert_eq!(unread(folder.path(), &create, ""), Some(1));
    let list = countersign(folder.path(), &["token", "list", "--format", "json"]);
    let list = { list }.output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(list.contains("revoked"), "{list}");
}

#[test]
fn a_listing_that_nobody_reads_on_is_no_failure() {
    let folder = replayed::folder();
    record(folder.path());
    assert_eq!(unread(folder.path(), &["log", "list"], ""), Some(0));
}

#[test]
fn an_export_can_be_verified_from_a_pipe() {
    let folder = replayed::folder();
    record(folder.path());
    let export = countersign(folder.path(), &["log", "export", "--session", "s"])
        .output()
        .unwrap();
    let mut child = countersign(folder.path(), &["verify", "/dev/stdin", "--count", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(&export.stdout)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_planted_trigger_is_refused_before_anything_is_acknowledged() {
    let folder = replayed::folder();
    record(folder.path());
    let plant = "import sqlite3,sys; db=sqlite3.connect(sys.argv[1]); db.execute('CREATE TRIGGER x \
                 BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END'); db.commit()";
    let planted = Command::new("python3")
        .args(["-c", plant])
        .arg(folder.path().join("log.db"))
        .status()
        .unwrap();
    assert!(planted.success());
    let append = [
        "log",
        "append",
        "--session",
        "s",
        "--type",
        "MEMORY_WRITE",
        "--payload",
        "{}",
    ];
    let output = countersign(folder.path(), &append).output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(3),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.stdout.is_empty());
    let verify = countersign(folder.path(), &["verify"]).output().unwrap();
    assert_eq!(verify.status.code(), Some(5));
}

/// Answers everything with more than a pipe holds.
const TALKATIVE: &str = r#"while read -r line; do
  printf '{"jsonrpc":"2.0","id":1,"result":{"x":"'; head -c 300000 /dev/zero | tr '\0' x; echo '"}}'
done"#;

/// A wrapper whose client has asked and not read yet.
fn asked(folder: &Path, flags: OFlags) -> (Child, PipeReader) {
    let (hears, says) = std::io::pipe().unwrap();
    fcntl_setfl(&says, flags).unwrap();
    let mut wrapper = countersign(
        folder,
        &["mcp", "--mode", "observe", "--", "sh", "-c", TALKATIVE],
    )
    .stdin(Stdio::piped())
    .stdout(says)
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    wrapper.stdin.as_mut().unwrap().write_all(ping).unwrap();
    (wrapper, hears)
}

#[test]
fn a_pipe_that_does_not_wait_gets_every_byte() {
    let folder = replayed::folder();
    let (mut wrapper, hears) = asked(folder.path(), OFlags::NONBLOCK);
    std::thread::sleep(Duration::from_millis(300));
    let mut lines = BufReader::new(hears);
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.ends_with("x\"}}\n"), "{} bytes", line.len());
    assert_eq!(line.matches('x').count(), 300_001);
    drop(wrapper.stdin.take());
    assert!(wrapper.wait().unwrap().success());
}

#[test]
fn a_client_that_does_not_read_keeps_no_wrapper_from_ending() {
    let folder = replayed::folder();
    let (mut wrapper, hears) = asked(folder.path(), OFlags::empty());
    std::thread::sleep(Duration::from_millis(500));
    let id = Pid::from_child(&wrapper);
    kill_process(id, Signal::TERM).unwrap();
    let begun = Instant::now();
    let ended = loop {
        let ended = wrapper.try_wait().unwrap();
        if ended.is_some() || begun.elapsed() > Duration::from_secs(60) {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    if ended.is_none() {
        wrapper.kill().unwrap();
    }
    assert_eq!(ended.unwrap().code(), Some(143));
    drop(hears);
}
