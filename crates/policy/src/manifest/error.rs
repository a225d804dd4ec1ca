//! Why a manifest was refused: everything at once, each with its place.

use std::fmt;

use super::yaml::YamlError;
use countersign_canon::Quoted;

/// Why a manifest was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The text is not admissible JSON.
    #[error(transparent)]
    Json(#[from] countersign_canon::Error),
    /// The text is not admissible YAML.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// The text was read, but it is no valid manifest. Displays one problem a line.
    #[error("{}", Lines(.0))]
    Invalid(Vec<Problem>),
}

impl ManifestError {
    /// The problems, unless the text could not be read at all.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Invalid(problems) => problems,
            _ => &[],
        }
    }
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pointer: String,
    message: String,
}

impl Problem {
    /// A problem at the place of a JSON pointer.
    pub fn new(pointer: String, message: String) -> Self {
        Self { pointer, message }
    }

    /// A JSON pointer (RFC 6901) to the place; empty for the whole document.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// What is wrong, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => write!(f, "the top level: {}", self.message),
            pointer => write!(f, "{}: {}", Quoted(pointer), self.message),
        }
    }
}

struct Lines<'a>(&'a [Problem]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}
