//! The write-ahead log has room for the next commits, and what is in that room is nothing to anybody.

use std::fs;

use countersign_store::{Durability, Folder, Options, Store};

use crate::scene::{contents, files, new_folder, note, open, scope, verified};

fn length(folder: &Folder) -> u64 {
    fs::metadata(folder.path().join("log.db-wal"))
        .unwrap()
        .len()
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

/// A crash may leave the whole room, some of it, or none.
#[test]
fn what_a_crash_leaves_of_the_room_changes_nothing() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let scope = scope("s");
    for text in texts(20) {
        let _recorded = store.record(note(&scope, &text)).unwrap();
    }
    let whole = length(&folder);
    let log = fs::read(folder.path().join("log.db-wal")).unwrap();
    let used = log.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
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
        assert_eq!(contents(&scope, again.reader()), texts(20), "{left}");
        let _recorded = again.record(note(&scope, "20")).unwrap();
        drop(again);
        assert_eq!(verified(&copy).events, 21);
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
