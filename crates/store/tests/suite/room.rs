//! The write-ahead log has room for the next commits, and what is in that room is nothing to anybody.

use std::fs;
use std::thread;
use std::time::Duration;

use countersign_event::Scope;
use countersign_store::{Durability, Folder, Haste, Options, Store};
use rusqlite::Connection;

use crate::haste::append;
use crate::scene::{contents, files, new_folder, note, open, scope, verified};

fn length(folder: &Folder) -> u64 {
    fs::metadata(folder.path().join("log.db-wal"))
        .unwrap()
        .len()
}

fn read(folder: &Folder) -> Vec<u8> {
    fs::read(folder.path().join("log.db-wal")).unwrap()
}

fn is_used_up(log: &[u8]) -> bool {
    log.last_chunk().is_some_and(|end| *end != [0; 16])
}

/// Records until the log is as it should be, and sees to it that nobody changes it from then on.
fn lock_when(is_so: impl Fn(&[u8]) -> bool, scope: &Scope, store: &Store) -> Connection {
    let lock = Connection::open(store.folder().database()).unwrap();
    for text in texts(1000) {
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        if is_so(&read(store.folder())) {
            return lock;
        }
        lock.execute_batch("ROLLBACK").unwrap();
        let _recorded = store.record(note(scope, &text)).unwrap();
    }
    panic!("the log is never as it should be");
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

#[test]
fn the_log_grows_seldom_and_not_without_end() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let scope = scope("s");
    let mut lengths = Vec::new();
    for text in texts(1500) {
        let _recorded = store.record(note(&scope, &text)).unwrap();
        lengths.push(length(&folder));
    }
    let longest = lengths.iter().copied().max().unwrap();
    assert!(longest < 8 << 20, "{longest}");
    lengths.dedup();
    // Frame by frame it would be hundreds of times.
    assert!(lengths.len() < 24, "{lengths:?}");
}

#[test]
fn the_log_stays_short_whoever_commits() {
    for haste in [Haste::Now, Haste::Here, Haste::Soon] {
        let (_parent, folder) = new_folder();
        let store = open(&folder);
        let (scope, text) = (scope("s"), "much ".repeat(2000));
        for _ in 0..40 {
            let append = || append(haste, &scope, &text, &store).unwrap();
            let pending: Vec<_> = (0..20).map(|_| append()).collect();
            for pending in pending {
                let _recorded = pending.wait().unwrap();
            }
        }
        assert!(length(&folder) < 8 << 20, "{haste:?}: {}", length(&folder));
    }
}

/// There is always somebody who writes, so nobody finds the log in a state in which it can be begun anew.
#[test]
fn the_log_stays_short_where_many_write_without_a_pause() {
    let (_parent, folder) = new_folder();
    let stores: Vec<_> = (0..24).map(|_| open(&folder)).collect();
    let longest = thread::scope(|threads| {
        let write = |(number, store)| {
            let folder = &folder;
            threads.spawn(move || {
                let scope = scope(&format!("{number}"));
                let wrote = texts(400).into_iter().map(|text| {
                    let pending = append(Haste::Here, &scope, &text, store).unwrap();
                    let _recorded = pending.wait().unwrap();
                    length(folder)
                });
                wrote.max().unwrap()
            })
        };
        let writing: Vec<_> = stores.iter().enumerate().map(write).collect();
        let lengths = writing.into_iter().map(|it| it.join().unwrap());
        lengths.max().unwrap()
    });
    // Left to SQLite it has all that was ever written.
    assert!(longest < 16 << 20, "{longest}");
}

#[test]
fn stores_that_write_in_turns_do_not_make_room_for_each_other() {
    let (_parent, folder) = new_folder();
    let stores = [open(&folder), open(&folder)];
    let scope = scope("s");
    for (store, text) in stores.iter().cycle().zip(texts(600)) {
        let _recorded = store.record(note(&scope, &text)).unwrap();
    }
    assert!(length(&folder) < 8 << 20);
    assert_eq!(contents(&scope, stores[0].reader()), texts(600));
    drop(stores);
    assert_eq!(verified(&folder).events, 600);
}

/// Where two could lengthen it at once, one would write zeros over what the other has committed.
#[test]
fn nobody_makes_room_without_the_lock_for_writing() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let scope = scope("s");
    let other = lock_when(is_used_up, &scope, &store);
    let before = length(&folder);
    thread::scope(|threads| {
        let waiting = threads.spawn(|| store.record(note(&scope, "last")).unwrap());
        thread::sleep(Duration::from_millis(300));
        assert_eq!(length(&folder), before);
        other.execute_batch("ROLLBACK").unwrap();
        waiting.join().unwrap();
    });
}

/// A crash may leave the whole room, some of it, or none.
#[test]
fn what_a_crash_leaves_of_the_room_changes_nothing() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let scope = scope("s");
    let has_room = |log: &[u8]| log.len() > 300_000 && !is_used_up(log);
    let _lock = lock_when(has_room, &scope, &store);
    let (whole, log) = (length(&folder), read(&folder));
    let used = log.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
    let events = contents(&scope, store.reader());
    assert!(used + 4096 < whole, "{used} of {whole}");
    for left in [used, used + 1, used + 24, used + 5000, whole - 1, whole] {
        let (_parent, copy) = new_folder();
        fs::create_dir(copy.path()).unwrap();
        for file in files(&folder) {
            let name = file.file_name().unwrap();
            if name != "log.db-shm" {
                fs::copy(&file, copy.path().join(name)).unwrap();
            }
        }
        let log = fs::File::options()
            .write(true)
            .open(copy.path().join("log.db-wal"));
        log.unwrap().set_len(left).unwrap();
        let again = open(&copy);
        assert_eq!(contents(&scope, again.reader()), events, "{left}");
        let _recorded = again.record(note(&scope, "last")).unwrap();
        drop(again);
        assert_eq!(verified(&copy).events, events.len() as u64 + 1);
    }
}

#[test]
fn who_does_not_wait_for_the_disk_needs_no_room() {
    let (_parent, folder) = new_folder();
    let options = Options {
        durability: Durability::Relaxed,
        ..Options::default()
    };
    let store = Store::open(&folder, options).unwrap();
    for text in texts(5) {
        let _recorded = store.record(note(&scope("s"), &text)).unwrap();
    }
    assert!(length(&folder) < 256 << 10);
}
