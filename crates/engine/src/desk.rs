//! Where people decide.

use countersign_approval::{ApprovalId, Human, UnixMs};
use countersign_policy::Policies;
use countersign_policy::capability::Capability;
use countersign_store::{Reader, Store};

use crate::refusal::Fault;
use crate::{
    Approvers, ApproversError, Clock, Engine, NotChanged, NotCounted, Refusal, Standing, Tally,
    Voted,
};

/// Where people decide: shows what is held, counts signed decisions, keeps the list of approvers.
///
/// It has no policies, admits nothing and permits nothing. What a request says about the policies
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
    pub fn sweep(&self) -> Result<usize, Refusal> {
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

    /// Takes a signed decision; see [`Engine::vote`].
    pub fn vote(&self, submission: &[u8]) -> Result<Voted, NotCounted> {
        self.0.vote(submission)
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
