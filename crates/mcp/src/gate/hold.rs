//! Calls that wait for a human.

use countersign_engine::Hold;

use crate::reply::{HELD, Refused};

/// The answer to a call that is held: nothing of it runs, and the token names the decision that a
/// human has to take.
pub(super) fn refused(hold: &Hold) -> Refused {
    let reason = hold.verdict.reason().unwrap_or("APPROVAL_REQUIRED");
    let event = hold.decision.hash();
    Refused {
        code: HELD,
        reason: reason.to_owned(),
        message: format!(
            "held ({reason}): a human has to approve this call; tell the operator and wait, do not work around it"
        ),
        event: Some(event),
        approval: Some(event.to_string()),
    }
}
