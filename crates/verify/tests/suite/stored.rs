//! Log databases, made by hand from the documented tables.

use std::path::PathBuf;

use countersign_canon::{Json, Limits};
use countersign_event::{Opening, Salt, Scope};
use countersign_verify::database::verify_database;
use countersign_verify::{Expectation, Opener, Openings, Report, Selection};
use rusqlite::{Connection, params};
use tempfile::TempDir;

use crate::log::{Event, Hidden, Session, interleaved, key};
use crate::random::Random;

const SCHEMA: &str = include_str!("../../../store/src/schema/0001_log.sql");

/// A database file in a folder of its own.
pub(crate) struct Stored {
    folder: TempDir,
}

impl Stored {
    pub(crate) fn empty() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// The events in the given order, each with the number of its session.
    pub(crate) fn of(sessions: &[Session], events: &[(usize, Event)]) -> Self {
        let stored = Self::empty();
        let db = stored.open();
        // Small pages give a small file the many parts that a large one has.
        db.execute_batch("PRAGMA page_size = 1024").unwrap();
        db.execute_batch(SCHEMA).unwrap();
        db.execute_batch("PRAGMA user_version = 1; BEGIN").unwrap();
        for session in sessions {
            let ids = (
                session.scope.tenant.as_str(),
                session.scope.session.as_str(),
            );
            db.execute(
                "INSERT INTO sessions (tenant_id, session_id) VALUES (?1, ?2)",
                ids,
            )
            .unwrap();
            let row = db.last_insert_rowid();
            db.execute(
                "INSERT INTO session_keys (session, master, wrapped) VALUES (?1, 'mk', x'00')",
                [row],
            )
            .unwrap();
        }
        let mut seqs = vec![0; sessions.len()];
        for (owner, event) in events {
            let line = std::str::from_utf8(&event.line).unwrap();
            let row = params![*owner as i64 + 1, seqs[*owner], line, event.ciphertext];
            db.execute(
                "INSERT INTO events (session, seq, line, sealed) VALUES (?1, ?2, ?3, ?4)",
                row,
            )
            .unwrap();
            seqs[*owner] += 1;
        }
        db.execute_batch("COMMIT").unwrap();
        stored
    }

    /// One session after the other.
    pub(crate) fn in_turn(sessions: &[Session]) -> Self {
        let events = sessions.iter().enumerate().flat_map(|(owner, session)| {
            session
                .events
                .iter()
                .map(move |event| (owner, event.clone()))
        });
        Self::of(sessions, &events.collect::<Vec<_>>())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("log.db")
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).unwrap()
    }

    pub(crate) fn replace(&self, bytes: &[u8]) {
        std::fs::write(self.path(), bytes).unwrap();
    }

    /// A connection of somebody who may do everything.
    pub(crate) fn open(&self) -> Connection {
        let db = Connection::open(self.path()).unwrap();
        db.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
            .unwrap();
        db
    }

    /// Runs statements, once the triggers that forbid them are out of the way.
    pub(crate) fn tamper(&self, sql: &str) {
        let db = self.open();
        drop_triggers(&db);
        db.execute_batch(sql).unwrap();
    }

    pub(crate) fn verify(&self) -> Report {
        self.verify_with(&Selection::default(), &Expectation::default(), None)
    }

    pub(crate) fn verify_opened(&self, opener: &dyn Opener) -> Report {
        self.verify_with(&Selection::default(), &Expectation::default(), Some(opener))
    }

    pub(crate) fn verify_with(
        &self,
        selection: &Selection,
        expectation: &Expectation,
        opener: Option<&dyn Opener>,
    ) -> Report {
        verify_database(&self.path(), selection, expectation, opener, &mut |_| {})
    }
}

pub(crate) fn drop_triggers(db: &Connection) {
    let triggers: Vec<String> = db
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for trigger in triggers {
        db.execute_batch(&format!("DROP TRIGGER {trigger}"))
            .unwrap();
    }
}

impl Hidden {
    pub(crate) fn open(ciphertext: &[u8], scope: &Scope) -> Result<Openings, String> {
        let text = ciphertext
            .strip_prefix(&key(scope).as_bytes()[..8])
            .ok_or("another session")?;
        let text: Vec<u8> = text.iter().map(|byte| byte ^ 0x5a).collect();
        let members = Json::admit(&text, &Limits::event()).map_err(|error| error.to_string())?;
        let members = members.into_object().ok_or("not an object")?;
        let opening = |opening: Json| {
            let [salt, value] = <[Json; 2]>::try_from(opening.into_array()?).ok()?;
            let salt = salt
                .into_array()?
                .iter()
                .map(|byte| u8::try_from(byte.as_u64()?).ok())
                .collect::<Option<Vec<_>>>()?;
            Some(Opening {
                salt: Salt::from_bytes(salt.try_into().ok()?),
                value,
            })
        };
        let openings = members
            .into_iter()
            .map(|(place, hidden)| Some((place, opening(hidden)?)));
        openings
            .collect::<Option<_>>()
            .ok_or_else(|| "not an opening".to_owned())
    }
}

impl Opener for Hidden {
    fn open(&self, ciphertext: &[u8], scope: &Scope) -> Result<Option<Openings>, String> {
        Hidden::open(ciphertext, scope).map(Some)
    }
}

/// Three sessions, some sixty events.
pub(crate) fn log() -> (Vec<Session>, Vec<(usize, Event)>) {
    let mut random = Random::seeded(9);
    let sessions: Vec<_> = (1..4)
        .map(|number| Session::lived(&format!("t{number}"), &format!("s{number}"), &mut random, 5))
        .collect();
    let events = interleaved(&sessions, &mut random);
    assert!((40..70).contains(&events.len()));
    (sessions, events)
}
