//! `countersign token list`

use clap::Args;
use countersign_canon::Json;
use countersign_event::{SessionId, TenantId};
use countersign_store::TokenRow;

use crate::cli::DataFolder;
use crate::clock;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, Table};

#[derive(Args)]
#[command(after_help = "\
Examples:
  countersign token list
  countersign token list --format json")]
pub(crate) struct List {
    #[command(flatten)]
    data: DataFolder,
}

impl List {
    pub(super) fn run(self, format: Format) -> Result<Exit, Failure> {
        let tokens = self.data.reader()?.tokens()?;
        let now = clock::now_unix_ms()?;
        match format {
            Format::Json => {
                let tokens = tokens.iter().map(|token| json(token, now));
                output::json(&Json::Array(tokens.collect()))?;
            }
            Format::Text if tokens.is_empty() => output::text("no tokens")?,
            Format::Text => {
                let mut table = Table::new(&["ID", "ROLE", "TENANT", "STATE", "MADE", "NAME"]);
                for token in &tokens {
                    let tenant = token.tenant.as_ref().map_or("all", TenantId::as_str);
                    table.row([
                        token.id.clone(),
                        token.role.clone(),
                        tenant.to_owned(),
                        state(token, now).to_owned(),
                        clock::text(token.created_unix_ms),
                        token.name.clone(),
                    ]);
                }
                output::text(&table.text())?;
            }
        }
        Ok(Exit::Done)
    }
}

fn state(token: &TokenRow, now: u64) -> &'static str {
    match (token.revoked_unix_ms, token.expires_unix_ms) {
        (Some(_), _) => "REVOKED ✗",
        (None, Some(end)) if end <= now => "EXPIRED ⌛",
        (None, _) => "VALID ✓",
    }
}

fn json(token: &TokenRow, now: u64) -> Json {
    let state = state(token, now).split(' ').next().unwrap_or_default();
    Json::object([
        ("id", Json::from(token.id.as_str())),
        ("name", Json::from(token.name.as_str())),
        ("role", Json::from(token.role.as_str())),
        (
            "tenant_id",
            Json::from(token.tenant.as_ref().map(TenantId::as_str)),
        ),
        (
            "session_id",
            Json::from(token.session.as_ref().map(SessionId::as_str)),
        ),
        ("state", Json::from(state.to_ascii_lowercase())),
        ("created_unix_ms", Json::from(token.created_unix_ms)),
        ("expires_unix_ms", Json::from(token.expires_unix_ms)),
        ("revoked_unix_ms", Json::from(token.revoked_unix_ms)),
    ])
}
