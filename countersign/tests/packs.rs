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

/// What the reader noted counts for a pack as it does for a log, and nothing is passed over in silence.
#[test]
fn a_pack_is_held_against_what_the_reader_noted() {
    let folder = replayed::folder();
    let root = folder.path();
    let session = session(root);
    let pack = export(&session, "s.pack", &[], root);
    let events = archive::read(&pack, &archive::Limits::default()).unwrap();
    let events = events.iter().find(|member| member.name == "events.jsonl");
    let events = String::from_utf8_lossy(events.unwrap().content).into_owned();
    let hashes: Vec<String> = events
        .lines()
        .map(|line| Json::admit(line.as_bytes(), &Limits::event()).unwrap())
        .map(|event| event.get("hash").and_then(Json::as_str).unwrap().to_owned())
        .collect();
    let (first, last) = (hashes[0].as_str(), hashes[hashes.len() - 1].as_str());
    let count = hashes.len().to_string();
    let other = "0".repeat(64);
    let verify = |more: &[&str]| {
        let output = countersign(&[&["verify", "s.pack"], more].concat(), root);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complained = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said + &complained)
    };
    for (more, says) in [
        (vec!["--head", last], "✓ the given head"),
        (vec!["--count", &count], "✓ the given count"),
        (
            vec!["--contains", first],
            "✓ that the given hash is in the log",
        ),
        (
            vec!["--session", &session, "--tenant", "default"],
            "✓ that events of the given session or tenant are in it",
        ),
    ] {
        let (code, said) = verify(&more);
        assert_eq!(code, Some(0), "{more:?}: {said}");
        assert!(said.contains(says), "{more:?}: {said}");
    }
    for (more, says) in [
        (vec!["--head", &other], "not at the given head"),
        (vec!["--head", first], "not at the given head"),
        (vec!["--count", "1"], "not the given 1"),
        (vec!["--contains", &other], "no event has the given hash"),
        (vec!["--session", "another"], "error[C0508]: verification"),
        (vec!["--tenant", "another"], "no event of the given session"),
    ] {
        let (code, said) = verify(&more);
        assert_eq!(code, Some(5), "{more:?}: {said}");
        assert!(said.contains(says), "{more:?}: {said}");
        assert!(!said.contains("VERIFIED"), "{more:?}: {said}");
    }
    good(&["checkpoint", "publish", "--data", "data"], root);
    let kept = good(&["checkpoint", "show", "--data", "data"], root);
    fs::write(root.join("kept"), kept).unwrap();
    let (code, said) = verify(&["--checkpoint", "kept"]);
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("--checkpoint is for a log"), "{said}");
}

#[test]
fn trust_without_a_key_is_refused_and_what_is_missing_is_named() {
    let folder = replayed::folder();
    let root = folder.path();
    let session = session(root);
    export(&session, "s.pack", &["--disclose", "approvals"], root);
    fs::write(root.join("none"), "# nobody yet\n\n").unwrap();
    let refused = countersign(&["verify", "s.pack", "--trust", "none"], root);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let complained = String::from_utf8_lossy(&refused.stderr);
    assert!(complained.contains("`none` has no key"), "{complained}");
    let key = good(&["checkpoint", "show", "--key", "--data", "data"], root);
    fs::write(root.join("log.keys"), key).unwrap();
    let said = good(&["verify", "s.pack", "--trust", "log.keys"], root);
    let missing = "whose keys the votes were signed with: give --trust with the keys of the people";
    assert!(said.contains(missing), "{said}");
}

#[test]
fn a_pack_comes_through_a_pipe_as_well() {
    let folder = replayed::folder();
    let root = folder.path();
    let session = session(root);
    export(&session, "s.pack", &[], root);
    let through = |file: &str| {
        let shell = format!("cat {file} | \"$0\" verify -");
        let binary = env!("CARGO_BIN_EXE_countersign");
        let mut command = Command::new("sh");
        command.args(["-c", &shell, binary]).current_dir(root);
        command.output().unwrap()
    };
    let seen = through("s.pack");
    assert!(seen.status.success(), "{seen:?}");
    assert!(String::from_utf8_lossy(&seen.stdout).starts_with("VERIFIED ✓  -: "));
    let seen = through("data/log.db");
    assert_eq!(seen.status.code(), Some(64), "{seen:?}");
    let complained = String::from_utf8_lossy(&seen.stderr);
    assert!(
        complained.contains("give the name of its file"),
        "{complained}"
    );
}

#[test]
fn what_says_nothing_about_an_export_is_refused() {
    let folder = replayed::folder();
    let root = folder.path();
    let session = session(root);
    let export = ["log", "export", "--session", &session, "--data", "data"];
    fs::write(root.join("s.jsonl"), good(&export, root)).unwrap();
    good(&["checkpoint", "publish", "--data", "data"], root);
    let key = good(&["checkpoint", "show", "--key", "--data", "data"], root);
    fs::write(root.join("log.keys"), key).unwrap();
    for idle in [["--html", "page.html"], ["--trust", "log.keys"]] {
        for target in [vec!["s.jsonl"], vec!["--data", "data"]] {
            let arguments = [&["verify"], &target[..], &idle].concat();
            let refused = countersign(&arguments, root);
            assert_eq!(refused.status.code(), Some(64), "{arguments:?} {refused:?}");
        }
    }
    assert!(!root.join("page.html").exists());
}
