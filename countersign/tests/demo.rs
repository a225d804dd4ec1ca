//! What `countersign demo` leaves its reader with.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

#[path = "../../tests/replayed.rs"]
mod replayed;

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

/// Whoever has built it has not installed it.
#[test]
fn the_next_commands_run_where_nothing_was_installed() {
    let place = replayed::folder();
    let run = |program: &str, words: &[&str]| -> Output {
        let mut command = Command::new(program);
        command.args(words).current_dir(place.path());
        command.env("PATH", "/usr/bin:/bin").output().unwrap()
    };
    let program = env!("CARGO_BIN_EXE_countersign");
    let said = run(program, &["demo", "--yes-demo", "--data", "it's mine"]);
    let said = String::from_utf8(said.stdout).unwrap();
    let (_, log) = said.split_once("behind").unwrap();
    let (log, _) = log.split_once("next:").unwrap();
    for line in log.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let mode = place
        .path()
        .join("it's mine")
        .metadata()
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    let (_, next) = said.split_once("next:\n").unwrap();
    let commands: Vec<&str> = next.lines().map(str::trim).collect();
    assert_eq!(commands.len(), 3, "{said}");
    for command in commands.iter().take(2) {
        let output = run("sh", &["-c", command]);
        assert!(output.status.success(), "{command}: {output:?}");
    }
}
