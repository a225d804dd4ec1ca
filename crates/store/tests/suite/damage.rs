//! Histories and files that somebody has edited, or that were never ours.

use std::fs;

use countersign_event::Scope;
use countersign_store::{At, Error, Folder, Options, Pending, Reader, Store};

use crate::gate::gated;
use crate::scene::{self, contents, intruder, new_folder, note, open, scope, verified};

#[test]
fn nothing_is_added_to_a_damaged_history() {
    // Each edit with the event at which it shows. Session `s` has the rows 1 to 4.
    let edits = [
        (
            "UPDATE events SET line = replace(line, '\"k\"', '\"K\"') WHERE id = 1",
            0,
        ),
        (
            "UPDATE events SET line = replace(line, '\"k\"', '\"K\"') WHERE id = 3",
            2,
        ),
        (
            "UPDATE events SET line = replace(line, '\"k\"', '\"K\"') WHERE id = 4",
            3,
        ),
        (
            "UPDATE events SET line = replace(line, ':1767225600000', ':1767225600001') WHERE id = 2",
            1,
        ),
        ("UPDATE events SET line = 'garbage' WHERE id = 2", 1),
        ("UPDATE events SET line = line || ' ' WHERE id = 4", 3),
        (
            "UPDATE events SET line = (SELECT line FROM events WHERE id = 1) WHERE id = 2",
            1,
        ),
        ("DELETE FROM events WHERE id = 1", 0),
        ("DELETE FROM events WHERE id = 2", 1),
        ("UPDATE events SET seq = 9 WHERE id = 4", 3),
    ];
    for (edit, seq) in edits {
        let (_parent, folder) = new_folder();
        prepare_two_sessions(&folder);
        assert!(intruder(&folder).execute(edit, []).unwrap() > 0, "{edit}");

        let store = open(&folder);
        for _ in 0..2 {
            let error = store.record(note(&scope("s"), "more")).unwrap_err();
            let Error::Damaged { seq: found, .. } = error else {
                panic!("{edit}: {error}")
            };
            assert_eq!(found, seq, "{edit}: {error}");
        }
        store.record(note(&scope("other"), "more")).unwrap();
        assert!(!scene::verify(&folder).is_good(), "{edit}");
        let count: i64 = intruder(&folder)
            .query_row("SELECT count(*) FROM events WHERE session = 1", [], |row| {
                row.get(0)
            })
            .unwrap();
        assert!(count <= 4, "{edit}: something was added");
    }
}

/// The events of one session under the name of another: each chain holds by itself.
#[test]
fn a_chain_under_another_name_is_damage() {
    let (_parent, folder) = new_folder();
    prepare_two_sessions(&folder);
    let db = intruder(&folder);
    db.execute_batch(
        "UPDATE sessions SET session_id = 'x' WHERE id = 1;
         UPDATE sessions SET session_id = 's' WHERE id = 2;
         UPDATE sessions SET session_id = 'other' WHERE id = 1;",
    )
    .unwrap();
    // The keys are bound to the names, so they have to be swapped as well to get this far.
    db.execute_batch(
        "UPDATE session_keys SET session = 9 WHERE session = 1;
         UPDATE session_keys SET session = 1 WHERE session = 2;
         UPDATE session_keys SET session = 2 WHERE session = 9;",
    )
    .unwrap();
    let store = open(&folder);
    for session in ["s", "other"] {
        let error = store.record(note(&scope(session), "more")).unwrap_err();
        assert!(matches!(error, Error::Damaged { seq: 0, .. }), "{error}");
    }
    assert_eq!(
        scene::verify(&folder).failure.unwrap().problem.name(),
        "column"
    );
}

/// The store runs while somebody edits the last event; the others in the same transaction are not
/// to suffer.
#[test]
fn damage_in_one_session_does_not_stop_the_others() {
    for edit in [
        "UPDATE events SET line = 'garbage' WHERE id = 9",
        "UPDATE events SET line = replace(line, '\"k\"', '\"K\"') WHERE id = 9",
        "UPDATE events SET seq = 9 WHERE id = 9",
    ] {
        let (_parent, folder) = new_folder();
        prepare_two_sessions(&folder);
        let (store, gate) = gated(&folder, 2, |_| {});
        store.record(note(&scope("s"), "row 9")).unwrap();
        assert_eq!(intruder(&folder).execute(edit, []).unwrap(), 1);

        let append = |session| {
            store
                .append(note(&scope(session), "more"), At::Next)
                .unwrap()
        };
        let first = append("first");
        gate.entered.recv().unwrap();
        // These wait for the transaction of the first one, and then share the next.
        let pending = [append("other"), append("s"), append("new")];
        drop(gate);
        first.wait().unwrap();
        let [other, damaged, new] = pending.map(Pending::wait);
        let error = damaged.unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{edit}: {error}");
        other.unwrap();
        new.unwrap();
        let error = store.record(note(&scope("s"), "more")).unwrap_err();
        assert!(
            matches!(error, Error::Damaged { seq: 4, .. }),
            "{edit}: {error}"
        );
    }
}

#[test]
fn the_tables_are_append_only() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    for session in ["s", "gone"] {
        store.record(note(&scope(session), "x")).unwrap();
    }
    store.erase(&scope("gone"), 1).unwrap();
    let before = rows(&folder);
    let db = rusqlite::Connection::open(folder.database()).unwrap();
    for (sql, text) in [
        ("UPDATE events SET line = '{}'", "events are append-only"),
        (
            "UPDATE events SET sealed = NULL WHERE id = 1",
            "events are append-only",
        ),
        ("DELETE FROM events WHERE id = 1", "events are append-only"),
        (
            "UPDATE sessions SET session_id = 'z' WHERE id = 1",
            "sessions are append-only",
        ),
        ("DELETE FROM sessions", "sessions are append-only"),
        (
            "DELETE FROM session_keys",
            "session keys are erased, not deleted",
        ),
        (
            "UPDATE session_keys SET erased_unix_ms = NULL WHERE session = 2",
            "an erased session stays erased",
        ),
        (
            "INSERT INTO events (session, seq, line) VALUES (1, 0, '{}')",
            "UNIQUE constraint",
        ),
        (
            "INSERT INTO events (id, session, seq, line) VALUES (1, 1, 7, '{}')",
            "UNIQUE constraint",
        ),
        (
            "INSERT INTO sessions (tenant_id, session_id) VALUES ('tenant', 's')",
            "sessions are append-only",
        ),
        (
            "INSERT OR REPLACE INTO sessions (id, tenant_id, session_id) VALUES (1, 'a', 'b')",
            "sessions are append-only",
        ),
        (
            "INSERT OR REPLACE INTO session_keys (session, master, wrapped) VALUES (2, 'a', x'')",
            "session keys are erased, not replaced",
        ),
        (
            "UPDATE OR REPLACE session_keys SET session = 2 WHERE session = 1",
            "a session key stays with its session",
        ),
    ] {
        let error = db.execute(sql, []).unwrap_err();
        assert!(error.to_string().contains(text), "{sql}: {error}");
    }
    assert_eq!(rows(&folder), before);
    verified(&folder);
}

/// `REPLACE` deletes events past the triggers (a trigger that asks first would cost every append a
/// look-up); then the verifier has to notice.
#[test]
fn a_row_that_was_replaced_is_found() {
    for sql in [
        "REPLACE INTO events (id, session, seq, line) VALUES (1, 1, 0, '{}')",
        "REPLACE INTO events (session, seq, line) VALUES (1, 0, '{}')",
    ] {
        let (_parent, folder) = new_folder();
        open(&folder).record(note(&scope("s"), "x")).unwrap();
        verified(&folder);
        self::sql(&folder, sql);
        assert!(!scene::verify(&folder).is_good(), "{sql}");
    }
}

/// A session whose key was taken away is not made anew, not hidden, and harms no other session.
#[test]
fn a_session_without_its_key_is_damage() {
    let (_parent, folder) = new_folder();
    prepare_two_sessions(&folder);
    let (store, gate) = gated(&folder, 2, |_| {});
    store.record(note(&scope("s"), "known here")).unwrap();
    intruder(&folder)
        .execute("DELETE FROM session_keys WHERE session = 1", [])
        .unwrap();

    let append = |session| {
        store
            .append(note(&scope(session), "more"), At::Next)
            .unwrap()
    };
    let first = append("first");
    gate.entered.recv().unwrap();
    let pending = [append("other"), append("s"), append("new")];
    drop(gate);
    first.wait().unwrap();
    let [other, damaged, new] = pending.map(Pending::wait);
    assert!(matches!(damaged, Err(Error::Damaged { .. })));
    other.unwrap();
    new.unwrap();
    let again = open(&folder).record(note(&scope("s"), "more"));
    assert!(matches!(again, Err(Error::Damaged { .. })));
    let sessions = store.reader().sessions(None).unwrap();
    assert!(sessions.iter().any(|session| session.scope == scope("s")));
    assert!(!scene::verify(&folder).is_good());
}

#[test]
fn a_file_that_is_not_ours_is_told_and_stays_as_it_is() {
    let (_parent, ours) = new_folder();
    open(&ours).record(note(&scope("s"), "x")).unwrap();
    type Make<'a> = Box<dyn Fn(&Folder) + 'a>;
    let cases: [(&str, Make<'_>, &str); 5] = [
        (
            "garbage",
            Box::new(|folder| fs::write(folder.database(), [7; 5000]).unwrap()),
            "is not a database",
        ),
        (
            "a short text",
            Box::new(|folder| fs::write(folder.database(), "hello").unwrap()),
            "is not a database",
        ),
        (
            "another program",
            Box::new(|folder| sql(folder, "CREATE TABLE cookies (name TEXT)")),
            "is a database of another program",
        ),
        (
            "a newer version",
            Box::new(|folder| {
                fs::copy(ours.database(), folder.database()).unwrap();
                let next = schema_version(folder) + 1;
                sql(folder, &format!("PRAGMA user_version = {next}"));
            }),
            "has schema version ",
        ),
        (
            "a negative version",
            Box::new(|folder| {
                fs::copy(ours.database(), folder.database()).unwrap();
                sql(folder, "PRAGMA user_version = -1");
            }),
            "has schema version -1; this program knows versions up to ",
        ),
    ];
    for (name, make, problem) in cases {
        let (_parent, folder) = new_folder();
        fs::create_dir(folder.path()).unwrap();
        make(&folder);
        let before = fs::read(folder.database()).unwrap();
        let expected = format!("`{}` {problem}", folder.database().display());
        let Err(error) = Store::open(&folder, Options::default()) else {
            panic!("{name}")
        };
        assert!(matches!(error, Error::Foreign { .. }), "{name}: {error}");
        assert!(error.to_string().starts_with(&expected), "{name}: {error}");
        let Err(error) = Reader::open(&folder) else {
            panic!("{name}")
        };
        assert!(error.to_string().starts_with(&expected), "{name}: {error}");
        assert!(
            fs::read(folder.database()).unwrap() == before,
            "{name}: the file was changed"
        );
        assert!(!folder.master_key().exists(), "{name}: a key was made");
    }
}

#[test]
fn where_there_is_no_log_there_is_nothing_to_read() {
    let (_parent, folder) = new_folder();
    let text = format!("there is no log in `{}`", folder.path().display());
    let refused = |folder: &Folder| Reader::open(folder).err().unwrap();
    assert_eq!(refused(&folder).to_string(), text);
    fs::create_dir(folder.path()).unwrap();
    assert_eq!(refused(&folder).to_string(), text);
    fs::write(folder.database(), "").unwrap();
    assert_eq!(refused(&folder).to_string(), text);
    // Reading makes nothing; a store then makes everything.
    assert_eq!(scene::files(&folder), [folder.database()]);
    open(&folder).record(note(&scope("s"), "x")).unwrap();
    assert_eq!(
        contents(&scope("s"), &Reader::open(&folder).unwrap()),
        ["x"]
    );
}

fn prepare_two_sessions(folder: &Folder) {
    let store = open(folder);
    let record = |scope: &Scope, n: u32| store.record(note(scope, &n.to_string())).unwrap();
    for n in 0..4 {
        record(&scope("s"), n);
    }
    for n in 0..4 {
        record(&scope("other"), n);
    }
}

fn schema_version(folder: &Folder) -> i64 {
    let db = rusqlite::Connection::open(folder.database()).unwrap();
    db.pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

fn sql(folder: &Folder, text: &str) {
    rusqlite::Connection::open(folder.database())
        .unwrap()
        .execute_batch(text)
        .unwrap();
}

/// All rows of all tables, as text.
fn rows(folder: &Folder) -> Vec<String> {
    let db = rusqlite::Connection::open(folder.database()).unwrap();
    let mut rows = Vec::new();
    for sql in [
        "SELECT id || line || hex(sealed) FROM events ORDER BY id",
        "SELECT id || tenant_id || session_id FROM sessions ORDER BY id",
        "SELECT session || master || hex(wrapped) || coalesce(erased_unix_ms, '') FROM session_keys",
    ] {
        let mut statement = db.prepare(sql).unwrap();
        let found = statement
            .query_map([], |row| row.get::<_, String>(0))
            .unwrap();
        rows.extend(found.map(Result::unwrap));
    }
    rows
}

#[cfg(unix)]
#[test]
fn what_may_not_be_read_is_told_apart_from_what_is_not_there() {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    let (_parent, folder) = new_folder();
    drop(open(&folder));
    for (path, mode) in [
        (folder.database(), 0o600),
        (folder.path().to_owned(), 0o700),
    ] {
        fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
        // Whoever runs the tests as root may read everything.
        let may_read = fs::File::open(folder.database()).is_ok();
        let opened = Reader::open(&folder);
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert!(may_read || matches!(opened, Err(Error::Denied { .. })));
    }
}
