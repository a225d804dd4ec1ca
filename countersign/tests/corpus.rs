//! Corpora through the command line: questions for policies with the same answers as from the library, and
//! records of others with what the text of their format says about them.
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

/// The cases of `corpus/acs`, those of the specification among them, and what becomes of a folder without any.
#[test]
fn every_case_of_agent_control() {
    let test = |path: &Path| {
        Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["acs", "test", "--format", "json"])
            .arg(path)
            .output()
            .unwrap()
    };
    let output = test(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/acs"));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let limits = Limits {
        max_bytes: usize::MAX,
        ..Limits::event()
    };
    let report = Json::admit(&output.stdout, &limits).unwrap();
    let cases = report.get("cases").and_then(Json::as_array).unwrap();
    assert!(cases.len() >= 25 + 140 + 130);
    let count = |name: &str| report.get(name).and_then(Json::as_u64);
    assert_eq!(count("passed"), Some(cases.len() as u64));
    assert_eq!(count("failed"), Some(0));
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(test(empty.path()).status.code(), Some(3));
}

/// `corpus/aep/foreign.json`: records that another program made and signed, right ones and ones with one
/// fault each. What it says for a file it says for each of its records.
#[test]
fn records_of_others_on_four_axes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/aep/foreign.json");
    let limits = Limits {
        max_bytes: usize::MAX,
        ..Limits::event()
    };
    let corpus = Json::admit(&std::fs::read(corpus).unwrap(), &limits).unwrap();
    let said = |json: &Json, name: &str| json.get(name).and_then(Json::as_str).map(str::to_owned);
    let cases = corpus.get("cases").and_then(Json::as_array).unwrap();
    assert!(cases.len() > 130);
    let folder = tempfile::tempdir().unwrap();
    for (number, case) in cases.iter().enumerate() {
        let file = folder.path().join(format!("{number}.json"));
        std::fs::write(file, said(case, "text").unwrap()).unwrap();
    }
    let key = corpus.get("key").unwrap();
    let key = format!("{}={}", said(key, "id").unwrap(), said(key, "hex").unwrap());
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .current_dir(&folder)
        .args(["evidence", "check", "--format", "json", "--key", &key])
        .args((0..cases.len()).map(|number| format!("{number}.json")))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5));
    let report = Json::admit(&output.stdout, &limits).unwrap();
    let files = report.get("files").and_then(Json::as_array).unwrap();
    assert_eq!(files.len(), cases.len());
    let mut wrong = Vec::new();
    for (case, file) in cases.iter().zip(files) {
        let expect = case.get("expect").unwrap();
        let records = file.get("records").and_then(Json::as_array).unwrap();
        let axes = ["structural", "semantic", "authenticity"];
        let found = axes.iter().flat_map(|axis| {
            let records = records.iter();
            records.map(move |record| (*axis, said(record.get(axis).unwrap(), "status")))
        });
        let chain = said(file.get("chain").unwrap(), "status");
        for (axis, found) in found.chain([("chain", chain)]) {
            let expected = said(expect, axis);
            if expected.as_deref() != Some("any") && expected != found {
                wrong.push(format!("{:?}: {axis} is {found:?}", said(case, "id")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
