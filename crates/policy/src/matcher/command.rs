//! Commands: which programs a call would run, if that can be told from its arguments.
//!
//! The reader of shell lines understands simple commands joined by `;`, `&`, `&&`, `||`, `|` and
//! line breaks, quotes, and plain variables in arguments. Everything else a shell can do makes the
//! command unclear. FAIL-CLOSED: an unclear command is never allowed.
//!
//! What an allowed program does with its arguments is its own affair (`git -c`, `python -c`, `tar
//! --to-command`); patterns for arguments are there to narrow that.

mod arguments;
mod line;
mod nested;
mod patterns;
mod programs;

pub use patterns::{ArgPatternError, ArgPatterns};

pub(in crate::matcher) use arguments::Given;

use std::collections::BTreeSet;

use countersign_canon::Json;

/// What a call of an exec tool would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Exactly these programs, in order, each with its arguments.
    Clear(Vec<Invocation>),
    /// It cannot be told.
    Unclear(Unclear),
}

impl Command {
    /// The names under which exec tools take their command.
    pub(crate) const NAMES: &'static [&'static str] = arguments::NAMES;

    /// Reads `bin` with `args`, or `cmd` or `command` as a shell line or a list of words.
    pub fn from_args(args: &Json) -> Self {
        arguments::read(args).into()
    }

    /// Reads a shell line.
    pub fn from_line(line: &str) -> Self {
        nested::line(line).into()
    }

    /// Whether every program is in the list, letter by letter, and, if there are patterns, every
    /// program's arguments, joined by single spaces, match one of them from end to end.
    pub fn allowed(&self, allowed_bins: &BTreeSet<String>, patterns: &ArgPatterns) -> bool {
        let is_allowed = |run: &Invocation| {
            allowed_bins.contains(&run.binary) && (patterns.is_empty() || run.matches(patterns))
        };
        match self {
            Self::Clear(runs) => !runs.is_empty() && runs.iter().all(is_allowed),
            Self::Unclear(_) => false,
        }
    }

    /// The programs, as far as they are clear.
    pub fn binaries(&self) -> impl Iterator<Item = &str> {
        let runs = match self {
            Self::Clear(runs) => runs.as_slice(),
            Self::Unclear(_) => &[],
        };
        runs.iter().map(|run| run.binary.as_str())
    }
}

impl From<Result<Vec<Invocation>, Unclear>> for Command {
    fn from(read: Result<Vec<Invocation>, Unclear>) -> Self {
        match read {
            Ok(runs) => Self::Clear(runs),
            Err(reason) => Self::Unclear(reason),
        }
    }
}

/// One program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    binary: String,
    /// `None` if a variable or a glob decides what the arguments are.
    arguments: Option<Vec<String>>,
}

impl Invocation {
    /// The program as it was written: a name to be searched for, or a path.
    pub fn binary(&self) -> &str {
        &self.binary
    }

    /// The arguments, unless a variable or a glob decides what they are.
    pub fn arguments(&self) -> Option<&[String]> {
        self.arguments.as_deref()
    }

    fn matches(&self, patterns: &ArgPatterns) -> bool {
        self.arguments()
            .is_some_and(|arguments| patterns.match_whole(&arguments.join(" ")))
    }
}

/// Why it cannot be told what a call would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unclear {
    /// The arguments name no command.
    #[error("no command")]
    Missing,
    /// The arguments name more than one command.
    #[error("more than one of `bin`, `cmd` and `command`")]
    Several,
    /// A part of the command is no text.
    #[error("a part of the command is not text")]
    NotText,
    /// Something beside the command changes what it means.
    #[error("another argument changes what the command means")]
    Surroundings,
    /// The command is longer than what is examined.
    #[error("too long")]
    TooLong,
    /// A control character.
    #[error("control character")]
    Character,
    /// A quote or an escape is not closed.
    #[error("unclosed quote or escape")]
    Unclosed,
    /// `$(…)`, backticks, or an expansion that can run something.
    #[error("substitution or expansion")]
    Substitution,
    /// `<`, `>` and their kin.
    #[error("redirection")]
    Redirection,
    /// A group, a function, a comment or a reserved word.
    #[error("shell syntax beyond simple commands")]
    Syntax,
    /// `NAME=value` in front of a command.
    #[error("variable assignment")]
    Assignment,
    /// A variable or a glob decides which program runs.
    #[error("an expansion decides which program runs")]
    Program,
    /// A builtin that runs text or changes what later commands mean.
    #[error("builtin that changes what runs")]
    Builtin,
    /// A program that runs another one in a way that is not understood.
    #[error("wrapper whose command is not clear")]
    Wrapper,
    /// A shell that reads its commands from elsewhere.
    #[error("shell whose commands are not visible")]
    Shell,
}

#[cfg(test)]
mod tests;
