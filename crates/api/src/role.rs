//! Who may do what: one table, and nothing else that knows of roles.

use std::fmt;
use std::str::FromStr;

/// What somebody is here for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A program that acts for an agent: it asks, and tells what came of it.
    Agent,
    /// A person who decides what is held.
    Approver,
    /// A person or program that looks and checks.
    Auditor,
    /// Whoever runs this.
    Operator,
}

/// What a route lets its caller do. Each route has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Ask whether anybody is here. Needs no token.
    Knock,
    /// Come in with a code that works once. Needs no token, but the code.
    Enter,
    /// Ask who one is, read the description of the API, ask what would be decided.
    Look,
    /// Propose actions, and record what happened in sessions of one's own.
    Propose,
    /// Read sessions and their events; agents see their own only.
    ReadSessions,
    /// Read the transparency log: hashes of events, checkpoints and proofs, and nothing of what they say.
    ReadLog,
    /// Read what is held, and the leases.
    ReadApprovals,
    /// Hand in signed decisions, grant leases and take them back.
    Decide,
    /// Read the policies in force.
    ReadPolicy,
    /// Put other policies in force.
    ChangePolicy,
    /// Read the numbers that Prometheus collects.
    ReadMetrics,
    /// See who has tokens, make them and take them back.
    ManageTokens,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Agent, Self::Approver, Self::Auditor, Self::Operator];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Approver => "approver",
            Self::Auditor => "auditor",
            Self::Operator => "operator",
        }
    }

    /// Whether the role may.
    ///
    /// SECURITY: an agent never decides, and never changes what decides about it.
    pub const fn may(self, permission: Permission) -> bool {
        use Permission as P;
        match self {
            Self::Agent => matches!(
                permission,
                P::Knock | P::Enter | P::Look | P::Propose | P::ReadSessions | P::ReadLog
            ),
            Self::Approver => matches!(
                permission,
                P::Knock
                    | P::Enter
                    | P::Look
                    | P::ReadSessions
                    | P::ReadLog
                    | P::ReadApprovals
                    | P::Decide
            ),
            Self::Auditor => matches!(
                permission,
                P::Knock
                    | P::Enter
                    | P::Look
                    | P::ReadSessions
                    | P::ReadLog
                    | P::ReadApprovals
                    | P::ReadPolicy
                    | P::ReadMetrics
            ),
            Self::Operator => true,
        }
    }

    /// Whether a token of this role must name its tenant: only who looks after everything may not.
    pub const fn needs_tenant(self) -> bool {
        matches!(self, Self::Agent | Self::Approver)
    }
}

impl Permission {
    /// Every permission.
    pub const ALL: [Self; 12] = [
        Self::Knock,
        Self::Enter,
        Self::Look,
        Self::Propose,
        Self::ReadSessions,
        Self::ReadLog,
        Self::ReadApprovals,
        Self::Decide,
        Self::ReadPolicy,
        Self::ChangePolicy,
        Self::ReadMetrics,
        Self::ManageTokens,
    ];

    /// Whether it needs no token.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Knock | Self::Enter)
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Knock => "knock",
            Self::Enter => "enter",
            Self::Look => "look",
            Self::Propose => "propose",
            Self::ReadSessions => "read-sessions",
            Self::ReadLog => "read-log",
            Self::ReadApprovals => "read-approvals",
            Self::Decide => "decide",
            Self::ReadPolicy => "read-policy",
            Self::ChangePolicy => "change-policy",
            Self::ReadMetrics => "read-metrics",
            Self::ManageTokens => "manage-tokens",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no role: agent, approver, auditor or operator")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| UnknownRole(text.to_owned()))
    }
}
