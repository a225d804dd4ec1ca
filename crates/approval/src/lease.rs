//! Leases: a person's approval of a bounded kind of call, ahead of time.
//!
//! A lease names one tool exactly, says what each argument may be, how often, how much and until
//! when, and for whom. Whatever it does not say is not covered: an argument without a constraint
//! must be absent. Nothing that cannot be undone is ever covered.
//!
//! Paths and hosts are compared in a normal form that the caller works out ([`Places`]); this crate
//! does not know links or internationalised names.

mod constraint;
mod cover;
mod form;
mod narrow;
mod offer;
mod places;
mod preview;

pub use constraint::{Constraint, ConstraintError, HostSet, IntegerRange, PathRoot, SafePrefix};
pub use cover::{Charge, LeaseStatus, Mismatch, NotCovered, Standing, Usage, Use, cover};
pub use form::{Proven, SignedLease};
pub use narrow::Wider;
pub use offer::{Argument, Offer, OfferError};
pub use places::Places;
pub use preview::{Preview, preview};

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use countersign_canon::Digest;

use crate::call::{Class, Tool};
use crate::id::{LeaseId, WorkItemId};
use crate::principal::{Human, Lineage};
use crate::time::UnixMs;
use crate::trust::Trust;
use countersign_canon::Quoted;

/// What a lease says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The lease's name.
    pub id: LeaseId,
    /// The one tool it covers.
    pub tool: Tool,
    /// What each argument may be. Every other argument must be absent.
    pub arguments: BTreeMap<String, Term>,
    /// How often.
    pub max_uses: NonZeroU64,
    /// How much, all uses together.
    pub budget: Option<Budget>,
    /// When it starts and until when it is good.
    pub valid: Validity,
    /// For whom.
    pub holder: Holder,
    /// How far the agent must still be trusted.
    pub least_trust: Trust,
    /// The digest of the policies under which it was granted; under others it is void.
    pub policy: Digest,
    /// Who granted it.
    pub granted_by: Human,
}

/// What one argument may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// What its value may be.
    pub constraint: Constraint,
    /// Whether a call without the argument is covered too.
    pub may_be_absent: bool,
}

/// A sum over all uses of one argument that holds an amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The argument: a whole number, not negative.
    pub argument: String,
    /// The largest sum.
    pub limit: u64,
}

/// From when until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// When it was granted.
    pub granted_at: UnixMs,
    /// It is good before this time.
    pub expires_at: UnixMs,
}

/// Who may use a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// In which session of which tenant.
    pub chain: countersign_event::Scope,
    /// For which piece of work. The lease ends with it.
    pub work_item: WorkItemId,
    /// Which agent, by the chain that started it.
    pub lineage: Lineage,
    /// Whether agents that it starts may use the lease too.
    pub children: bool,
}

/// A lease: granted, narrowed from another, or read back from its own text. It covers nothing by
/// itself: [`cover`] asks for the proof that a person signed for it.
///
/// INVARIANT: its terms make sense, and a child's are within its parent's in every field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    terms: Terms,
    parent: Option<LeaseId>,
}

impl Lease {
    /// Grants a lease for a tool of this class.
    pub fn grant(terms: Terms, class: Class) -> Result<Self, LeaseError> {
        if class.irreversible {
            return Err(LeaseError::Irreversible);
        }
        check(&terms)?;
        Ok(Self {
            terms,
            parent: None,
        })
    }

    /// Hands on a part of this lease. A use of the part is a use of the whole as well.
    pub fn narrow(&self, terms: Terms) -> Result<Self, LeaseError> {
        check(&terms)?;
        narrow::check(&self.terms, &terms)?;
        Ok(Self {
            terms,
            parent: Some(self.terms.id),
        })
    }

    /// What it says.
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Its name.
    pub const fn id(&self) -> LeaseId {
        self.terms.id
    }

    /// The lease that it is a part of.
    pub const fn parent(&self) -> Option<LeaseId> {
        self.parent
    }
}

fn check(terms: &Terms) -> Result<(), LeaseError> {
    if !terms.tool.is_named() {
        return Err(LeaseError::UnnamedTool);
    }
    if terms.valid.expires_at <= terms.valid.granted_at {
        return Err(LeaseError::NoTime);
    }
    let Some(budget) = &terms.budget else {
        return Ok(());
    };
    match terms.arguments.get(&budget.argument) {
        Some(term) if !term.may_be_absent => Ok(()),
        _ => Err(LeaseError::Budget(budget.argument.clone())),
    }
}

/// Why a lease was not granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// The tool has no name.
    #[error("the tool or its server has no name of 1 to 1024 characters")]
    UnnamedTool,
    /// It ends before it begins.
    #[error("the lease would end before it begins")]
    NoTime,
    /// The amount could be left out.
    #[error("the budget counts {}, which a call need not have", Quoted(.0))]
    Budget(String),
    /// It would cover something that cannot be undone.
    #[error("no lease covers what cannot be undone")]
    Irreversible,
    /// A part would be more than the whole.
    #[error(transparent)]
    Wider(#[from] Wider),
    /// Its text is not that of a lease.
    #[error("not a lease: {0}")]
    Form(#[from] crate::form::FormError),
    /// Nobody who may has signed it.
    #[error("the signature does not fit the lease")]
    Signature,
}
