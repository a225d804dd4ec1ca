//! Copies of the log that somebody has touched.

use std::fs;
use std::path::Path;

use countersign_canon::Hash;
use countersign_verify::{Expectation, Report, Selection};

use crate::command::verify::verify_lines;
use crate::errors::Failure;

/// What was done, the lines after it, and what whoever verifies them knows.
pub(super) type Forgery = (&'static str, Vec<Vec<u8>>, Expectation);

pub(super) fn forgeries(lines: &[Vec<u8>], head: Hash) -> Vec<Forgery> {
    let kept = Expectation {
        head: Some(head),
        ..Expectation::default()
    };
    let edited = lines
        .iter()
        .map(|line| replace(line, b"TOOL_CALL_DENIED", b"TOOL_CALL_ALLOWED"));
    let mut flipped = lines.to_vec();
    if let Some(byte) = flipped.get_mut(4).and_then(|line| line.last_mut()) {
        *byte ^= 1;
    }
    let removed = lines
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != 3)
        .map(|(_, line)| line.clone());
    let cut = lines
        .split_last()
        .map(|(_, rest)| rest.to_vec())
        .unwrap_or_default();
    vec![
        (
            "a denial made into an allow",
            edited.collect(),
            Expectation::default(),
        ),
        ("one bit flipped", flipped, Expectation::default()),
        (
            "one event removed",
            removed.collect(),
            Expectation::default(),
        ),
        ("the end cut off, head known", cut, kept),
    ]
}

/// Verifies lines as a file of their own.
pub(super) fn verify_copy(
    copy: &Path,
    lines: &[Vec<u8>],
    expectation: &Expectation,
) -> Result<Report, Failure> {
    let text: Vec<u8> = lines
        .iter()
        .flat_map(|line| line.iter().copied().chain([b'\n']))
        .collect();
    fs::write(copy, text)?;
    verify_lines(&copy.to_string_lossy(), &Selection::default(), expectation)
}

fn replace(line: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    match line.windows(from.len()).position(|window| window == from) {
        Some(at) => {
            let (before, rest) = line.split_at(at);
            [before, to, rest.get(from.len()..).unwrap_or_default()].concat()
        }
        None => line.to_vec(),
    }
}
