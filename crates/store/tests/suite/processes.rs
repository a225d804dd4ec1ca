//! Several processes share one folder.

use std::path::Path;

use countersign_store::{Folder, Options, Reader, Store};
use countersign_vault::Keyring;

use crate::children::{
    Acknowledged, End, Heard, command, given_folder, given_number, say, stored_notes,
};
use crate::scene::{self, new_folder, note, open, rounds, scope, verified};

const PROCESSES: u64 = 6;

#[test]
fn processes_that_start_at_once_on_a_new_folder_share_it() {
    let (_parent, folder) = new_folder();
    let ends = start_at_once(50, &folder);
    let mut acknowledged: Vec<_> = ends.iter().flat_map(End::acknowledged).collect();
    acknowledged.sort();
    assert_eq!(acknowledged.len() as u64, PROCESSES * 100);

    let report = verified(&folder);
    assert_eq!(report.events, PROCESSES * 100);
    let count = |session: &str| {
        report
            .sessions
            .iter()
            .find(|found| found.session_id == session)
            .unwrap()
            .events
    };
    assert_eq!(count("shared"), PROCESSES * 50);
    assert!((0..PROCESSES).all(|n| count(&format!("own-{n}")) == 50));
    assert_eq!(report.sessions.len() as u64, PROCESSES + 1);

    // What is stored is what was acknowledged, no more and no less, and it opens.
    let mut stored = stored_notes(&Reader::open(&folder).unwrap());
    stored.sort();
    assert_eq!(stored, acknowledged);
}

/// The moments when the database and the key are made, again and again. `COUNTERSIGN_START_ROUNDS`
/// makes the campaign longer.
#[test]
fn a_new_folder_is_made_once_however_many_make_it() {
    for _ in 0..rounds("COUNTERSIGN_START_ROUNDS", 12) {
        let (_parent, folder) = new_folder();
        start_at_once(1, &folder);
        assert_eq!(verified(&folder).events, PROCESSES * 2);
        assert_eq!(
            Keyring::open(&folder.master_key()).unwrap().ids().count(),
            1
        );
        let names: Vec<_> = scene::files(&folder);
        assert!(names.iter().all(|name| known(name)), "{names:?}");
    }
}

/// A session, its key and its erasure are facts of the folder, not of a process.
#[test]
fn a_process_notices_what_another_one_erased_and_rotated() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    store.record(note(&scope("shared"), "before")).unwrap();
    store.record(note(&scope("gone"), "before")).unwrap();

    let mut child = Heard::start(command("processes::child_answers", &folder));
    assert_eq!(child.next().unwrap(), "ready");
    store.erase(&scope("gone"), 1).unwrap();
    store.rotate_master_key().unwrap();
    std::fs::write(folder.path().join("orders"), "go").unwrap();
    let end = child.end();
    end.assert_success();
    let gone = "the content of this session was erased";
    assert_eq!(end.said[1..4], [gone, gone, "2"]);
    assert_eq!(end.acknowledged().len(), 2, "{:?}", end.said);

    let shared = scene::contents(&scope("shared"), store.reader());
    assert_eq!(shared, ["before", "ready", "after"]);
    assert_eq!(scene::contents(&scope("new"), store.reader()), ["after"]);
    store.record(note(&scope("new"), "together")).unwrap();
    verified(&folder);
}

/// Holds the keys of both sessions, waits for the other process, then goes on.
#[test]
#[ignore = "runs in a process of its own"]
fn child_answers() {
    let Some(folder) = given_folder() else { return };
    let store = open(&folder);
    store.record(note(&scope("shared"), "ready")).unwrap();
    store.record(note(&scope("gone"), "ready")).unwrap();
    say("ready");
    wait_for(&folder.path().join("orders"));
    // A new session first: nothing has told this process yet that its master key is an old one.
    let recorded = store.record(note(&scope("new"), "after")).unwrap();
    Acknowledged::say("new", &recorded, "after");
    for _ in 0..2 {
        let refused = store.record(note(&scope("gone"), "after")).unwrap_err();
        say(&refused.to_string());
    }
    let recorded = store.record(note(&scope("shared"), "after")).unwrap();
    say(&recorded.seq().to_string());
    Acknowledged::say("shared", &recorded, "after");
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_appends() {
    let Some(folder) = given_folder() else { return };
    let (number, events) = (given_number(NUMBER), given_number(EVENTS));
    say("ready");
    wait_for(Path::new(&std::env::var(GO).unwrap()));
    let store = Store::open(&folder, Options::default()).unwrap();
    let own = format!("own-{number}");
    for n in 0..events {
        for session in ["shared", &own] {
            let text = format!("{number}/{session}/{n}");
            let recorded = store.record(note(&scope(session), &text)).unwrap();
            Acknowledged::say(session, &recorded, &text);
        }
    }
}

/// Runs the processes; all of them are up before the first one opens the folder.
fn start_at_once(events: u64, folder: &Folder) -> Vec<End> {
    let go = folder.path().with_extension("go");
    let mut children: Vec<_> = (0..PROCESSES)
        .map(|number| {
            let mut command = command("processes::child_appends", folder);
            command
                .env(NUMBER, number.to_string())
                .env(EVENTS, events.to_string())
                .env(GO, &go);
            Heard::start(command)
        })
        .collect();
    for child in &mut children {
        assert_eq!(child.next().unwrap(), "ready");
    }
    std::fs::write(&go, "go").unwrap();
    let ends: Vec<_> = children.into_iter().map(Heard::end).collect();
    ends.iter().for_each(End::assert_success);
    ends
}

fn wait_for(path: &Path) {
    while !path.exists() {
        std::thread::yield_now();
    }
}

fn known(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    ["log.db", "log.db-wal", "log.db-shm", "master.key"].contains(&name)
}

const NUMBER: &str = "COUNTERSIGN_TEST_NUMBER";
const EVENTS: &str = "COUNTERSIGN_TEST_EVENTS";
const GO: &str = "COUNTERSIGN_TEST_GO";
