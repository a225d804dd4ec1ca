//! What the log keeps of what somebody accepts.

use countersign_canon::Json;
use countersign_event::payload::{MemoryWrite, Termination};
use countersign_event::{EventType, Payload, Scope};
use countersign_store::Draft;

use crate::cli::DataFolder;
use crate::clock;
use crate::errors::{Code, Failure};
use crate::person;

/// Records what is about to be accepted, in a session of its own, with the account of whoever does it.
///
/// FAIL-CLOSED: to be called before the book is written. What is not in the log is not accepted.
pub(super) fn accepted<const N: usize>(
    data: &DataFolder,
    what: &str,
    server: &str,
    about: [(&str, Json); N],
) -> Result<(), Failure> {
    let (uid, user) = person::account();
    let by = [
        ("uid", Json::from(u64::from(uid))),
        ("user", Json::from(user)),
    ];
    let content = Json::object(about.into_iter().chain(by));
    let written = MemoryWrite {
        memory_key: Some(what.to_owned()),
        memory_store: Some(server.to_owned()),
        content: Some(content),
        ..MemoryWrite::default()
    };
    let ended = Termination {
        reason_code: Some("accepted".to_owned()),
        ..Termination::default()
    };
    let store = data.store()?;
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
