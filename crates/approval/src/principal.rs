//! Who acts: people and agents, and the chain that leads from an agent to a person.

use std::fmt;
use std::str::FromStr;

use countersign_canon::Json;

use crate::form::{FormError, wrong};
use crate::id::bounded;
use countersign_canon::Quoted;

/// The text names no principal, or not one of the kind that is needed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not {form}", Quoted(text))]
pub struct PrincipalError {
    text: String,
    form: &'static str,
}

macro_rules! principal {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $form:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Accepts any name of 1 to 1024 characters.
            pub fn new(name: impl Into<String>) -> Result<Self, PrincipalError> {
                let text = name.into();
                match bounded(&text) {
                    true => Ok(Self(text)),
                    false => Err(PrincipalError { text, form: $form }),
                }
            }

            /// The name without its kind.
            pub fn name(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.to_string())
            }
        }

        impl FromStr for $name {
            type Err = PrincipalError;

            fn from_str(text: &str) -> Result<Self, PrincipalError> {
                let name = text.strip_prefix($prefix).filter(|name| bounded(name));
                name.map(|name| Self(name.to_owned())).ok_or_else(|| PrincipalError {
                    text: text.to_owned(),
                    form: $form,
                })
            }
        }
    };
}

principal!(
    /// A person. Only a person decides: every place that takes a decision asks for this type.
    Human,
    "human:",
    "`human:` and a name"
);
principal!(
    /// An agent. It can ask; no function of this crate takes one as an approver.
    Agent,
    "agent:",
    "`agent:` and a name"
);

/// A person or an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Principal {
    /// A person.
    Human(Human),
    /// An agent.
    Agent(Agent),
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Human(human) => human.fmt(f),
            Self::Agent(agent) => agent.fmt(f),
        }
    }
}

impl FromStr for Principal {
    type Err = PrincipalError;

    fn from_str(text: &str) -> Result<Self, PrincipalError> {
        let human = text.parse().map(Self::Human);
        human.or_else(|_| text.parse().map(Self::Agent)).map_err(
            |PrincipalError { text, .. }| PrincipalError {
                text,
                form: "`human:` or `agent:` and a name",
            },
        )
    }
}

/// The chain of who started whom: a person first, then agents, the one that asks last.
///
/// INVARIANT: the root is a person, so somebody answers for every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    root: Human,
    agents: Vec<Agent>,
}

impl Lineage {
    /// The person alone.
    pub const fn of(root: Human) -> Self {
        Self {
            root,
            agents: Vec::new(),
        }
    }

    /// The chain with one more agent, started by the last in it.
    pub fn spawn(mut self, agent: Agent) -> Result<Self, LineageTooLong> {
        if self.agents.len() >= MAX_AGENTS {
            return Err(LineageTooLong);
        }
        self.agents.push(agent);
        Ok(self)
    }

    /// The person who answers for the request.
    pub const fn root(&self) -> &Human {
        &self.root
    }

    /// The agents, the outermost first.
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// Who asks: the last in the chain.
    pub fn requester(&self) -> Principal {
        match self.agents.last() {
            Some(agent) => Principal::Agent(agent.clone()),
            None => Principal::Human(self.root.clone()),
        }
    }

    /// Whether this chain is `other`, or goes on from it.
    pub fn descends_from(&self, other: &Self) -> bool {
        self.root == other.root && self.agents.starts_with(&other.agents)
    }

    pub(crate) fn to_json(&self) -> Json {
        let agents = self
            .agents
            .iter()
            .map(|agent| Json::from(agent.to_string()));
        let root = std::iter::once(Json::from(self.root.to_string()));
        Json::Array(root.chain(agents).collect())
    }

    pub(crate) fn read(member: &'static str, names: Vec<Json>) -> Result<Self, FormError> {
        let mut names = names.into_iter().map(|name| {
            let name = name.into_string();
            name.ok_or(wrong(member, "a list of principals"))
        });
        let root = names
            .next()
            .ok_or(wrong(member, "a chain with a person"))??;
        let root = root
            .parse()
            .map_err(|error| FormError::refused(member, error))?;
        names.try_fold(Self::of(root), |chain, name| {
            let agent = name?.parse();
            let agent = agent.map_err(|error| FormError::refused(member, error))?;
            chain
                .spawn(agent)
                .map_err(|error| FormError::refused(member, error))
        })
    }
}

/// Agents have started agents too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a chain has at most {MAX_AGENTS} agents")]
pub struct LineageTooLong;

const MAX_AGENTS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m05_the_whole_chain_is_shown_up_to_the_person() {
        let mut chain = Lineage::of(Human::new("dana").unwrap());
        for name in ["planner", "coder", "shell"] {
            chain = chain.spawn(Agent::new(name).unwrap()).unwrap();
        }
        let text = String::from_utf8(chain.to_json().to_sorted_ascii()).unwrap();
        assert_eq!(
            text,
            r#"["human:dana","agent:planner","agent:coder","agent:shell"]"#
        );
        assert_eq!(chain.requester().to_string(), "agent:shell");
        let names = chain.to_json().into_array().unwrap();
        assert_eq!(Lineage::read("lineage", names), Ok(chain));
    }

    #[test]
    fn a_chain_starts_with_a_person_and_ends_somewhere() {
        let names = |names: &[&str]| names.iter().map(|name| Json::from(*name)).collect();
        assert!(Lineage::read("lineage", names(&["agent:a"])).is_err());
        assert!(Lineage::read("lineage", names(&["human:a", "human:b"])).is_err());
        assert!(Lineage::read("lineage", names(&[])).is_err());
        let mut chain = Lineage::of(Human::new("dana").unwrap());
        for _ in 0..MAX_AGENTS {
            chain = chain.spawn(Agent::new("a").unwrap()).unwrap();
        }
        assert_eq!(chain.spawn(Agent::new("a").unwrap()), Err(LineageTooLong));
    }

    #[test]
    fn kinds_are_not_mixed_up() {
        assert!("agent:x".parse::<Human>().is_err());
        assert!("human:x".parse::<Agent>().is_err());
        assert!("human:".parse::<Principal>().is_err());
        assert!("x".parse::<Principal>().is_err());
        assert_eq!("human:agent:x".parse::<Human>().unwrap().name(), "agent:x");
    }
}
