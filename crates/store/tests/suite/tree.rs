//! Events become leaves, leaves become checkpoints; whatever is killed in between, none is lost,
//! doubled or moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use countersign_canon::Hash;
use countersign_event::Line;
use countersign_store::{Error, Filter, Folder, Options, Reader, Step, Store};
use countersign_tlog::{
    Checkpoint, Durability, Key, Kind, Note, Range, Refused, Signer, Statement, consistency, hash,
    inclusion,
};

use crate::children::{Heard, command, die, given_folder, given_number, say};
use crate::random::Random;
use crate::scene::{all, intruder, new_folder, note, open, rounds, scope, verified};

/// The leaves as the events are, from the texts alone.
fn leaves(reader: &Reader) -> Vec<Hash> {
    let events = all(&Filter::default(), reader);
    let hash = |text: &[u8]| hash::leaf(Line::read(text).unwrap().hash.as_bytes());
    events.iter().map(|event| hash(&event.line)).collect()
}

fn root(leaves: &[Hash]) -> Hash {
    let mut tree = Range::default();
    leaves.iter().for_each(|leaf| tree.push(*leaf));
    tree.root()
}

/// Every leaf is where its event is, and every checkpoint is about these leaves.
fn assert_sound(folder: &Folder) -> u64 {
    verified(folder);
    let store = open(folder);
    let reader = store.reader();
    let leaves = leaves(reader);
    let size = reader.tree_size().unwrap();
    let in_tree = &leaves[..usize::try_from(size).unwrap()];
    assert_eq!(reader.tree_root(size).unwrap(), root(in_tree));
    let mut stored: Vec<Hash> = Vec::new();
    for number in 0..size.div_ceil(256) {
        stored.extend(reader.tile(0, number).unwrap());
    }
    assert_eq!(stored, in_tree);
    let mut covered = 0;
    while let Some(next) = reader.checkpoint_covering(covered + 1).unwrap() {
        covered = next.checkpoint.size;
        let part = &leaves[..usize::try_from(covered).unwrap()];
        assert_eq!(next.checkpoint.root, root(part));
        let key = reader.log_signer().unwrap().key(Kind::Note);
        assert_eq!(next.note.verify(&key), Ok(None));
        assert_heads(&next.checkpoint, reader);
    }
    assert!(covered <= size);
    size
}

/// The tree of sessions is the one that the events give.
fn assert_heads(checkpoint: &Checkpoint, reader: &Reader) {
    let mut heads = std::collections::BTreeMap::new();
    let events = all(&Filter::default(), reader);
    for event in events
        .iter()
        .take(usize::try_from(checkpoint.size).unwrap())
    {
        let line = Line::read(&event.line).unwrap();
        let name = (line.tenant_id.to_string(), line.session_id.to_string());
        heads.insert(name, (line.seq + 1, line.hash));
    }
    let entries = heads.iter().map(|((tenant, session), (count, head))| {
        hash::leaf(&countersign_tlog::session_entry(
            tenant, session, *count, head,
        ))
    });
    let entries: Vec<Hash> = entries.collect();
    let statement = Statement::of(checkpoint).expect("our own lines");
    assert_eq!(statement.sessions.count, entries.len() as u64);
    assert_eq!(statement.sessions.hash, root(&entries));
    let at = reader.checkpoint_at(checkpoint.size).unwrap().unwrap();
    let stored = reader.session_heads(&at).unwrap();
    let stored: Vec<Hash> = stored.iter().map(|head| head.leaf()).collect();
    assert_eq!(stored, entries);
}

fn fill(store: &Store, sessions: u64, events: u64) {
    for n in 0..events {
        let session = scope(&format!("s{}", n % sessions));
        let _recorded = store.record(note(&session, &n.to_string())).unwrap();
    }
}

#[test]
fn every_event_becomes_a_leaf_that_can_be_proven() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    assert!(matches!(store.publish(None), Err(Error::NothingToPublish)));
    fill(&store, 3, 300);
    assert!(matches!(
        store.reader().prove_inclusion(0, 300),
        Err(Error::NotIntegrated)
    ));
    assert_eq!(store.integrate().unwrap(), 300);
    let first = store.publish(None).unwrap();
    assert_eq!(store.publish(None).unwrap(), first, "nothing is new");
    fill(&store, 5, 213);
    let second = store.publish(None).unwrap();
    assert_eq!((first.checkpoint.size, second.checkpoint.size), (300, 513));
    let statement = Statement::of(&second.checkpoint).unwrap();
    assert_eq!(statement.durability, Durability::Full);
    assert_eq!((statement.sessions.count, statement.audit.count), (5, 0));

    let reader = store.reader();
    let leaves = leaves(reader);
    for leaf in [0, 1, 255, 256, 299, 300, 512] {
        let path = reader.prove_inclusion(leaf, 513).unwrap();
        let found = leaves[usize::try_from(leaf).unwrap()];
        assert_eq!(
            inclusion::root(leaf, found, 513, &path),
            Some(second.checkpoint.root)
        );
    }
    let proof = reader.prove_consistency(300, 513).unwrap();
    let old = (300, first.checkpoint.root);
    assert!(consistency::check(
        old,
        (513, second.checkpoint.root),
        &proof
    ));
    assert!(matches!(
        reader.prove_inclusion(513, 513),
        Err(Error::NotIntegrated)
    ));
    assert!(matches!(
        reader.prove_inclusion(0, 514),
        Err(Error::NotIntegrated)
    ));
    drop(store);
    assert_eq!(assert_sound(&folder), 513);
}

#[test]
fn a_log_keeps_its_name_and_its_key() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    fill(&store, 1, 1);
    assert!(matches!(
        store.publish(Some("two words")),
        Err(Error::LogKey(_))
    ));
    let first = store.publish(Some("example.com/log")).unwrap();
    assert_eq!(first.checkpoint.origin, "example.com/log");
    fill(&store, 1, 1);
    assert!(matches!(
        store.publish(Some("another")),
        Err(Error::Renamed(_))
    ));
    drop(store);
    let second = open(&folder).publish(None).unwrap();
    assert_eq!(second.checkpoint.origin, "example.com/log");
    let names: Vec<_> = first
        .note
        .signatures()
        .iter()
        .map(|line| line.hint)
        .collect();
    let again: Vec<_> = second
        .note
        .signatures()
        .iter()
        .map(|line| line.hint)
        .collect();
    assert_eq!(names, again);
}

#[test]
fn checkpoints_tell_of_writers_that_did_not_wait_for_the_disk() {
    let (_parent, folder) = new_folder();
    fill(&open(&folder), 1, 1);
    intruder_keeping_triggers(&folder, "UPDATE tree SET relaxed = 1");
    let published = open(&folder).publish(None).unwrap();
    let statement = Statement::of(&published.checkpoint).unwrap();
    assert_eq!(statement.durability, Durability::Relaxed);
}

#[test]
fn a_new_key_signs_and_what_the_old_one_signed_stays_good() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    fill(&store, 1, 3);
    let first = store.publish(Some("example.com/log")).unwrap();
    fill(&store, 2, 3);
    let (old, new) = store.rotate_log_key().unwrap();
    assert_ne!(old, new);
    let reader = store.reader();
    assert_eq!(reader.log_signer().unwrap().key(Kind::Note), new);
    let earlier = reader.earlier_log_keys().unwrap();
    assert_eq!(earlier.first(), Some(&old));
    assert_eq!(earlier.len(), 1);
    // Both keys have signed where one ends and the other begins.
    let bridge = reader.last_checkpoint().unwrap().unwrap();
    assert_eq!(bridge.checkpoint.size, reader.last_id().unwrap());
    assert_eq!(bridge.note.verify(&old), Ok(None));
    assert_eq!(bridge.note.verify(&new), Ok(None));
    assert_eq!(first.note.verify(&old), Ok(None));
    assert_eq!(first.note.verify(&new), Err(Refused::Unsigned));
    let vouched = reader.vouch(first.clone()).unwrap();
    assert_eq!(vouched.note.verify(&new), Ok(None));
    assert_eq!(vouched.note.text(), first.note.text());
    fill(&store, 3, 3);
    // Also for a process that opens the log anew.
    let later = open(&folder).publish(None).unwrap();
    assert_eq!(later.checkpoint.origin, "example.com/log");
    assert_eq!(later.note.verify(&new), Ok(None));
    assert_eq!(later.note.verify(&old), Err(Refused::Unsigned));
    let (second, third) = store.rotate_log_key().unwrap();
    assert_eq!(second, new);
    assert_eq!(reader.earlier_log_keys().unwrap(), [new, old]);
    assert_eq!(reader.log_signer().unwrap().key(Kind::Note), third);
    // Nobody vouches for what the tree does not stand for.
    let mut forged = first;
    forged.checkpoint.root = hash::leaf(b"another tree");
    assert!(matches!(reader.vouch(forged), Err(Error::Inconsistent(_))));
}

#[test]
fn witnesses_are_heard_if_they_signed_what_we_signed() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    fill(&store, 1, 3);
    let published = store.publish(None).unwrap();
    let witness = Signer::new("witness.example/w", &[7; 32]).unwrap();
    let key = witness.key(Kind::Cosignature);
    let keys = [key.clone()];
    let refused = |note: &Note, keys: &[Key]| {
        let refused = store.add_cosignatures(note, keys);
        assert!(matches!(refused, Err(Error::Cosignature(_))), "{refused:?}");
    };
    refused(&published.note, &keys);

    let mut other = published.checkpoint.clone();
    other.root = hash::leaf(b"another tree");
    let mut other = other.to_note().unwrap();
    other.add(witness.cosign(&other, 5));
    refused(&other, &keys);

    let mut cosigned = published.note.clone();
    cosigned.add(witness.cosign(&cosigned, 1_700_000_000));
    let stranger = Signer::new("stranger", &[8; 32]).unwrap();
    cosigned.add(stranger.cosign(&cosigned, 5));
    refused(
        &cosigned,
        &[Signer::new("w", &[9; 32]).unwrap().key(Kind::Cosignature)],
    );
    let stored = store.add_cosignatures(&cosigned, &keys).unwrap();
    assert_eq!(stored.note.verify(&key), Ok(Some(1_700_000_000)));
    assert_eq!(
        stored.note.verify(&stranger.key(Kind::Cosignature)),
        Err(Refused::Unsigned),
        "nobody has asked for the stranger"
    );
    assert_eq!(store.add_cosignatures(&cosigned, &keys).unwrap(), stored);
    drop(store);
    assert_eq!(
        Reader::open(&folder).unwrap().last_checkpoint().unwrap(),
        Some(stored)
    );
}

#[test]
fn what_is_damaged_is_not_integrated() {
    let (_parent, folder) = new_folder();
    fill(&open(&folder), 1, 5);
    let db = intruder(&folder);
    db.execute_batch("UPDATE events SET line = replace(line, '\"memory_key\":\"k\"', '\"memory_key\":\"K\"') WHERE id = 3")
        .unwrap();
    drop(db);
    let store = Store::open(&folder, Options::default());
    let store = store.map_err(|error| error.to_string());
    // Triggers that are gone are no hindrance: only foreign ones are.
    let store = store.unwrap();
    let refused = store.publish(None);
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
    assert_eq!(store.reader().tree_size().unwrap(), 0);
}

#[test]
fn missing_events_are_not_passed_over() {
    let (_parent, folder) = new_folder();
    fill(&open(&folder), 1, 5);
    intruder(&folder)
        .execute_batch("DELETE FROM events WHERE id = 3")
        .unwrap();
    let refused = open(&folder).integrate();
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
}

/// A checkpoint that is kept under another size than it states would never be the last one.
#[test]
fn a_checkpoint_kept_under_another_size_ends_the_signing() {
    for change in ["size + 1", "size - 1"] {
        let (_parent, folder) = new_folder();
        let store = open(&folder);
        fill(&store, 2, 4);
        store.publish(None).unwrap();
        let db = intruder(&folder);
        db.execute_batch(&format!(
            "PRAGMA foreign_keys = OFF; UPDATE checkpoints SET size = {change}"
        ))
        .unwrap();
        fill(&store, 2, 4);
        let refused = store.publish(None);
        assert!(
            matches!(refused, Err(Error::Inconsistent(_))),
            "{refused:?}"
        );
    }
}

/// The database is put back; the checkpoint beside it, and everybody who kept one, knows better.
#[test]
fn a_database_that_was_rolled_back_is_noticed() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    fill(&store, 2, 40);
    let old = store.publish(None).unwrap();
    drop(store);
    intruder_keeping_triggers(&folder, "PRAGMA wal_checkpoint(TRUNCATE)");
    let backup = std::fs::read(folder.database()).unwrap();
    let store = open(&folder);
    fill(&store, 2, 10);
    let newer = store.publish(None).unwrap();
    drop(store);
    for suffix in ["-wal", "-shm"] {
        let mut name = folder.database().into_os_string();
        name.push(suffix);
        let _ = std::fs::remove_file(name);
    }
    std::fs::write(folder.database(), backup).unwrap();

    let store = open(&folder);
    assert_eq!(store.reader().last_id().unwrap(), 40);
    assert!(matches!(store.publish(None), Err(Error::Inconsistent(_))));
    fill(&store, 2, 30);
    let refused = store.publish(None);
    assert!(
        matches!(refused, Err(Error::Inconsistent(_))),
        "{refused:?}"
    );
    // Without that copy it signs again: whoever kept the newer checkpoint sees the fork.
    std::fs::remove_file(folder.last_checkpoint()).unwrap();
    let forked = store.publish(None).unwrap();
    let proof = store
        .reader()
        .prove_consistency(50, forked.checkpoint.size)
        .unwrap();
    let (kept, now) = ((50, newer.checkpoint.root), (70, forked.checkpoint.root));
    assert!(!consistency::check(kept, now, &proof));
    let proof = store.reader().prove_consistency(40, 70).unwrap();
    assert!(consistency::check((40, old.checkpoint.root), now, &proof));
}

/// Threads append, integrate and publish at once.
#[test]
fn integrating_beside_appending_loses_nothing() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    std::thread::scope(|threads| {
        for thread in 0..3 {
            let store = &store;
            threads.spawn(move || {
                for n in 0..200 {
                    let session = scope(&format!("own-{thread}"));
                    let _recorded = store.record(note(&session, &n.to_string())).unwrap();
                }
            });
        }
        for _ in 0..2 {
            threads.spawn(|| {
                while store.integrate().unwrap() < 600 {
                    match store.publish(None) {
                        Ok(_) | Err(Error::NothingToPublish) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(store.publish(None).unwrap().checkpoint.size, 600);
    drop(store);
    assert_eq!(assert_sound(&folder), 600);
}

/// Several processes append, integrate and publish on one folder.
#[test]
fn processes_take_turns() {
    let (_parent, folder) = new_folder();
    let children: Vec<Heard> = (0..4)
        .map(|number: u64| {
            let mut command = command("tree::child_publishes", &folder);
            command.env(NUMBER, number.to_string());
            Heard::start(command)
        })
        .collect();
    let ends: Vec<_> = children.into_iter().map(Heard::end).collect();
    ends.iter().for_each(|end| end.assert_success());
    let last = open(&folder).publish(None).unwrap();
    assert_eq!(last.checkpoint.size, 4 * 60);
    assert_eq!(assert_sound(&folder), 4 * 60);
    // What each of them was given is what the log still says.
    let reader = Reader::open(&folder).unwrap();
    let said: Vec<&String> = ends.iter().flat_map(|end| &end.said).collect();
    assert!(
        said.len() >= 40,
        "{} checkpoints are no campaign",
        said.len()
    );
    for line in said {
        let (size, root) = line.split_once(' ').unwrap();
        let kept = reader
            .checkpoint_at(size.parse().unwrap())
            .unwrap()
            .unwrap();
        assert_eq!(kept.checkpoint.root.to_string(), root);
    }
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_publishes() {
    let Some(folder) = given_folder() else { return };
    let store = open(&folder);
    let session = scope(&format!("own-{}", given_number(NUMBER)));
    for n in 0..60 {
        let _recorded = store.record(note(&session, &n.to_string())).unwrap();
        if n % 5 == 0 {
            let Checkpoint { size, root, .. } = store.publish(None).unwrap().checkpoint;
            say(&format!("{size} {root}"));
        }
    }
}

/// Kills the process when events are sequenced, integrated, signed and published.
/// `COUNTERSIGN_TREE_ROUNDS` is the number of kills over all steps.
#[test]
fn killed_between_sequencing_and_publishing() {
    let steps = steps();
    let rounds = rounds("COUNTERSIGN_TREE_ROUNDS", 25);
    let mut random = Random::new(3);
    for (number, step) in steps.iter().enumerate() {
        let (_parent, folder) = new_folder();
        fill(&open(&folder), 1, 1);
        for _ in 0..rounds.div_ceil(steps.len() as u64) {
            let mut command = command("tree::child_is_killed", &folder);
            command
                .env(STEP, number.to_string())
                .env(COUNT, (1 + random.below(12)).to_string());
            let end = Heard::start(command).end();
            assert!(end.was_killed(), "{step:?}: {}\n{}", end.status, end.stderr);
            let reader = Reader::open(&folder).unwrap();
            for line in &end.said {
                let (size, root) = line.split_once(' ').unwrap();
                let kept = reader.checkpoint_at(size.parse().unwrap()).unwrap();
                assert_eq!(kept.unwrap().checkpoint.root.to_string(), root, "{step:?}");
            }
            assert_sound(&folder);
        }
        let recorded = Reader::open(&folder).unwrap().last_id().unwrap();
        assert_eq!(
            open(&folder).publish(None).unwrap().checkpoint.size,
            recorded
        );
        assert_eq!(assert_sound(&folder), recorded);
    }
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_is_killed() {
    let Some(folder) = given_folder() else { return };
    let step = steps()[usize::try_from(given_number(STEP)).unwrap()];
    let count = given_number(COUNT);
    let seen = AtomicU64::new(0);
    let observer = Arc::new(move |at| {
        if at == step && seen.fetch_add(1, Ordering::Relaxed) + 1 == count {
            die();
        }
    });
    let options = Options {
        observer: Some(observer),
        ..Options::default()
    };
    let store = Store::open(&folder, options).unwrap();
    for n in 0..1000 {
        fill(&store, 4, 1 + n % 7);
        if n % 3 == 0 {
            store.integrate().unwrap();
        }
        let Checkpoint { size, root, .. } = store.publish(None).unwrap().checkpoint;
        say(&format!("{size} {root}"));
    }
}

fn steps() -> Vec<Step> {
    let mut steps = vec![Step::Synced];
    steps.extend(Step::LATER);
    steps
}

fn intruder_keeping_triggers(folder: &Folder, sql: &str) {
    let db = rusqlite::Connection::open(folder.database()).unwrap();
    db.execute_batch(sql).unwrap();
}

#[test]
fn the_tree_cannot_be_changed_by_a_plain_statement() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    fill(&store, 1, 3);
    store.publish(None).unwrap();
    let db = rusqlite::Connection::open(folder.database()).unwrap();
    for sql in [
        "UPDATE tree SET size = 1",
        "DELETE FROM tree",
        "UPDATE tiles SET hashes = zeroblob(96)",
        "UPDATE tiles SET hashes = substr(hashes, 1, 32)",
        "DELETE FROM tiles",
        "INSERT OR REPLACE INTO tiles SELECT id, zeroblob(32) FROM tiles",
        "UPDATE checkpoints SET note = ''",
        "DELETE FROM checkpoints",
        "INSERT OR REPLACE INTO checkpoints SELECT size, '' FROM checkpoints",
        "INSERT INTO checkpoints VALUES (4, '')",
        "UPDATE session_heads SET count = 1",
        "DELETE FROM session_heads",
    ] {
        assert!(db.execute_batch(sql).is_err(), "{sql}");
    }
}

#[test]
fn a_log_of_an_older_version_gets_its_tree_when_it_is_written() {
    let (_parent, folder) = new_folder();
    fill(&open(&folder), 2, 5);
    let db = rusqlite::Connection::open(folder.database()).unwrap();
    let version: i64 = db
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    for table in [
        "tree",
        "tiles",
        "checkpoints",
        "cosignatures",
        "session_heads",
    ] {
        db.execute_batch(&format!("DROP TABLE {table}")).unwrap();
    }
    db.pragma_update(None, "user_version", version - 1).unwrap();
    drop(db);
    let reader = Reader::open(&folder).unwrap();
    assert_eq!(reader.tree_size().unwrap(), 0);
    assert_eq!(reader.last_checkpoint().unwrap(), None);
    assert_eq!(open(&folder).publish(None).unwrap().checkpoint.size, 5);
    assert_eq!(assert_sound(&folder), 5);
}

const STEP: &str = "COUNTERSIGN_TEST_STEP";
const COUNT: &str = "COUNTERSIGN_TEST_COUNT";
const NUMBER: &str = "COUNTERSIGN_TEST_NUMBER";
