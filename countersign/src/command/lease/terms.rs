//! The terms of a lease, from a request that people know and from what the command line says.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::str::FromStr;

use clap::Args;
use countersign_approval::lease::{Budget, Constraint, Holder, Lease, Term, Terms, Validity};
use countersign_approval::{Human, LeaseId, ToolCall, Trust};
use countersign_engine::{Desk, Standing};

use super::argument::Argument;
use super::find::find;
use crate::clock;
use crate::errors::{Code, Failure};

/// What a new lease says.
#[derive(Args)]
pub(super) struct NewLease {
    /// The request that it is modelled on: its tool, session, agent and policies; the beginning of
    /// its id is enough
    #[arg(long, value_name = "APPROVAL")]
    pub(super) like: String,
    /// What an argument may be: NAME=KIND:VALUE, or NAME=absent; `NAME?=` if it may be absent.
    /// Arguments that are not named must be as in the request, and no others may be there
    #[arg(long = "argument", value_name = "NAME=KIND:VALUE")]
    arguments: Vec<Argument>,
    /// How often it covers a call
    #[arg(long, value_name = "N")]
    uses: NonZeroU64,
    /// How long it is good, as in 90s, 10m or 2h
    #[arg(long = "for", value_name = "TIME")]
    within: String,
    /// The largest sum of an argument over all uses
    #[arg(long, value_name = "NAME=LIMIT")]
    budget: Option<BudgetLimit>,
    /// Agents that the agent starts may use it too
    #[arg(long)]
    children: bool,
    /// How far the agent must still be trusted: untrusted, reduced or full [default: as when it
    /// asked]
    #[arg(long, value_name = "LEVEL")]
    trust: Option<Trust>,
    /// The lease that it is a part of; a use of the part is a use of the whole
    #[arg(long, value_name = "LEASE")]
    part_of: Option<String>,
}

impl NewLease {
    /// The lease, unsigned.
    pub(super) fn draw_up(
        &self,
        standing: &Standing,
        granted_by: &Human,
        desk: &Desk,
    ) -> Result<Lease, Failure> {
        let plan = standing.envelope.plan();
        let [call] = plan.calls() else {
            return Err(refused("the request has more than one call".to_owned()));
        };
        let now = desk.now()?;
        let within = clock::parse_duration(&self.within)?;
        let within = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        let scope = plan.scope();
        let terms = Terms {
            id: LeaseId::from_random(random()?),
            tool: call.tool.clone(),
            arguments: self.arguments(call),
            max_uses: self.uses,
            budget: self.budget.as_ref().map(|it| it.0.clone()),
            valid: Validity {
                granted_at: now,
                expires_at: now.plus(within),
            },
            holder: Holder {
                chain: scope.chain.clone(),
                work_item: scope.work_item.clone(),
                lineage: standing.envelope.lineage().clone(),
                children: self.children,
            },
            least_trust: self.trust.unwrap_or(scope.trust),
            policy: plan.policy(),
            granted_by: granted_by.clone(),
        };
        let lease = match &self.part_of {
            None => Lease::grant(terms, call.class),
            Some(whole) => find(whole, desk)?.lease.narrow(terms),
        };
        lease.map_err(|error| refused(error.to_string()))
    }

    /// What nobody says otherwise about stays as it was in the request.
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

#[derive(Debug, Clone)]
struct BudgetLimit(Budget);

impl FromStr for BudgetLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=');
        let parts = parts.and_then(|(name, limit)| Some((name, limit.parse().ok()?)));
        let (argument, limit) = parts.ok_or("a budget is NAME=LIMIT, with a whole number")?;
        Ok(Self(Budget {
            argument: argument.to_owned(),
            limit,
        }))
    }
}

fn random() -> Result<[u8; 16], Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(Code::Input, format!("no randomness: {error}")))?;
    Ok(bytes)
}

pub(super) fn refused(message: String) -> Failure {
    Failure::new(Code::Lease, message)
}
