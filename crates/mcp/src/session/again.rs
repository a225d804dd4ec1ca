//! The same call made again: it waits for what people were asked about it, and asks nobody anew.
//!
//! INVARIANT: a request is here only while no open call waits for it, and whoever takes it takes it away. So two
//! calls that wait side by side are two intentions, also where their arguments are the same.

use std::collections::VecDeque;
use std::time::Instant;

use countersign_approval::Arguments;
use countersign_canon::Digest;
use countersign_engine::ApprovalId;

use super::Session;
use super::pending::{Asked, CallState};
use crate::gate::{Again, Call};
use crate::{Id, Method};

/// Requests for approval whose clients were told to come back, or have lost their connection.
#[derive(Default)]
pub(super) struct Unawaited(VecDeque<(Same, Again)>);

/// What makes a call the same one: what stands beside the arguments is among them.
#[derive(PartialEq, Eq)]
struct Same {
    method: Method,
    tool: String,
    definition: Option<Digest>,
    args: Digest,
}

impl Unawaited {
    fn keep(&mut self, call: &Call, again: Again) {
        let Some(same) = Same::of(call) else {
            return;
        };
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back((same, again));
    }

    fn take(&mut self, call: &Call) -> Option<Again> {
        if self.0.is_empty() {
            return None;
        }
        let same = Same::of(call)?;
        let at = self.0.iter().position(|(known, _)| *known == same)?;
        self.0.remove(at).map(|(_, again)| again)
    }

    /// All of them, which nobody comes back for.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = ApprovalId> {
        let all = std::mem::take(&mut self.0);
        all.into_iter().map(|(_, again)| again.approval)
    }

    fn forget(&mut self, approval: ApprovalId) {
        self.0.retain(|(_, again)| again.approval != approval);
    }
}

impl Same {
    fn of(call: &Call) -> Option<Self> {
        let args = Arguments::new(call.args.clone()).ok()?;
        Some(Self {
            method: call.method,
            tool: call.tool.clone(),
            definition: call.definition,
            args: args.digest(),
        })
    }
}

impl Session {
    /// Finds what people were asked about this call when it was made before.
    pub(super) fn made_again(&mut self, call: &mut Call) {
        match call.back {
            Some(approval) => self.unawaited.forget(approval),
            None if call.approval.is_none() && call.again.is_none() => {
                call.again = self.unawaited.take(call);
                call.awaited = self.awaited();
            }
            None => {}
        }
    }

    /// What open calls and tasks wait for.
    fn awaited(&self) -> Vec<ApprovalId> {
        let held = self.asked.iter().filter_map(|(_, asked)| match asked {
            Asked::Call(_, CallState::Held(held)) => Some(held.approval),
            _ => None,
        });
        held.chain(self.tasks.awaited()).collect()
    }

    /// A call that is held no longer waits, and its request stands.
    pub(super) fn stands(&mut self, call: &Call, again: Again, now: Instant) {
        self.unawaited.keep(call, again);
        self.told_to_come_back(now);
    }

    /// The connection of a call that is held is lost, and the client has not said that it no longer wants it: its
    /// request stands until its own time ends. Says whether there was such a call.
    pub(crate) fn connection_lost(&mut self, id: &Id, now: Instant) -> bool {
        let Some(Asked::Call(_, CallState::Held(held))) = self.asked.get_mut(id) else {
            return false;
        };
        // What somebody looks at right now belongs to nobody when it comes back, and is withdrawn.
        let Some(call) = held.call.take() else {
            return false;
        };
        let (approval, refused) = (held.approval, held.refused.clone());
        self.asked.remove(id);
        self.questions.retain(|(_, call)| call != id);
        self.stands(&call, Again { approval, refused }, now);
        true
    }
}

/// As many as are remembered; of older ones the client hears as of new ones.
const MOST: usize = 256;
