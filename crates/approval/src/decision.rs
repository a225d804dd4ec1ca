//! What a person decides: one verdict for each call, with a reason where it is no.

use countersign_canon::{Hash, Json};

use crate::form::{Fields, FormError, wrong};
use crate::id::ToolCallId;

/// The verdict on one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallDecision {
    /// Which call.
    pub call: ToolCallId,
    /// Yes or no.
    pub decision: Decision,
}

/// Yes or no.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// It may run.
    Approved,
    /// It may not run. The agent is told the reason, word for word.
    Denied(Option<Reason>),
}

/// Why a call was denied: 1 to 4096 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(String);

impl Reason {
    /// A reason, unchanged.
    pub fn new(text: impl Into<String>) -> Result<Self, ReasonError> {
        let text = text.into();
        match text.chars().take(MAX_REASON + 1).count() {
            1..=MAX_REASON => Ok(Self(text)),
            _ => Err(ReasonError),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What a signature covers.
    pub fn hash(&self) -> Hash {
        Hash::of(self.0.as_bytes())
    }
}

/// The reason is empty or too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a reason has 1 to {MAX_REASON} characters")]
pub struct ReasonError;

impl Decision {
    /// The word for it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Approved => APPROVED,
            Self::Denied(_) => DENIED,
        }
    }

    /// Whether the call may run.
    pub const fn is_approved(&self) -> bool {
        matches!(self, Self::Approved)
    }

    /// Why it may not, if a reason was given.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Approved => None,
            Self::Denied(reason) => reason.as_ref(),
        }
    }
}

impl CallDecision {
    /// As it stands in a submission and in the audit.
    pub(crate) fn to_json(&self) -> Json {
        let reason = self.decision.reason().map(Reason::as_str);
        self.with("reason", Json::from(reason))
    }

    /// As a signature covers it.
    pub(crate) fn to_signed_json(&self) -> Json {
        let reason = self
            .decision
            .reason()
            .map(|reason| reason.hash().to_string());
        self.with("reason_hash", Json::from(reason))
    }

    fn with(&self, member: &'static str, value: Json) -> Json {
        Json::object([
            ("decision", Json::from(self.decision.as_str())),
            (member, value),
            ("tool_call_id", Json::from(self.call.as_str())),
        ])
    }

    pub(crate) fn read(json: Json) -> Result<Self, FormError> {
        let mut fields = Fields::of("decisions", json)?;
        let word = fields.text("decision")?;
        let reason = fields.nullable_text("reason")?;
        let reason = reason.map(Reason::new).transpose();
        let reason = reason.map_err(|error| FormError::refused("reason", error))?;
        let decision = match (word.as_str(), reason) {
            (APPROVED, None) => Decision::Approved,
            (APPROVED, Some(_)) => return Err(wrong("reason", "null for an approved call")),
            (DENIED, reason) => Decision::Denied(reason),
            _ => return Err(wrong("decision", "`approved` or `denied`")),
        };
        let call = fields.parsed("tool_call_id")?;
        fields.end()?;
        Ok(Self { call, decision })
    }
}

const APPROVED: &str = "approved";
const DENIED: &str = "denied";
const MAX_REASON: usize = 4096;
