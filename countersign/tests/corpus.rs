//! The corpus of policy questions through the command line: the same answers as from the library.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use countersign_canon::{Json, Limits};

const CASES: &str = "../corpus/policy/decide.json";

#[test]
fn every_case_as_lines() {
    let cases = cases();
    assert!(cases.len() >= 39);
    let lines: Vec<String> = cases
        .iter()
        .map(|case| text(case.get("request").unwrap()))
        .collect();
    for arguments in [["decide", "-"], ["decide", "--lines"]] {
        let output = policy(&arguments, &lines.join("\n"));
        assert_eq!(output.status.code(), Some(0));
        compare(&cases, &output);
    }
}

#[test]
fn every_case_as_an_array() {
    let cases = cases();
    let requests = cases
        .iter()
        .map(|case| case.get("request").unwrap().clone())
        .collect();
    let output = policy(&["decide"], &text(&Json::Array(requests)));
    assert_eq!(output.status.code(), Some(0));
    compare(&cases, &output);
}

#[test]
fn one_case_has_an_exit_code() {
    for case in cases() {
        // Over several lines, as people write it.
        let request = text(case.get("request").unwrap()).replacen('{', "{\n", 1);
        let output = policy(&["decide"], &request);
        compare(std::slice::from_ref(&case), &output);
        let code = match answers(&output)
            .first()
            .and_then(|answer| answer.get("outcome")?.as_str())
        {
            Some("allow") => 0,
            Some("require_approval") => 4,
            _ => 2,
        };
        assert_eq!(output.status.code(), Some(code), "{case:?}");
    }
}

#[test]
fn every_case_as_a_policy_test() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(CASES);
    let output = policy(&["test", file.to_str().unwrap()], "");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said, format!("{} passed, 0 failed\n", cases().len()));
}

/// A program that asks one question after the other must not have to wait for its own end.
#[test]
fn answers_come_at_once() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["policy", "decide"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut questions = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        questions.write_all(b"{}\n").unwrap();
        assert!(
            answers
                .next()
                .unwrap()
                .unwrap()
                .contains("PERMISSION_UNDECLARED")
        );
    }
    drop(questions);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// The rules that are built in pass their own tests, and the tests reach every line.
#[test]
fn the_built_in_rules_pass_their_tests() {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies");
    let output = policy(
        &["test", policies.to_str().unwrap(), "--threshold", "100"],
        "",
    );
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

fn cases() -> Vec<Json> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(CASES);
    let corpus = Json::admit(&std::fs::read(file).unwrap(), &Limits::plan()).unwrap();
    corpus.get("cases").unwrap().as_array().unwrap().to_vec()
}

fn compare(cases: &[Json], output: &Output) {
    let answers = answers(output);
    assert_eq!(
        answers.len(),
        cases.len(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for (case, answer) in cases.iter().zip(&answers) {
        for (name, expected) in case.get("expect").unwrap().as_object().unwrap() {
            match name {
                "outcome_not" => assert_ne!(answer.get("outcome"), Some(expected), "{case:?}"),
                name => assert_eq!(answer.get(name), Some(expected), "{case:?}"),
            }
        }
        let is_constrained = answer.get("constraints").unwrap() != &text_json("{}");
        let is_allowed = answer.get("outcome").unwrap().as_str() == Some("allow");
        assert!(is_allowed || !is_constrained, "{case:?}");
    }
}

fn answers(output: &Output) -> Vec<Json> {
    let lines = std::str::from_utf8(&output.stdout).unwrap().lines();
    lines.map(text_json).collect()
}

fn text_json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::plan()).unwrap()
}

/// One line that keeps every number as it is.
fn text(json: &Json) -> String {
    String::from_utf8(json.to_sorted_ascii()).unwrap()
}

fn policy(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .arg("policy")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // The answers come while questions are still being asked.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    // A program that does not read its input closes it, which is no concern here.
    let _ = writer.join().unwrap();
    output
}
