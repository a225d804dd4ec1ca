//! `countersign session show`

use clap::Args;
use countersign_canon::{Json, Object};

use super::{erased_text, state, summary};
use crate::cli::{DataFolder, Tenant};
use crate::clock;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, inline};

#[derive(Args)]
#[command(after_help = "\
Examples:
  countersign session show s1
  countersign session show s1 --format json")]
pub(crate) struct Show {
    /// The session
    session: String,
    #[command(flatten)]
    tenant: Tenant,
    #[command(flatten)]
    data: DataFolder,
}

impl Show {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let scope = self.tenant.scope(&self.session)?;
        let reader = self.data.reader()?;
        let session = reader.session(&scope)?.ok_or_else(|| {
            Failure::new(Code::NoSession, format!("no session `{}`", self.session))
        })?;
        let counts = reader.counts(&scope)?;
        match format {
            Format::Text => {
                let mut lines = vec![
                    format!("session  {}", inline(scope.session.as_str())),
                    format!("tenant   {}", inline(scope.tenant.as_str())),
                    format!(
                        "state    {}",
                        erased_text(&session).unwrap_or_else(|| state(&session).to_owned())
                    ),
                    format!("events   {}", session.events),
                    format!("head     {}", session.head),
                    format!("first    {}", clock::text(session.first_unix_ms)),
                    format!("last     {}", clock::text(session.last_unix_ms)),
                    String::new(),
                ];
                lines.extend(
                    counts
                        .iter()
                        .map(|(kind, count)| format!("{count:>6}  {kind}")),
                );
                output::text(&lines.join("\n"))?;
            }
            Format::Json => {
                let mut json = Json::object(summary(&session));
                let by_type = counts
                    .iter()
                    .map(|(kind, count)| (kind.to_string(), Json::from(*count)));
                if let Some(members) = json.as_object_mut() {
                    members.insert(
                        "by_type".to_owned(),
                        Json::Object(by_type.collect::<Object>()),
                    );
                }
                output::json(&json)?;
            }
        }
        Ok(Exit::Done)
    }
}
