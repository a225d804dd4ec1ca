//! The sorted ASCII form against CPython, which defines it.
//!
//! `COUNTERSIGN_DIFF_CASES` sets how many texts are compared.

use std::io::Write;
use std::process::{Command, Stdio};

use countersign_canon::{Json, Limits};

use crate::random::Random;

#[test]
fn b01_sorted_ascii_is_what_cpython_writes() {
    let mut random = Random::exact(1);
    let texts: Vec<String> = (0..cases()).map(|_| random.text()).collect();
    let answers = ask_python(&texts);
    let answers: Vec<&str> = answers.lines().collect();
    assert_eq!(answers.len(), texts.len());
    for (text, answer) in texts.iter().zip(answers) {
        let value = Json::admit(text.as_bytes(), &Limits::plan()).expect(text);
        let found = String::from_utf8(value.to_sorted_ascii()).unwrap();
        assert_eq!(found, answer, "{text}");
        let again = Json::admit(found.as_bytes(), &Limits::plan()).unwrap();
        assert_eq!(again, value, "{text}");
    }
}

fn cases() -> usize {
    match std::env::var("COUNTERSIGN_DIFF_CASES") {
        Ok(count) => count
            .parse()
            .expect("`COUNTERSIGN_DIFF_CASES` must be a number"),
        Err(_) => 100_000,
    }
}

/// One line in, one line out.
fn ask_python(texts: &[String]) -> String {
    let mut python = Command::new("python3")
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test compares with CPython: `python3` must be installed");
    let mut input = python.stdin.take().unwrap();
    let lines = texts.join("\n") + "\n";
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "`python3` failed");
    writer.join().unwrap().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

const SCRIPT: &str = r"
import json, sys
for line in sys.stdin.buffer:
    value = json.loads(line.decode('utf-8'))
    print(json.dumps(value, sort_keys=True, separators=(',', ':'), ensure_ascii=True, allow_nan=False))
";
