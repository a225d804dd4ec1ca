//! What programs are told of an action that does not run. People are told on standard error.

use countersign_approval::ApprovalId;
use countersign_canon::Json;

use crate::errors::Failure;
use crate::output::{self, Format};

/// Why nothing runs. What is not known is `null`.
#[derive(Default)]
pub(super) struct NotRun<'a> {
    /// `held`, `denied` or `expired`.
    pub(super) state: &'static str,
    /// The request for approval, if there is one.
    pub(super) approval: Option<ApprovalId>,
    /// The code of its plan, while somebody may decide.
    pub(super) short_code: Option<String>,
    /// Why, as policies or people said.
    pub(super) reason: Option<&'a str>,
    /// What else there is to say about it.
    pub(super) message: Option<String>,
}

impl NotRun<'_> {
    /// Prints it as one object, for programs.
    pub(super) fn tell(self, format: Format) -> Result<(), Failure> {
        if format == Format::Text {
            return Ok(());
        }
        let approval = self.approval.map(|id| id.to_string());
        output::json(&Json::object([
            ("approval_id", Json::from(approval)),
            ("message", Json::from(self.message)),
            ("reason", Json::from(self.reason)),
            ("short_code", Json::from(self.short_code)),
            ("state", Json::from(self.state)),
        ]))?;
        Ok(())
    }
}
