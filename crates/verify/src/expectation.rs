//! What the caller knows from elsewhere.

use countersign_canon::Hash;

use crate::report::Problem;
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
    /// itself. A bare count has to fit every session. `others` is how many events nobody asked for.
    pub(crate) fn check(&self, ends: &[End], contained: bool, others: u64) -> Option<Problem> {
        if ends.is_empty() {
            return Some(match others {
                0 => Problem::Nothing,
                others => Problem::NoneOfThose { others },
            });
        }
        if let Some(expected) = self.head {
            let Some(end) = ends.iter().find(|end| end.head == Some(expected)) else {
                let found = match ends {
                    [only] => only.head,
                    _ => None,
                };
                return Some(Problem::Head { expected, found });
            };
            if let Some(expected) = self.count.filter(|count| *count != end.count) {
                let found = end.count;
                return Some(Problem::Count { expected, found });
            }
        } else if let Some(expected) = self.count
            && let Some(end) = ends.iter().find(|end| end.count != expected)
        {
            let found = end.count;
            return Some(Problem::Count { expected, found });
        }
        match self.contains {
            Some(hash) if !contained => Some(Problem::NotContained(hash)),
            _ => None,
        }
    }

    /// What was given about a session, in words.
    pub(crate) fn words(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("the given head", self.head.is_some()),
            ("the given count", self.count.is_some()),
            ("that the given hash is in the log", self.contains.is_some()),
        ];
        given
            .into_iter()
            .filter(|given| given.1)
            .map(|given| given.0)
    }
}

/// Where the events of a session end.
pub(crate) struct End {
    pub(crate) head: Option<Hash>,
    pub(crate) count: u64,
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
