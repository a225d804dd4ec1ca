//! What the tests of the store share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use countersign_canon::{Json, Limits};
use countersign_event::{EventType, Head, Line, Payload, Scope};
use countersign_store::{Draft, Error, Filter, Folder, Options, Reader, Recorded, Store, Stored};
use countersign_vault::{SessionKey, joined};
use countersign_verify::database::verify_database;
use countersign_verify::{Expectation, Opener, Openings, Report, Selection};

use crate::replayed::{self, Kept};

/// A folder that is not there yet, inside one that goes away with the test.
pub(crate) fn new_folder() -> (Kept, Folder) {
    let parent = replayed::folder();
    let folder = Folder::new(parent.path().join("data"));
    (parent, folder)
}

pub(crate) fn open(folder: &Folder) -> Store {
    Store::open(folder, Options::default()).unwrap()
}

pub(crate) fn scope(session: &str) -> Scope {
    Scope::new("tenant", session).unwrap()
}

pub(crate) fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

pub(crate) fn draft(scope: &Scope, event_type: EventType, payload: &str) -> Draft {
    Draft {
        scope: scope.clone(),
        ts_unix_ms: NOW,
        event_type,
        payload: Payload::admit(event_type, json(payload)).unwrap(),
    }
}

/// An event that may come at any time, with a text that is sealed.
pub(crate) fn note(scope: &Scope, text: &str) -> Draft {
    let payload = Json::object([
        ("memory_key", Json::from("k")),
        ("content", Json::from(text)),
    ]);
    let event_type = EventType::MemoryWrite;
    Draft {
        scope: scope.clone(),
        ts_unix_ms: NOW,
        event_type,
        payload: Payload::admit(event_type, payload).unwrap(),
    }
}

/// The text of a [`note`].
pub(crate) fn content(event: &Stored, reader: &Reader) -> String {
    let payload = reader.open_payload(event).unwrap();
    payload
        .get("content")
        .and_then(Json::as_str)
        .unwrap()
        .to_owned()
}

pub(crate) fn head(recorded: &Recorded) -> Head {
    Head::after(recorded.seq(), recorded.hash())
}

/// All events of a session, oldest first.
pub(crate) fn events(scope: &Scope, reader: &Reader) -> Vec<Stored> {
    all(&Filter::session(scope), reader)
}

pub(crate) fn all(filter: &Filter, reader: &Reader) -> Vec<Stored> {
    let mut events = Vec::new();
    let visited = reader.each(filter, 0, |event| {
        events.push(event);
        Ok::<_, Error>(())
    });
    visited.unwrap();
    events
}

/// The contents of all notes of a session, oldest first.
pub(crate) fn contents(scope: &Scope, reader: &Reader) -> Vec<String> {
    let keys = SessionKeys::new(reader);
    let events = events(scope, reader);
    events
        .iter()
        .map(|event| keys.note(event).unwrap())
        .collect()
}

/// What the offline verifier says, sealed content included.
pub(crate) fn verify(folder: &Folder) -> Report {
    let reader = Reader::open(folder).unwrap();
    verify_with(folder, Some(&SessionKeys::new(&reader)))
}

pub(crate) fn verify_with(folder: &Folder, opener: Option<&dyn Opener>) -> Report {
    let (selection, expectation) = (Selection::default(), Expectation::default());
    verify_database(
        &folder.database(),
        &selection,
        &expectation,
        opener,
        &mut |_| {},
    )
}

/// The database must hold together; gives the report for what else it must be.
pub(crate) fn verified(folder: &Folder) -> Report {
    let report = verify(folder);
    assert!(report.is_good(), "{:?}", report.failure);
    report
}

/// The session keys of a folder, each looked up once; `None` for those that were erased.
pub(crate) struct SessionKeys<'r> {
    reader: &'r Reader,
    known: Mutex<HashMap<Scope, Option<Arc<SessionKey>>>>,
}

impl<'r> SessionKeys<'r> {
    pub(crate) fn new(reader: &'r Reader) -> Self {
        Self {
            reader,
            known: Mutex::default(),
        }
    }

    /// The text of a [`note`], unless it was erased.
    pub(crate) fn note(&self, event: &Stored) -> Option<String> {
        let line = Line::read(&event.line).unwrap();
        let scope = Scope::new(line.tenant_id.as_ref(), line.session_id.as_ref()).unwrap();
        let openings = self
            .open(event.ciphertext.as_ref().unwrap(), &scope)
            .unwrap()?;
        let payload = joined(line.payload, openings).unwrap();
        Some(
            payload
                .get("content")
                .and_then(Json::as_str)
                .unwrap()
                .to_owned(),
        )
    }

    fn key(&self, scope: &Scope) -> Result<Option<Arc<SessionKey>>, String> {
        if let Some(key) = self.known.lock().unwrap().get(scope) {
            return Ok(key.clone());
        }
        let key = match self.reader.session_key(scope) {
            Ok(key) => Some(Arc::new(key)),
            Err(Error::Erased) => None,
            Err(error) => return Err(error.to_string()),
        };
        self.known
            .lock()
            .unwrap()
            .insert(scope.clone(), key.clone());
        Ok(key)
    }
}

impl Opener for SessionKeys<'_> {
    fn open(&self, ciphertext: &[u8], scope: &Scope) -> Result<Option<Openings>, String> {
        let Some(key) = self.key(scope)? else {
            return Ok(None);
        };
        key.open(ciphertext, scope)
            .map(Some)
            .map_err(|error| error.to_string())
    }
}

/// A connection like that of somebody who has the file and knows SQL; the triggers are gone.
pub(crate) fn intruder(folder: &Folder) -> rusqlite::Connection {
    let db = rusqlite::Connection::open(folder.database()).unwrap();
    db.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    let triggers: Vec<String> = db
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    for trigger in triggers {
        db.execute_batch(&format!("DROP TRIGGER {trigger}"))
            .unwrap();
    }
    db
}

/// The key of a session as it is stored.
pub(crate) fn wrapped_key(scope: &Scope, folder: &Folder) -> Vec<u8> {
    let db = rusqlite::Connection::open(folder.database()).unwrap();
    let sql = "SELECT wrapped FROM session_keys JOIN sessions ON id = session
               WHERE tenant_id = ?1 AND session_id = ?2";
    db.query_row(
        sql,
        (scope.tenant.as_str(), scope.session.as_str()),
        |row| row.get(0),
    )
    .unwrap()
}

/// Every file of the folder, by name.
pub(crate) fn files(folder: &Folder) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The files of the folder that hold these bytes anywhere.
pub(crate) fn files_with(bytes: &[u8], folder: &Folder) -> Vec<PathBuf> {
    files_with_any(&[bytes], folder)
}

/// The files of the folder that hold any part of a key: a piece may be overwritten, and the rest
/// not.
pub(crate) fn files_with_part_of(key: &[u8], folder: &Folder) -> Vec<PathBuf> {
    files_with_any(&key.chunks_exact(10).collect::<Vec<_>>(), folder)
}

fn files_with_any(parts: &[&[u8]], folder: &Folder) -> Vec<PathBuf> {
    assert!(parts.iter().all(|part| part.len() >= 8), "found by chance");
    let holds = |path: &PathBuf| {
        let text = std::fs::read(path).unwrap();
        parts.iter().any(|part| find(part, &text))
    };
    files(folder).into_iter().filter(holds).collect()
}

/// Whether the text holds the part. Looks for its first byte, so that long files take no time.
pub(crate) fn find(part: &[u8], text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(start) = rest.iter().position(|byte| *byte == part[0]) {
        if rest[start..].starts_with(part) {
            return true;
        }
        rest = &rest[start + 1..];
    }
    false
}

/// An error with everything behind it, as a program would print it.
pub(crate) fn whole_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

/// A number from an environment variable, to make a campaign longer.
pub(crate) fn rounds(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .map_or(default, |text| text.parse().unwrap())
}

pub(crate) const NOW: u64 = 1_767_225_600_000;
