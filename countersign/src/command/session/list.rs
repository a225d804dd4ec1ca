//! `countersign session list`

use clap::Args;
use countersign_canon::Json;
use countersign_event::TenantId;

use super::{state, summary};
use crate::cli::DataFolder;
use crate::clock;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, Table, short};

#[derive(Args)]
#[command(after_help = "\
Examples:
  countersign session list
  countersign session list --tenant acme --format json")]
pub(crate) struct List {
    #[command(flatten)]
    data: DataFolder,
    /// Only sessions of this tenant
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
}

impl List {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let tenant = self.tenant.map(TenantId::new).transpose()?;
        let sessions = self.data.reader()?.sessions(tenant.as_ref())?;
        match format {
            Format::Text if sessions.is_empty() => output::text("there are no sessions")?,
            Format::Text => {
                let mut table =
                    Table::new(&["TENANT", "SESSION", "EVENTS", "STATE", "LAST EVENT", "HEAD"]);
                for session in &sessions {
                    table.row([
                        session.scope.tenant.as_str().to_owned(),
                        session.scope.session.as_str().to_owned(),
                        session.events.to_string(),
                        state(session).to_owned(),
                        clock::text(session.last_unix_ms),
                        short(&session.head),
                    ]);
                }
                output::text(&table.text())?;
            }
            Format::Json => {
                let sessions = sessions
                    .iter()
                    .map(|session| Json::object(summary(session)));
                output::json(&Json::object([(
                    "sessions",
                    Json::Array(sessions.collect()),
                )]))?;
            }
        }
        Ok(Exit::Done)
    }
}
