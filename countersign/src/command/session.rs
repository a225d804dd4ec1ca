//! `countersign session`

use clap::Subcommand;
use countersign_canon::Json;
use countersign_store::SessionSummary;

use crate::clock;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Format;

mod erase;
mod list;
mod show;

/// Sessions.
#[derive(Subcommand)]
pub(crate) enum Session {
    /// List the sessions
    List(list::List),
    /// Show one session: its head, its events by type, its state
    Show(show::Show),
    /// Destroy the sealed content of a session; its chain stays verifiable
    Erase(erase::Erase),
}

impl Session {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::List(list) => list.run(format),
            Self::Show(show) => show.run(format),
            Self::Erase(erase) => erase.run(format),
        }
    }
}

fn state(session: &SessionSummary) -> &'static str {
    match (session.erased_unix_ms, session.terminated) {
        (Some(_), _) => "erased",
        (None, true) => "ended",
        (None, false) => "open",
    }
}

fn summary(session: &SessionSummary) -> Vec<(&'static str, Json)> {
    vec![
        ("tenant_id", Json::from(session.scope.tenant.as_str())),
        ("session_id", Json::from(session.scope.session.as_str())),
        ("events", Json::from(session.events)),
        ("head", Json::from(session.head.to_string())),
        ("first_unix_ms", Json::from(session.first_unix_ms)),
        ("last_unix_ms", Json::from(session.last_unix_ms)),
        ("state", Json::from(state(session))),
        (
            "erased_unix_ms",
            session.erased_unix_ms.map_or(Json::Null, Json::from),
        ),
    ]
}

fn erased_text(session: &SessionSummary) -> Option<String> {
    session
        .erased_unix_ms
        .map(|ms| format!("erased at {}", clock::text(ms)))
}
