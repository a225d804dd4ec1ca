//! What the value of an argument may be.

use std::collections::BTreeSet;

use countersign_canon::Json;

use super::places::Places;
use countersign_canon::Quoted;

/// What the value of an argument may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// Exactly this.
    Exact(Json),
    /// One of these.
    OneOf(Vec<Json>),
    /// A text that names a path at or under a root.
    PathUnder(PathRoot),
    /// A text that names one of these hosts.
    HostIn(HostSet),
    /// A whole number from a range.
    Range(IntegerRange),
    /// A text with this beginning, of which the rest is harmless.
    Prefix(SafePrefix),
}

impl Constraint {
    /// Whether the value of this argument is allowed.
    pub fn allows(&self, argument: &str, value: &Json, places: &dyn Places) -> bool {
        match self {
            Self::Exact(exact) => value == exact,
            Self::OneOf(values) => values.contains(value),
            Self::PathUnder(root) => {
                let path = value.as_str().and_then(|text| places.path(argument, text));
                path.is_some_and(|path| root.holds(&path))
            }
            Self::HostIn(HostSet(hosts)) => {
                let host = value.as_str().and_then(|text| places.host(argument, text));
                host.is_some_and(|host| hosts.contains(&host))
            }
            Self::Range(range) => range.holds(value),
            Self::Prefix(prefix) => value.as_str().is_some_and(|text| prefix.holds(text)),
        }
    }

    /// Whether whatever `other` allows is allowed by this too. `false` where that is not plain.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Exact(value)) => self.plainly_allows(value),
            (_, Self::OneOf(values)) => values.iter().all(|value| self.plainly_allows(value)),
            (Self::PathUnder(whole), Self::PathUnder(part)) => whole.holds(&part.0),
            (Self::HostIn(whole), Self::HostIn(part)) => part.0.is_subset(&whole.0),
            (Self::Range(whole), Self::Range(part)) => {
                whole.min <= part.min && part.max <= whole.max
            }
            (Self::Prefix(whole), Self::Prefix(part)) => whole.holds(&part.0) || whole == part,
            _ => false,
        }
    }

    /// Whether a value is allowed without asking anybody what it names.
    fn plainly_allows(&self, value: &Json) -> bool {
        match self {
            Self::PathUnder(_) | Self::HostIn(_) => false,
            _ => self.allows("", value, &Nowhere),
        }
    }
}

/// A place to start from: an absolute path in normal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRoot(String);

impl PathRoot {
    /// Accepts an absolute path without empty, `.` or `..` parts and without a slash at its end.
    pub fn new(path: impl Into<String>) -> Result<Self, ConstraintError> {
        let path = path.into();
        match is_normal(&path) {
            true => Ok(Self(path)),
            false => Err(ConstraintError::Path(path)),
        }
    }

    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a path in normal form is the root or lies under it, part by part.
    fn holds(&self, path: &str) -> bool {
        let rest = match self.0.as_str() {
            "/" => Some(path),
            root => path.strip_prefix(root),
        };
        let under = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        // FAIL-CLOSED: a normaliser that left something to climb with is not believed.
        under && is_normal(path)
    }
}

fn is_normal(path: &str) -> bool {
    let Some(parts) = path.strip_prefix('/') else {
        return false;
    };
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    parts.is_empty() || parts.split('/').all(plain)
}

/// Names of hosts, in normal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSet(BTreeSet<String>);

impl HostSet {
    /// Accepts hosts in lower-case ASCII. There are no patterns: each host is named.
    pub fn new<H: Into<String>>(
        hosts: impl IntoIterator<Item = H>,
    ) -> Result<Self, ConstraintError> {
        let hosts: BTreeSet<String> = hosts.into_iter().map(Into::into).collect();
        let normal = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b':' | b'[' | b']');
        let odd = hosts
            .iter()
            .find(|host| host.is_empty() || !host.bytes().all(normal) || host.ends_with('.'));
        match odd {
            None => Ok(Self(hosts)),
            Some(odd) => Err(ConstraintError::Host(odd.clone())),
        }
    }

    /// The hosts, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Whole numbers from `min` to `max`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerRange {
    min: i64,
    max: i64,
}

impl IntegerRange {
    /// A range that holds at least one number.
    pub const fn new(min: i64, max: i64) -> Result<Self, ConstraintError> {
        match min <= max {
            true => Ok(Self { min, max }),
            false => Err(ConstraintError::Range),
        }
    }

    /// The smallest number.
    pub const fn min(self) -> i64 {
        self.min
    }

    /// The largest number.
    pub const fn max(self) -> i64 {
        self.max
    }

    /// `1.0` is not `1`: a tool may read it differently.
    fn holds(self, value: &Json) -> bool {
        let number = value.as_number().filter(|number| number.is_integer());
        let number = number.and_then(|number| number.as_i64());
        number.is_some_and(|number| (self.min..=self.max).contains(&number))
    }
}

/// The beginning of a text whose rest may only have letters, digits, `-` and `_`.
///
/// Nothing that separates, climbs, quotes or substitutes can follow, so a prefix is no door to paths,
/// hosts or command lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafePrefix(String);

impl SafePrefix {
    /// Accepts a beginning that is not empty.
    pub fn new(prefix: impl Into<String>) -> Result<Self, ConstraintError> {
        let prefix = prefix.into();
        match prefix.is_empty() {
            false => Ok(Self(prefix)),
            true => Err(ConstraintError::Prefix),
        }
    }

    /// The beginning.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn holds(&self, text: &str) -> bool {
        let harmless = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let rest = text.strip_prefix(&self.0);
        rest.is_some_and(|rest| rest.bytes().all(harmless))
    }
}

/// Why a constraint was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConstraintError {
    /// The path is not in normal form.
    #[error("{} is no absolute path in normal form", Quoted(.0))]
    Path(String),
    /// The host is not in normal form.
    #[error("{} is no host in normal form", Quoted(.0))]
    Host(String),
    /// The range is empty.
    #[error("the range holds no number")]
    Range,
    /// The prefix is empty.
    #[error("an empty prefix allows anything")]
    Prefix,
}

/// Knows no place.
struct Nowhere;

impl Places for Nowhere {
    fn path(&self, _: &str, _: &str) -> Option<String> {
        None
    }

    fn host(&self, _: &str, _: &str) -> Option<String> {
        None
    }
}
