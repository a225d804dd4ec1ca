//! The calls of a recorded session again, through the enforcing door, against a live server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod wrapped;

use std::process::{Command, Output};

use wrapped::{INITIALIZE, Place};

/// A session with two calls that ran and one that was refused.
fn recorded(place: &Place) -> String {
    let mut client = place.guarded(&[]);
    client.ask(INITIALIZE);
    assert!(client.call(1, "echo").contains("result"));
    assert!(client.call(2, "write").contains("result"));
    assert!(client.call(3, "undeclared").contains("-32000"));
    client.end();
    newest(place)
}

fn newest(place: &Place) -> String {
    let listed = run(place, &["session", "list"], &[]);
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let start = text.find("ses_").expect(&text);
    text[start..].split_whitespace().next().unwrap().to_owned()
}

fn run(place: &Place, arguments: &[&str], server: &[std::ffi::OsString]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command
        .args(arguments)
        .arg("--data")
        .arg(place.path("data"));
    if !server.is_empty() {
        command.arg("--").args(server);
    }
    command.stdin(std::process::Stdio::null()).output().unwrap()
}

fn rerun(place: &Place, session: &str, manifest: &str, more: &[&str]) -> (Option<i32>, String) {
    let manifest = place.path(manifest).to_str().unwrap().to_owned();
    let arguments = [&["rerun", session, "--manifest", &manifest], more].concat();
    let output = run(place, &arguments, &place.server());
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn calls_run_again_only_if_somebody_means_it() {
    let place = Place::new();
    let session = recorded(&place);
    let effects = place.lines("effects").len();
    let (code, text) = rerun(&place, &session, "manifest.json", &["--yes"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(
        text.contains("C0835") && text.contains("echo, write"),
        "{text}"
    );
    let (code, text) = rerun(&place, &session, "manifest.json", &["--allow-effects"]);
    assert_eq!(code, Some(64), "{text}");
    assert_eq!(place.lines("effects").len(), effects);

    let page = place.path("rerun.html").to_str().unwrap().to_owned();
    let mean_it = ["--yes", "--allow-effects", "--html", &page];
    let (code, text) = rerun(&place, &session, "manifest.json", &mean_it);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("IDENTICAL ✓") && text.contains("2 calls made again"),
        "{text}"
    );
    assert_eq!(place.lines("effects").len(), 2 * effects);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("live replay") && !page.contains("<script"));
    place.verify();
}

#[test]
fn policies_decide_again_and_other_results_are_differences() {
    let place = Place::new();
    let session = recorded(&place);
    let effects = place.lines("effects").len();
    let manifest = std::fs::read_to_string(place.path("manifest.json")).unwrap();
    let narrow = manifest.replace("\"write\":{\"side_effect\":\"mutate-local\"},", "");
    assert_ne!(narrow, manifest);
    std::fs::write(place.path("narrow.json"), narrow).unwrap();
    let mean_it = ["--yes", "--allow-effects", "--format", "json"];
    let (code, text) = rerun(&place, &session, "narrow.json", &mean_it);
    assert_eq!(code, Some(5), "{text}");
    assert!(text.contains("\"field\":\"policy_decision\""), "{text}");
    assert!(
        text.contains("\"mode\":\"live\"") && text.contains("\"identical\":false"),
        "{text}"
    );
    // What is not allowed now did not reach the server.
    assert_eq!(place.lines("effects").len(), effects + 1);
    place.verify();
}

#[test]
fn what_was_fetched_is_fetched_again_as_it_was_asked_for() {
    let place = Place::new();
    let mut client = place.guarded(&[]);
    client.ask(INITIALIZE);
    let params = r#""params":{"_meta":{"shop/amount":5},"more":1,"uri":"toy:x"}"#;
    let read = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read",{params}}}"#);
    assert!(client.ask(read).contains("contents"));
    let call = r#""params":{"_meta":{"shop/amount":5},"arguments":{"n":1},"name":"echo"}"#;
    let echo = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call",{call}}}"#);
    assert!(client.ask(echo).contains("done"));
    client.end();
    let session = newest(&place);
    let mean_it = ["--yes", "--allow-effects"];
    let (code, text) = rerun(&place, &session, "manifest.json", &mean_it);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("2 calls made again"), "{text}");
    let received = place.lines("received");
    for (method, params) in [("resources/read", params), ("tools/call", call)] {
        let is_it = |line: &&String| line.contains(method) && line.contains(params);
        assert_eq!(received.iter().filter(is_it).count(), 2, "{received:?}");
    }
    place.verify();
}
