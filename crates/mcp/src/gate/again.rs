//! Calls that people were asked about before.

use std::sync::atomic::Ordering;

use countersign_approval::{Arguments, State};
use countersign_engine::{ApprovalId, Standing};

use super::{Call, Gate};

impl Gate {
    /// What people were asked about when this call was made before, unless nothing can come of that any more.
    pub(super) fn asked_before(&self, call: &Call) -> Option<ApprovalId> {
        let approval = call.again.as_ref()?.approval;
        // Whatever fails here fails again where the call is decided.
        let standing = self.engine.approval(approval).ok()??;
        if self.is_of_use(&standing) {
            return Some(approval);
        }
        self.forget_again(call);
        None
    }

    /// A decision that was made is heard, whatever it is; one that is still to be made must be about what the
    /// policies in force say. People may have changed them instead of deciding.
    fn is_of_use(&self, standing: &Standing) -> bool {
        match standing.row.state {
            State::Pending | State::Approved => {
                standing.envelope.plan().policy() == self.engine.policies().digest()
            }
            State::Denied
            | State::Expired
            | State::ExpiredUnused
            | State::Cancelled
            | State::Superseded => true,
            State::Consumed
            | State::NotStarted
            | State::Started
            | State::Executed
            | State::Failed
            | State::Unknown => false,
        }
    }

    /// Nobody comes back for what people were asked about this call.
    pub(super) fn forget_again(&self, call: &Call) {
        if let Some(again) = &call.again {
            // Whoever decides later finds it taken back, or over.
            let _ = self.engine.cancel(again.approval);
        }
    }

    /// What was approved, and nobody waits for: a request that was answered otherwise, or edited.
    pub(super) fn approved(&self, call: &Call) -> Option<ApprovalId> {
        if !self.has_asked.load(Ordering::Acquire) {
            return None;
        }
        let args = Arguments::new(call.args.clone()).ok()?;
        let (tool, others) = (self.tool(call), &call.awaited);
        let found = self.engine.matching(&self.scope, &tool, &args, others);
        // Whatever fails here fails again where the call is decided.
        found.ok().flatten()
    }
}
