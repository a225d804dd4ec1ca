//! What the log keeps of what somebody accepts.

use countersign_canon::{Digest, Json};
use countersign_event::payload::{MemoryWrite, Termination};
use countersign_event::{EventType, Payload, Scope};
use countersign_mcp::tools::Book;
use countersign_store::{Draft, Store};

use crate::books::Turn;
use crate::clock;
use crate::errors::{Code, Failure};
use crate::person;

/// Who accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum By<'a> {
    /// The account that runs this program.
    Account,
    /// Whoever the daemon let in under this name.
    Caller(&'a str),
}

impl By<'_> {
    fn members(self) -> Vec<(&'static str, Json)> {
        match self {
            Self::Account => {
                let (uid, user) = person::account();
                vec![
                    ("uid", Json::from(u64::from(uid))),
                    ("user", Json::from(user)),
                ]
            }
            Self::Caller(id) => vec![("accepted_by", Json::from(id))],
        }
    }
}

/// The definition of a tool, which its book has accepted and nobody else knows of yet.
pub(crate) struct AcceptedTool<'a> {
    pub(crate) tool: &'a str,
    pub(crate) definition: Digest,
    pub(crate) reads: bool,
}

/// Keeps a book that has accepted a tool.
pub(crate) fn keep_tool(
    store: &Store,
    turn: &Turn<'_>,
    book: &Book,
    accepted: &AcceptedTool<'_>,
    by: By<'_>,
) -> Result<(), Failure> {
    let about = vec![
        ("definition", Json::from(accepted.definition.to_string())),
        ("reads", Json::from(accepted.reads)),
        ("tool", Json::from(accepted.tool)),
    ];
    let what = format!("mcp/accepted/{}", accepted.tool);
    keep(store, turn, book, what, about, by)
}

/// Keeps a book that has accepted another command of its server.
pub(crate) fn keep_command(
    store: &Store,
    turn: &Turn<'_>,
    book: &Book,
    command: Digest,
    by: By<'_>,
) -> Result<(), Failure> {
    let about = vec![("command", Json::from(command.to_string()))];
    let what = "mcp/accepted-command".to_owned();
    keep(store, turn, book, what, about, by)
}

/// FAIL-CLOSED: what is not in the log is not accepted.
fn keep(
    store: &Store,
    turn: &Turn<'_>,
    book: &Book,
    what: String,
    about: Vec<(&'static str, Json)>,
    by: By<'_>,
) -> Result<(), Failure> {
    record(store, what, book.server(), about, by)?;
    turn.write(book)
}

/// A session of its own, which has ended.
fn record(
    store: &Store,
    what: String,
    server: &str,
    about: Vec<(&'static str, Json)>,
    by: By<'_>,
) -> Result<(), Failure> {
    let content = Json::object(about.into_iter().chain(by.members()));
    let written = MemoryWrite {
        memory_key: Some(what),
        memory_store: Some(server.to_owned()),
        content: Some(content),
        ..MemoryWrite::default()
    };
    let ended = Termination {
        reason_code: Some("accepted".to_owned()),
        ..Termination::default()
    };
    let scope = Scope::new("default", format!("ses_{}", random()?))?;
    for (event_type, payload) in [
        (EventType::MemoryWrite, Payload::MemoryWrite(written)),
        (EventType::Termination, Payload::Termination(ended)),
    ] {
        let _durable = store.record(Draft {
            scope: scope.clone(),
            ts_unix_ms: clock::now_unix_ms()?,
            event_type,
            payload,
        })?;
    }
    Ok(())
}

fn random() -> Result<String, Failure> {
    let mut bytes = [0; 12];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(Code::Folder, format!("there is no randomness: {error}")))?;
    Ok(base16ct::lower::encode_string(&bytes))
}
