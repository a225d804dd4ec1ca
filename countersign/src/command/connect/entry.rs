//! A server as a client's file names it, and where in the file its command stands.

use std::ops::Range;

use super::client::Form;
use super::{json, toml};

/// What a file says about servers.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) entries: Vec<Entry>,
    /// Where values stand that may be secret: those of `env` and of headers.
    pub(super) secrets: Vec<Range<usize>>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    /// The project that it is for, in a file that serves several.
    pub(super) project: Option<String>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// A program that the client starts.
    Program(Program),
    /// It runs elsewhere and is reached by its URL.
    Remote,
    /// It cannot be told how it is started.
    Unclear(&'static str),
}

#[derive(Debug)]
pub(super) struct Program {
    pub(super) command: String,
    pub(super) command_at: Range<usize>,
    pub(super) args: Vec<String>,
    /// Where each of them stands.
    pub(super) args_at: Vec<Range<usize>>,
    pub(super) room: Room,
    /// The variables that are set for it.
    pub(super) env: Vec<String>,
}

/// Whether a variable says where programs are found.
pub(super) fn is_path(variable: &str) -> bool {
    variable.eq_ignore_ascii_case("PATH")
}

/// Where words can be put in front of a program's arguments without touching what stands there.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) at: usize,
    pub(super) before: String,
    /// What stands between two words, behind the comma.
    pub(super) gap: String,
    pub(super) after: String,
}

impl Room {
    /// Inside brackets. `filled` says whether something follows the words, `blank` what stands behind
    /// the opening bracket.
    pub(super) fn inside(at: usize, filled: bool, blank: &str) -> Self {
        let gap = match blank.contains('\n') {
            true => blank.to_owned(),
            false => " ".to_owned(),
        };
        let after = match filled {
            true => format!(",{gap}"),
            false => String::new(),
        };
        Self {
            at,
            before: String::new(),
            gap,
            after,
        }
    }

    /// Where there are no brackets yet.
    pub(super) fn none(at: usize, before: String) -> Self {
        Self {
            at,
            before: format!("{before}["),
            gap: " ".to_owned(),
            after: "]".to_owned(),
        }
    }
}

/// Reads a file. What two readers could understand differently is refused.
pub(super) fn read(text: &str, form: Form) -> Result<Found, Unreadable> {
    // A client makes an empty file before it has something to say.
    if text.trim_ascii().is_empty() {
        return Ok(Found::default());
    }
    match form {
        Form::Json { member, projects } => json::read(text, member, projects),
        Form::Toml => toml::read(text),
    }
}

/// Why a file cannot be changed: what, and where.
#[derive(Debug)]
pub(super) struct Unreadable(String);

impl Unreadable {
    pub(super) fn new(text: &str, at: Option<usize>, message: &str) -> Self {
        let before = at.and_then(|at| text.as_bytes().get(..at));
        Self(match before {
            None => message.to_owned(),
            Some(before) => {
                let line = before.split(|byte| *byte == b'\n').count();
                let column = before.rsplit(|byte| *byte == b'\n').next();
                let column = String::from_utf8_lossy(column.unwrap_or_default());
                let column = column.chars().count() + 1;
                format!("line {line}, column {column}: {message}")
            }
        })
    }

    pub(super) fn message(&self) -> &str {
        &self.0
    }
}
