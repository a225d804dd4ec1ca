//! Many patterns, one look-up.

use std::collections::BTreeSet;
use std::iter;

use super::{Host, HostPattern};

/// Patterns kept so that a look-up costs one search per label of the host, however many patterns
/// there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostRules {
    exact: BTreeSet<Host>,
    below: BTreeSet<String>,
}

impl HostRules {
    /// Whether the host falls under one of the patterns.
    pub fn covers(&self, host: &Host) -> bool {
        self.exact.contains(host) || parents(host).any(|parent| self.below.contains(parent))
    }

    /// Whether there is no pattern, so that no host falls under one.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.below.is_empty()
    }

    /// The patterns, sorted.
    pub fn patterns(&self) -> impl Iterator<Item = HostPattern> {
        let exact = self.exact.iter().cloned().map(HostPattern::Exact);
        exact.chain(self.below.iter().cloned().map(HostPattern::Below))
    }
}

impl FromIterator<HostPattern> for HostRules {
    fn from_iter<I: IntoIterator<Item = HostPattern>>(patterns: I) -> Self {
        let mut rules = Self::default();
        for pattern in patterns {
            match pattern {
                HostPattern::Exact(host) => rules.exact.insert(host),
                HostPattern::Below(suffix) => rules.below.insert(suffix),
            };
        }
        rules
    }
}

/// The names above a host, nearest first: `b.x.com`, `x.com`, `com` for `a.b.x.com`. An address has
/// none.
pub fn parents(host: &Host) -> impl Iterator<Item = &str> {
    let nearest = host.as_name().and_then(above);
    iter::successors(nearest, |name| above(name))
}

fn above(name: &str) -> Option<&str> {
    name.split_once('.').map(|(_, parent)| parent)
}
