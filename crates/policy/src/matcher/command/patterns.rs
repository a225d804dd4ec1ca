//! Patterns for the arguments of programs.

use regex_lite::{Regex, RegexBuilder};

/// Regular expressions of which one has to match the whole argument text of a program.
#[derive(Clone, Debug, Default)]
pub struct ArgPatterns {
    patterns: Vec<(String, Regex)>,
}

impl ArgPatterns {
    /// Adds a pattern; anchors at both ends are implied.
    pub fn add(&mut self, pattern: &str) -> Result<(), ArgPatternError> {
        // SECURITY: the pattern has to stand alone; `a)|(b` must not break out of the anchors.
        compile(pattern)?;
        let whole = compile(&format!(r"\A(?:{pattern})\z"))?;
        self.patterns.push((pattern.to_owned(), whole));
        Ok(())
    }

    /// Whether there is no pattern, so that arguments are not looked at.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether one of the patterns matches the text from end to end.
    pub fn match_whole(&self, text: &str) -> bool {
        text.len() <= LONGEST_TEXT && self.patterns.iter().any(|(_, whole)| whole.is_match(text))
    }

    /// The patterns as they were written.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.patterns.iter().map(|(pattern, _)| pattern.as_str())
    }
}

/// Two lists are equal when they were written alike.
impl PartialEq for ArgPatterns {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ArgPatterns {}

/// The text is no regular expression, or one that is too large.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ArgPatternError {
    reason: String,
}

fn compile(pattern: &str) -> Result<Regex, ArgPatternError> {
    RegexBuilder::new(pattern)
        .size_limit(LARGEST_PROGRAM)
        .nest_limit(DEEPEST)
        .build()
        .map_err(|error| ArgPatternError {
            reason: error.to_string(),
        })
}

const LARGEST_PROGRAM: usize = 256 << 10;
const DEEPEST: u32 = 32;
const LONGEST_TEXT: usize = 64 << 10;
