//! The process is killed, at every step and at every system call; what was acknowledged stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use countersign_store::{At, Folder, Options, Step, Store};
use countersign_vault::Keyring;

use crate::children::{
    Acknowledged, Heard, assert_present, command, die, given_folder, given_number, say,
};
use crate::random::Random;
use crate::scene::{
    self, files_with_part_of, new_folder, note, open, rounds, scope, verified, wrapped_key,
};
use crate::shim::Shim;

/// Kills the process at each step in the life of an event, while several threads append.
/// `COUNTERSIGN_CRASH_ROUNDS` is the number of kills over all steps.
#[test]
fn killed_at_any_step() {
    let rounds = rounds("COUNTERSIGN_CRASH_ROUNDS", 100);
    let mut random = Random::new(1);
    for (number, step) in Step::ALL.into_iter().enumerate() {
        let (_parent, folder) = new_folder();
        let mut acknowledged = Vec::new();
        let mut stored_before = append_after(0, &mut acknowledged, &folder);
        for round in 0..rounds.div_ceil(Step::ALL.len() as u64) {
            let mut command = command("crash::child_is_killed_at_a_step", &folder);
            command
                .env(STEP, number.to_string())
                .env(COUNT, (1 + random.below(25)).to_string())
                .env(ROUND, round.to_string());
            let end = Heard::start(command).end();
            assert!(end.was_killed(), "{step:?}: {}\n{}", end.status, end.stderr);
            let new = end.acknowledged();

            let stored = assert_sound(&folder);
            // At the last step the events are durable, and nobody was told yet.
            let untold = if step == Step::Synced { 1 } else { 0 };
            assert!(
                stored - stored_before >= new.len() as u64 + untold,
                "{step:?}"
            );
            acknowledged.extend(new);
            stored_before = append_after(round, &mut acknowledged, &folder);
        }
        assert_sound(&folder);
    }
}

/// Four threads, each with a session of its own and one that they share; one step is the last.
#[test]
#[ignore = "runs in a process of its own"]
fn child_is_killed_at_a_step() {
    let Some(folder) = given_folder() else { return };
    let step = Step::ALL[usize::try_from(given_number(STEP)).unwrap()];
    let (count, round) = (given_number(COUNT), given_number(ROUND));
    let seen = AtomicU64::new(0);
    let observer = Arc::new(move |at| {
        if at == step && seen.fetch_add(1, Ordering::Relaxed) + 1 == count {
            die();
        }
    });
    let store = Store::open(
        &folder,
        Options {
            observer: Some(observer),
            ..Options::default()
        },
    )
    .unwrap();
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let store = &store;
            threads.spawn(move || append_until_killed(thread, round, store));
        }
    });
}

fn append_until_killed(thread: u64, round: u64, store: &Store) {
    let own = format!("own-{thread}");
    for n in 0..1000 {
        let text = format!("{round}/{thread}/{n}");
        let recorded = store.record(note(&scope("shared"), &text)).unwrap();
        Acknowledged::say("shared", &recorded, &text);
        // Several on their way at once.
        let texts: Vec<_> = (0..3).map(|part| format!("{text}/{part}")).collect();
        let append = |text: &String| store.append(note(&scope(&own), text), At::Next).unwrap();
        let pending: Vec<_> = texts.iter().map(append).collect();
        for (pending, text) in pending.into_iter().zip(&texts) {
            Acknowledged::say(&own, &pending.wait().unwrap(), text);
        }
    }
}

/// Kills the process at every single system call that changes a file: while the folder is made,
/// while events are appended, while the master key is rotated and while a session is erased.
#[test]
fn killed_at_any_system_call() {
    let shim = Shim::compile();
    for deed in ["create", "append", "rotate", "erase"] {
        let mut killed = 0;
        loop {
            let (_parent, folder) = new_folder();
            let mut acknowledged = prepare(deed, &folder);
            let key = (deed == "erase").then(|| wrapped_key(&scope("gone"), &folder));
            let mut command = command("crash::child_is_killed_at_a_system_call", &folder);
            command.env(DEED, deed);
            shim.under(&mut command);
            shim.faults()
                .kill_after(killed, folder.path().to_str().unwrap());
            let end = Heard::start(command).end();
            if !end.was_killed() {
                end.assert_success();
                assert!(end.said.contains(&"done".to_owned()));
                break;
            }
            acknowledged.extend(end.acknowledged());
            if let Some(key) = key {
                check_half_erased(&key, &folder);
                acknowledged.retain(|note| note.session != "gone");
            }
            assert_sound_unless_empty(&folder);
            finish_rotation(&mut acknowledged, &folder);
            append_after(0, &mut acknowledged, &folder);
            killed += 1;
        }
        // A deed that changes hardly any file would mean that the kills did not reach it.
        assert!(killed >= 8, "{deed} was killed {killed} time(s) only");
    }
}

fn prepare(deed: &str, folder: &Folder) -> Vec<Acknowledged> {
    if deed == "create" {
        return Vec::new();
    }
    let store = open(folder);
    let sessions = ["a", "b", "gone"];
    let record = |session: &&str| {
        let recorded = store.record(note(&scope(session), "before")).unwrap();
        Acknowledged {
            session: (*session).to_owned(),
            seq: recorded.seq(),
            hash: recorded.hash(),
            content: "before".to_owned(),
        }
    };
    sessions.iter().map(record).collect()
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_is_killed_at_a_system_call() {
    let Some(folder) = given_folder() else { return };
    let store = open(&folder);
    match std::env::var(DEED).unwrap().as_str() {
        "rotate" => {
            store.rotate_master_key().unwrap();
        }
        "erase" => {
            store.erase(&scope("gone"), 1).unwrap();
        }
        _ => {
            for session in ["a", "new", "a", "new"] {
                let recorded = store.record(note(&scope(session), "more")).unwrap();
                Acknowledged::say(session, &recorded, "more");
            }
        }
    }
    say("done");
}

/// Either erased or not; if not, it can be. In the end the key is nowhere.
fn check_half_erased(key: &[u8], folder: &Folder) {
    let store = open(folder);
    let gone = scope("gone");
    let session = store.reader().session(&gone).unwrap().unwrap();
    if session.erased_unix_ms.is_none() {
        assert_eq!(scene::contents(&gone, store.reader()), ["before"]);
        store.erase(&gone, 2).unwrap();
    }
    assert!(store.reader().session_key(&gone).is_err());
    drop(store);
    assert!(
        files_with_part_of(key, folder).is_empty(),
        "the erased key is still there"
    );
}

/// Kills the process at any moment while it rotates the master key, again and again, and makes
/// sessions. `COUNTERSIGN_ROTATION_ROUNDS` is the number of kills.
#[test]
fn killed_while_the_master_key_is_rotated() {
    let (_parent, folder) = new_folder();
    let mut random = Random::new(2);
    let mut acknowledged = Vec::new();
    for round in 0..rounds("COUNTERSIGN_ROTATION_ROUNDS", 20) {
        let mut command = command("crash::child_rotates_until_killed", &folder);
        command.env(ROUND, round.to_string());
        let mut child = Heard::start(command);
        // Counted in notes: how many rotations come between them is for the machine to say.
        let enough = acknowledged.len() as u64 + 3 + random.below(15);
        while (acknowledged.len() as u64) < enough {
            acknowledged.extend(Acknowledged::heard(&child.next().unwrap()));
        }
        child.kill();
        let end = child.end();
        assert!(end.was_killed(), "{}", end.stderr);
        let said = end.said.iter();
        acknowledged.extend(said.filter_map(|line| Acknowledged::heard(line)));

        assert_sound(&folder);
        assert_present(&acknowledged, open(&folder).reader());
        // Every other time the next process finds what the kill has left.
        if round % 2 == 0 {
            finish_rotation(&mut acknowledged, &folder);
        }
    }
    finish_rotation(&mut acknowledged, &folder);
    assert!(
        acknowledged.len() > 40,
        "{} notes are no campaign",
        acknowledged.len()
    );
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_rotates_until_killed() {
    let Some(folder) = given_folder() else { return };
    let round = given_number(ROUND);
    let store = open(&folder);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            loop {
                let rotation = store.rotate_master_key().unwrap();
                say(&format!("rotated {}", rotation.current));
            }
        });
        for n in 0..100_000 {
            let new = format!("{round}-{n}");
            for session in ["old", new.as_str()] {
                let recorded = store.record(note(&scope(session), &new)).unwrap();
                Acknowledged::say(session, &recorded, &new);
            }
        }
    });
}

/// A rotation after a crash leaves one key, no copies of keys, and everything readable.
fn finish_rotation(acknowledged: &mut [Acknowledged], folder: &Folder) {
    let store = open(folder);
    let rotation = store.rotate_master_key().unwrap();
    let keyring = Keyring::open(&folder.master_key()).unwrap();
    assert_eq!(keyring.ids().collect::<Vec<_>>(), [&rotation.current]);
    let files = scene::files(folder);
    let names: Vec<_> = files
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(names, ["log.db", "log.db-shm", "log.db-wal", "master.key"]);
    assert_present(acknowledged, store.reader());
}

fn assert_sound(folder: &Folder) -> u64 {
    // Opening for writing is what a restart does.
    drop(open(folder));
    verified(folder).events
}

/// As [`assert_sound`], where the kill may have come before the first event.
fn assert_sound_unless_empty(folder: &Folder) {
    let empty = open(folder).reader().sessions(None).unwrap().is_empty();
    if !empty {
        verified(folder);
    }
}

/// Everything that was ever acknowledged is there, and the log goes on. Gives the number of events.
fn append_after(round: u64, acknowledged: &mut Vec<Acknowledged>, folder: &Folder) -> u64 {
    let store = open(folder);
    assert_present(acknowledged, store.reader());
    let text = format!("after-{round}");
    let recorded = store.record(note(&scope("shared"), &text)).unwrap();
    acknowledged.push(Acknowledged {
        session: "shared".to_owned(),
        seq: recorded.seq(),
        hash: recorded.hash(),
        content: text,
    });
    drop(store);
    verified(folder).events
}

const STEP: &str = "COUNTERSIGN_TEST_STEP";
const COUNT: &str = "COUNTERSIGN_TEST_COUNT";
const ROUND: &str = "COUNTERSIGN_TEST_ROUND";
const DEED: &str = "COUNTERSIGN_TEST_DEED";
