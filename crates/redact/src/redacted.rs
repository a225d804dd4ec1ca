//! Content that went through a redactor.

use std::fmt;

use countersign_canon::Json;

/// Content without what the redactor knows to be secret. Only a redactor makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<T>(T);

impl<T> Redacted<T> {
    pub(crate) fn new(content: T) -> Self {
        Self(content)
    }

    /// The content.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl Redacted<String> {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Redacted<Json> {
    /// The value.
    pub fn as_json(&self) -> &Json {
        &self.0
    }
}

impl fmt::Display for Redacted<String> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Redacted<Json> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0.to_sorted_ascii()))
    }
}
