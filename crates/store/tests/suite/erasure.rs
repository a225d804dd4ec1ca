//! Erased keys and rotated keys: what is gone is gone everywhere, and nothing else is.

use std::fs;
use std::path::Path;

use countersign_event::Scope;
use countersign_store::{At, Error, Reader};
use countersign_vault::{Keyring, KeyringError};

use crate::random::Random;
use crate::scene::{
    self, contents, events, files_with_part_of, new_folder, note, open, scope, verified,
    wrapped_key,
};

#[test]
fn erased_content_is_gone_and_the_chain_stays() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let (gone, kept) = (scope("gone"), scope("kept"));
    for n in 0..3 {
        store.record(note(&gone, &format!("{n}"))).unwrap();
        store.record(note(&kept, &format!("{n}"))).unwrap();
    }
    let key = wrapped_key(&gone, &folder);
    assert!(
        !files_with_part_of(&key, &folder).is_empty(),
        "the search finds what is there"
    );

    assert!(store.erase(&gone, 77).unwrap().complete);
    assert_eq!(files_with_part_of(&key, &folder), [] as [&Path; 0]);
    for event in events(&gone, store.reader()) {
        assert!(matches!(
            store.reader().open_payload(&event),
            Err(Error::Erased)
        ));
    }
    assert!(matches!(
        store.record(note(&gone, "more")),
        Err(Error::Erased)
    ));
    assert!(matches!(store.erase(&gone, 78), Err(Error::Erased)));
    assert!(matches!(
        store.erase(&scope("never"), 78),
        Err(Error::NoSession(_))
    ));
    assert_eq!(contents(&kept, store.reader()), ["0", "1", "2"]);
    store.record(note(&kept, "3")).unwrap();
    let session = store.reader().session(&gone).unwrap().unwrap();
    assert_eq!((session.events, session.erased_unix_ms), (3, Some(77)));

    let report = verified(&folder);
    assert_eq!(report.events, 7);
    let erased = "the sealed content of 3 event(s): their session keys were erased";
    assert!(
        report.not_checked.contains(&erased.to_owned()),
        "{:?}",
        report.not_checked
    );
    let opened = "the sealed content of 4 event(s) against its commitments";
    assert!(
        report.checked.contains(&opened.to_owned()),
        "{:?}",
        report.checked
    );

    // Neither a rotation nor a restart brings it back.
    assert_eq!(store.rotate_master_key().unwrap().rewrapped, 1);
    drop(store);
    let store = open(&folder);
    assert!(matches!(
        store.reader().session_key(&gone),
        Err(Error::Erased)
    ));
    assert!(matches!(
        store.append(note(&gone, "more"), At::Next).map(|_| ()),
        Err(Error::Erased)
    ));
    assert_eq!(files_with_part_of(&key, &folder), [] as [&Path; 0]);
}

/// Many keys share pages of the file, and pages are split and merged as keys come and go.
#[test]
fn each_of_many_erased_keys_is_gone() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let mut random = Random::new(6);
    let mut sessions: Vec<_> = (0..300).map(|n| scope(&format!("session-{n}"))).collect();
    let append = |scope: &Scope| store.append(note(scope, "x"), At::Next).unwrap();
    let pending: Vec<_> = sessions.iter().map(append).collect();
    for pending in pending {
        pending.wait().unwrap();
    }
    let before_rotation = wrapped_key(&sessions[0], &folder);
    store.rotate_master_key().unwrap();
    let keys: Vec<_> = sessions
        .iter()
        .map(|scope| wrapped_key(scope, &folder))
        .collect();
    random.shuffle(&mut sessions);
    let (erased, kept) = sessions.split_at(260);
    for scope in erased {
        assert!(store.erase(scope, 1).unwrap().complete);
    }
    for key in keys {
        let kept = kept.iter().any(|scope| wrapped_key(scope, &folder) == key);
        assert_eq!(files_with_part_of(&key, &folder).is_empty(), !kept);
    }
    assert_eq!(
        files_with_part_of(&before_rotation, &folder),
        [] as [&Path; 0]
    );
    for scope in kept {
        assert_eq!(contents(scope, store.reader()), ["x"]);
    }
}

/// A reader of another process holds an old state, and with it the old key; it is overwritten when
/// the reader has let go.
#[test]
fn an_erasure_that_a_reader_holds_up_is_finished_later() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let (gone, kept) = (scope("gone"), scope("kept"));
    store.record(note(&gone, "x")).unwrap();
    let key = wrapped_key(&gone, &folder);

    let db = rusqlite::Connection::open(folder.database()).unwrap();
    db.execute_batch("BEGIN; SELECT count(*) FROM events;")
        .unwrap();
    let erasure = store.erase(&gone, 1).unwrap();
    assert!(!erasure.complete);
    assert!(
        !files_with_part_of(&key, &folder).is_empty(),
        "the reader holds it, as the answer said"
    );
    assert!(matches!(
        store.reader().session_key(&gone),
        Err(Error::Erased)
    ));

    db.execute_batch("COMMIT").unwrap();
    store.record(note(&kept, "x")).unwrap();
    drop(store);
    assert_eq!(files_with_part_of(&key, &folder), [] as [&Path; 0]);
}

#[test]
fn a_rotation_leaves_nothing_that_the_old_key_opens() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let scope = scope("s");
    store.record(note(&scope, "x")).unwrap();
    let (old_key, old_file) = (
        wrapped_key(&scope, &folder),
        fs::read(folder.master_key()).unwrap(),
    );
    store.rotate_master_key().unwrap();
    drop(store);
    assert_eq!(files_with_part_of(&old_key, &folder), [] as [&Path; 0]);

    let reader = Reader::open(&folder).unwrap();
    assert_eq!(contents(&scope, &reader), ["x"]);
    fs::write(folder.master_key(), old_file).unwrap();
    let reader = Reader::open(&folder).unwrap();
    let error = reader.session_key(&scope).map(|_| ()).unwrap_err();
    assert!(
        matches!(error, Error::Keyring(KeyringError::Missing(_))),
        "{error}"
    );
}

#[test]
fn rotations_disturb_neither_readers_nor_writers() {
    let (_parent, folder) = new_folder();
    let (one, two) = (open(&folder), open(&folder));
    let known = scope("known");
    one.record(note(&known, "x")).unwrap();
    let event = events(&known, one.reader()).pop().unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|threads| {
        let readers: Vec<_> = [one.reader(), two.reader()]
            .into_iter()
            .map(|reader| {
                threads.spawn(|| {
                    let mut opened = 0;
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        assert_eq!(scene::content(&event, reader), "x");
                        opened += 1;
                    }
                    opened
                })
            })
            .collect();
        let rotations: Vec<_> = [&one, &two]
            .into_iter()
            .enumerate()
            .map(|(number, store)| {
                threads.spawn(move || {
                    for n in 0..15 {
                        store.rotate_master_key().unwrap();
                        let new = scope(&format!("new-{number}-{n}"));
                        store.record(note(&new, "y")).unwrap();
                    }
                })
            })
            .collect();
        let rotated = rotations
            .into_iter()
            .map(|thread| thread.join())
            .collect::<Vec<_>>();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(readers.into_iter().all(|thread| thread.join().unwrap() > 0));
        assert!(rotated.iter().all(Result::is_ok));
    });
    assert_eq!(
        Keyring::open(&folder.master_key()).unwrap().ids().count(),
        1
    );
    assert_eq!(verified(&folder).events, 31);
}
