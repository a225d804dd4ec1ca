//! Leases: what people approved ahead of time.
//!
//! A lease is granted once, by a signed text that is kept in the session it is for. It is looked at
//! anew for every call that it might cover: signature, key, policies, session, agent, arguments. The
//! store counts its uses.

use countersign_approval::audit::{Entry, Outcome};
use countersign_approval::lease::{
    Charge, Lease, LeaseError, LeaseStatus, Mismatch, Proven, SignedLease, Standing, Usage, Use,
    cover,
};
use countersign_approval::{Arguments, Human, Keyring, LeaseId, Lineage, Principal, UnixMs};
use countersign_canon::{Digest, Json};
use countersign_event::EventType;
use countersign_event::payload::{
    ApprovalDecided, ApprovalRequested, ErrorRaised, Payload, ToolCallAllowed,
};
use countersign_policy::Policies;
use countersign_store::{Change, ChangeRefused, Grant, LeaseRow, Reader};

use crate::approval::{Question, class, is_erased, standing, tool, trust, work_item};
use crate::engine::MAX_ATTEMPTS;
use crate::refusal::Fault;
use crate::{Engine, Proposal, Refusal};

mod places;
mod preview;

use places::ThisMachine;
pub use preview::LeaseMatch;

/// A lease as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingLease {
    /// What it says.
    pub lease: Lease,
    /// Whether it still stands; its time and its uses are told by `lease` and `usage`.
    pub status: LeaseStatus,
    /// How far it is used up.
    pub usage: Usage,
}

/// Whether a lease still covers anything, and if not, why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseCondition {
    /// It does.
    Stands,
    /// Its time is over.
    Over,
    /// It was used as often as it may be.
    UsedUp,
    /// What it may spend is spent.
    Spent,
    /// It has ended before.
    Ended(LeaseStatus),
}

impl StandingLease {
    /// Whether it still covers anything.
    pub fn condition(&self, now: UnixMs) -> LeaseCondition {
        let (terms, usage) = (self.lease.terms(), self.usage);
        let budget = terms.budget.as_ref();
        match self.status {
            LeaseStatus::Active if !now.is_before(terms.valid.expires_at) => LeaseCondition::Over,
            LeaseStatus::Active if usage.uses >= terms.max_uses.get() => LeaseCondition::UsedUp,
            LeaseStatus::Active if budget.is_some_and(|it| usage.spent >= it.limit) => {
                LeaseCondition::Spent
            }
            LeaseStatus::Active => LeaseCondition::Stands,
            ended => LeaseCondition::Ended(ended),
        }
    }
}

impl LeaseCondition {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stands => LeaseStatus::Active.as_str(),
            Self::Over => "over",
            Self::UsedUp => "used_up",
            Self::Spent => "spent",
            Self::Ended(status) => status.as_str(),
        }
    }
}

/// Why a lease was not granted.
#[derive(Debug, thiserror::Error)]
pub enum NotGranted {
    /// Its text, its terms or its signature do not hold.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// It would be void at once.
    #[error("the lease is for other policies than those in force")]
    Policy,
    /// Nobody can tell what it would cover.
    #[error("nobody was asked about this tool in this session under these policies")]
    NeverAsked,
    /// It would be over at once.
    #[error("the time of the lease is over")]
    Over,
    /// One person does not speak for several.
    #[error("{0} people must agree on each action, so nobody can grant a lease alone")]
    Quorum(usize),
    /// Nobody grants what they ask for themselves.
    #[error("whoever asks cannot grant the lease")]
    Requester,
    /// What it would be a part of does not stand.
    #[error("the lease that it is a part of does not stand")]
    Parent,
    /// It was granted already.
    #[error("the lease was granted already")]
    Already,
    /// Something failed on the way; nothing was granted.
    #[error("{}", .0.message())]
    Failed(Refusal),
}

impl From<Fault> for NotGranted {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault.into())
    }
}

/// A lease that covers an action, before the use is counted.
pub(crate) struct Covered {
    lease: LeaseId,
    charges: Vec<Charge>,
    now: UnixMs,
}

impl Covered {
    /// The event that allows the action, and the count that goes with it.
    pub(crate) fn into_use(self, proposal: &Proposal<'_>) -> (LeaseId, Payload, Change) {
        let allowed = ToolCallAllowed {
            call_id: Some(proposal.call_id.clone()),
            approval_id: Some(self.lease.to_string()),
            action_digest: Some(Digest::of(proposal.bytes).to_string()),
            ..ToolCallAllowed::default()
        };
        let entry = |charge: &Charge| {
            let mut entry = Entry::new(self.now, Outcome::LeaseUsed);
            entry.lease = Some(charge.lease().to_string());
            entry.call = Some(proposal.call_id.clone());
            entry.actor = Some(proposal.origin.lineage.requester().to_string());
            entry
        };
        let entries = self.charges.iter().map(entry).collect();
        let change = Change::use_lease(self.charges, entries, self.now);
        (self.lease, Payload::ToolCallAllowed(allowed), change)
    }
}

impl Engine {
    /// Grants a lease that a person has signed, for the policies in force. The grant is in the log of
    /// its session and in the audit; so is one that was refused.
    pub fn grant_lease(&self, text: &[u8]) -> Result<LeaseId, NotGranted> {
        let policies = self.policies();
        self.grant(text, &|lease| check_policies(lease, &policies))
    }

    /// Grants a lease where no policies are in force: only for what people were asked about before,
    /// under the policies of then. Each use compares them with those in force.
    pub(crate) fn grant_asked_lease(&self, text: &[u8]) -> Result<LeaseId, NotGranted> {
        self.grant(text, &|lease| self.check_asked(lease))
    }

    fn grant(
        &self,
        text: &[u8],
        basis: &dyn Fn(&Lease) -> Result<(), NotGranted>,
    ) -> Result<LeaseId, NotGranted> {
        let signed = SignedLease::read(text)?;
        let now = self.now()?;
        if let Err(refused) = self.check_grant(&signed, basis, now) {
            self.note_refused_grant(&signed, &refused, now)?;
            return Err(refused);
        }
        for _ in 0..MAX_ATTEMPTS {
            match self.try_grant(&signed, text, now) {
                Err(Fault::Store(error)) if error.is_retryable() => {}
                Err(Fault::Store(error)) if is_granted(&error) => return Err(NotGranted::Already),
                result => return Ok(result.map(|()| signed.claims().id())?),
            }
        }
        let problem = "other processes write this session too fast";
        Err(Fault::History(problem.to_owned()).into())
    }

    /// Takes a lease back, and with it every lease that is a part of it; the next call is not covered
    /// any more. `false` if there was nothing to take back.
    pub fn revoke_lease(&self, id: LeaseId, who: &Human) -> Result<bool, Refusal> {
        let reader = self.store().reader();
        let Some(row) = reader.lease(id).map_err(Fault::from)? else {
            return Ok(false);
        };
        let lease = read(&row, reader)?;
        for _ in 0..MAX_ATTEMPTS {
            match self.try_revoke(lease.claims(), who) {
                Err(Fault::Store(error)) if error.is_retryable() => {}
                // Somebody else took it back, or its session is over and the lease with it.
                Err(Fault::Store(error)) if is_over(&error) => return Ok(false),
                result => return Ok(result.map(|()| true)?),
            }
        }
        let problem = "other processes write this session too fast";
        Err(Fault::History(problem.to_owned()).into())
    }

    /// Every lease of a tenant, oldest first, whatever became of it.
    pub fn leases(&self, tenant: &str) -> Result<Vec<StandingLease>, Refusal> {
        let rows = self.store().reader().leases(tenant);
        Ok(self.standing_leases(&rows.map_err(Fault::from)?)?)
    }

    /// Every lease, oldest first, whatever became of it.
    pub fn all_leases(&self) -> Result<Vec<StandingLease>, Refusal> {
        let rows = self.store().reader().all_leases();
        Ok(self.standing_leases(&rows.map_err(Fault::from)?)?)
    }

    fn standing_leases(&self, rows: &[LeaseRow]) -> Result<Vec<StandingLease>, Fault> {
        let reader = self.store().reader();
        let keys = self.lease_keys()?;
        let mut leases: Vec<StandingLease> = Vec::with_capacity(rows.len());
        for row in rows {
            let signed = match read(row, reader) {
                // Its session is over, and what it said is gone.
                Err(Fault::Store(error)) if is_erased(&error) => continue,
                signed => signed?,
            };
            let lease = signed.claims().clone();
            let ended = self.is_ended(&lease)?;
            let own = match (row.revoked, ended, signed.verify(&keys)) {
                (Some(_), _, _) => LeaseStatus::Revoked,
                (None, true, _) => LeaseStatus::WorkEnded,
                (None, false, Err(_)) => LeaseStatus::KeyRetired,
                (None, false, Ok(_)) => LeaseStatus::Active,
            };
            // A part ends with the whole, which was granted before it.
            let whole = leases
                .iter()
                .find(|it| Some(it.lease.id()) == lease.parent());
            let status = match (own, whole) {
                (LeaseStatus::Active, Some(whole)) => whole.status,
                (own, _) => own,
            };
            let usage = usage(row);
            leases.push(StandingLease {
                lease,
                status,
                usage,
            });
        }
        Ok(leases)
    }

    /// One lease.
    pub fn lease(&self, id: LeaseId) -> Result<Option<StandingLease>, Refusal> {
        let row = self.store().reader().lease(id).map_err(Fault::from)?;
        let Some(row) = row else {
            return Ok(None);
        };
        let leases = self.leases(&row.grant.tenant)?;
        Ok(leases.into_iter().find(|it| it.lease.id() == id))
    }

    /// The lease that covers a held action now, if there is one.
    pub(crate) fn covered(&self, question: &Question<'_>) -> Result<Option<Covered>, Fault> {
        if question.judgement.irreversible {
            return Ok(None);
        }
        let reader = self.store().reader();
        let rows = reader.session_leases(question.proposal.scope)?;
        if rows.is_empty() || self.approver_list()?.required() != 1 {
            return Ok(None);
        }
        // FAIL-CLOSED: a lease that cannot be read covers nothing.
        let all: Vec<(&LeaseRow, SignedLease)> = rows
            .iter()
            .filter_map(|row| Some((row, read(row, reader).ok()?)))
            .collect();
        let standing = all.iter().filter(|(row, _)| row.revoked.is_none());
        let leases: Vec<(Usage, &SignedLease)> =
            standing.map(|(row, lease)| (usage(row), lease)).collect();
        let proposal = question.proposal;
        let (Ok(args), Ok(work_item)) =
            (Arguments::new(proposal.args.clone()), work_item(proposal))
        else {
            return Ok(None);
        };
        let call = Use {
            tool: &tool(proposal),
            args: &args,
            class: class(question.judgement),
            chain: proposal.scope,
            work_item: &work_item,
            lineage: &proposal.origin.lineage,
            trust: trust(question),
            policy: question.policies.digest(),
            now: question.now,
        };
        let keys = self.lease_keys()?;
        // The newest first: a part is younger than the whole.
        let covering = leases.iter().rev().find_map(|(_, lease)| {
            let lease = lease.claims();
            if has_part(&proposal.origin.lineage, lease, all.iter().map(|it| &it.1)) {
                return None;
            }
            let charges = charges(lease, &leases, &keys, &call).ok()?;
            Some((lease.id(), charges))
        });
        Ok(covering.map(|(lease, charges)| Covered {
            lease,
            charges,
            now: question.now,
        }))
    }

    pub(crate) fn lease_keys(&self) -> Result<Keyring, Fault> {
        let approvers = self.approver_list()?;
        let keys = approvers.keyring().cloned();
        keys.map_err(|error| Fault::History(error.to_string()))
    }

    fn check_grant(
        &self,
        signed: &SignedLease,
        basis: &dyn Fn(&Lease) -> Result<(), NotGranted>,
        now: UnixMs,
    ) -> Result<(), NotGranted> {
        let required = self.approver_list()?.required();
        let keys = self.lease_keys()?;
        let lease = signed.verify(&keys)?.lease();
        let terms = lease.terms();
        basis(lease)?;
        if required != 1 {
            return Err(NotGranted::Quorum(required));
        }
        if is_requester(&terms.granted_by, &terms.holder.lineage) {
            return Err(NotGranted::Requester);
        }
        if !now.is_before(terms.valid.expires_at) {
            return Err(NotGranted::Over);
        }
        self.check_parent(lease, &keys)
    }

    /// Whether people were asked about this tool in this session, and it can be undone.
    fn check_asked(&self, lease: &Lease) -> Result<(), NotGranted> {
        let (reader, terms) = (self.store().reader(), lease.terms());
        let rows = reader.session_approvals(&terms.holder.chain);
        let mut asked = false;
        for row in rows.map_err(Fault::from)? {
            let plan = standing(row, reader)?.envelope;
            let calls = plan.plan().calls().iter();
            for call in calls.filter(|call| call.tool == terms.tool) {
                if call.class.irreversible {
                    return Err(LeaseError::Irreversible.into());
                }
                asked |= plan.plan().policy() == terms.policy;
            }
        }
        match asked {
            true => Ok(()),
            false => Err(NotGranted::NeverAsked),
        }
    }

    /// Adds a refused grant to the audit and to the log. What it claims is noted, not believed.
    fn note_refused_grant(
        &self,
        signed: &SignedLease,
        refused: &NotGranted,
        now: UnixMs,
    ) -> Result<(), Fault> {
        let mut entry = Entry::new(now, Outcome::LeaseRefused);
        entry.lease = Some(signed.claims().id().to_string());
        entry.actor = Some(signed.claims().terms().granted_by.to_string());
        entry.key = Some(signed.key_id());
        entry.detail = Some(refused.to_string());
        let error = ErrorRaised {
            code: Some(Outcome::LeaseRefused.as_str().to_owned()),
            message: Some(Json::from(refused.to_string())),
            ..ErrorRaised::default()
        };
        let event = (EventType::ErrorRaised, Payload::ErrorRaised(error));
        self.record_apart(&event, &entry, now)
    }

    fn check_parent(&self, lease: &Lease, keys: &Keyring) -> Result<(), NotGranted> {
        let Some(parent) = lease.parent() else {
            return Ok(());
        };
        let reader = self.store().reader();
        let rows = reader
            .session_leases(&lease.terms().holder.chain)
            .map_err(Fault::from)?;
        let row = rows
            .iter()
            .find(|row| row.grant.id == parent && row.revoked.is_none());
        let whole = read(row.ok_or(NotGranted::Parent)?, reader)?;
        let whole = whole.verify(keys).map_err(|_| NotGranted::Parent)?;
        let part = whole.lease().narrow(lease.terms().clone())?;
        match part == *lease {
            true => Ok(()),
            false => Err(NotGranted::Parent),
        }
    }

    fn try_grant(&self, signed: &SignedLease, text: &[u8], now: UnixMs) -> Result<(), Fault> {
        let lease = signed.claims();
        let terms = lease.terms();
        let scope = &terms.holder.chain;
        let asked = ApprovalRequested {
            approval_id: Some(lease.id().to_string()),
            expires_unix_ms: Some(terms.valid.expires_at.get()),
            ..ApprovalRequested::default()
        };
        let granted = ApprovalDecided {
            approval_id: Some(lease.id().to_string()),
            approved: Some(true),
            decided_by: Some(terms.granted_by.to_string()),
            submission: Some(Json::from(String::from_utf8_lossy(text).into_owned())),
            ..ApprovalDecided::default()
        };
        let mut entry = Entry::new(now, Outcome::LeaseGranted);
        entry.lease = Some(lease.id().to_string());
        entry.actor = Some(terms.granted_by.to_string());
        entry.key = Some(signed.key_id());
        let grant = Grant {
            id: lease.id(),
            tenant: scope.tenant.as_str().to_owned(),
            max_uses: terms.max_uses.get(),
            max_spent: terms.budget.as_ref().map(|budget| budget.limit),
            ends: terms.valid.expires_at,
        };
        let change = Change::grant(grant, entry, now);
        let events = vec![
            (
                EventType::ApprovalRequested,
                Payload::ApprovalRequested(asked),
                None,
            ),
            (
                EventType::ApprovalDecided,
                Payload::ApprovalDecided(granted),
                Some(change),
            ),
        ];
        self.push(scope, now.get(), events).map(drop)
    }

    fn try_revoke(&self, lease: &Lease, who: &Human) -> Result<(), Fault> {
        let now = self.now()?;
        let revoked = ApprovalDecided {
            approval_id: Some(lease.id().to_string()),
            approved: Some(false),
            decided_by: Some(who.to_string()),
            ..ApprovalDecided::default()
        };
        let mut entry = Entry::new(now, Outcome::LeaseRevoked);
        entry.lease = Some(lease.id().to_string());
        entry.actor = Some(who.to_string());
        let event = (
            EventType::ApprovalDecided,
            Payload::ApprovalDecided(revoked),
        );
        let change = Change::revoke(lease.id(), entry, now);
        let scope = &lease.terms().holder.chain;
        self.record_events(scope, now, vec![event], change)
            .map(drop)
    }

    /// Whether the session that the lease is for is over.
    fn is_ended(&self, lease: &Lease) -> Result<bool, Fault> {
        let scope = &lease.terms().holder.chain;
        let session = self.store().reader().session(scope)?;
        Ok(session.is_some_and(|session| session.terminated))
    }
}

fn check_policies(lease: &Lease, policies: &Policies) -> Result<(), NotGranted> {
    let terms = lease.terms();
    let manifest = policies.capability().manifest();
    let tool = manifest.and_then(|manifest| manifest.tool(&terms.tool.name));
    if tool.is_some_and(|tool| tool.irreversible) {
        return Err(LeaseError::Irreversible.into());
    }
    match terms.policy == policies.digest() {
        true => Ok(()),
        false => Err(NotGranted::Policy),
    }
}

/// The lease that an event granted. Nobody has checked its signature yet.
fn read(row: &LeaseRow, reader: &Reader) -> Result<SignedLease, Fault> {
    let payload = reader.open_payload(&row.event)?;
    let text = payload.get("submission").and_then(Json::as_str);
    let text = text.ok_or_else(|| Fault::History("a lease without its text".to_owned()))?;
    let signed =
        SignedLease::read(text.as_bytes()).map_err(|error| Fault::History(error.to_string()))?;
    // SECURITY: the row names the lease; it does not get to name another one.
    match signed.claims().id() == row.grant.id {
        true => Ok(signed),
        false => Err(Fault::History("a lease under another name".to_owned())),
    }
}

fn usage(row: &LeaseRow) -> Usage {
    Usage {
        uses: row.uses,
        spent: row.spent,
    }
}

/// What a use of this lease costs it and the leases it is a part of. Each of them must be signed by
/// somebody who may still decide, and who does not ask.
fn charges(
    lease: &Lease,
    leases: &[(Usage, &SignedLease)],
    keys: &Keyring,
    call: &Use<'_>,
) -> Result<Vec<Charge>, Mismatch> {
    let mut chain = Vec::new();
    let mut next = Some(lease.id());
    let mut root: Option<Proven<'_>> = None;
    while let Some(id) = next {
        let found = leases.iter().find(|(_, lease)| lease.claims().id() == id);
        let (usage, signed) = found.ok_or(Mismatch::Parent)?;
        let proven = signed.verify(keys);
        let proven = proven.map_err(|_| Mismatch::Ended(LeaseStatus::KeyRetired))?;
        // FAIL-CLOSED: a chain that is longer than there are leases goes in a circle.
        if chain.len() >= leases.len()
            || is_requester(&signed.claims().terms().granted_by, call.lineage)
        {
            return Err(Mismatch::Holder);
        }
        chain.push(Standing {
            lease: signed.claims(),
            status: LeaseStatus::Active,
            usage: *usage,
        });
        next = signed.claims().parent();
        root = Some(proven);
    }
    let root = root.ok_or(Mismatch::Parent)?;
    cover(&chain, &root, call, &ThisMachine).map_err(|refused| refused.mismatch)
}

/// Whether an agent was handed a part of this lease. Then the part is all it has, also when that is
/// used up, over or taken back.
fn has_part<'l>(
    agent: &Lineage,
    whole: &Lease,
    mut leases: impl Iterator<Item = &'l SignedLease>,
) -> bool {
    leases.any(|part| {
        let (part, holder) = (part.claims(), &part.claims().terms().holder);
        part.parent() == Some(whole.id())
            && holder.lineage != whole.terms().holder.lineage
            && agent.descends_from(&holder.lineage)
    })
}

fn is_requester(person: &Human, lineage: &Lineage) -> bool {
    lineage.requester() == Principal::Human(person.clone())
}

fn is_granted(error: &countersign_store::Error) -> bool {
    use countersign_event::OrderError;
    match error.root() {
        countersign_store::Error::Approval(refused) => *refused == ChangeRefused::Granted,
        countersign_store::Error::Order(OrderError::Reused { .. }) => true,
        _ => false,
    }
}

fn is_over(error: &countersign_store::Error) -> bool {
    use countersign_event::OrderError;
    match error.root() {
        countersign_store::Error::Approval(refused) => *refused == ChangeRefused::LeaseOver,
        countersign_store::Error::Order(OrderError::Terminated(_)) => true,
        _ => false,
    }
}
