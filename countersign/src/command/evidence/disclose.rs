//! Which sealed values a pack shows.

use std::fmt;
use std::str::FromStr;

use countersign_event::EventType;

/// What is disclosed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Disclose {
    /// Everything that can be opened.
    All,
    /// Envelopes and votes of approvals.
    Approvals,
    /// One place of one type of event.
    Place(EventType, String),
}

impl Disclose {
    pub(super) fn takes(&self, event_type: EventType, place: &str) -> bool {
        match self {
            Self::All => true,
            Self::Approvals => matches!(
                (event_type, place),
                (EventType::ApprovalRequested, "/envelope")
                    | (EventType::ApprovalDecided, "/submission")
            ),
            Self::Place(wanted, at) => *wanted == event_type && at == place,
        }
    }
}

impl fmt::Display for Disclose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Approvals => f.write_str("approvals"),
            Self::Place(event_type, place) => write!(f, "{event_type}{place}"),
        }
    }
}

impl FromStr for Disclose {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "approvals" => Ok(Self::Approvals),
            text => {
                let (event_type, place) = text.split_once('/').ok_or(
                    "expected `all`, `approvals`, or a type and a member: TOOL_RESULT/content",
                )?;
                let event_type = EventType::from_str(event_type).map_err(|e| e.to_string())?;
                Ok(Self::Place(event_type, format!("/{place}")))
            }
        }
    }
}
