//! Calls that wait for a human.

use countersign_approval::{Envelope, State};
use countersign_engine::{ApprovalId, Denial, Drifted, Hold, Standing, Unaskable};

use crate::reply::{HELD, Refused};

/// What has become of a request for approval.
pub(super) enum Verdict {
    /// Nobody has decided.
    Waits(Refused),
    /// It may run.
    Approved,
    /// It will not run.
    Over(Refused),
}

/// The request for approval, if there is somebody to ask.
pub(super) fn asked(hold: &Hold) -> Option<ApprovalId> {
    hold.approval.as_ref().ok().map(|envelope| envelope.id())
}

/// The answer to a call that is held: nothing of it runs, and the token names what a human has to
/// decide about.
pub(super) fn refused(hold: &Hold) -> Refused {
    let reason = hold.verdict.reason().unwrap_or("APPROVAL_REQUIRED");
    let message = match &hold.approval {
        Ok(envelope) => waiting(reason, &code_of(envelope)),
        Err(Unaskable::Nobody) => format!(
            "held ({reason}): a human has to approve this call, and nobody is set up who could; tell the operator to \
             run `countersign approver init`, and do not retry before that is done; do not work around it"
        ),
        Err(_) => format!(
            "held ({reason}): a human has to approve this call, and nobody can be asked; tell the \
             operator"
        ),
    };
    Refused {
        code: HELD,
        reason: reason.to_owned(),
        message,
        event: Some(hold.decision.hash()),
        approval: asked(hold).map(|approval| approval.to_string()),
        plan: hold.approval.as_ref().ok().map(|it| plan(it)),
    }
}

/// What a request has come to. An expired one is not a denial: nobody answered.
pub(super) fn verdict(standing: &Standing, denial: &dyn Fn() -> Option<Denial>) -> Verdict {
    let approval = Some(standing.row.id.to_string());
    let over = |reason: &str, message: String| {
        Verdict::Over(Refused {
            approval: approval.clone(),
            ..Refused::denied(reason, message)
        })
    };
    match standing.row.state {
        State::Pending => Verdict::Waits(Refused {
            code: HELD,
            approval: approval.clone(),
            plan: Some(plan(&standing.envelope)),
            ..Refused::denied(
                "APPROVAL_REQUIRED",
                waiting("APPROVAL_REQUIRED", &code_of(&standing.envelope)),
            )
        }),
        State::Approved => Verdict::Approved,
        State::Denied => Verdict::Over(Refused {
            approval: approval.clone(),
            ..denied(denial())
        }),
        State::Expired | State::ExpiredUnused => over(
            "APPROVAL_NOT_ANSWERED",
            "nobody answered in time; ask the operator before you try again".to_owned(),
        ),
        State::Cancelled | State::Superseded => over(
            "APPROVAL_WITHDRAWN",
            "the request was withdrawn; ask the operator".to_owned(),
        ),
        State::Consumed
        | State::NotStarted
        | State::Started
        | State::Executed
        | State::Failed
        | State::Unknown => over(
            "APPROVAL_USED",
            "this approval was used already; ask for a new one".to_owned(),
        ),
    }
}

fn denied(denial: Option<Denial>) -> Refused {
    let event = denial.as_ref().map(|denial| denial.event);
    let says = match denial.and_then(|denial| denial.reason) {
        Some(reason) => format!(", who says: {reason}"),
        None => String::new(),
    };
    Refused {
        event,
        ..Refused::denied(
            "APPROVAL_DENIED",
            format!("denied by a human{says}; do not retry, change the plan or ask"),
        )
    }
}

/// The approval does not let the call run.
pub(super) fn over(refusal: &countersign_approval::Refusal) -> Refused {
    Refused::denied(
        refusal.code(),
        format!("not run: {refusal}; ask the operator, do not retry"),
    )
}

/// The one use was taken before.
pub(super) fn used() -> Refused {
    Refused::denied(
        "APPROVAL_USED",
        "this approval was used already; ask for a new one",
    )
}

/// What would run is not what was approved.
pub(super) fn drifted(Drifted { drift, event, .. }: &Drifted) -> Refused {
    let text = format!(
        "not run: approved were the arguments {}, and these are {}; make the call that was \
         approved, or ask for this one",
        drift.approved_args_digest, drift.observed_args_digest
    );
    Refused {
        event: Some(*event),
        ..Refused::denied("ARGUMENT_DRIFT", text)
    }
}

pub(super) fn gone() -> Refused {
    Refused::denied(
        "APPROVAL_UNKNOWN",
        "there is no such request; ask the operator",
    )
}

/// What people compare and type.
fn code_of(envelope: &Envelope) -> String {
    envelope.plan().hash().short()
}

fn plan(envelope: &Envelope) -> [u8; 4] {
    let [a, b, c, d, ..] = *envelope.plan().hash().to_hash().as_bytes();
    [a, b, c, d]
}

fn waiting(reason: &str, code: &str) -> String {
    format!(
        "held ({reason}): a human has to approve this call (code {code}); tell the operator, wait, and make \
         the same call again when it is approved; do not work around it"
    )
}
