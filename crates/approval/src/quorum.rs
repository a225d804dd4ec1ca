//! How many people must agree, and which.

use std::collections::BTreeSet;

use countersign_canon::Json;

use crate::form::{Fields, FormError, wrong};
use crate::names::names;
use crate::principal::{Human, Principal};

names! {
    /// What a denial does.
    DenyRule as "rule for denials" {
        /// One denial of a call denies it.
        Veto = "veto",
        /// A call is denied once too few people are left to approve it.
        Outvoted = "outvoted",
    }
}

/// How many of which people must approve a call.
///
/// INVARIANT: at least one, and no more than can vote on a request of `requester`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quorum {
    required: usize,
    roster: BTreeSet<Human>,
    deny: DenyRule,
}

impl Quorum {
    /// `required` of the people on the roster. Each counts once.
    pub fn new(
        required: usize,
        roster: impl IntoIterator<Item = Human>,
        deny: DenyRule,
    ) -> Result<Self, QuorumError> {
        let roster: BTreeSet<Human> = roster.into_iter().collect();
        match required {
            0 => Err(QuorumError::NobodyRequired),
            _ if required > roster.len() => Err(QuorumError::OutOfReach {
                required,
                eligible: roster.len(),
            }),
            _ => Ok(Self {
                required,
                roster,
                deny,
            }),
        }
    }

    /// How many must approve.
    pub const fn required(&self) -> usize {
        self.required
    }

    /// Who may vote at all.
    pub const fn roster(&self) -> &BTreeSet<Human> {
        &self.roster
    }

    /// What a denial does.
    pub const fn deny(&self) -> DenyRule {
        self.deny
    }

    /// Who may vote on a request of this principal: everybody else.
    pub fn eligible(&self, requester: &Principal) -> usize {
        self.roster.len() - usize::from(self.excludes(requester))
    }

    /// Checks that the people who may vote on such a request are enough.
    pub fn check_reach(&self, requester: &Principal) -> Result<(), QuorumError> {
        let (required, eligible) = (self.required, self.eligible(requester));
        match required <= eligible {
            true => Ok(()),
            false => Err(QuorumError::OutOfReach { required, eligible }),
        }
    }

    fn excludes(&self, requester: &Principal) -> bool {
        matches!(requester, Principal::Human(human) if self.roster.contains(human))
    }

    pub(crate) fn to_json(&self) -> Json {
        let roster = self
            .roster
            .iter()
            .map(|human| Json::from(human.to_string()));
        Json::object([
            ("deny", Json::from(self.deny.as_str())),
            ("required", Json::from(self.required as u64)),
            ("roster", Json::Array(roster.collect())),
        ])
    }

    pub(crate) fn read(json: Json) -> Result<Self, FormError> {
        let mut fields = Fields::of("quorum", json)?;
        let required = usize::try_from(fields.count("required")?);
        let required = required.map_err(|_| wrong("required", "a small number"))?;
        let deny = fields.parsed("deny")?;
        let roster = fields.list("roster")?.into_iter().map(|human| {
            let human = human.as_str().and_then(|human| human.parse().ok());
            human.ok_or(wrong("roster", "a list of people"))
        });
        let roster: Vec<Human> = roster.collect::<Result<_, _>>()?;
        fields.end()?;
        Self::new(required, roster, deny).map_err(|error| FormError::refused("quorum", error))
    }
}

/// Why a quorum was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuorumError {
    /// It would be reached without anybody.
    #[error("at least one person must approve")]
    NobodyRequired,
    /// It could never be reached.
    #[error("{required} people must approve, but only {eligible} may")]
    OutOfReach {
        /// How many must.
        required: usize,
        /// How many may.
        eligible: usize,
    },
}
