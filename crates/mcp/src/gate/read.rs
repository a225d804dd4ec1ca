//! What a client fetches by a method of its own: resources and prompts.
//!
//! Policies judge it like the call of a tool with the name of the method, and what they deny is not
//! asked for. What is fetched is recorded, and taints, when it comes.

use countersign_policy::Decision;

use super::*;

impl Gate {
    pub(super) fn read(&self, read: Box<Read>) -> Done {
        if read.cancelled.load(Ordering::Acquire) {
            return Done::Dropped(read.id);
        }
        let encode = |args: &Json| args.to_sorted_ascii();
        let proposal = || Proposal {
            scope: &self.scope,
            call_id: format!("read:{}", read.id),
            tool_name: read.method.to_string(),
            server: Some(self.server.clone()),
            definition: None,
            origin: &self.origin,
            preconditions: Vec::new(),
            args: read.args.clone(),
            sanitizer_key: None,
            bytes: read.frame.bytes(),
            encode: &encode,
        };
        let verdict = match self.engine.preview(&proposal()) {
            Ok(preview) => preview.judgement.verdict,
            Err(refusal) => return Done::NotRead(read.id, refused(&refusal)),
        };
        match verdict.decision() {
            Decision::Allow | Decision::Warn => Done::MayRead(read),
            // Nothing else is known against it than that nobody has said that it only reads; but that
            // is what the method does.
            Decision::Escalate if verdict.reason() == Some(UNKNOWN) => Done::MayRead(read),
            _ => {
                let refused = self.deny_read(proposal());
                Done::NotRead(read.id, refused)
            }
        }
    }

    /// Proposes what was denied, so that the log tells of it. What cannot wait for a human, or be
    /// changed, is refused.
    fn deny_read(&self, proposal: Proposal<'_>) -> Refused {
        match self.engine.start(proposal) {
            Start::Refusal(refusal) => refused(&refusal),
            Start::Hold(held) => {
                if let Some(approval) = hold::asked(&held) {
                    let _ = self.engine.cancel(approval);
                }
                Refused {
                    approval: None,
                    ..Refused::denied(UNFIT, UNFIT_TEXT)
                }
            }
            Start::Permit(permit) => {
                self.abandon(permit);
                Refused::denied(UNFIT, UNFIT_TEXT)
            }
            Start::Running(running) => {
                // FAIL-CLOSED: the policies have changed meanwhile; the next request is judged by them.
                let outcome = Outcome::Failed {
                    code: "not_read".to_owned(),
                    message: "nothing was fetched".to_owned(),
                };
                let _ = self.engine.settle_soon(running, outcome);
                Refused::denied(UNFIT, UNFIT_TEXT)
            }
        }
    }
}

const UNKNOWN: &str = "SIDE_EFFECT_UNKNOWN";
const UNFIT: &str = "READ_REFUSED";
const UNFIT_TEXT: &str = "refused: policies want a human or a change for this, which nothing that is read can have; ask the operator";
