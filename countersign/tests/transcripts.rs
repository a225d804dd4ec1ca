//! Runs every console transcript of the documents and of `tests/cli`, in a shell, and compares what
//! is printed with what is written.
//!
//! In a transcript `$ ` starts a command and `> ` continues it, `? N` states an exit code other than
//! 0, and everything else is output (both streams). `[..]` stands for any text within a line.
//! `COUNTERSIGN_BLESS=1 cargo test --test transcripts` writes the output that was seen.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

#[path = "../../tests/replayed.rs"]
mod replayed;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn documents_work_as_written() {
    let documents = markdown("docs");
    assert!(documents.len() > 3, "the documents were not found");
    for document in documents.into_iter().chain([root().join("README.md")]) {
        check(&document);
    }
}

#[test]
fn the_command_line_says_what_it_always_said() {
    let transcripts = markdown("countersign/tests/cli");
    assert!(transcripts.len() > 3, "the transcripts were not found");
    for transcript in transcripts {
        check(&transcript);
    }
}

#[test]
fn a_wrong_transcript_is_noticed() {
    let good = "```console\n$ echo one; echo two\none\n[..]wo\n```\n";
    assert!(run(good, Path::new("good")).0.is_empty());
    for bad in [
        "```console\n$ echo one\ntwo\n```\n",
        "```console\n$ echo one\n```\n",
        "```console\n$ true\nextra\n```\n",
        "```console\n$ exit 3\n```\n",
        "```console\n$ true\n? 3\n```\n",
    ] {
        assert_eq!(run(bad, Path::new("bad")).0.len(), 1, "{bad}");
    }
}

fn check(file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    let (complaints, blessed) = run(&text, file);
    if std::env::var_os("COUNTERSIGN_BLESS").is_some() {
        fs::write(file, blessed).unwrap();
    } else {
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }
}

/// What differs, and the document with the output that was seen.
fn run(text: &str, file: &Path) -> (Vec<String>, String) {
    let name = file.file_name().unwrap_or_default();
    let folder = replayed::named(&name.to_string_lossy());
    let mut complaints = Vec::new();
    let mut blessed = String::new();
    for block in blocks(text) {
        let Block::Console(steps) = block else {
            let Block::Prose(prose) = block else { continue };
            blessed.push_str(&prose);
            continue;
        };
        blessed.push_str("```console\n");
        for step in steps {
            let seen = step.run(folder.path());
            if !matches(&step.expected, &seen) {
                complaints.push(format!(
                    "{}: `{}`\n--- written\n{}\n--- seen\n{}\n",
                    file.display(),
                    step.command,
                    step.expected.join("\n"),
                    seen.join("\n")
                ));
            }
            blessed.push_str(&step.blessed(&seen));
        }
        blessed.push_str("```\n");
    }
    (complaints, blessed)
}

enum Block {
    Prose(String),
    Console(Vec<Step>),
}

struct Step {
    source: String,
    command: String,
    /// Output lines, and `? N` for an exit code other than 0.
    expected: Vec<String>,
}

impl Step {
    fn run(&self, folder: &Path) -> Vec<String> {
        let binary = Path::new(env!("CARGO_BIN_EXE_countersign"))
            .parent()
            .unwrap();
        let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1\n{}", self.command)])
            .current_dir(folder)
            .env_clear()
            .env("PATH", path)
            .env("HOME", folder)
            .env("COUNTERSIGN_DATA", folder.join("data"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let text = text.replace(&folder.display().to_string(), "[DIR]");
        let mut seen: Vec<String> = text
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
        match output.status.code() {
            Some(0) => {}
            code => seen.insert(0, format!("? {}", code.unwrap_or(-1))),
        }
        seen
    }

    fn blessed(&self, seen: &[String]) -> String {
        // A line that was written with a gap keeps it wherever it still fits; a line that is all gap
        // would fit everywhere.
        let written = |line: &String| {
            let fits = |pattern: &&String| *pattern != "[..]" && matches_line(pattern, line);
            self.expected.iter().find(fits).unwrap_or(line).clone()
        };
        let lines: String = match matches(&self.expected, seen) {
            true => self
                .expected
                .iter()
                .map(|line| format!("{line}\n"))
                .collect(),
            false => seen.iter().map(|line| written(line) + "\n").collect(),
        };
        format!("{}{lines}", self.source)
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut prose = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line != "```console" {
            prose.push_str(line);
            prose.push('\n');
            continue;
        }
        blocks.push(Block::Prose(std::mem::take(&mut prose)));
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push(Block::Console(steps(&body)));
    }
    blocks.push(Block::Prose(prose));
    blocks
}

fn steps(body: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in body {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                source: format!("{line}\n"),
                command: command.to_owned(),
                expected: Vec::new(),
            });
            continue;
        }
        let step = steps
            .last_mut()
            .unwrap_or_else(|| panic!("output before a command: {line}"));
        match line.strip_prefix("> ") {
            Some(more) if step.expected.is_empty() => {
                step.source.push_str(&format!("{line}\n"));
                step.command.push_str(&format!("\n{more}"));
            }
            _ => step.expected.push((*line).to_owned()),
        }
    }
    steps
}

fn matches(expected: &[String], seen: &[String]) -> bool {
    expected.len() == seen.len()
        && expected
            .iter()
            .zip(seen)
            .all(|(pattern, line)| matches_line(pattern, line))
}

fn matches_line(pattern: &str, line: &str) -> bool {
    match pattern.split_once("[..]") {
        None => pattern == line,
        Some((start, rest)) => line.strip_prefix(start).is_some_and(|tail| {
            (0..=tail.len())
                .filter(|at| tail.is_char_boundary(*at))
                .any(|at| matches_line(rest, &tail[at..]))
        }),
    }
}

fn markdown(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}
