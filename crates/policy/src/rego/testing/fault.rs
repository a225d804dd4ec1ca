//! Where a policy is wrong.

use std::fmt;

use crate::rego::bundle::{BundleError, Source};

/// What is wrong, and where. Displays as `file:line: message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file; empty if it is not known.
    pub file: String,
    /// The line, from 1; 0 if it is not known.
    pub line: u64,
    /// What is wrong.
    pub message: String,
}

impl Fault {
    /// The place of an error in the files that it came from.
    pub fn of(error: &BundleError, sources: &[Source]) -> Self {
        match error {
            BundleError::Parse { file, problem } => match Self::in_text(problem) {
                fault if fault.line > 0 => fault,
                fault => Self {
                    file: file.clone(),
                    ..fault
                },
            },
            BundleError::Compile(problem) => Self::in_text(problem),
            BundleError::Forbidden(name) | BundleError::Unbounded { name, .. } => {
                let (file, line) = find(name, sources).unwrap_or_default();
                Self {
                    file,
                    line,
                    message: error.to_string(),
                }
            }
            BundleError::Recursive(name) => {
                let name = name.rsplit('.').next().unwrap_or_default();
                let (file, line) = find(&format!("{name}("), sources).unwrap_or_default();
                Self {
                    file,
                    line,
                    message: error.to_string(),
                }
            }
            BundleError::Data(_) => Self::nowhere(&error.to_string()),
        }
    }

    /// Reads the engine's messages: `--> file:line:column`, the line, and `error: …`.
    pub(super) fn in_text(text: &str) -> Self {
        let message = match text.rsplit_once("error: ") {
            Some((_, message)) => message.trim(),
            None => text.trim(),
        };
        let place = text
            .split_once("--> ")
            .and_then(|(_, rest)| rest.lines().next());
        let mut parts = place.unwrap_or_default().rsplitn(3, ':').skip(1);
        match (parts.next().map(str::parse), parts.next()) {
            (Some(Ok(line)), Some(file)) => Self {
                file: file.to_owned(),
                line,
                message: message.to_owned(),
            },
            _ => Self::nowhere(message),
        }
    }

    fn nowhere(message: &str) -> Self {
        Self {
            file: String::new(),
            line: 0,
            message: message.to_owned(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => f.write_str(&self.message),
            (file, 0) => write!(f, "{file}: {}", self.message),
            (file, line) => write!(f, "{file}:{line}: {}", self.message),
        }
    }
}

/// The first line that calls it.
fn find(name: &str, sources: &[Source]) -> Option<(String, u64)> {
    let is_call = |line: &str| {
        line.split('#')
            .next()
            .is_some_and(|code| code.contains(name))
    };
    sources.iter().find_map(|source| {
        let (_, number) = source
            .text
            .lines()
            .zip(1..)
            .find(|(line, _)| is_call(line))?;
        Some((source.name.clone(), number))
    })
}
