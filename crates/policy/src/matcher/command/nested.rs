//! Programs that run programs: wrappers, shells, builtins.

use super::line::{self, Word};
use super::programs::{Kind, kind};
use super::{Invocation, Unclear};

/// What a shell line runs.
pub(super) fn line(text: &str) -> Result<Vec<Invocation>, Unclear> {
    let mut runs = Vec::new();
    add_line(text, DEEPEST, &mut runs)?;
    match runs.is_empty() {
        true => Err(Unclear::Missing),
        false => Ok(runs),
    }
}

/// What one command runs whose words are already known.
pub(super) fn words(words: Vec<Word>) -> Result<Vec<Invocation>, Unclear> {
    let mut runs = Vec::new();
    add_command(&words, DEEPEST, &mut runs)?;
    Ok(runs)
}

fn add_line(text: &str, depth: usize, runs: &mut Vec<Invocation>) -> Result<(), Unclear> {
    if text.len() > LONGEST {
        return Err(Unclear::TooLong);
    }
    for command in line::split(text)? {
        check_first(&command)?;
        add_command(&command, depth, runs)?;
    }
    Ok(())
}

/// What only a shell sees in the first word: reserved words and assignments.
fn check_first(command: &[Word]) -> Result<(), Unclear> {
    match command.first() {
        Some(first) if is_assignment(&first.text) => Err(Unclear::Assignment),
        Some(first) if !first.is_quoted && RESERVED.contains(&first.text.as_str()) => {
            Err(Unclear::Syntax)
        }
        _ => Ok(()),
    }
}

/// Builtins of a shell that are programs elsewhere: `printf -v` sets a variable, `PATH` too, and both
/// it and `test -v` run what stands in the brackets of `NAME[…]`.
fn check_builtin(name: &str, rest: &[Word]) -> Result<(), Unclear> {
    let names_variable = |word: &Word| word.text.starts_with("-v") || word.text == "-R";
    match name {
        "printf" | "test" | "[" if rest.iter().any(names_variable) => Err(Unclear::Builtin),
        _ => Ok(()),
    }
}

fn add_command(words: &[Word], depth: usize, runs: &mut Vec<Invocation>) -> Result<(), Unclear> {
    let (first, rest) = words.split_first().ok_or(Unclear::Missing)?;
    let depth = depth.checked_sub(1).ok_or(Unclear::TooLong)?;
    if !first.is_literal {
        return Err(Unclear::Program);
    }
    if first.text.is_empty() {
        return Err(Unclear::Missing);
    }
    check_builtin(&first.text, rest)?;
    if runs.len() >= MOST_RUNS {
        return Err(Unclear::TooLong);
    }
    runs.push(Invocation {
        binary: first.text.clone(),
        arguments: literal(rest),
    });
    let name = first.text.rsplit('/').next().unwrap_or_default();
    match kind(name) {
        Kind::Program => Ok(()),
        Kind::Builtin => Err(Unclear::Builtin),
        Kind::Opaque => Err(Unclear::Wrapper),
        Kind::HiddenShell => Err(Unclear::Shell),
        Kind::Shell => add_shell(rest, depth, runs),
        Kind::Wrapper => add_wrapped(rest, depth, runs),
        Kind::Timed => add_timed(rest, depth, runs),
        Kind::Feeder => add_fed(rest, depth, runs),
        Kind::Finder => check_finder(rest),
    }
}

/// Only `sh -c LINE`: what else a shell reads, nobody has seen.
fn add_shell(rest: &[Word], depth: usize, runs: &mut Vec<Invocation>) -> Result<(), Unclear> {
    match rest {
        [option, text] if option.text == "-c" && option.is_literal && text.is_literal => {
            add_line(&text.text, depth, runs)
        }
        _ => Err(Unclear::Shell),
    }
}

/// A wrapper followed by its command. Options and assignments can change what runs.
fn add_wrapped(rest: &[Word], depth: usize, runs: &mut Vec<Invocation>) -> Result<(), Unclear> {
    match rest.first() {
        None => Ok(()),
        Some(first) if first.text.starts_with('-') => Err(Unclear::Wrapper),
        Some(first) if first.text.contains('=') => Err(Unclear::Assignment),
        Some(_) => add_command(rest, depth, runs),
    }
}

/// `xargs` adds words from its input, which may be anything.
fn add_fed(rest: &[Word], depth: usize, runs: &mut Vec<Invocation>) -> Result<(), Unclear> {
    let unknown = Word {
        is_literal: false,
        ..Word::literal("")
    };
    let mut fed = rest.to_vec();
    fed.push(unknown);
    match rest {
        [] => Ok(()),
        _ => add_wrapped(&fed, depth, runs),
    }
}

fn add_timed(rest: &[Word], depth: usize, runs: &mut Vec<Invocation>) -> Result<(), Unclear> {
    match rest.split_first() {
        Some((time, command)) if time.is_literal && is_time(&time.text) => {
            add_wrapped(command, depth, runs)
        }
        _ => Err(Unclear::Wrapper),
    }
}

fn check_finder(rest: &[Word]) -> Result<(), Unclear> {
    let is_plain = |word: &Word| {
        word.is_literal && !word.text.starts_with("-exec") && !word.text.starts_with("-ok")
    };
    match rest.iter().all(is_plain) {
        true => Ok(()),
        false => Err(Unclear::Wrapper),
    }
}

fn literal(words: &[Word]) -> Option<Vec<String>> {
    let text = |word: &Word| word.is_literal.then(|| word.text.clone());
    words.iter().map(text).collect()
}

/// `NAME=…`, also `NAME+=…` and `NAME[…]=…`.
fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && !name.contains('/')
    })
}

fn is_time(text: &str) -> bool {
    let digits = text.trim_end_matches(['s', 'm', 'h', 'd']);
    !digits.is_empty()
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Longest line or word that is examined, in bytes.
pub(super) const LONGEST: usize = 64 << 10;
/// How deep commands may stand inside commands.
const DEEPEST: usize = 8;
/// How many programs one call may run.
const MOST_RUNS: usize = 256;

/// Words that only have a meaning to a shell, in the place of a program.
const RESERVED: &[&str] = &[
    "!", "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for",
    "in", "select", "function", "coproc", "[[", "]]", "{", "}",
];
