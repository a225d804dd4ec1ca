//! Who commits events, and when.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use countersign_event::Scope;
use countersign_store::{At, Error, Folder, Haste, Options, Pending, Step, Store};
use rusqlite::Connection;

use crate::gate::gated;
use crate::scene::{contents, new_folder, note, open, scope, verified};

pub(crate) fn append(
    haste: Haste,
    scope: &Scope,
    text: &str,
    store: &Store,
) -> Result<Pending, Error> {
    let draft = note(scope, text);
    let event = vec![(draft.event_type, draft.payload, None)];
    let pending = store.append_all(scope, draft.ts_unix_ms, event, At::Next, haste);
    pending.and_then(|mut pending| pending.pop().ok_or(Error::Stopped))
}

/// A store, and how often it has committed.
fn counted(folder: &Folder) -> (Store, Arc<AtomicU64>) {
    let commits = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&commits);
    let (store, _) = gated(folder, 0, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    (store, commits)
}

#[test]
fn events_that_nobody_waits_for_share_the_commit_of_the_next_and_come_without_one_too() {
    for hurried in [Haste::Now, Haste::Here] {
        let (_parent, folder) = new_folder();
        let (store, commits) = counted(&folder);
        let scope = scope("s");
        let rounds = 200;
        for round in 0..rounds {
            let soon = append(Haste::Soon, &scope, "soon", &store).unwrap();
            let now = append(hurried, &scope, "now", &store).unwrap();
            assert_eq!(now.wait().unwrap().seq(), 2 * round + 1);
            assert_eq!(soon.wait().unwrap().seq(), 2 * round);
        }
        // How often depends on the machine.
        assert!(commits.load(Ordering::Relaxed) < 2 * rounds);
        let alone = append(Haste::Soon, &scope, "last", &store).unwrap();
        assert_eq!(alone.wait().unwrap().seq(), 2 * rounds);
    }
}

#[test]
fn events_that_nobody_waits_for_give_way_to_another_process_and_come_in_the_end() {
    let (_parent, folder) = new_folder();
    let (store, commits) = counted(&folder);
    let scope = scope("s");
    let other = Connection::open(folder.database()).unwrap();
    other.busy_timeout(Duration::from_secs(10)).unwrap();
    let rounds = 20;
    for round in 0..rounds {
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let soon = append(Haste::Soon, &scope, "soon", &store).unwrap();
        thread::sleep(Duration::from_millis(5));
        let now = append(Haste::Here, &scope, "now", &store).unwrap();
        other.execute_batch("ROLLBACK").unwrap();
        assert_eq!(now.wait().unwrap().seq(), 2 * round + 1);
        assert_eq!(soon.wait().unwrap().seq(), 2 * round);
    }
    // How often depends on the machine.
    assert!(commits.load(Ordering::Relaxed) < 2 * rounds);

    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let alone = append(Haste::Soon, &scope, "alone", &store).unwrap();
    thread::sleep(Duration::from_millis(200));
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(alone.wait().unwrap().seq(), 2 * rounds);

    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let last = append(Haste::Soon, &scope, "last", &store).unwrap();
    let closes = thread::spawn(move || drop(store));
    thread::sleep(Duration::from_millis(50));
    other.execute_batch("ROLLBACK").unwrap();
    closes.join().unwrap();
    assert_eq!(last.wait().unwrap().seq(), 2 * rounds + 1);
}

#[test]
fn who_writes_makes_no_difference_to_what_is_written() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let rounds = 90;
    let texts: Vec<_> = (0..rounds).map(|round| format!("{round}")).collect();
    // A session that begins while the key is rotated would have to begin again.
    let scopes: Vec<_> = (0..6)
        .map(|number| scope(&format!("own-{number}")))
        .collect();
    for scope in scopes.iter().chain([&scope("shared")]) {
        let _recorded = store.record(note(scope, "begun")).unwrap();
    }
    thread::scope(|threads| {
        for (number, own) in scopes.iter().enumerate() {
            let (store, texts) = (&store, &texts);
            threads.spawn(move || {
                let shared = scope("shared");
                let hastes = [Haste::Now, Haste::Here, Haste::Soon].into_iter().cycle();
                let mut pending = Vec::new();
                for (text, haste) in texts.iter().zip(hastes.skip(number)) {
                    pending.push(append(haste, own, text, store).unwrap());
                    pending.push(append(haste, &shared, text, store).unwrap());
                }
                for pending in pending {
                    let _recorded = pending.wait().unwrap();
                }
            });
        }
        threads.spawn(|| {
            for number in 0..5 {
                let gone = scope(&format!("gone-{number}"));
                let _recorded = store.record(note(&gone, "gone")).unwrap();
                let _erased = store.erase(&gone, 1).unwrap();
                let _rotated = store.rotate_master_key().unwrap();
            }
        });
    });
    for own in &scopes {
        assert_eq!(contents(own, store.reader())[1..], texts);
    }
    let shared = contents(&scope("shared"), store.reader());
    assert_eq!(shared.len(), 6 * rounds + 1);
    drop(store);
    assert_eq!(verified(&folder).events, 2 * 6 * rounds as u64 + 7 + 5);
}

#[test]
fn who_writes_itself_has_the_answer_at_once_unless_somebody_is_at_it() {
    let (_parent, folder) = new_folder();
    let (store, gate) = gated(&folder, 2, |_| {});
    let scope = scope("s");
    // The thread cleans up when it starts, and may be at that.
    let _first = append(Haste::Here, &scope, "first", &store)
        .unwrap()
        .wait()
        .unwrap();
    let theirs = append(Haste::Now, &scope, "theirs", &store).unwrap();
    gate.entered.recv().unwrap();
    let mut mine = append(Haste::Here, &scope, "mine", &store).unwrap();
    assert!(mine.try_wait().is_none(), "somebody else is writing");
    drop(gate);
    assert_eq!(theirs.wait().unwrap().seq(), 1);
    assert_eq!(mine.wait().unwrap().seq(), 2);
    let answered = (0..50).filter(|_| {
        let mut alone = append(Haste::Here, &scope, "alone", &store).unwrap();
        let answered = alone.try_wait().is_some();
        assert!(answered || alone.wait().is_ok());
        answered
    });
    // The thread may have looked whether there is anything to do.
    assert!(answered.count() > 25);
}

#[test]
fn who_writes_itself_does_not_wait_long_for_another_process_that_writes() {
    let (_parent, folder) = new_folder();
    let here = open(&folder);
    let mine = scope("mine");
    let _first = here.record(note(&mine, "first")).unwrap();
    let (there, gate) = gated(&folder, 1, |_| {});
    let theirs = append(Haste::Now, &scope("theirs"), "theirs", &there).unwrap();
    gate.entered.recv().unwrap();
    let mut second = append(Haste::Here, &mine, "second", &here).unwrap();
    assert!(second.try_wait().is_none(), "the database is not free");
    drop(gate);
    assert_eq!(second.wait().unwrap().seq(), 1);
    assert_eq!(theirs.wait().unwrap().seq(), 0);
    assert_eq!(contents(&mine, here.reader()), ["first", "second"]);
}

#[test]
fn where_the_writing_of_a_caller_breaks_off_nothing_more_is_acknowledged() {
    let (_parent, folder) = new_folder();
    let observer = Arc::new(|step| assert_ne!(step, Step::Written, "dies on purpose"));
    let options = Options {
        observer: Some(observer),
        ..Options::default()
    };
    let store = Store::open(&folder, options).unwrap();
    let scope = scope("s");
    // Whether this thread dies of it or the writer's.
    let died = catch_unwind(AssertUnwindSafe(|| {
        append(Haste::Here, &scope, "lost", &store)
            .and_then(Pending::wait)
            .is_err()
    }));
    assert!(died.unwrap_or(true));
    for haste in [Haste::Now, Haste::Here, Haste::Soon] {
        let after = append(haste, &scope, "lost", &store).and_then(Pending::wait);
        assert!(matches!(after, Err(Error::Stopped)));
    }
    drop(store);
    let store = open(&folder);
    let _kept = store.record(note(&scope, "kept")).unwrap();
    assert_eq!(contents(&scope, store.reader()), ["kept"]);
}
