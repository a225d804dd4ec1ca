//! Who calls, as far as it is known and proven.

use countersign_event::{Scope, SessionId, TenantId};
use countersign_store::TokenRow;

use crate::problem::{Kind, Problem};
use crate::{Permission, Role};

/// Somebody who has shown who they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The id of the token, or what stands for it.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The only tenant that it reaches.
    pub tenant: Option<TenantId>,
    /// The only session that it reaches.
    pub session: Option<SessionId>,
    /// The token that a page must send along, when a browser's cookie says who calls.
    pub(crate) csrf: Option<String>,
}

impl Caller {
    pub(crate) fn of(token: &TokenRow) -> Option<Self> {
        Some(Self {
            id: format!("tok_{}", token.id),
            name: token.name.clone(),
            role: token.role.parse().ok()?,
            tenant: token.tenant.clone(),
            session: token.session.clone(),
            csrf: None,
        })
    }

    /// Who runs this, on their own machine, and has switched authentication off.
    pub(crate) fn nobody() -> Self {
        Self {
            id: "local".to_owned(),
            name: "local".to_owned(),
            role: Role::Operator,
            tenant: None,
            session: None,
            csrf: None,
        }
    }

    pub(crate) fn require(&self, permission: Permission) -> Result<(), Problem> {
        match self.role.may(permission) {
            true => Ok(()),
            false => {
                let text = format!("the role `{}` may not `{}`", self.role, permission.as_str());
                Err(Problem::new(Kind::Forbidden, text))
            }
        }
    }

    /// The tenant that is meant: the caller's own if none is named.
    pub(crate) fn tenant(&self, named: Option<&str>) -> Result<TenantId, Problem> {
        let named = named.map(TenantId::new).transpose()?;
        match (named, &self.tenant) {
            (None, None) => Ok(TenantId::new(DEFAULT_TENANT)?),
            (None, Some(own)) => Ok(own.clone()),
            (Some(named), None) => Ok(named),
            (Some(named), Some(own)) if named == *own => Ok(named),
            (Some(_), Some(_)) => Err(Problem::new(
                Kind::Forbidden,
                "the token is for another tenant",
            )),
        }
    }

    /// The session that is meant.
    pub(crate) fn scope(&self, tenant: Option<&str>, session: &str) -> Result<Scope, Problem> {
        let scope = Scope {
            tenant: self.tenant(tenant)?,
            session: SessionId::new(session)?,
        };
        match &self.session {
            Some(only) if *only != scope.session => Err(Problem::new(
                Kind::Forbidden,
                "the token is for another session",
            )),
            _ => Ok(scope),
        }
    }
}

const DEFAULT_TENANT: &str = "default";
