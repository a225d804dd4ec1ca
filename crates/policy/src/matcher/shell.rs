//! Does this command line only read?
//!
//! The line is read as `sh` and `bash` read it: lists, pipes, groups, substitutions, redirections,
//! here-documents, quotes and expansions. Then every program that it would run, also through wrappers
//! such as `env`, `xargs` or `bash -c`, is looked up in a table of programs and of the options with
//! which they only read. FAIL-CLOSED: a program, an option or a piece of syntax that is not in the
//! tables makes the answer [`Effect::Unknown`]; nothing is read-only by default.
//!
//! What is taken for granted: the names in the table stand for the usual programs (nobody replaced
//! them, `PATH` is the operator's), and their configuration files are the operator's too (`git` runs
//! what its configuration says). Reading secrets is no side effect, so paths are a matter for other
//! rules; only the environment and the files of `/proc` and `/dev` are kept from being called
//! harmless.
//!
//! ```
//! use countersign_policy::matcher::Effect;
//!
//! assert_eq!(Effect::of_line("git log --oneline | head -5"), Effect::ReadOnly);
//! assert_eq!(Effect::of_line("echo 'a;sudo b'"), Effect::ReadOnly);
//! assert!(!Effect::of_line("echo $(sudo id)").is_read_only());
//! assert!(!Effect::of_line("find . -delete").is_read_only());
//! ```

mod find;
mod git;
mod judge;
mod known;
mod options;
mod parse;
mod programs;
mod sed;
mod word;

use countersign_canon::Json;

use super::command::Given;

/// What running a command can change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Effect {
    /// Nothing: every part of it was understood and only reads.
    ReadOnly,
    /// Something.
    SideEffecting {
        /// What.
        why: String,
    },
    /// It cannot be told.
    Unknown {
        /// Why not.
        why: String,
    },
}

impl Effect {
    /// Judges a shell line.
    pub fn of_line(line: &str) -> Self {
        judge::line(line)
    }

    /// Judges the arguments of an exec tool: `bin` with `args`, or `cmd` or `command` as a shell line
    /// or a list of words.
    pub fn of_args(args: &Json) -> Self {
        match Given::of(args) {
            Ok(Given::Line(line)) => judge::line(line),
            Ok(Given::Words(words)) => judge::words(&words),
            Err(unclear) => Self::unknown(unclear.to_string()),
        }
    }

    /// Whether it is certain that nothing changes.
    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::ReadOnly)
    }

    /// Why it is not read-only.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::ReadOnly => None,
            Self::SideEffecting { why } | Self::Unknown { why } => Some(why),
        }
    }

    fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown { why: why.into() }
    }

    fn changes(why: impl Into<String>) -> Self {
        Self::SideEffecting { why: why.into() }
    }

    /// Both of them: the worse one.
    fn and(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::SideEffecting { .. }, _) => self,
            (_, Self::SideEffecting { .. }) => other,
            (Self::Unknown { .. }, _) => self,
            _ => other,
        }
    }
}

#[cfg(test)]
mod tests;
