//! What the caller knows from elsewhere.

use countersign_canon::Hash;

use crate::chains::Chains;
use crate::report::{Finding, Problem};
use crate::tree::Kept;

/// Facts that the caller kept, to hold the log against. They are about one session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expectation {
    /// The hash of the last event.
    pub head: Option<Hash>,
    /// The number of events.
    pub count: Option<u64>,
    /// The hash of some event: a head that was kept before the log grew.
    pub contains: Option<Hash>,
    /// A checkpoint of the whole log, whatever the selection is.
    pub checkpoint: Option<Kept>,
}

/// Which sessions to look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only this tenant.
    pub tenant_id: Option<String>,
    /// Only this session.
    pub session_id: Option<String>,
}

impl Expectation {
    /// Whether anything is expected.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Holds what was seen against what is expected.
    ///
    /// With several sessions one of them must fit: a head or a contained hash names its session by
    /// itself. A bare count has to fit every session.
    pub(crate) fn check(&self, chains: &Chains, contained: bool) -> Option<Finding> {
        let missing = |problem| {
            Some(Finding {
                place: None,
                event: None,
                problem,
            })
        };
        if chains.is_empty() {
            return missing(Problem::Nothing);
        }
        if let Some(expected) = self.head {
            let Some(chain) = chains.ending_at(expected) else {
                return missing(Problem::Head {
                    expected,
                    found: chains.only_head(),
                });
            };
            if let Some(expected) = self.count.filter(|count| *count != chain.count()) {
                return missing(Problem::Count {
                    expected,
                    found: chain.count(),
                });
            }
        } else if let Some(expected) = self.count
            && let Some(found) = chains.counts().find(|count| *count != expected)
        {
            return missing(Problem::Count { expected, found });
        }
        match self.contains {
            Some(hash) if !contained => missing(Problem::NotContained(hash)),
            _ => None,
        }
    }
}

impl Selection {
    pub(crate) fn takes(&self, tenant_id: &str, session_id: &str) -> bool {
        self.tenant_id
            .as_deref()
            .is_none_or(|wanted| wanted == tenant_id)
            && self
                .session_id
                .as_deref()
                .is_none_or(|wanted| wanted == session_id)
    }
}
