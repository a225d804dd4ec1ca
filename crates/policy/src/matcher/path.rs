//! Paths: from a tool argument to a path that can be compared component by component.

mod links;

pub use links::Link;

use std::fmt;

/// An absolute POSIX path without `.`, `..`, empty components and trailing slash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NormalPath(String);

impl NormalPath {
    /// The folder that everything is in.
    pub fn root() -> Self {
        Self("/".to_owned())
    }

    /// Reads an absolute path; `.`, `..` and double slashes go by their letters alone.
    pub fn from_argument(text: &str) -> Result<Self, PathError> {
        Self::read(text, None)
    }

    /// As [`NormalPath::from_argument`]; a relative path starts from `base`.
    pub fn from_argument_in(text: &str, base: &NormalPath) -> Result<Self, PathError> {
        Self::read(text, Some(base))
    }

    fn read(text: &str, base: Option<&NormalPath>) -> Result<Self, PathError> {
        let mut path = start(text, base)?;
        for component in components(text) {
            path.step(component)?;
        }
        Ok(path)
    }

    /// The text, which starts with a slash and ends with one only if it is `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the path is one of the roots or lies below one. `/data` does not hold `/dataspace`.
    pub fn within<'r>(&self, roots: impl IntoIterator<Item = &'r NormalPath>) -> bool {
        roots.into_iter().any(|root| self.is_within(root))
    }

    fn is_within(&self, root: &NormalPath) -> bool {
        match self.0.strip_prefix(root.as_str()) {
            Some(rest) => root.0 == "/" || rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// Walks on by one component.
    fn step(&mut self, component: &str) -> Result<(), PathError> {
        match component {
            "" | "." => Ok(()),
            ".." => self.leave(),
            name => {
                if self.0 != "/" {
                    self.0.push('/');
                }
                self.0.push_str(name);
                self.check_length()
            }
        }
    }

    fn leave(&mut self) -> Result<(), PathError> {
        if self.0 == "/" {
            return Err(PathError::AboveRoot);
        }
        let parent = self.0.rfind('/').unwrap_or(0);
        self.0.truncate(parent.max(1));
        Ok(())
    }

    fn check_length(&self) -> Result<(), PathError> {
        match self.0.len() <= LONGEST {
            true => Ok(()),
            false => Err(PathError::TooLong),
        }
    }
}

impl fmt::Display for NormalPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Why a text names no single place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// There is no path.
    #[error("no path")]
    Empty,
    /// The path is longer than a system takes.
    #[error("too long")]
    TooLong,
    /// A NUL or another control character, or a backslash.
    #[error("control characters and backslashes are not allowed")]
    Character,
    /// White space around the path or one of its components, which some readers trim.
    #[error("white space around a component is not allowed")]
    OuterSpace,
    /// `%2e`, `%2f` and the like, which some readers decode.
    #[error("percent-encoding is not allowed")]
    Percent,
    /// A relative path where there is nothing to start from.
    #[error("not an absolute path")]
    Relative,
    /// `~`, a drive letter or a URL, which some readers take for another place.
    #[error("`~`, drive letters and URLs are not allowed")]
    Special,
    /// More `..` than there are folders.
    #[error("`..` leads above the root")]
    AboveRoot,
    /// The resolver could not say whether a component is a link.
    #[error("a component cannot be examined")]
    Unexamined,
    /// Links that lead to links without end.
    #[error("too many symbolic links")]
    TooManyLinks,
}

/// Checks the text as a whole and says where its first component starts from.
fn start(text: &str, base: Option<&NormalPath>) -> Result<NormalPath, PathError> {
    check_text(text)?;
    if text.starts_with('/') {
        return Ok(NormalPath::root());
    }
    let first = text.split('/').next().unwrap_or_default();
    if first.starts_with('~') || first.contains(':') {
        return Err(PathError::Special);
    }
    base.cloned().ok_or(PathError::Relative)
}

fn check_text(text: &str) -> Result<(), PathError> {
    if text.is_empty() {
        return Err(PathError::Empty);
    }
    if text.len() > LONGEST {
        return Err(PathError::TooLong);
    }
    if text.contains(|c: char| c.is_control() || c == '\\') {
        return Err(PathError::Character);
    }
    if components(text).any(|part| part != part.trim()) {
        return Err(PathError::OuterSpace);
    }
    match has_escape(text) {
        true => Err(PathError::Percent),
        false => Ok(()),
    }
}

/// `%` alone is a character; before two hex digits or `u` it may be an escape.
fn has_escape(text: &str) -> bool {
    text.split('%').skip(1).any(|rest| {
        let mut bytes = rest.bytes();
        match (bytes.next(), bytes.next()) {
            (Some(b'u' | b'U'), _) => true,
            (Some(a), Some(b)) => a.is_ascii_hexdigit() && b.is_ascii_hexdigit(),
            _ => false,
        }
    })
}

fn components(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split('/')
}

/// The longest path that Linux takes.
const LONGEST: usize = 4096;

#[cfg(test)]
mod tests;
