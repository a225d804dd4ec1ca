//! Disks that fail, files that may not be written, databases that stay busy.

use std::collections::BTreeSet;
use std::fs;

use countersign_store::{At, Error, Folder, Options, Reader, Store};
use countersign_vault::Keyring;

use crate::children::{
    Acknowledged, End, Heard, assert_present, command, given_folder, say, stored_notes,
};
use crate::gate::gated;
use crate::scene::{self, contents, new_folder, note, open, scope, verified, whole_text};
use crate::shim::{Faults, Shim};

#[test]
fn a_disk_that_fails_is_told_and_nothing_is_acknowledged() {
    let shim = Shim::compile();
    let full = "the disk is full: nothing was recorded";
    let broken = "the database failed: disk I/O error";
    for (call, error, text) in [
        ("write", "ENOSPC", full),
        ("write", "EIO", broken),
        ("write", "EROFS", broken),
        ("fsync", "EIO", broken),
        ("fsync", "ENOSPC", broken),
    ] {
        let (_parent, folder) = new_folder();
        let end = run(
            "faults::child_appends_on_a_failing_disk",
            call,
            error,
            &shim,
            &folder,
        );
        let errors: Vec<_> = end
            .said
            .iter()
            .filter_map(|line| line.strip_prefix("error "))
            .collect();
        assert_eq!(errors.len(), 7, "{call} {error}: {:?}", end.said);
        assert!(
            errors.iter().all(|found| found.starts_with(text)),
            "{call} {error}: {errors:?}"
        );

        // What was acknowledged is there, and beside it at most what was refused.
        let acknowledged = end.acknowledged();
        assert_eq!(acknowledged.len(), 6, "{call} {error}");
        verified(&folder);
        let reader = Reader::open(&folder).unwrap();
        assert_present(&acknowledged, &reader);
        let acknowledged: BTreeSet<_> = acknowledged.into_iter().collect();
        let other = stored_notes(&reader)
            .into_iter()
            .filter(|note| !acknowledged.contains(note));
        assert!(
            other
                .map(|note| note.content)
                .all(|content| content == "refused")
        );
    }
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_appends_on_a_failing_disk() {
    let (Some(folder), Some(faults)) = (given_folder(), Faults::given()) else {
        return;
    };
    let store = open(&folder);
    let record = |session: &str, text: &str| {
        let recorded = store.record(note(&scope(session), text)).unwrap();
        Acknowledged::say(session, &recorded, text);
    };
    record("old", "before");
    record("old", "before");
    faults.fail(&given(CALL), "log.db", &given(ERROR));
    assert!(store.rehearse().is_err());
    for session in ["old", "new"] {
        let refused = store.record(note(&scope(session), "refused")).unwrap_err();
        say(&format!("error {}", whole_text(&refused)));
    }
    // Also when many share one transaction.
    let append = |session: &&str| {
        store
            .append(note(&scope(session), "refused"), At::Next)
            .unwrap()
    };
    let pending: Vec<_> = ["a", "b", "c", "d", "e"].iter().map(append).collect();
    for refused in pending
        .into_iter()
        .map(|pending| pending.wait().unwrap_err())
    {
        say(&format!("error {}", whole_text(&refused)));
    }
    faults.none();
    store.rehearse().unwrap();
    for session in ["old", "new", "a", "old"] {
        record(session, "after");
    }
}

/// The first event of a session does not reach the disk, the second one would.
#[test]
fn a_session_never_begins_in_its_middle() {
    let shim = Shim::compile();
    let (_parent, folder) = new_folder();
    let child = "faults::child_loses_the_first_event_of_a_session";
    let end = run(child, "write", "ENOSPC", &shim, &folder);
    let full = "the disk is full: nothing was recorded";
    let conflict = "conflict: the next event of the session is number 0, not 1";
    assert_eq!(end.said, [full, conflict]);
    let reader = Reader::open(&folder).unwrap();
    assert!(
        reader
            .sessions(None)
            .unwrap()
            .iter()
            .all(|session| session.scope == scope("other"))
    );
    assert_eq!(verified(&folder).events, 1);
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_loses_the_first_event_of_a_session() {
    let (Some(folder), Some(faults)) = (given_folder(), Faults::given()) else {
        return;
    };
    open(&folder)
        .record(note(&scope("other"), "before"))
        .unwrap();
    let switch = faults.clone();
    let (store, gate) = gated(&folder, 1, move |transaction| match transaction {
        1 => switch.fail(&given(CALL), "log.db", &given(ERROR)),
        _ => switch.none(),
    });
    let scope = scope("new");
    let first = store.append(note(&scope, "0"), At::Next).unwrap();
    gate.entered.recv().unwrap();
    // The first event is in a transaction that will fail; the second one is sealed on top of it.
    let second = store.append(note(&scope, "1"), At::Next).unwrap();
    drop(gate);
    say(&first.wait().unwrap_err().to_string());
    say(&second.wait().unwrap_err().to_string());
}

/// A master key that could not be saved must wrap nothing: after a restart it would be gone.
#[test]
fn a_rotation_that_fails_loses_nothing() {
    let shim = Shim::compile();
    let faults = [
        ("open", "master.key"),
        ("write", "master.key"),
        ("fsync", "master.key"),
        ("rename", "master.key"),
        ("write", "log.db"),
        ("fsync", "log.db"),
    ];
    for (call, part) in faults {
        let (_parent, folder) = new_folder();
        let mut command = command("faults::child_fails_to_rotate", &folder);
        command.env(CALL, call).env(ERROR, "EIO").env(PART, part);
        shim.under(&mut command);
        shim.faults().none();
        let end = Heard::start(command).end();
        end.assert_success();
        assert!(
            end.said[1].starts_with("error "),
            "{call} {part}: {:?}",
            end.said
        );

        // No copy of a key that nobody uses is left behind.
        let names = scene::files(&folder);
        assert_eq!(names.len(), 4, "{call} {part}: {names:?}");
        let store = open(&folder);
        assert_present(&end.acknowledged(), store.reader());
        assert_eq!(end.acknowledged().len(), 3);
        store.rotate_master_key().unwrap();
        assert_eq!(
            Keyring::open(&folder.master_key()).unwrap().ids().count(),
            1
        );
        let names = scene::files(&folder);
        assert_eq!(names.len(), 4, "{call} {part}: {names:?}");
        assert_present(&end.acknowledged(), store.reader());
        verified(&folder);
    }
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_fails_to_rotate() {
    let (Some(folder), Some(faults)) = (given_folder(), Faults::given()) else {
        return;
    };
    let store = open(&folder);
    let record = |session: &str, text: &str| {
        let recorded = store.record(note(&scope(session), text)).unwrap();
        Acknowledged::say(session, &recorded, text);
    };
    record("old", "before");
    faults.fail(&given(CALL), &given(PART), &given(ERROR));
    let error = store.rotate_master_key().unwrap_err();
    say(&format!("error {}", whole_text(&error)));
    faults.none();
    record("new", "after");
    record("old", "after");
}

#[test]
fn an_erasure_that_fails_erases_nothing() {
    let shim = Shim::compile();
    let (_parent, folder) = new_folder();
    let end = run(
        "faults::child_fails_to_erase",
        "write",
        "ENOSPC",
        &shim,
        &folder,
    );
    assert_eq!(
        end.said,
        ["the disk is full: nothing was recorded", "x", "erased true"]
    );
    verified(&folder);
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_fails_to_erase() {
    let (Some(folder), Some(faults)) = (given_folder(), Faults::given()) else {
        return;
    };
    let store = open(&folder);
    store.record(note(&scope("s"), "x")).unwrap();
    faults.fail(&given(CALL), "log.db", &given(ERROR));
    say(&store.erase(&scope("s"), 1).unwrap_err().to_string());
    faults.none();
    say(&contents(&scope("s"), store.reader()).join(","));
    say(&format!(
        "erased {}",
        store.erase(&scope("s"), 1).unwrap().complete
    ));
}

#[test]
fn a_database_that_may_not_be_written_is_told_and_stays_as_it_is() {
    use std::os::unix::fs::PermissionsExt as _;
    let shim = Shim::compile();
    let (_parent, folder) = new_folder();
    open(&folder).record(note(&scope("s"), "x")).unwrap();
    let expected = format!(
        "the database `{}` cannot be written: it is read-only",
        folder.database().display()
    );
    for companions in [true, false] {
        if !companions {
            // A connection that may write takes them away when it closes, as a backup would.
            let db = rusqlite::Connection::open(folder.database()).unwrap();
            db.query_row("SELECT count(*) FROM events", [], |_| Ok(()))
                .unwrap();
            drop(db);
            assert_eq!(scene::files(&folder).len(), 2);
        }
        let before = snapshot(&folder);
        for error in ["EACCES", "EROFS"] {
            let mut command = command("faults::child_opens", &folder);
            shim.under(&mut command);
            shim.faults().fail("open", "log.db", error);
            let end = Heard::start(command).end();
            assert_eq!(end.said[0], expected, "{error}: {}", end.stderr);
            if companions {
                assert_eq!(end.said[1..], ["x", "None"], "reading goes on");
            }
            assert!(
                snapshot(&folder) == before,
                "{error}: something was written"
            );
        }
    }
    let before = snapshot(&folder);
    // Permissions do not bind root, so there the same is told for everybody else only.
    fs::set_permissions(folder.database(), fs::Permissions::from_mode(0o444)).unwrap();
    let bound = fs::OpenOptions::new()
        .append(true)
        .open(folder.database())
        .is_err();
    if bound {
        let Err(error) = Store::open(&folder, Options::default()) else {
            unreachable!()
        };
        assert_eq!(error.to_string(), expected);
        assert!(snapshot(&folder) == before);
    }
    assert_eq!(
        contents(&scope("s"), &Reader::open(&folder).unwrap()),
        ["x"]
    );
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_opens() {
    let Some(folder) = given_folder() else { return };
    match Store::open(&folder, Options::default()) {
        Ok(_) => say("open"),
        Err(error) => say(&whole_text(&error)),
    }
    match Reader::open(&folder) {
        Ok(reader) => say(&contents(&scope("s"), &reader).join(",")),
        Err(error) => say(&whole_text(&error)),
    }
    say(&format!("{:?}", scene::verify_with(&folder, None).failure));
}

/// Another process holds the database for longer than anybody waits.
#[test]
fn a_database_that_stays_busy_is_told_and_nothing_is_acknowledged() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    store.record(note(&scope("s"), "before")).unwrap();
    let other = rusqlite::Connection::open(folder.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.record(note(&scope("s"), "refused")).unwrap_err();
    assert!(matches!(error.root(), Error::Busy), "{error}");
    assert_eq!(
        error.to_string(),
        "the database is busy: another process held it for too long"
    );
    other.execute_batch("ROLLBACK").unwrap();
    store.record(note(&scope("s"), "after")).unwrap();
    assert_eq!(contents(&scope("s"), store.reader()), ["before", "after"]);
}

fn run(child: &str, call: &str, error: &str, shim: &Shim, folder: &Folder) -> End {
    let mut command = command(child, folder);
    command.env(CALL, call).env(ERROR, error);
    shim.under(&mut command);
    shim.faults().none();
    let end = Heard::start(command).end();
    end.assert_success();
    end
}

/// Every file of the folder with its content; the shared memory of SQLite is no content.
fn snapshot(folder: &Folder) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let files = scene::files(folder).into_iter();
    files
        .filter(|path| !path.to_string_lossy().ends_with("-shm"))
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect()
}

fn given(variable: &str) -> String {
    std::env::var(variable).unwrap()
}

const CALL: &str = "COUNTERSIGN_TEST_CALL";
const ERROR: &str = "COUNTERSIGN_TEST_ERROR";
const PART: &str = "COUNTERSIGN_TEST_PART";
