//! What is fetched by methods of its own, through `countersign mcp` as a process.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod wrapped;

use std::process::Command;

use wrapped::{Client, INITIALIZE, Place, RESOURCES, read};

fn resources(place: &Place, options: &[&str]) -> Client {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(["mcp", "--data"]).arg(place.path("data"));
    Client::start(
        command
            .args(options)
            .args(["--", "python3", "-c", RESOURCES]),
    )
}

#[test]
fn without_a_manifest_nobody_counts_or_measures_what_is_read() {
    let place = Place::new();
    let mut client = resources(&place, &[]);
    client.ask(INITIALIZE);
    // This client never asks for tools: the server has none.
    for id in 1..10 {
        let got = client.ask(read(id, "toy:x"));
        assert!(got.contains("found"), "{got}");
    }
    let got = client.ask(read(10, "toy:big"));
    assert!(got.len() > 2_000_000, "{got}");
    client.end();
    assert_eq!(place.count("TOOL_RESULT"), 10);
    place.verify();
}

#[test]
fn a_server_that_hangs_is_given_up_and_keeps_nobody_who_leaves() {
    let place = Place::new();
    let mut client = resources(&place, &["--response-time", "1"]);
    client.ask(INITIALIZE);
    let got = client.ask(read(1, "toy:never"));
    assert!(got.contains("TIMEOUT"), "{got}");
    // One that tells how far it is goes on.
    let slow = r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"toy:slow","_meta":{"progressToken":1}}}"#;
    let got = client.ask(slow);
    assert!(got.contains("found"), "{got}");
    client.send(read(3, "toy:hang"));
    client.close();
    assert!(client.answer().contains("TIMEOUT"));
    client.wait();
    assert_eq!(place.count("TOOL_CALL_EXECUTED"), 3);
    assert_eq!(place.count("TOOL_RESULT") + place.count("ERROR_RAISED"), 3);
    place.verify();
}

#[test]
fn what_would_be_decided_is_what_the_door_decides() {
    for (entry, door, said) in [
        ("resources/read: {}", "found", "ALLOW"),
        ("resources/read: {side_effect: read}", "found", "ALLOW"),
        ("resources/read: {approval: required}", "-32001", "HOLD"),
        ("other: {}", "PERMISSION_UNDECLARED", "DENY"),
    ] {
        let place = Place::new();
        let file = place.path("m.yaml").to_str().unwrap().to_owned();
        let text = format!(
            "schema: countersign/manifest/v1\nname: m\nversion: 1.0.0\npublisher: example.com\n\
             permissions:\n  tools:\n    {entry}\n"
        );
        std::fs::write(&file, text).unwrap();
        let mut client = resources(&place, &["--manifest", &file, "--hold-wait", "0"]);
        client.ask(INITIALIZE);
        let got = client.ask(read(1, "toy:x"));
        assert!(got.contains(door), "{entry}: {got}");
        client.end();
        for server in [&[][..], &["--server", "python3"]] {
            let eval = Command::new(env!("CARGO_BIN_EXE_countersign"))
                .args(["policy", "eval", "--manifest", &file])
                .args(["--tool", "resources/read", "--args", r#"{"uri":"toy:x"}"#])
                .args(server)
                .output()
                .unwrap();
            let got = String::from_utf8_lossy(&eval.stdout);
            assert!(got.starts_with(said), "{entry}: {got}");
        }
        place.verify();
    }
}

/// A server with a tool that is called like a method, for Python.
const POSING: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {"tools": [{"name": "resources/read"}]} if message["method"] == "tools/list" else {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

#[test]
fn who_accepts_a_tool_that_is_called_like_a_method_hears_that_it_changes_nothing() {
    let place = Place::new();
    let call = || {
        let mut client = posing(&place);
        let got = client.call(1, "resources/read");
        client.end();
        got
    };
    assert!(call().contains("called like a method"));
    let listed = place.run(&["tools", "list"]);
    assert!(listed.contains("waiting, called like a method"), "{listed}");
    let shown = place.run(&["tools", "diff", "posing", "resources/read"]);
    assert!(shown.contains("stay refused"), "{shown}");
    let digest = listed.split_whitespace().last().unwrap();
    let accepted = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args([
            "tools",
            "accept",
            "posing",
            "resources/read",
            digest,
            "--reads",
            "--data",
        ])
        .arg(place.path("data"))
        .output()
        .unwrap();
    assert!(accepted.status.success(), "{accepted:?}");
    let said = String::from_utf8_lossy(&accepted.stderr);
    assert!(said.contains("stay refused"), "{said}");
    assert!(call().contains("TOOL_CONFUSABLE"));
    place.verify();
}

#[test]
fn a_name_that_looks_like_another_is_listed_as_what_it_is() {
    let place = Place::new();
    let script = POSING.replace("resources/read", "l\u{43e}ok");
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(["mcp", "--data"]).arg(place.path("data"));
    command.args(["--server", "posing", "--", "python3", "-c", &script]);
    let mut client = Client::start(&mut command);
    client.call(1, "look");
    client.end();
    let listed = place.run(&["tools", "list", "--server", "posing"]);
    assert!(listed.contains(r#""l\u043eok""#), "{listed}");
    // A server that there is not has no list, not an empty one.
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["tools", "list", "--server", "nosuch", "--data"])
        .arg(place.path("data"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("there is no server `nosuch`"), "{said}");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0));
}

/// Whoever has a shell can accept a tool; that cannot be done unseen.
#[test]
fn who_accepts_a_tool_or_a_command_is_in_the_log_or_accepts_nothing() {
    let place = Place::new();
    let mut client = posing(&place);
    assert!(client.call(1, "resources/read").contains("refused"));
    client.end();
    let listed = place.run(&["tools", "list"]);
    let digest = listed.split_whitespace().last().unwrap();
    let book = || std::fs::read(place.path("data/tools/posing.json")).unwrap();
    let before = book();
    let accept = || {
        let tool = ["tools", "accept", "posing", "resources/read", digest];
        let command = ["tools", "accept-command", "posing", digest];
        [&tool[..], &command].map(|words| {
            let mut countersign = Command::new(env!("CARGO_BIN_EXE_countersign"));
            let countersign = countersign.args(words).arg("--data");
            let output = countersign.arg(place.path("data")).output().unwrap();
            output.status.code().unwrap()
        })
    };
    // Without its key the log takes nothing in.
    std::fs::rename(place.path("data/master.key"), place.path("key")).unwrap();
    assert!(accept().iter().all(|code| *code != 0));
    assert_eq!(book(), before);
    std::fs::rename(place.path("key"), place.path("data/master.key")).unwrap();
    assert_eq!(accept(), [0, 0]);
    assert_ne!(book(), before);
    let uid = Command::new("id").arg("-u").output().unwrap();
    let uid = String::from_utf8(uid.stdout).unwrap();
    let log = place.run(&["log", "list", "--type", "MEMORY_WRITE"]);
    for key in ["mcp/accepted/resources/read", "mcp/accepted-command"] {
        let said = format!("memory_key={key} memory_store=posing");
        let mut rows = log.lines().filter(|row| row.contains(&said));
        let hash = rows.next().unwrap().split_whitespace().nth(4).unwrap();
        assert!(rows.next().is_none(), "{log}");
        let event = place.run(&["log", "show", hash, "--open"]);
        assert!(event.contains(digest), "{event}");
        assert!(
            event.contains(&format!("\"uid\": {}", uid.trim())),
            "{event}"
        );
    }
    place.verify();
}

fn posing(place: &Place) -> Client {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(["mcp", "--data"]).arg(place.path("data"));
    Client::start(command.args(["--server", "posing", "--", "python3", "-c", POSING]))
}

/// Somebody says so while a session is open: it need not begin anew.
#[test]
fn a_tool_that_is_accepted_as_reading_runs_in_sessions_that_are_open() {
    let place = Place::new();
    let mut client = place.wrapped(&[], &[]);
    assert!(client.call(1, "echo").contains("SIDE_EFFECT_UNKNOWN"));
    let listed = place.run(&["tools", "list"]);
    let row = listed.lines().find(|row| row.contains(" echo ")).unwrap();
    let (server, digest) = (
        row.split_whitespace().next().unwrap(),
        row.split_whitespace().last().unwrap(),
    );
    let accept = |reads: &[&str]| {
        place.run(&[&["tools", "accept", server, "echo", digest], reads].concat());
    };
    let mut id = 1;
    let mut becomes = |what: &str| {
        (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(200));
            id += 1;
            client.call(id, "echo").contains(what)
        })
    };
    accept(&["--reads"]);
    assert!(becomes("\"result\""));
    // And it can be taken back.
    accept(&[]);
    assert!(becomes("SIDE_EFFECT_UNKNOWN"));
    client.end();
    place.verify();
}
