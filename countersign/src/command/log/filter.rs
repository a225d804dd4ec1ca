//! Which events: the arguments that listing, tailing and exporting share.

use clap::Args;
use countersign_event::{SessionId, TenantId};
use countersign_store::{Filter, Reader};

use super::append::parse_type;
use crate::clock;
use crate::errors::{Code, Failure};

#[derive(Args)]
pub(crate) struct FilterArgs {
    /// Only events of this tenant
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Only events of this session
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Only events of this type
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Only events about this tool
    #[arg(long = "tool", value_name = "NAME")]
    tool: Option<String>,
    /// Only events from this time on: 2026-11-15T08:00:00Z, or 2h for two hours ago
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only events before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

impl FilterArgs {
    /// Whether all events are of sessions with one name.
    pub(crate) fn is_one_session(&self) -> bool {
        self.session.is_some()
    }

    /// A session that is misspelt has no events either.
    pub(crate) fn check_session(&self, reader: &Reader) -> Result<(), Failure> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let all = Filter {
            tenant: self.tenant.clone().map(TenantId::new).transpose()?,
            session: Some(SessionId::new(session.clone())?),
            ..Filter::default()
        };
        match reader.last(&all, 1)?.is_empty() {
            false => Ok(()),
            true => Err(Failure::new(
                Code::NoSession,
                format!("no session `{session}`"),
            )),
        }
    }

    pub(crate) fn filter(&self) -> Result<Filter, Failure> {
        let moment = |text: &Option<String>| text.as_deref().map(clock::parse_moment).transpose();
        Ok(Filter {
            tenant: self.tenant.clone().map(TenantId::new).transpose()?,
            session: self.session.clone().map(SessionId::new).transpose()?,
            event_type: self.event_type.as_deref().map(parse_type).transpose()?,
            tool_name: self.tool.clone(),
            since_unix_ms: moment(&self.since)?,
            until_unix_ms: moment(&self.until)?,
        })
    }
}
