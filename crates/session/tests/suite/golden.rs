//! The exact bytes of snapshots, against values that another program worked out.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use countersign_session::Snapshot;
use serde_json::Value;

use crate::history::{Event, apply, fold_events};
use crate::properties::history;
use crate::random::Random;

#[test]
fn every_golden_session_has_its_golden_bytes_after_every_event() {
    let golden: Value =
        serde_json::from_slice(&std::fs::read(corpus("golden.json")).unwrap()).unwrap();
    for session in golden["sessions"].as_array().unwrap() {
        let title = text(&session["title"]);
        let mut snapshot = Snapshot::default();
        for (at, event) in session["events"].as_array().unwrap().iter().enumerate() {
            let ts_unix_ms = event["ts_unix_ms"].as_u64().unwrap();
            let event_type = text(&event["event_type"]).parse().unwrap();
            let next = Event::new(ts_unix_ms, event_type, text(&event["payload"]));
            apply(&mut snapshot, &next).unwrap();
            assert_eq!(
                snapshot.hash().to_string(),
                text(&event["hash"]),
                "{title}, event {at}"
            );
        }
        let bytes = String::from_utf8(snapshot.to_bytes()).unwrap();
        assert_eq!(bytes, text(&session["snapshot"]), "{title}");
    }
}

#[test]
fn the_golden_file_is_what_its_generator_writes() {
    let output = generator().arg("--check").output().expect(NEEDS_PYTHON);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn another_program_folds_random_histories_to_the_same_bytes() {
    let mut random = Random::seeded(4);
    let histories: Vec<_> = (0..300).map(|_| history(&mut random, 400)).collect();
    let mut child = generator()
        .arg("--fold")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect(NEEDS_PYTHON);
    let mut stdin = child.stdin.take().unwrap();
    let input: String = histories.iter().map(|events| line(events)).collect();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());

    let theirs = String::from_utf8(output.stdout).unwrap();
    assert_eq!(theirs.lines().count(), histories.len());
    for (events, theirs) in histories.iter().zip(theirs.lines()) {
        let ours = String::from_utf8(fold_events(events).to_bytes()).unwrap();
        assert_eq!(ours, theirs, "{}", line(events));
    }
}

fn line(events: &[Event]) -> String {
    let event = |event: &Event| {
        format!(
            "[{},\"{}\",{}]",
            event.ts_unix_ms, event.event_type, event.text
        )
    };
    format!(
        "[{}]\n",
        events.iter().map(event).collect::<Vec<_>>().join(",")
    )
}

fn generator() -> Command {
    let mut command = Command::new("python3");
    command.arg(corpus("make_golden.py"));
    command
}

fn corpus(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../corpus/session", name]
        .iter()
        .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

const NEEDS_PYTHON: &str = "this test runs the generator: `python3` must be installed";
