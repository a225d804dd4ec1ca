//! What the tests of the store share.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod children;
pub(crate) mod random;
pub(crate) mod shim;

use std::path::PathBuf;

use countersign_canon::{Json, Limits};
use countersign_event::{EventType, Head, Line, Payload, Scope};
use countersign_store::{Draft, Error, Filter, Folder, Options, Reader, Recorded, Store, Stored};
use countersign_verify::database::verify_database;
use countersign_verify::{Expectation, Opener, Openings, Report, Selection};
use tempfile::TempDir;

/// A folder that is not there yet, inside one that goes away with the test.
pub(crate) fn new_folder() -> (TempDir, Folder) {
    let parent = tempfile::tempdir().unwrap();
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
    let payload = Json::object([("memory_key", Json::from("k")), ("content", Json::from(text))]);
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
    payload.get("content").and_then(Json::as_str).unwrap().to_owned()
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
    events(scope, reader).iter().map(|event| content(event, reader)).collect()
}

pub(crate) fn seq(event: &Stored) -> u64 {
    Line::read(&event.line).unwrap().seq
}

/// What the offline verifier says, sealed content included.
pub(crate) fn verify(folder: &Folder) -> Report {
    let keys = StoredKeys(Reader::open(folder).unwrap());
    verify_with(folder, Some(&keys))
}

pub(crate) fn verify_with(folder: &Folder, opener: Option<&dyn Opener>) -> Report {
    let (selection, expectation) = (Selection::default(), Expectation::default());
    verify_database(&folder.database(), &selection, &expectation, opener, &mut |_| {})
}

/// The database must hold together; gives the report for what else it must be.
pub(crate) fn verified(folder: &Folder) -> Report {
    let report = verify(folder);
    assert!(report.is_good(), "{:?}", report.failure);
    report
}

/// Opens sealed content with the keys of the folder.
struct StoredKeys(Reader);

impl Opener for StoredKeys {
    fn open(&self, ciphertext: &[u8], scope: &Scope) -> Result<Option<Openings>, String> {
        match self.0.session_key(scope) {
            Ok(key) => key.open(ciphertext, scope).map(Some).map_err(|error| error.to_string()),
            Err(Error::Erased) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
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
        db.execute_batch(&format!("DROP TRIGGER {trigger}")).unwrap();
    }
    db
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
    assert!(bytes.len() >= 8, "too short to be searched for");
    let holds = |path: &PathBuf| {
        let text = std::fs::read(path).unwrap();
        text.windows(bytes.len()).any(|window| window == bytes)
    };
    files(folder).into_iter().filter(holds).collect()
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
    std::env::var(variable).ok().map_or(default, |text| text.parse().unwrap())
}

pub(crate) const NOW: u64 = 1_767_225_600_000;
