//! YAML, read as strictly as JSON.
//!
//! What two YAML readers could understand differently is refused, with line and column: duplicate
//! keys, anchors and aliases, tags, directives, merge keys, keys that are no text, several
//! documents, numbers with leading zeros. Plain scalars follow the core schema of YAML 1.2, so `yes`
//! and `no` are text.

mod builder;
mod scalar;

use std::fmt;

use countersign_canon::{Json, Limits};
use saphyr_parser::{Marker, Parser};

use builder::Builder;
use countersign_canon::Quoted;

/// Reads exactly one document.
pub fn admit(text: &[u8], limits: &Limits) -> Result<Json, YamlError> {
    if text.len() > limits.max_bytes {
        let limit = limits.max_bytes;
        return Err(YamlError::new(YamlFault::TooLarge { limit }, 1, 1));
    }
    let text = readable(text)?;
    check_text(text)?;
    let mut builder = Builder::new(limits);
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let fault = YamlFault::Syntax(error.info().to_owned());
            YamlError::at(fault, error.marker())
        })?;
        builder
            .take(event)
            .map_err(|fault| YamlError::at(fault, &span.start))?;
    }
    Ok(builder.finish())
}

fn readable(text: &[u8]) -> Result<&str, YamlError> {
    std::str::from_utf8(text).map_err(|error| {
        let valid = text.get(..error.valid_up_to()).unwrap_or_default();
        let valid = std::str::from_utf8(valid).unwrap_or_default();
        YamlError::after(YamlFault::InvalidUtf8, valid)
    })
}

/// What the parser would let pass: control characters, a byte order mark, tabs as indentation,
/// directives.
fn check_text(text: &str) -> Result<(), YamlError> {
    let is_bad = |c: char| (c.is_control() && !matches!(c, '\t' | '\n' | '\r')) || c == '\u{feff}';
    if let Some((before, _)) = text.split_once(is_bad) {
        return Err(YamlError::after(YamlFault::Character, before));
    }
    if let Some(index) = text.lines().position(is_indented_by_tab) {
        return Err(YamlError::new(YamlFault::Tab, index + 1, 1));
    }
    let is_filler = |line: &&str| line.trim_start().is_empty() || line.starts_with('#');
    let filler = text.lines().take_while(is_filler).count();
    match text.lines().nth(filler) {
        Some(line) if line.starts_with('%') => {
            Err(YamlError::new(YamlFault::Directive, filler + 1, 1))
        }
        _ => Ok(()),
    }
}

fn is_indented_by_tab(line: &str) -> bool {
    let text = line.trim_start_matches([' ', '\t']);
    let indent = line.strip_suffix(text).unwrap_or_default();
    indent.contains('\t') && !text.trim().is_empty()
}

/// A refusal: what is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    fault: YamlFault,
    line: usize,
    column: usize,
}

impl YamlError {
    fn new(fault: YamlFault, line: usize, column: usize) -> Self {
        Self {
            fault,
            line,
            column,
        }
    }

    fn at(fault: YamlFault, marker: &Marker) -> Self {
        Self::new(fault, marker.line(), marker.col() + 1)
    }

    /// Right behind this much text.
    fn after(fault: YamlFault, before: &str) -> Self {
        let line = before.split('\n').count();
        let last = before.rsplit('\n').next().unwrap_or_default();
        Self::new(fault, line, last.chars().count() + 1)
    }

    /// What is wrong.
    pub fn fault(&self) -> &YamlFault {
        &self.fault
    }

    /// The line, counted from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, counted from 1.
    pub fn column(&self) -> usize {
        self.column
    }
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at line {}, column {}",
            self.fault, self.line, self.column
        )
    }
}

impl std::error::Error for YamlError {}

/// What is wrong with a YAML text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum YamlFault {
    /// The text is no YAML.
    #[error("{0}")]
    Syntax(String),
    /// Bytes that are not UTF-8.
    #[error("invalid UTF-8")]
    InvalidUtf8,
    /// A control character or a byte order mark.
    #[error("control character or byte order mark")]
    Character,
    /// A tab in front of a line, which stands for no certain depth.
    #[error("tab in the indentation")]
    Tab,
    /// The text is longer than allowed.
    #[error("larger than {limit} bytes")]
    TooLarge {
        /// The largest size allowed.
        limit: usize,
    },
    /// Lists and maps are nested deeper than allowed.
    #[error("nested deeper than {limit}")]
    TooDeep {
        /// The deepest nesting allowed.
        limit: usize,
    },
    /// A map names the same key twice.
    #[error("duplicate key {}", Quoted(.0))]
    DuplicateKey(String),
    /// A key that is no text.
    #[error("a key must be text")]
    Key,
    /// `<<`
    #[error("merge keys are not allowed")]
    MergeKey,
    /// `&name` or `*name`
    #[error("anchors and aliases are not allowed")]
    Anchor,
    /// `!name`
    #[error("tags are not allowed")]
    Tag,
    /// `%NAME`
    #[error("directives are not allowed")]
    Directive,
    /// A second document.
    #[error("more than one document")]
    Documents,
    /// A number that JSON cannot hold, or that YAML 1.1 and 1.2 read differently.
    #[error("{} is not an unambiguous number, quote it if it is text", Quoted(.0))]
    Number(String),
}

#[cfg(test)]
mod tests;
