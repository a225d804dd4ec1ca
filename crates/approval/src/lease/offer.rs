//! A lease that is modelled on a request: what people write about it, and the terms that follow.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::str::FromStr;

use countersign_canon::{Json, Limits};

use super::{
    Budget, Constraint, Holder, HostSet, IntegerRange, Lease, LeaseError, PathRoot, SafePrefix,
    Term, Terms, Validity,
};
use crate::call::ToolCall;
use crate::envelope::Envelope;
use crate::id::LeaseId;
use crate::principal::Human;
use crate::time::UnixMs;
use crate::trust::Trust;

/// What a new lease says about a request that it is modelled on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// What arguments may be. What is not named stays as it was in the request.
    pub arguments: Vec<Argument>,
    /// How often.
    pub max_uses: NonZeroU64,
    /// How long, from now.
    pub within_ms: u64,
    /// How much, all uses together.
    pub budget: Option<Budget>,
    /// Whether agents that the agent starts may use it too.
    pub children: bool,
    /// How far the agent must still be trusted; as when it asked, if nobody says.
    pub least_trust: Option<Trust>,
}

/// Why an offer does not become a lease.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// A lease is about one tool.
    #[error("the request has more than one call")]
    Calls,
    /// The terms make no lease.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

impl Offer {
    /// The lease, which nobody has signed yet.
    pub fn draw_up(
        &self,
        envelope: &Envelope,
        granted_by: &Human,
        id: LeaseId,
        now: UnixMs,
    ) -> Result<Lease, OfferError> {
        let (terms, call) = self.terms(envelope, granted_by, id, now)?;
        Ok(Lease::grant(terms, call.class)?)
    }

    /// The terms, and the call that they are modelled on.
    pub fn terms<'e>(
        &self,
        envelope: &'e Envelope,
        granted_by: &Human,
        id: LeaseId,
        now: UnixMs,
    ) -> Result<(Terms, &'e ToolCall), OfferError> {
        let plan = envelope.plan();
        let [call] = plan.calls() else {
            return Err(OfferError::Calls);
        };
        let scope = plan.scope();
        let terms = Terms {
            id,
            tool: call.tool.clone(),
            arguments: self.arguments(call),
            max_uses: self.max_uses,
            budget: self.budget.clone(),
            valid: Validity {
                granted_at: now,
                expires_at: now.plus(self.within_ms),
            },
            holder: Holder {
                chain: scope.chain.clone(),
                work_item: scope.work_item.clone(),
                lineage: envelope.lineage().clone(),
                children: self.children,
            },
            least_trust: self.least_trust.unwrap_or(scope.trust),
            policy: plan.policy(),
            granted_by: granted_by.clone(),
        };
        Ok((terms, call))
    }

    fn arguments(&self, call: &ToolCall) -> BTreeMap<String, Term> {
        let given = call.args.value().as_object().into_iter().flatten();
        let mut terms: BTreeMap<String, Term> = given
            .map(|(name, value)| {
                let term = Term {
                    constraint: Constraint::Exact(value.clone()),
                    may_be_absent: false,
                };
                (name.to_owned(), term)
            })
            .collect();
        for Argument { name, term } in &self.arguments {
            match term {
                Some(term) => drop(terms.insert(name.clone(), term.clone())),
                None => drop(terms.remove(name)),
            }
        }
        terms
    }
}

/// `NAME=KIND:VALUE`, `NAME?=KIND:VALUE` if a call may also come without it, or `NAME=absent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// The argument.
    pub name: String,
    /// What it may be; `None` if it must be absent.
    pub term: Option<Term>,
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=');
        let parts = parts.and_then(|(name, limit)| Some((name, limit.parse().ok()?)));
        let (argument, limit) = parts.ok_or("a budget is NAME=LIMIT, with a whole number")?;
        Ok(Self {
            argument: argument.to_owned(),
            limit,
        })
    }
}

impl FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rule) = text.split_once('=').ok_or("NAME=KIND:VALUE is needed")?;
        let (name, may_be_absent) = match name.strip_suffix('?') {
            Some(name) => (name, true),
            None => (name, false),
        };
        if name.is_empty() {
            return Err("the argument has no name".to_owned());
        }
        let term = match rule {
            "absent" => None,
            rule => Some(Term {
                constraint: constraint(rule)?,
                may_be_absent,
            }),
        };
        Ok(Self {
            name: name.to_owned(),
            term,
        })
    }
}

fn constraint(rule: &str) -> Result<Constraint, String> {
    let (kind, value) = rule.split_once(':').ok_or("KIND:VALUE is needed")?;
    let wrong = |error: &dyn std::fmt::Display| error.to_string();
    Ok(match kind {
        "exact" => Constraint::Exact(json(value)?),
        "one_of" => match json(value)? {
            Json::Array(values) => Constraint::OneOf(values),
            _ => return Err("one_of needs a JSON list".to_owned()),
        },
        "path_under" => Constraint::PathUnder(PathRoot::new(value).map_err(|error| wrong(&error))?),
        "host_in" => {
            let hosts = value.split(',').map(str::trim);
            Constraint::HostIn(HostSet::new(hosts).map_err(|error| wrong(&error))?)
        }
        "range" => Constraint::Range(range(value)?),
        "prefix" => Constraint::Prefix(SafePrefix::new(value).map_err(|error| wrong(&error))?),
        _ => {
            return Err(
                "the kinds are exact, one_of, range, path_under, host_in and prefix".to_owned(),
            );
        }
    })
}

fn json(text: &str) -> Result<Json, String> {
    Json::admit(text.as_bytes(), &Limits::event())
        .map_err(|error| format!("the value is JSON, so a text is written in quotes: {error}"))
}

fn range(text: &str) -> Result<IntegerRange, String> {
    let ends = text.split_once("..").and_then(|(min, max)| {
        let ends: (Option<i64>, Option<i64>) = (min.parse().ok(), max.parse().ok());
        ends.0.zip(ends.1)
    });
    let (min, max) = ends.ok_or("a range is two whole numbers, as in 1..500")?;
    IntegerRange::new(min, max).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, Option<(Constraint, bool)>) {
        let argument: Argument = text.parse().unwrap();
        let term = argument.term.map(|it| (it.constraint, it.may_be_absent));
        (argument.name, term)
    }

    #[test]
    fn every_kind_is_read() {
        let range = IntegerRange::new(-1, 500).unwrap();
        let check = |text, name: &str, constraint, absent| {
            let expected = (name.to_owned(), Some((constraint, absent)));
            assert_eq!(read(text), expected);
        };
        check("n=range:-1..500", "n", Constraint::Range(range), false);
        check(
            "t?=exact:\"a=b:c\"",
            "t",
            Constraint::Exact("a=b:c".into()),
            true,
        );
        check(
            "t=one_of:[1,\"a\"]",
            "t",
            Constraint::OneOf(vec![1_u64.into(), "a".into()]),
            false,
        );
        check(
            "p=path_under:/srv/out",
            "p",
            Constraint::PathUnder(PathRoot::new("/srv/out").unwrap()),
            false,
        );
        check(
            "h=host_in:a.example, b.example",
            "h",
            Constraint::HostIn(HostSet::new(["a.example", "b.example"]).unwrap()),
            false,
        );
        check(
            "b=prefix:feature/",
            "b",
            Constraint::Prefix(SafePrefix::new("feature/").unwrap()),
            false,
        );
        assert_eq!(read("x=absent"), ("x".to_owned(), None));
    }

    #[test]
    fn what_is_not_plain_is_refused() {
        for text in [
            "",
            "n",
            "=exact:1",
            "n=exact",
            "n=exact:word",
            "n=exact:1 2",
            "n=one_of:1",
            "n=range:5..1",
            "n=range:1.0..2",
            "n=range:1-2",
            "n=prefix:",
            "n=path_under:relative",
            "n=path_under:/a/../b",
            "n=host_in:*.example.com",
            "n=host_in:",
            "n=regex:.*",
        ] {
            assert!(text.parse::<Argument>().is_err(), "{text}");
        }
    }
}
