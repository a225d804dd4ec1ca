//! `countersign token create`

use clap::Args;
use countersign_api::{NewToken, Role};
use countersign_canon::Json;
use countersign_event::{SessionId, TenantId};

use crate::cli::DataFolder;
use crate::clock;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{Format, surely};

#[derive(Args)]
#[command(after_help = "\
Roles:
  agent     proposes actions and records what happened; sees its own sessions only
  approver  sees what is held and hands in signed decisions
  auditor   reads sessions, approvals and policies
  operator  everything, tokens and policies included

An agent can never approve. Agents and approvers need a tenant.

Examples:
  countersign token create --role agent --tenant acme --name crawler --expires 30d
  countersign token create --role auditor --name audit-2026")]
pub(crate) struct Create {
    /// What it is for
    #[arg(long, value_name = "agent|approver|auditor|operator")]
    role: String,
    /// What people call it
    #[arg(long, value_name = "NAME")]
    name: String,
    /// The only tenant that it reaches
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// The only session that it reaches
    #[arg(long, value_name = "SESSION", requires = "tenant")]
    session: Option<String>,
    /// When it ends by itself: 90s, 30m, 2h or 7d from now [default: never]
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    #[command(flatten)]
    data: DataFolder,
}

impl Create {
    pub(super) fn run(self, format: Format) -> Result<Exit, Failure> {
        let now = clock::now_unix_ms()?;
        let lasts = self
            .expires
            .as_deref()
            .map(clock::parse_duration)
            .transpose()?;
        let lasts = lasts.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let role: Role = self.role.parse().map_err(|error| invalid(&error))?;
        let token = NewToken {
            name: self.name,
            role,
            tenant: self.tenant.map(TenantId::new).transpose()?,
            session: self.session.map(SessionId::new).transpose()?,
            expires_unix_ms: lasts.map(|time| now.saturating_add(time)),
        };
        let (text, row) = token.issue(now).map_err(|error| invalid(&error))?;
        let id = row.id.clone();
        let store = self.data.store()?;
        if !store.add_token(row)? {
            return Err(invalid(&"there are too many tokens"));
        }
        let told = match format {
            Format::Text => surely::text(&text),
            Format::Json => surely::json(&Json::object([
                ("id", Json::from(id.as_str())),
                ("token", Json::from(text)),
                ("role", Json::from(role.as_str())),
            ])),
        };
        if let Err(error) = told {
            // Nobody has it, and nobody will: it is told once.
            store.revoke_token(&id, now)?;
            let text = format!("cannot write the output: {error}; token `{id}` is revoked again");
            return Err(Failure::new(Code::Output, text));
        }
        Ok(Exit::Done)
    }
}

fn invalid(error: &dyn ToString) -> Failure {
    Failure::new(Code::Token, error.to_string())
}
