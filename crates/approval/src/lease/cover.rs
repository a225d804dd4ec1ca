//! Whether a lease covers a call, and if not, why not.

use countersign_canon::{Digest, Json};
use countersign_event::Scope as Chain;

use super::form::Proven;
use super::narrow::{self, Wider};
use super::places::Places;
use super::{Lease, Terms};
use crate::call::{Arguments, Class, Tool};
use crate::id::{LeaseId, WorkItemId};
use crate::names::names;
use crate::principal::Lineage;
use crate::time::UnixMs;
use crate::trust::Trust;
use countersign_canon::Quoted;

/// A call that somebody would like to see covered.
#[derive(Clone, Copy, Debug)]
pub struct Use<'a> {
    /// The tool.
    pub tool: &'a Tool,
    /// Its arguments.
    pub args: &'a Arguments,
    /// To what effect.
    pub class: Class,
    /// In which session of which tenant.
    pub chain: &'a Chain,
    /// For which piece of work.
    pub work_item: &'a WorkItemId,
    /// By whom.
    pub lineage: &'a Lineage,
    /// How far it is trusted now.
    pub trust: Trust,
    /// The digest of the policies in force.
    pub policy: Digest,
    /// When.
    pub now: UnixMs,
}

/// How far a lease has been used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How often it was used.
    pub uses: u64,
    /// The sum of the amounts.
    pub spent: u64,
}

names! {
    /// Whether a lease still stands, as the store knows it.
    LeaseStatus as "status of a lease" {
        /// It stands.
        Active = "active",
        /// It was taken back.
        Revoked = "revoked",
        /// The piece of work that it was granted for has ended.
        WorkEnded = "work_ended",
        /// The key of the person who granted it was replaced or lost.
        KeyRetired = "key_retired",
    }
}

/// A lease as it stands in the store.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// The lease.
    pub lease: &'a Lease,
    /// Whether it still stands.
    pub status: LeaseStatus,
    /// How far it has been used up.
    pub usage: Usage,
}

/// Proof that a lease covers a call. The store adds it up in one conditional update; it holds only
/// while the usage is still `before`, or the sums still fit.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Charge {
    lease: LeaseId,
    before: Usage,
    amount: u64,
}

impl Charge {
    /// Which lease.
    pub const fn lease(&self) -> LeaseId {
        self.lease
    }

    /// The usage it was worked out from.
    pub const fn before(&self) -> Usage {
        self.before
    }

    /// The amount that the call spends.
    pub const fn amount(&self) -> u64 {
        self.amount
    }

    /// The usage after the call.
    pub const fn after(&self) -> Usage {
        Usage {
            uses: self.before.uses.saturating_add(1),
            spent: self.before.spent.saturating_add(self.amount),
        }
    }
}

/// A lease does not cover a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lease `{lease}`: {mismatch}")]
pub struct NotCovered {
    /// Which lease.
    pub lease: LeaseId,
    /// Why not.
    pub mismatch: Mismatch,
}

/// Why a lease does not cover a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// It no longer stands.
    #[error("it is {0}")]
    Ended(LeaseStatus),
    /// Its time is over, or has not begun.
    #[error("this is not its time")]
    Time,
    /// It was used as often as it allows.
    #[error("it was used as often as it allows")]
    UsedUp,
    /// The amount is more than is left.
    #[error("the budget has {left} left")]
    Budget {
        /// What is left.
        left: u64,
    },
    /// No lease covers what cannot be undone.
    #[error("the call cannot be undone")]
    Irreversible,
    /// Another tool.
    #[error("another tool")]
    Tool,
    /// The tool's definition has changed.
    #[error("the definition of the tool has changed")]
    Definition,
    /// The policies have changed.
    #[error("the policies have changed")]
    Policy,
    /// Another session, piece of work or agent.
    #[error("somebody else's")]
    Holder,
    /// The agent is no longer trusted as far as it must be.
    #[error("the agent is not trusted enough")]
    Trust,
    /// An argument that must be there is not.
    #[error("argument {} is missing", Quoted(.0))]
    Missing(String),
    /// An argument is there that the lease does not name.
    #[error("argument {} is not named", Quoted(.0))]
    Unnamed(String),
    /// An argument is not what it may be.
    #[error("argument {} is not what it may be", Quoted(.0))]
    Argument(String),
    /// The leases do not form a chain from this one to one that a person granted.
    #[error("its parent is missing")]
    Parent,
    /// It is more than its parent allows.
    #[error(transparent)]
    Wider(Wider),
}

/// Whether a lease covers a call. `chain` is the lease itself, then its parent, and so on up to the
/// one that a person granted, which `root` proves: a use of a part is a use of the whole, so each is
/// charged.
pub fn cover(
    chain: &[Standing<'_>],
    root: &Proven<'_>,
    call: &Use<'_>,
    places: &dyn Places,
) -> Result<Vec<Charge>, NotCovered> {
    // FAIL-CLOSED: an empty chain covers nothing.
    if chain.last().map(|standing| standing.lease) != Some(root.lease()) {
        return Err(NotCovered {
            lease: root.lease().id(),
            mismatch: Mismatch::Parent,
        });
    }
    let mut charges = Vec::with_capacity(chain.len());
    for (place, standing) in chain.iter().enumerate() {
        let lease = standing.lease.id();
        let refuse = |mismatch| NotCovered { lease, mismatch };
        check_parent(standing, chain.get(place.saturating_add(1))).map_err(refuse)?;
        check_standing(standing, call.now).map_err(refuse)?;
        check_shape(standing.lease.terms(), call, places).map_err(refuse)?;
        charges.push(charge(standing, call.args).map_err(refuse)?);
    }
    Ok(charges)
}

fn check_parent(child: &Standing<'_>, parent: Option<&Standing<'_>>) -> Result<(), Mismatch> {
    let stated = child.lease.parent();
    if stated != parent.map(|parent| parent.lease.id()) {
        return Err(Mismatch::Parent);
    }
    // FAIL-CLOSED: a stored lease may have been changed since it was narrowed.
    parent.map_or(Ok(()), |parent| {
        narrow::check(parent.lease.terms(), child.lease.terms()).map_err(Mismatch::Wider)
    })
}

fn check_standing(standing: &Standing<'_>, now: UnixMs) -> Result<(), Mismatch> {
    let valid = standing.lease.terms().valid;
    if standing.status != LeaseStatus::Active {
        return Err(Mismatch::Ended(standing.status));
    }
    match now >= valid.granted_at && now.is_before(valid.expires_at) {
        true => Ok(()),
        false => Err(Mismatch::Time),
    }
}

/// Everything but time and counters.
pub(super) fn check_shape(
    terms: &Terms,
    call: &Use<'_>,
    places: &dyn Places,
) -> Result<(), Mismatch> {
    if call.class.irreversible {
        return Err(Mismatch::Irreversible);
    }
    if (&call.tool.server, &call.tool.name) != (&terms.tool.server, &terms.tool.name) {
        return Err(Mismatch::Tool);
    }
    if call.tool.definition != terms.tool.definition {
        return Err(Mismatch::Definition);
    }
    if call.policy != terms.policy {
        return Err(Mismatch::Policy);
    }
    let holder = &terms.holder;
    let agent = match holder.children {
        true => call.lineage.descends_from(&holder.lineage),
        false => *call.lineage == holder.lineage,
    };
    if *call.chain != holder.chain || *call.work_item != holder.work_item || !agent {
        return Err(Mismatch::Holder);
    }
    if call.trust < terms.least_trust {
        return Err(Mismatch::Trust);
    }
    check_arguments(terms, call.args, places)
}

fn check_arguments(terms: &Terms, args: &Arguments, places: &dyn Places) -> Result<(), Mismatch> {
    let given = args.value().as_object().into_iter().flatten();
    for (name, value) in given {
        let term = terms.arguments.get(name);
        let term = term.ok_or_else(|| Mismatch::Unnamed(name.to_owned()))?;
        if !term.constraint.allows(name, value, places) {
            return Err(Mismatch::Argument(name.to_owned()));
        }
    }
    let missing = terms
        .arguments
        .iter()
        .find(|(name, term)| !term.may_be_absent && args.value().get(name).is_none());
    match missing {
        Some((name, _)) => Err(Mismatch::Missing(name.clone())),
        None => Ok(()),
    }
}

pub(super) fn charge(standing: &Standing<'_>, args: &Arguments) -> Result<Charge, Mismatch> {
    let (terms, before) = (standing.lease.terms(), standing.usage);
    if before.uses >= terms.max_uses.get() {
        return Err(Mismatch::UsedUp);
    }
    let mut amount = 0;
    if let Some(budget) = &terms.budget {
        let stated = args.value().get(&budget.argument).and_then(Json::as_number);
        let stated = stated.filter(|number| number.is_integer());
        let stated = stated.and_then(|number| number.as_u64());
        amount = stated.ok_or_else(|| Mismatch::Argument(budget.argument.clone()))?;
        let left = budget.limit.saturating_sub(before.spent);
        if amount > left {
            return Err(Mismatch::Budget { left });
        }
    }
    Ok(Charge {
        lease: standing.lease.id(),
        before,
        amount,
    })
}
