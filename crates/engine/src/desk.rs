//! Where people decide.

use countersign_approval::lease::Lease;
use countersign_approval::{ApprovalId, Envelope, Human, LeaseId, Reason, UnixMs};
use countersign_canon::Json;
use countersign_event::Line;
use countersign_policy::Policies;
use countersign_policy::capability::Capability;
use countersign_store::{Filter, Reader, Store};

use crate::refusal::Fault;
use crate::{
    Approvers, ApproversError, Clock, Engine, LeaseMatch, NotChanged, NotCounted, NotEdited,
    NotGranted, Refusal, Standing, StandingLease, Swept, Tally, Voted,
};

/// Where people decide: shows what is held, counts signed decisions, keeps the list of approvers.
///
/// It has no policies of its own, admits nothing and permits nothing. What a request says about the policies
/// in force is compared by the door that runs the action.
pub struct Desk(Engine);

impl Desk {
    /// A desk over a store.
    pub fn new(store: Store, clock: impl Clock + 'static) -> Result<Self, Refusal> {
        let none = Capability::new(None).map_err(|error| Fault::History(error.to_string()))?;
        Ok(Self(Engine::new(store, Policies::new(none), clock)))
    }

    /// The log.
    pub fn reader(&self) -> &Reader {
        self.0.store().reader()
    }

    /// The time that approvals are judged by.
    pub fn now(&self) -> Result<UnixMs, Refusal> {
        Ok(self.0.now()?)
    }

    /// Moves what time has overtaken; see [`Engine::sweep`].
    pub fn sweep(&self) -> Result<Swept, Refusal> {
        self.0.sweep()
    }

    /// A request as it stands.
    pub fn approval(&self, id: ApprovalId) -> Result<Option<Standing>, Refusal> {
        self.0.approval(id)
    }

    /// What people have said so far.
    pub fn tally(&self, standing: &Standing) -> Result<Tally, Refusal> {
        self.0.tally(standing)
    }

    /// Why the action was held.
    pub fn why_held(&self, standing: &Standing) -> Result<Option<String>, Refusal> {
        self.0.why_held(standing)
    }

    /// When the session of a request has used up the time that its manifest gives, as far as that can be told.
    pub fn time_is_up(&self, standing: &Standing) -> Option<UnixMs> {
        let digest = standing.envelope.plan().policy();
        let policies = self.0.policies_with(digest).ok()?;
        let budgets = policies.capability().manifest()?.permissions().budgets;
        let filter = Filter::session(&standing.row.scope);
        let first = self.reader().page(&filter, None, 1).ok()?.events.pop()?;
        let begun = Line::read(&first.line).ok()?.ts_unix_ms;
        Some(UnixMs::new(begun.saturating_add(budgets.max_wall_time_ms)))
    }

    /// Notes in the audit that somebody was shown a request.
    pub fn note_view(&self, standing: &Standing, who: &Human) -> Result<(), Refusal> {
        self.0.note_view(standing, who)
    }

    /// Takes a signed decision; see [`Engine::vote`].
    pub fn vote(&self, submission: &[u8]) -> Result<Voted, NotCounted> {
        self.0.vote(submission)
    }

    /// Asks for the same call with other arguments; see [`Engine::edit`]. The policies are those that
    /// the request was made under.
    pub fn edit(
        &self,
        id: ApprovalId,
        args: Json,
        by: &Human,
        reason: Option<&Reason>,
    ) -> Result<Envelope, NotEdited> {
        self.0.edit(id, args, by, reason)
    }

    /// Grants a lease for what people were asked about before. Its policies are those of then; each
    /// use compares them with those in force.
    pub fn grant_lease(&self, text: &[u8]) -> Result<LeaseId, NotGranted> {
        self.0.grant_asked_lease(text)
    }

    /// Takes a lease back; see [`Engine::revoke_lease`].
    pub fn revoke_lease(&self, id: LeaseId, who: &Human) -> Result<bool, Refusal> {
        self.0.revoke_lease(id, who)
    }

    /// Every lease, oldest first, whatever became of it.
    pub fn all_leases(&self) -> Result<Vec<StandingLease>, Refusal> {
        self.0.all_leases()
    }

    /// One lease.
    pub fn lease(&self, id: LeaseId) -> Result<Option<StandingLease>, Refusal> {
        self.0.lease(id)
    }

    /// Which past requests a lease would have covered; see [`Engine::preview_lease`].
    pub fn preview_lease(&self, lease: &Lease) -> Result<Vec<LeaseMatch>, Refusal> {
        self.0.preview_lease(lease)
    }

    /// Everybody who may decide.
    pub fn approvers(&self) -> Result<Approvers, Refusal> {
        self.0.approvers()
    }

    /// Changes who may decide; see [`Engine::change_approvers`].
    pub fn change_approvers<T>(
        &self,
        by: Option<&Human>,
        change: impl FnOnce(&mut Approvers) -> Result<T, ApproversError>,
    ) -> Result<T, NotChanged> {
        self.0.change_approvers(by, change)
    }
}
