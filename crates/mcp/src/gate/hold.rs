//! Calls that wait for a human.

use countersign_engine::Hold;

use crate::reply::{HELD, Refused};

/// The answer to a call that is held: nothing of it runs, and the token names what a human has to
/// decide about.
pub(super) fn refused(hold: &Hold) -> Refused {
    let reason = hold.verdict.reason().unwrap_or("APPROVAL_REQUIRED");
    let (approval, next) = match &hold.approval {
        Ok(envelope) => (
            Some(envelope.id().to_string()),
            "a human has to approve this call; tell the operator and wait, do not work around it",
        ),
        Err(_) => (
            None,
            "a human has to approve this call, and nobody can be asked; tell the operator",
        ),
    };
    Refused {
        code: HELD,
        reason: reason.to_owned(),
        message: format!("held ({reason}): {next}"),
        event: Some(hold.decision.hash()),
        approval,
    }
}
