//! `countersign session erase`

use std::io::{self, BufRead as _, IsTerminal as _};

use clap::Args;
use countersign_canon::Json;
use countersign_engine::reserved;
use countersign_event::Scope;
use countersign_store::{Filter, Reader};

use crate::cli::{DataFolder, Tenant};
use crate::clock;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, inline};

#[derive(Args)]
#[command(after_help = "\
Erasing destroys the key of the session, so that arguments, results and texts can never be read
again. Events, hashes and public members stay, and `countersign verify` still passes. It cannot be
undone. Backups that were made before still hold the key. What Countersign itself records, such as
changes of the list of approvers, is never erased.

Nothing is ever erased by itself; --older-than is for a retention job of your own.

Examples:
  countersign session erase s1 --yes
  countersign session erase --older-than 90d --dry-run")]
pub(crate) struct Erase {
    /// The session
    #[arg(required_unless_present = "older_than", conflicts_with = "older_than")]
    session: Option<String>,
    #[command(flatten)]
    tenant: Tenant,
    /// Every session of the tenant whose last event is older, as in 90d
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,
    /// Say what would be erased and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    data: DataFolder,
}

impl Erase {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let sessions = self.selected(&self.data.reader()?)?;
        if !self.dry_run && !sessions.is_empty() {
            self.confirm(&sessions)?;
            self.erase(&sessions)?;
        }
        let names: Vec<&str> = sessions
            .iter()
            .map(|scope| scope.session.as_str())
            .collect();
        match format {
            Format::Text => {
                let verb = if self.dry_run {
                    "would erase"
                } else {
                    "erased"
                };
                let lines: Vec<String> = names
                    .iter()
                    .map(|name| format!("{verb} {}", inline(name)))
                    .collect();
                let text = if lines.is_empty() {
                    "nothing to erase".to_owned()
                } else {
                    lines.join("\n")
                };
                output::text(&text)?;
            }
            Format::Json => {
                let names = names.into_iter().map(Json::from).collect();
                let member = if self.dry_run {
                    "would_erase"
                } else {
                    "erased"
                };
                output::json(&Json::object([(member, Json::Array(names))]))?;
            }
        }
        Ok(Exit::Done)
    }

    fn selected(&self, reader: &Reader) -> Result<Vec<Scope>, Failure> {
        let Some(name) = &self.session else {
            let age = self.older_than.as_deref().unwrap_or_default();
            let limit = clock::parse_moment(age)?;
            let mut old = Vec::new();
            for session in reader.sessions(Some(&self.tenant.id()?))? {
                if session.erased_unix_ms.is_none()
                    && !reserved::is_reserved(&session.scope)
                    && is_quiet_since(limit, &session.scope, reader)?
                {
                    old.push(session.scope);
                }
            }
            return Ok(old);
        };
        let scope = self.tenant.open_scope(name)?;
        match reader.session(&scope)? {
            Some(_) => Ok(vec![scope]),
            None => Err(Failure::new(
                Code::NoSession,
                format!("no session `{name}`"),
            )),
        }
    }

    fn confirm(&self, sessions: &[Scope]) -> Result<(), Failure> {
        let refused = || Failure::new(Code::Confirm, "erasing was not confirmed");
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            return Err(refused());
        }
        output::stderr(&format!(
            "This destroys the content of {} session(s) for good. Type `erase` to go on:",
            sessions.len()
        ));
        let mut answer = String::new();
        io::stdin()
            .lock()
            .read_line(&mut answer)
            .map_err(|_| refused())?;
        if answer.trim() == "erase" {
            Ok(())
        } else {
            Err(refused())
        }
    }

    fn erase(&self, sessions: &[Scope]) -> Result<(), Failure> {
        let store = self.data.store()?;
        for scope in sessions {
            let erasure = store.erase(scope, clock::now_unix_ms()?)?;
            if !erasure.complete {
                output::stderr(
                    "warning: another process is reading the log, so a copy of the encrypted key \
                     stays in log.db-wal until it has finished; erase any other session or restart \
                     that process to clear it",
                );
            }
        }
        Ok(())
    }
}

/// Whether no event is newer. Every event counts, because clocks go back at times.
fn is_quiet_since(limit: u64, scope: &Scope, reader: &Reader) -> Result<bool, Failure> {
    let newer = Filter {
        since_unix_ms: Some(limit),
        ..Filter::session(scope)
    };
    Ok(reader.last(&newer, 1)?.is_empty())
}
