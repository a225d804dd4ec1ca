//! The master key file: made once, private, and never the place where a key gets lost.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Barrier;

use countersign_event::{Payload, Scope};
use countersign_vault::{CipherError, KeyId, Keyring, KeyringError, SessionKey};
use tempfile::TempDir;

#[test]
fn the_file_is_private_and_says_the_same_again() {
    let (_parent, path) = new_path();
    let made = Keyring::open_or_create(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
    let text = fs::read(&path).unwrap();
    let again = Keyring::open_or_create(&path).unwrap();
    assert_eq!(ids(&again), ids(&made));
    assert_eq!(fs::read(&path).unwrap(), text);
    assert_eq!(names(&path), ["master.key"]);
}

/// The form of the file is a promise to whoever keeps a copy of it.
#[test]
fn a_known_file_gives_known_ids() {
    let (_parent, path) = new_path();
    let keys = ["00".repeat(32), "0123456789abcdef".repeat(4)];
    write(
        &path,
        &format!(
            "{{\"keys\":[\"{}\",\"{}\"],\"version\":1}}\n",
            keys[0], keys[1]
        ),
    );
    let keyring = Keyring::open(&path).unwrap();
    let expected = ["mk_4e346a6e2f3730dd", "mk_1630c792656199e7"];
    let found: Vec<_> = keyring.ids().map(KeyId::as_str).collect();
    assert_eq!(found, expected);
    assert_eq!(
        keyring.current().map(KeyId::as_str),
        Some(expected[1]),
        "the last one is current"
    );
}

#[test]
fn of_many_who_make_the_file_one_does() {
    const THREADS: usize = 8;
    for _ in 0..20 {
        let (_parent, path) = new_path();
        let start = Barrier::new(THREADS);
        let found: Vec<_> = std::thread::scope(|threads| {
            let open = || {
                start.wait();
                ids(&Keyring::open_or_create(&path).unwrap())
            };
            let threads: Vec<_> = (0..THREADS).map(|_| threads.spawn(open)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(
            found.iter().all(|ids| *ids == found[0] && ids.len() == 1),
            "{found:?}"
        );
        assert_eq!(names(&path), ["master.key"], "no copy of a key is left");
    }
}

#[test]
fn what_is_no_key_file_is_refused() {
    let (_parent, path) = new_path();
    let key = "ab".repeat(32);
    let short = "ab".repeat(31);
    let long = "ab".repeat(33);
    let upper = "AB".repeat(32);
    for text in [
        String::new(),
        "hello".to_owned(),
        "{}".to_owned(),
        "{\"keys\":[],\"version\":1}".to_owned(),
        format!("{{\"keys\":[\"{key}\"]}}"),
        format!("{{\"keys\":[\"{key}\"],\"version\":2}}"),
        format!("{{\"keys\":\"{key}\",\"version\":1}}"),
        format!("{{\"keys\":[\"{short}\"],\"version\":1}}"),
        format!("{{\"keys\":[\"{long}\"],\"version\":1}}"),
        format!("{{\"keys\":[\"{upper}\"],\"version\":1}}"),
        format!("{{\"keys\":[\"{key}\",1],\"version\":1}}"),
        format!("{{\"keys\":[\"{key}\"],\"version\":1}}{{}}"),
        format!("{{\"keys\":[\"{key}\"],\"keys\":[\"{key}\"],\"version\":1}}"),
    ] {
        write(&path, &text);
        let Err(error) = Keyring::open(&path) else {
            panic!("{text}")
        };
        assert_eq!(
            error.to_string(),
            format!("`{}` is not a master key file", path.display())
        );
        // It is not replaced either: it may be what is left of the only copy.
        assert!(Keyring::open_or_create(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    fs::remove_file(&path).unwrap();
    assert!(matches!(Keyring::open(&path), Err(KeyringError::Io { .. })));
}

#[test]
fn a_file_that_others_can_read_is_refused() {
    let (_parent, path) = new_path();
    drop(Keyring::open_or_create(&path).unwrap());
    for bits in [0o644, 0o640, 0o604, 0o620, 0o610, 0o601, 0o700 | 0o070] {
        fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
        let Err(error) = Keyring::open(&path) else {
            panic!("{bits:o}")
        };
        assert!(
            matches!(error, KeyringError::Exposed { mode, .. } if mode == bits),
            "{error}"
        );
    }
    for bits in [0o600, 0o400] {
        fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
        assert!(Keyring::open(&path).is_ok());
    }
}

#[test]
fn a_wrapped_key_opens_under_its_name_and_master_key_only() {
    let (_parent, path) = new_path();
    let keyring = Keyring::open_or_create(&path).unwrap();
    let scope = scope("ab", "c");
    let key = SessionKey::generate().unwrap();
    let wrapped = keyring.wrap(&key, &scope).unwrap();
    assert!(keyring.unwrap(&wrapped, &scope).unwrap() == key);
    assert!(
        keyring.wrap(&key, &scope).unwrap() != wrapped,
        "each wrapping has its own nonce"
    );

    for other in [
        self::scope("a", "bc"),
        self::scope("c", "ab"),
        self::scope("ab", "d"),
    ] {
        let refused = keyring.unwrap(&wrapped, &other).err().unwrap();
        assert!(
            matches!(refused, KeyringError::Cipher(CipherError::Refused)),
            "{other:?}"
        );
    }
    for bit in 0..wrapped.bytes.len() * 8 {
        let mut changed = wrapped.clone();
        changed.bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(keyring.unwrap(&changed, &scope).is_err(), "bit {bit}");
    }
    for length in 0..wrapped.bytes.len() {
        let mut changed = wrapped.clone();
        changed.bytes.truncate(length);
        assert!(keyring.unwrap(&changed, &scope).is_err(), "length {length}");
    }
    let (_other_parent, other) = new_path();
    let stranger = Keyring::open_or_create(&other).unwrap();
    let refused = stranger.unwrap(&wrapped, &scope).err().unwrap();
    assert!(matches!(refused, KeyringError::Missing(id) if id == wrapped.master));
}

#[test]
fn a_rotation_adds_a_key_and_then_drops_the_old_one() {
    let (_parent, path) = new_path();
    let mut keyring = Keyring::open_or_create(&path).unwrap();
    let scope = scope("t", "s");
    let key = SessionKey::generate().unwrap();
    let (old, before) = (
        keyring.current().unwrap().clone(),
        keyring.wrap(&key, &scope).unwrap(),
    );
    let new = keyring.add().unwrap();
    assert_eq!(ids(&keyring), [old.clone(), new.clone()]);
    assert_eq!(ids(&Keyring::open(&path).unwrap()), ids(&keyring));
    let after = keyring.wrap(&key, &scope).unwrap();
    assert_eq!(after.master, new);
    assert!(keyring.unwrap(&before, &scope).unwrap() == key);

    keyring.retire(&[old]).unwrap();
    assert_eq!(ids(&keyring), [new]);
    assert_eq!(ids(&Keyring::open(&path).unwrap()), ids(&keyring));
    assert!(keyring.unwrap(&after, &scope).unwrap() == key);
    assert!(matches!(
        keyring.unwrap(&before, &scope).err().unwrap(),
        KeyringError::Missing(_)
    ));
    assert_eq!(
        (mode(&path), names(&path)),
        (0o600, vec!["master.key".to_owned()])
    );
}

/// A key that is not in the file would take everything it wraps with it.
#[test]
fn a_key_that_could_not_be_saved_is_not_used() {
    let parent = tempfile::tempdir().unwrap();
    let (folder, moved) = (parent.path().join("data"), parent.path().join("moved"));
    fs::create_dir(&folder).unwrap();
    let path = folder.join("master.key");
    let mut keyring = Keyring::open_or_create(&path).unwrap();
    let before = ids(&keyring);
    fs::rename(&folder, &moved).unwrap();
    assert!(matches!(keyring.add(), Err(KeyringError::Io { .. })));
    assert_eq!(ids(&keyring), before);
    let key = SessionKey::generate().unwrap();
    let wrapped = keyring.wrap(&key, &scope("t", "s")).unwrap();
    assert_eq!(wrapped.master, before[0]);
    fs::rename(&moved, &folder).unwrap();
    assert_eq!(ids(&Keyring::open(&path).unwrap()), before);
}

/// Another process has rotated twice while this one was about to finish.
#[test]
fn a_late_end_of_a_rotation_drops_no_key_of_another_one() {
    let (_parent, path) = new_path();
    let mut slow = Keyring::open_or_create(&path).unwrap();
    let old = slow.current().unwrap().clone();
    let middle = slow.add().unwrap();
    let mut quick = Keyring::open(&path).unwrap();
    quick.retire(std::slice::from_ref(&old)).unwrap();
    let newest = quick.add().unwrap();
    quick.retire(&[middle]).unwrap();

    slow.retire(&[old]).unwrap();
    assert_eq!(
        ids(&Keyring::open(&path).unwrap()),
        std::slice::from_ref(&newest)
    );
    assert_eq!(ids(&slow), [newest]);
}

#[test]
fn the_current_key_cannot_be_retired() {
    let (_parent, path) = new_path();
    let mut keyring = Keyring::open_or_create(&path).unwrap();
    let all = ids(&keyring);
    keyring.retire(&all).unwrap();
    assert_eq!(ids(&Keyring::open(&path).unwrap()), all);
}

/// What a killed process has left is a copy of a key; what the operator has put there is not ours.
#[test]
fn a_rotation_removes_left_copies_and_nothing_else() {
    let (_parent, path) = new_path();
    let mut keyring = Keyring::open_or_create(&path).unwrap();
    let old = keyring.current().unwrap().clone();
    let folder = path.parent().unwrap();
    let others = [
        "log.db",
        "master.key.bak",
        "master.key.2024-01-01",
        "master.keys",
        "notes",
    ];
    for name in others {
        fs::write(folder.join(name), "mine").unwrap();
    }
    for left in ["master.key.0123456789abcdef", "master.key.ffffffffffffffff"] {
        fs::copy(&path, folder.join(left)).unwrap();
    }
    keyring.add().unwrap();
    keyring.retire(&[old]).unwrap();
    let mut expected: Vec<_> = others.iter().map(ToString::to_string).collect();
    expected.push("master.key".to_owned());
    expected.sort();
    assert_eq!(names(&path), expected);
}

#[test]
fn a_session_key_from_the_file_opens_what_the_first_one_sealed() {
    let (_parent, path) = new_path();
    let scope = scope("t", "s");
    let keyring = Keyring::open_or_create(&path).unwrap();
    let key = SessionKey::generate().unwrap();
    let wrapped = keyring.wrap(&key, &scope).unwrap();
    let secret = countersign_canon::Json::from("secret");
    let sealed = key.seal(Payload::Opaque(secret.clone()), &scope).unwrap();
    drop((key, keyring));

    let key = Keyring::open(&path)
        .unwrap()
        .unwrap(&wrapped, &scope)
        .unwrap();
    let openings = key.open(&sealed.ciphertext.unwrap(), &scope).unwrap();
    assert!(openings.len() == 1 && openings[0].1.value == secret);
}

fn new_path() -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("master.key");
    (parent, path)
}

fn scope(tenant: &str, session: &str) -> Scope {
    Scope::new(tenant, session).unwrap()
}

fn ids(keyring: &Keyring) -> Vec<KeyId> {
    keyring.ids().cloned().collect()
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}
