//! Refusals, and the one function that turns an error into one.

use countersign_policy::Verdict;
use countersign_policy::capability::Explanation;
use countersign_store as store;

use crate::ClockError;

/// An action that may not run.
#[derive(Debug)]
#[must_use]
pub struct Refusal {
    reason: String,
    message: String,
    explanation: Option<Box<Explanation>>,
    event: Option<store::Recorded>,
}

/// What can go wrong on the way to a decision.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Clock(#[from] ClockError),
    #[error("the action has no canonical form: {0}")]
    Json(#[from] countersign_canon::Error),
    #[error("the recorded session cannot be read back: {0}")]
    History(String),
    #[error("other processes write this session too fast")]
    Busy,
    #[error("the bytes to forward are not those that were permitted")]
    OtherBytes,
    #[error(transparent)]
    Approval(countersign_approval::Refusal),
    #[error("`{0}` is decided with its tool call")]
    NotHere(countersign_policy::Point),
    #[error("something else was approved than what would be done")]
    ActionMismatch,
    #[error("cannot keep the policies beside the log: {0}")]
    Archive(#[source] std::io::Error),
    #[error("cannot name this process: {0}")]
    Instance(String),
    #[error("cannot look at the state that the tool changes: {0}")]
    State(String),
}

impl Refusal {
    /// A verdict that denies.
    pub(crate) fn denied(
        verdict: &Verdict,
        explanation: Explanation,
        event: store::Recorded,
    ) -> Self {
        Self {
            reason: verdict.reason().unwrap_or("DENIED").to_owned(),
            message: verdict.message().unwrap_or_default().to_owned(),
            explanation: Some(Box::new(explanation)),
            event: Some(event),
        }
    }

    /// The reason code.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// What the operator sees.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What the model sees: what to do next, and of policies and the system no more than which budget of its
    /// session is used up, or that it goes in circles.
    pub fn text_for_model(&self) -> String {
        let reason = &self.reason;
        if self.explanation().is_some_and(Explanation::is_loop) {
            return format!(
                "refused ({reason}): the session has done this before; go on with something else, or ask the \
                 operator to allow it in `loops` of the manifest; do not retry"
            );
        }
        match self.explanation().and_then(Explanation::used_up) {
            Some(budgets) => format!(
                "refused ({reason}): the session has used up its {budgets}; ask the operator to raise it in \
                 `permissions.budgets` of the manifest, or to begin a new session; do not retry"
            ),
            None => format!("refused ({reason}): ask the operator; do not retry"),
        }
    }

    /// Which rule spoke, and why.
    pub fn explanation(&self) -> Option<&Explanation> {
        self.explanation.as_deref()
    }

    /// Whether the refusal is in the log; if not, recording is what failed.
    pub fn is_recorded(&self) -> bool {
        self.event.is_some()
    }

    /// Whether the same may be recorded when it is tried again: what stood in its way may pass.
    pub fn may_pass(&self) -> bool {
        !FINAL.contains(&self.reason.as_str())
    }

    /// The event that records the refusal.
    pub fn event(&self) -> Option<store::Recorded> {
        self.event
    }
}

/// FAIL-CLOSED: whatever goes wrong, the action does not run.
impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        let reason = match &fault {
            Fault::Store(error) => store_reason(error.root()),
            Fault::Clock(_) => "runtime_error:clock",
            Fault::Json(_) => "runtime_error:invalid_action",
            Fault::History(_) => "runtime_error:history",
            Fault::Busy => "runtime_error:conflict",
            Fault::OtherBytes => "runtime_error:bytes_differ",
            Fault::Approval(_) => "runtime_error:approval",
            Fault::NotHere(_) => "runtime_error:intervention_point_unknown",
            Fault::ActionMismatch => "runtime_error:approval_action_mismatch",
            Fault::Archive(_) => "runtime_error:not_recorded",
            Fault::Instance(_) => "runtime_error:instance",
            Fault::State(_) => "runtime_error:state",
        };
        Self {
            reason: reason.to_owned(),
            message: fault.to_string(),
            explanation: None,
            event: None,
        }
    }
}

/// The session is over, or not what it was: no other try mends that.
const FINAL: [&str; 5] = [
    "runtime_error:order",
    "runtime_error:erased",
    "runtime_error:history",
    "runtime_error:approval",
    "runtime_error:approval_action_mismatch",
];

fn store_reason(error: &store::Error) -> &'static str {
    match error {
        store::Error::Order(_) => "runtime_error:order",
        store::Error::Conflict(_) | store::Error::Rotated => "runtime_error:conflict",
        store::Error::Erased => "runtime_error:erased",
        store::Error::Approval(_) => "runtime_error:approval",
        store::Error::Audit(_) => "runtime_error:audit_write_failed",
        store::Error::Damaged { .. } | store::Error::Unreadable(_) => "runtime_error:history",
        store::Error::Full => "runtime_error:disk_full",
        store::Error::ReadOnly(_) => "runtime_error:read_only",
        store::Error::Busy => "runtime_error:busy",
        _ => "runtime_error:not_recorded",
    }
}
