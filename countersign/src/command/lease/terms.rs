//! The terms of a lease, from a request that people know and from what the command line says.

use std::num::NonZeroU64;

use clap::Args;
use countersign_approval::lease::{Argument, Budget, Lease, Offer};
use countersign_approval::{Human, LeaseId, Trust};
use countersign_engine::{Desk, Standing};

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
    budget: Option<Budget>,
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
        let within = clock::parse_duration(&self.within)?;
        let offer = Offer {
            arguments: self.arguments.clone(),
            max_uses: self.uses,
            within_ms: u64::try_from(within.as_millis()).unwrap_or(u64::MAX),
            budget: self.budget.clone(),
            children: self.children,
            least_trust: self.trust,
        };
        let (id, now) = (LeaseId::from_random(random()?), desk.now()?);
        let envelope = &standing.envelope;
        match &self.part_of {
            None => offer
                .draw_up(envelope, granted_by, id, now)
                .map_err(|error| refused(error.to_string())),
            Some(whole) => {
                let (terms, _) = offer
                    .terms(envelope, granted_by, id, now)
                    .map_err(|error| refused(error.to_string()))?;
                let part = find(whole, desk)?.lease.narrow(terms);
                part.map_err(|error| refused(error.to_string()))
            }
        }
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
