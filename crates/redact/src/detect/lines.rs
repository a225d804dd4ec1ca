//! Secrets that stand on other lines than their names: blocks and lists of YAML, folded headers,
//! here-documents, columns of a table.

use crate::key;
use crate::span::{REDACTED, Span, begins_with_mark};

pub(super) fn find(text: &str, also: &[String], spans: &mut Vec<Span>) {
    if !text.trim_end().contains('\n') {
        return;
    }
    below(text, also, spans);
    columns(text, also, spans);
}

/// A line, and where it begins.
#[derive(Clone, Copy)]
struct Line<'t> {
    at: usize,
    text: &'t str,
}

impl<'t> Line<'t> {
    fn indent(self) -> usize {
        self.text.len() - self.text.trim_start_matches([' ', '\t']).len()
    }

    /// `NAME: rest`, `- NAME = rest`; the name without quotes.
    fn assigned(self) -> Option<(&'t str, &'t str)> {
        let (name, value) = self.text.split_once([':', '='])?;
        let name = name.trim().trim_start_matches("- ").trim();
        Some((name.trim_matches(['"', '\'']), value.trim_start()))
    }
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        Line {
            at: start,
            text: line.trim_end_matches(['\r', '\n']),
        }
    })
}

/// How the value of a secret goes on below its name.
enum Goes {
    /// In lines that are further right than this, or begin with a dash there.
    Indented(usize),
    /// Until a line that is this.
    Until(String),
}

impl Goes {
    fn on(&self, line: Line<'_>) -> bool {
        match self {
            Self::Indented(indent) => {
                line.text.trim().is_empty()
                    || line.indent() > *indent
                    || line.indent() == *indent && line.text.trim_start().starts_with("- ")
            }
            Self::Until(_) => true,
        }
    }

    fn ends_with(&self, line: Line<'_>) -> bool {
        matches!(self, Self::Until(end) if line.text.trim() == end)
    }
}

fn below(text: &str, also: &[String], spans: &mut Vec<Span>) {
    let mut going: Option<Goes> = None;
    // Whether the line before has named a secret whose value is told in the next.
    let mut is_named = false;
    for line in lines(text) {
        if let Some(goes) = going.take_if(|goes| goes.on(line)) {
            if !goes.ends_with(line) {
                hide(line, line.indent(), spans);
                going = Some(goes);
            }
            continue;
        }
        going = None;
        let Some((name, value)) = line.assigned() else {
            is_named = false;
            continue;
        };
        if is_named && is_any(name, VALUES) && !value.is_empty() {
            let from = line.text.len() - value.len();
            hide(line, from, spans);
        }
        let value = value.trim_end();
        is_named = is_any(name, NAMES) && key::is_secret(value.trim_matches(['"', '\'']), also);
        if key::is_secret(name, also) && !key::counts(name) {
            going = opened(line, value);
        }
    }
}

/// What a value opens, if it is not all on its line.
fn opened(line: Line<'_>, value: &str) -> Option<Goes> {
    let folds = value.trim_end_matches(['-', '+']);
    let folds = folds.trim_end_matches(char::is_numeric);
    if value.is_empty() || ["|", ">"].contains(&folds) {
        return Some(Goes::Indented(line.indent()));
    }
    let word = value
        .strip_prefix("<<")?
        .trim_start_matches(['-', '~', '\'', '"']);
    let word = word.trim_end_matches(['\'', '"']);
    let is_word = !word.is_empty()
        && word
            .chars()
            .all(|letter| letter.is_alphanumeric() || letter == '_');
    is_word.then(|| Goes::Until(word.to_owned()))
}

/// A table whose first line names its columns.
fn columns(text: &str, also: &[String], spans: &mut Vec<Span>) {
    let mut lines = lines(text);
    let Some(head) = lines.next() else {
        return;
    };
    let Some(comma) = ['\t', ',', ';', '|']
        .into_iter()
        .find(|comma| head.text.contains(*comma))
    else {
        return;
    };
    let names: Vec<&str> = cells(head, comma)
        .iter()
        .map(|cell| cell.text.trim_matches('"').trim())
        .collect();
    let is_name = |name: &&str| {
        !name.is_empty()
            && name
                .chars()
                .all(|letter| letter.is_alphanumeric() || "_-. ".contains(letter))
    };
    if !names.iter().all(is_name) {
        return;
    }
    let secret: Vec<bool> = names
        .iter()
        .map(|name| key::is_secret(name, also) && !key::counts(name))
        .collect();
    if !secret.contains(&true) {
        return;
    }
    for line in lines {
        let cells = cells(line, comma);
        if cells.len() != secret.len() {
            continue;
        }
        for (cell, _) in cells.iter().zip(&secret).filter(|(_, secret)| **secret) {
            hide(*cell, 0, spans);
        }
    }
}

/// The cells of a line; what is in quotes is one.
fn cells(line: Line<'_>, comma: char) -> Vec<Line<'_>> {
    let mut quoted = false;
    let mut at = line.at;
    let cells = line.text.split(|letter| {
        quoted ^= letter == '"';
        letter == comma && !quoted
    });
    cells
        .map(|text| {
            let cell = Line { at, text };
            at += text.len() + comma.len_utf8();
            cell
        })
        .collect()
}

fn hide(line: Line<'_>, from: usize, spans: &mut Vec<Span>) {
    let value = line.text.get(from..).unwrap_or_default();
    if !value.trim().is_empty() && !begins_with_mark(value.trim_start()) {
        spans.push(Span {
            start: line.at + from,
            end: line.at + line.text.len(),
            mark: REDACTED,
        });
    }
}

fn is_any(word: &str, words: &[&str]) -> bool {
    words.iter().any(|one| one.eq_ignore_ascii_case(word))
}

const NAMES: &[&str] = &["name", "key", "header", "variable"];
const VALUES: &[&str] = &["value", "default", "val"];
