//! What a manifest may write where a host is expected.

use std::fmt;

use super::{Host, HostError, parse};

/// `x.com` is this host, `*.x.com` is every host below it at any depth, never `x.com` itself.
/// Addresses have to be written in full.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostPattern {
    /// This host and no other.
    Exact(Host),
    /// Every host below this name.
    Below(String),
}

impl HostPattern {
    /// Reads a pattern; scheme, port, path and any other use of `*` are refused.
    pub fn parse(text: &str) -> Result<Self, HostPatternError> {
        match text.strip_prefix("*.") {
            Some(suffix) if !suffix.contains('*') => match parse::plain(suffix) {
                Err(HostError::Number) => Err(HostPatternError::Wildcard),
                suffix => below(suffix?),
            },
            None if !text.contains('*') => Ok(Self::Exact(parse::plain(text)?)),
            _ => Err(HostPatternError::Wildcard),
        }
    }

    /// Whether the host falls under the pattern.
    pub fn covers(&self, host: &Host) -> bool {
        match self {
            Self::Exact(listed) => listed == host,
            Self::Below(suffix) => host
                .as_name()
                .and_then(|name| name.strip_suffix(suffix.as_str()))
                .is_some_and(|front| front.ends_with('.')),
        }
    }
}

fn below(host: Host) -> Result<HostPattern, HostPatternError> {
    match host.as_name() {
        Some(name) => Ok(HostPattern::Below(name.to_owned())),
        None => Err(HostPatternError::Wildcard),
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => write!(f, "{host}"),
            Self::Below(suffix) => write!(f, "*.{suffix}"),
        }
    }
}

/// Why a text is no host pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostPatternError {
    /// The host in it is no host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// `*` anywhere but in `*.` in front of a name.
    #[error("`*` may only stand for the sub-domains of a name, as in `*.x.com`")]
    Wildcard,
}
