//! What a real shell runs is what the reader of shell lines said it would run.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

use std::path::Path;
use std::process::{Command as Process, Stdio};

use countersign_policy::matcher::Command;

/// Runs made-up lines that are said to be clear in a shell that finds no program at all, and
/// compares what it looked for with what it was said to run.
#[test]
fn bash_looks_for_no_other_program() {
    if !Path::new(BASH).exists() {
        return;
    }
    let mut random = Random(1);
    let mut found = 0;
    for _ in 0..400 {
        let (line, command) = clear_line(&mut random);
        let said: Vec<&str> = command.binaries().collect();
        for binary in looked_for(&line) {
            assert!(said.contains(&binary.as_str()), "{line:?}: {binary:?}");
            found += 1;
        }
    }
    assert!(found > 200, "{found}");
}

/// A line of at least two pieces that is said to be clear.
fn clear_line(random: &mut Random) -> (String, Command) {
    loop {
        let count = 2 + random.below(8);
        let line: String = (0..count)
            .map(|_| PIECES[random.below(PIECES.len())])
            .collect();
        let command = Command::from_line(&line);
        if let Command::Clear(_) = command {
            return (line, command);
        }
    }
}

/// The programs that the shell did not find.
fn looked_for(line: &str) -> Vec<String> {
    let script = format!("command_not_found_handle(){{ printf '\\1%s\\2' \"$1\" >&2; }}\n{line}");
    let output = Process::new(BASH)
        .args(["--norc", "--noprofile", "-c", &script])
        .env_clear()
        .env("PATH", "/nonexistent")
        .env("LC_ALL", "C.UTF-8")
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.stdout.is_empty(), "{line:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let marked = text.split('\u{1}').skip(1);
    marked
        .filter_map(|rest| rest.split_once('\u{2}'))
        .map(|(binary, _)| binary.to_owned())
        .collect()
}

/// SplitMix64: the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % limit as u64).unwrap()
    }
}

const BASH: &str = "/bin/bash";

/// Names that no shell has built in, and everything a shell gives a meaning to.
const PIECES: &[&str] = &[
    "qa",
    "qb",
    "qc",
    "qd",
    "-x",
    "sudo",
    "env",
    "sh",
    "-c",
    "xargs",
    " ",
    " ",
    " ",
    " ",
    ";",
    "&",
    "&&",
    "|",
    "||",
    "|&",
    ";;",
    "\n",
    "\t",
    "'",
    "'",
    "\"",
    "\"",
    "\\",
    "$",
    "$x",
    "${x}",
    "$(",
    ")",
    "`",
    "<",
    ">",
    "(",
    "{",
    "}",
    "{ ",
    " }",
    "#",
    "*",
    "?",
    "[",
    "]",
    "[[",
    "]]",
    "~",
    "=",
    "A=b",
    "!",
    "!qa",
    "if",
    "then",
    "do",
    "time",
    ",",
    "^",
    "%",
    "@",
    "+",
    "-",
    "..",
    "1",
    "é",
    "{qa,qb}",
    "'qa;qb'",
    "\"qa;qb\"",
    "\"qa $x\"",
    "\\;",
    "\\\"",
    "\\'",
    "$'",
];
