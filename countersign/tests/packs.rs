//! Evidence packs of a session that really happened, from the binary and for the binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]
#![cfg(unix)]

#[path = "../../tests/replayed.rs"]
mod replayed;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use countersign_canon::{Json, Limits};
use countersign_pack::archive;

fn countersign(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn good(arguments: &[&str], folder: &Path) -> String {
    let output = countersign(arguments, folder);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The session of the demonstration: calls that ran, were denied, approved, and drifted.
fn session(folder: &Path) -> String {
    good(&["demo", "--yes-demo", "--data", "data"], folder);
    let listed = good(&["session", "list", "--data", "data"], folder);
    let line = listed.lines().nth(1).unwrap();
    line.split_whitespace().nth(1).unwrap().to_owned()
}

fn export(session: &str, out: &str, more: &[&str], folder: &Path) -> Vec<u8> {
    let arguments = [
        "evidence",
        "export",
        "--session",
        session,
        "--data",
        "data",
        "--out",
        out,
    ];
    good(&[&arguments[..], more].concat(), folder);
    fs::read(folder.join(out)).unwrap()
}

fn report(pack: &str, folder: &Path) -> (Option<i32>, Json) {
    let output = countersign(&["verify", pack, "--format", "json"], folder);
    let json = Json::admit(&output.stdout, &Limits::event()).unwrap_or(Json::Null);
    (output.status.code(), json)
}

fn texts<'a>(report: &'a Json, name: &str) -> Vec<&'a str> {
    let texts = report.get(name).and_then(Json::as_array).unwrap();
    texts.iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn a_pack_answers_the_three_questions_and_verifies_with_nothing_else() {
    let folder = replayed::folder();
    let root = folder.path();
    let session = session(root);
    let first = export(&session, "a.pack", &["--disclose", "all"], root);
    let second = export(&session, "b.pack", &["--disclose", "all"], root);
    assert_eq!(first, second, "two exports differ");

    // Another place, without the data folder.
    let elsewhere = replayed::folder();
    fs::write(elsewhere.path().join("a.pack"), &first).unwrap();
    let (code, report) = report("a.pack", elsewhere.path());
    assert_eq!(code, Some(0));
    let checked = texts(&report, "checked").join("\n");
    assert!(
        checked.contains("record(s) with their decision envelopes"),
        "{checked}"
    );
    assert!(checked.contains("1 set(s) of policies"), "{checked}");
    let actions = report.get("actions").and_then(Json::as_array).unwrap();
    let tool = |action: &Json| action.get("tool").and_then(Json::as_str) == Some("pay");
    let pay = actions.iter().find(|action| tool(action)).unwrap();
    let fact = |question: &str, name: &str| pay.get(question)?.get("facts")?.get(name).cloned();
    let manifest = fact("available", "manifest").unwrap();
    let manifest = manifest
        .get("name")
        .and_then(Json::as_str)
        .map(str::to_owned);
    assert_eq!(manifest.as_deref(), Some("shop-agent"));
    assert_eq!(fact("exercised", "ran"), Some(Json::Bool(true)));
    let drifts = fact("changed", "refused_drifts").unwrap();
    assert_eq!(drifts.as_array().map(<[_]>::len), Some(1));
    let envelope = pay.get("envelope").unwrap();
    let of = |name: &str| envelope.get(name).and_then(Json::as_str);
    assert_eq!(of("observed_result"), Some("success"));
    assert_eq!(of("policy_id"), Some("shop-agent"));
    for action in actions {
        assert!(action.get("record").and_then(Json::as_str).is_some());
    }
}

/// What the pack does not disclose does not leak as a digest either.
#[test]
fn records_in_a_pack_say_no_more_than_the_pack_discloses() {
    let folder = replayed::folder();
    let root = folder.path();
    let session = session(root);
    let closed = export(&session, "closed.pack", &[], root);
    let text = String::from_utf8_lossy(&closed);
    assert!(text.contains("\"evidence_refs\""));
    for member in ["arguments_digest", "result_digest", "argument_drift\":{"] {
        assert!(!text.contains(member), "{member}");
    }
    let open = export(&session, "open.pack", &["--disclose", "all"], root);
    let text = String::from_utf8_lossy(&open);
    for member in ["arguments_digest", "result_digest", "argument_drift\":{"] {
        assert!(text.contains(member), "{member}");
    }
    let bare = export(&session, "bare.pack", &["--bare"], root);
    let members = archive::read(&bare, &archive::Limits::default()).unwrap();
    assert!(members.iter().all(|member| member.name != "records.jsonl"));
    let (code, report) = report("bare.pack", root);
    assert_eq!(code, Some(0));
    let not_checked = texts(&report, "not_checked").join("\n");
    assert!(
        not_checked.contains("decided here and are not in the pack"),
        "{not_checked}"
    );
}
