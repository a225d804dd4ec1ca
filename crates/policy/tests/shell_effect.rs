//! Lines that are said to be read-only, in a real shell: they look for no other programs and leave
//! no file behind.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

use std::fs;
use std::path::Path;
use std::process::{Command as Process, Stdio};

use countersign_policy::matcher::Effect;

#[test]
fn bash_looks_for_harmless_programs_only() {
    if !Path::new(BASH).exists() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shell_effect");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    let mut random = Random(5);
    let mut found = 0;
    for _ in 0..1_000 {
        let line = read_only_line(&mut random);
        for program in looked_for(&line, &folder) {
            assert!(
                HARMLESS.contains(&program.as_str()),
                "{line:?}: {program:?}"
            );
            found += 1;
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{line:?}");
    }
    assert!(found > 200, "{found}");
}

#[test]
fn lists_stay_what_their_parts_are() {
    let mut random = Random(9);
    for _ in 0..3_000 {
        let line = read_only_line(&mut random);
        if !line.contains("<<") {
            assert!(
                Effect::of_line(&format!("{line}\nls")).is_read_only(),
                "{line:?}"
            );
            assert!(
                !Effect::of_line(&format!("{line}\nrm x")).is_read_only(),
                "{line:?}"
            );
        }
    }
}

fn read_only_line(random: &mut Random) -> String {
    loop {
        let count = 2 + random.below(8);
        let line: String = (0..count)
            .map(|_| PIECES[random.below(PIECES.len())])
            .collect();
        if Effect::of_line(&line).is_read_only() {
            return line;
        }
    }
}

/// The programs that the shell did not find.
fn looked_for(line: &str, folder: &Path) -> Vec<String> {
    let script = format!("command_not_found_handle(){{ printf '\\1%s\\2' \"$1\" >&9; }}\n{line}");
    let wrapped = format!("exec 9>&2; {script}");
    let output = Process::new(BASH)
        .args(["--norc", "--noprofile", "-c", &wrapped])
        .env_clear()
        .env("PATH", "/nonexistent")
        .env("LC_ALL", "C.UTF-8")
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.split('\u{1}')
        .skip(1)
        .filter_map(|part| part.split_once('\u{2}'))
        .map(|(program, _)| program.to_owned())
        .collect()
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % limit
    }
}

const BASH: &str = "/bin/bash";

const HARMLESS: &[&str] = &["bash", "ls", "cat", "grep", "env", "wc", "sort"];

/// Harmless and harmful words, and everything that joins them.
const PIECES: &[&str] = &[
    "ls",
    "ls ",
    "cat ",
    "grep x ",
    "wc ",
    "sort ",
    "env ",
    "echo ",
    "true",
    "rm x",
    "tee f",
    "touch f ",
    "evil ",
    " ",
    "\n",
    ";",
    " && ",
    " || ",
    " | ",
    " & ",
    "$(",
    ")",
    "`",
    "\"",
    "'",
    "\\",
    "(",
    "{ ",
    "; }",
    "}",
    "<",
    ">",
    ">f",
    " >/dev/null",
    " 2>&1",
    "<(",
    ">(",
    "<<E\n",
    "\nE\n",
    "<<'E'\n",
    "<<<",
    "if ",
    "; then ",
    "; fi",
    "! ",
    "#",
    "$HOME",
    "~",
    "*",
    "-o f",
    "{a,b}",
    "$x",
    "x=1 ",
    "\\\n",
    "command ",
    "exec ",
    "bash -c ",
    "&>f",
    "2",
    "=",
    "[ ",
    " ]",
    "$",
    "!",
    "a",
];
