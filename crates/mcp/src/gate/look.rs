//! Calls that wait for a human: what was decided, and whether it is worth looking.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use countersign_approval::{Arguments, ToolCall};
use countersign_engine::{ApprovalId, Redeemed, Wanted};

use super::{Call, Done, Gate, hold, refused, rewritten};

impl Gate {
    /// Whether there may be something new about a call that is held.
    pub(super) fn has_news(&self, call: &Call) -> bool {
        let is_known = call.seen.is_some_and(|(since, news)| {
            since.elapsed() < ANYWAY && self.engine.latest_news() == Some(news)
        });
        !is_known || call.cancelled.load(Ordering::Acquire)
    }

    /// What a human has decided about a call that waits, if anybody has.
    pub(super) fn look(&self, mut call: Call, approval: ApprovalId) -> Done {
        if call.cancelled.load(Ordering::Acquire) {
            let _ = self.engine.cancel(approval);
            return Done::Dropped(call.id);
        }
        // Before the approval is read: what happens from now on is news.
        let news = self.engine.news();
        match self.engine.approval(approval) {
            Err(refusal) => Done::Refused(call.id, refused(&refusal)),
            Ok(None) => Done::Refused(call.id, hold::gone()),
            Ok(Some(standing)) => match hold::verdict(&standing, &|| self.engine.denial(&standing))
            {
                hold::Verdict::Waits(refused) => {
                    // Who makes a call again hears of it as before.
                    let before = call.again.as_ref().map(|again| again.refused.clone());
                    let refused = before.unwrap_or(refused);
                    call.seen = news.ok().map(|news| (Instant::now(), news));
                    Done::Held(Box::new(call), approval, refused)
                }
                hold::Verdict::Over(refused) => Done::Refused(call.id, refused),
                hold::Verdict::Approved if standing.is_about_a_result() => {
                    self.release(call, approval)
                }
                hold::Verdict::Approved => self.redeem(call, approval),
            },
        }
    }

    /// Runs what was approved: the stored arguments, in the frame that waits for their result.
    pub(super) fn redeem(&self, call: Call, approval: ApprovalId) -> Done {
        let tool = self.tool(&call);
        let encode =
            |approved: &ToolCall| rewritten(&call, approved.args.value()).unwrap_or_default();
        let args = Arguments::new(call.args.clone()).ok();
        let wanted = Wanted {
            tool: Some(&tool),
            args: args.as_ref(),
            ..Wanted::default()
        };
        match self.engine.redeem(approval, wanted, &encode) {
            Redeemed::Permit(permit) => self.begin(call, permit),
            Redeemed::Replayed(_) => Done::Refused(call.id, hold::used()),
            Redeemed::Drifted(drifted) => Done::Refused(call.id, hold::drifted(&drifted)),
            Redeemed::Refused(refusal) => Done::Refused(call.id, hold::over(&refusal)),
            Redeemed::Failed(refusal) => Done::Refused(call.id, refused(&refusal)),
        }
    }
}

/// So often a request is read although nothing is known to have happened: not every fault of a store makes
/// news.
const ANYWAY: Duration = Duration::from_secs(5);
