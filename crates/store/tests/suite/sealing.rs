//! What is sealed stays sealed: nothing sensitive lies in clear, and everything opens as it was.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use countersign_canon::{Json, Object};
use countersign_event::{EventType, Payload, Scope};
use countersign_store::{At, Draft, Error, Folder, Options, Reader, Store};
use countersign_vault::{Keyring, KeyringError};

use crate::random::Random;
use crate::scene::{
    self, contents, draft, events, files_with, find, intruder, new_folder, note, open, scope,
    verified, verify, verify_with, whole_text,
};

/// The sealed members of each type. A type that is missing here has public members only.
const SEALED: &[(EventType, &[&str])] = &[
    (EventType::ModelCallStarted, &["prompt"]),
    (EventType::ModelCallFinished, &["content"]),
    (EventType::ToolCallProposed, &["args"]),
    (EventType::ToolCallDenied, &["message"]),
    (EventType::ToolResult, &["content"]),
    (EventType::ApprovalRequested, &["approval_token"]),
    (
        EventType::ApprovalDecided,
        &["approval_token", "edited_args", "message"],
    ),
    (EventType::MemoryRead, &["content"]),
    (EventType::MemoryWrite, &["content"]),
    (EventType::HandoffRequested, &["context"]),
    (EventType::Termination, &["detail"]),
    (EventType::ErrorRaised, &["message"]),
    (EventType::SanitizedText, &["text"]),
];

#[test]
fn no_secret_lies_in_clear() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let mut secrets = 0;
    for event_type in EventType::ALL {
        let members = SEALED.iter().find(|(found, _)| found == event_type);
        let mut secret = |place: &str| {
            secrets += 1;
            format!("SECRET-{event_type}-{place}")
        };
        // Every sealed member, as text, inside an array and as a key; and members that the type
        // does not know, by value and by name.
        let mut payload = Object::default();
        for member in members.map_or(&[] as &[&str], |(_, members)| *members) {
            let value = Json::object([
                ("text", Json::from(secret(&format!("{member}-text")))),
                (
                    "list",
                    Json::Array(vec![Json::from(secret(&format!("{member}-item")))]),
                ),
                (&secret(&format!("{member}-key")), Json::Null),
            ]);
            payload.insert((*member).to_owned(), value);
        }
        payload.insert("unknown".to_owned(), Json::from(secret("unknown")));
        payload.insert(secret("name"), Json::from(1_u64));
        payload.insert("sealed".to_owned(), Json::from(secret("lookalike")));
        record_alone(*event_type, Json::Object(payload), "object", &store);

        // A payload that is no object is sealed as a whole.
        let list = Json::Array(vec![Json::from(secret("array"))]);
        record_alone(*event_type, list, "array", &store);
        record_alone(*event_type, Json::from(secret("string")), "string", &store);
    }
    assert!(secrets > 130);
    assert_no_marker(&folder);
    drop(store);
    assert_no_marker(&folder);
    // The search itself works: what is public is found.
    assert!(!files_with(b"HANDOFF_REQUESTED", &folder).is_empty());
    verified(&folder);
}

/// The markers must be in no file: not as they are, not in other cases, not as hexadecimal.
fn assert_no_marker(folder: &Folder) {
    for path in scene::files(folder) {
        let text = fs::read(&path).unwrap().to_ascii_lowercase();
        let hex = base16ct::lower::encode_string(b"SECRET-");
        assert!(!find(b"secret-", &text), "{}", path.display());
        assert!(!find(hex.as_bytes(), &text), "{}", path.display());
    }
}

#[test]
fn the_files_are_for_their_owner_only() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    store.record(note(&scope("s"), "x")).unwrap();
    store.rotate_master_key().unwrap();
    assert_eq!(mode(folder.path()), 0o700);
    assert_eq!(mode(&folder.master_key()), 0o600);
    for file in scene::files(&folder) {
        assert_eq!(mode(&file) & 0o077, 0, "{}", file.display());
    }
    // The key itself is in the key file only.
    let key_file = fs::read_to_string(folder.master_key()).unwrap();
    let hex = key_file.split('"').find(|part| part.len() == 64).unwrap();
    assert_eq!(files_with(hex.as_bytes(), &folder), [folder.master_key()]);
    let bytes = base16ct::lower::decode_vec(hex).unwrap();
    assert!(files_with(&bytes, &folder).is_empty());
}

#[test]
fn a_key_file_that_others_can_read_is_refused() {
    let (_parent, folder) = new_folder();
    open(&folder).record(note(&scope("s"), "x")).unwrap();
    for bits in [0o644, 0o640, 0o604, 0o660, 0o777] {
        fs::set_permissions(folder.master_key(), fs::Permissions::from_mode(bits)).unwrap();
        let Err(error) = Store::open(&folder, Options::default()) else {
            unreachable!()
        };
        assert!(
            matches!(error, Error::Keyring(KeyringError::Exposed { .. })),
            "{error}"
        );
        assert!(
            error.to_string().contains(&format!("mode {bits:03o}")),
            "{error}"
        );
        let reader = Reader::open(&folder).unwrap();
        assert!(reader.session_key(&scope("s")).is_err());
    }
    fs::set_permissions(folder.master_key(), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(contents(&scope("s"), open(&folder).reader()), ["x"]);
}

/// Every type, with random values at every declared member, unknown members and all.
#[test]
fn a_payload_comes_back_as_it_was_given() {
    const PUBLIC_TEXT: &[&str] = &[
        "call_id",
        "tool_name",
        "model_id",
        "reason",
        "memory_key",
        "key",
    ];
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let mut random = Random::new(5);
    let mut given = Vec::new();
    let mut pending = Vec::new();
    for round in 0..12 {
        for event_type in EventType::ALL {
            let mut payload = random.object(3);
            let members = SEALED.iter().find(|(found, _)| found == event_type);
            for member in members.map_or(&[] as &[&str], |(_, members)| *members) {
                if random.below(4) > 0 {
                    payload.insert((*member).to_owned(), random.json(4));
                }
            }
            for member in PUBLIC_TEXT {
                if random.below(3) == 0 {
                    payload.insert((*member).to_owned(), Json::String(random.text()));
                }
            }
            for member in ["sealed", "*", "/args", ""] {
                if random.below(6) == 0 {
                    payload.insert(member.to_owned(), random.json(2));
                }
            }
            let payload = match random.below(8) {
                0 => random.json(3),
                _ => Json::Object(payload),
            };
            let scope = scope(&format!("{event_type}-{round}"));
            let Ok(admitted) = Payload::admit(*event_type, payload.clone()) else {
                continue;
            };
            for draft in prelude(*event_type, &payload, &scope) {
                pending.push(store.append(draft, At::Next).unwrap());
            }
            let draft = Draft {
                scope: scope.clone(),
                ts_unix_ms: scene::NOW,
                event_type: *event_type,
                payload: admitted,
            };
            pending.push(store.append(draft, At::Next).unwrap());
            given.push((scope, payload));
        }
    }
    assert!(given.len() > 150, "{}", given.len());
    for pending in pending {
        pending.wait().unwrap();
    }
    for (scope, payload) in given {
        let last = events(&scope, store.reader()).pop().unwrap();
        let opened = store.reader().open_payload(&last).unwrap();
        assert_eq!(opened, payload, "{scope:?}");
    }
    let report = verified(&folder);
    assert!(
        report
            .checked
            .iter()
            .any(|line| line.contains("against its commitments"))
    );
}

#[test]
fn the_wrong_master_key_is_named() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let scope = scope("s");
    store.record(note(&scope, "x")).unwrap();
    let id = Keyring::open(&folder.master_key())
        .unwrap()
        .current()
        .unwrap()
        .clone();
    drop(store);
    // Somebody puts the key of another folder here.
    let (_other_parent, other) = new_folder();
    drop(open(&other));
    fs::copy(other.master_key(), folder.master_key()).unwrap();

    let missing = format!("the master key `{id}` is not in the key file");
    let reader = Reader::open(&folder).unwrap();
    let event = events(&scope, &reader).pop().unwrap();
    assert_eq!(
        reader.open_payload(&event).unwrap_err().to_string(),
        missing
    );
    assert_eq!(reader.check_keys().unwrap_err().to_string(), missing);
    // Nothing is written with a key that does not belong to the log.
    let Err(refused) = Store::open(&folder, Options::default()) else {
        panic!("the key of another log was taken");
    };
    assert_eq!(refused.to_string(), missing);
    // The chain can be checked all the same, and the report says what could not be.
    let report = verify_with(&folder, None);
    assert!(report.is_good());
    let closed = "the sealed content of 1 event(s): the master key is not here";
    assert!(
        report.not_checked.contains(&closed.to_owned()),
        "{:?}",
        report.not_checked
    );
    assert_eq!(verify(&folder).failure.unwrap().problem.name(), "unopened");
}

#[test]
fn a_lost_key_file_is_not_replaced_by_a_new_one() {
    let (_parent, folder) = new_folder();
    open(&folder).record(note(&scope("s"), "x")).unwrap();
    fs::rename(folder.master_key(), folder.path().join("elsewhere")).unwrap();
    let Err(error) = Store::open(&folder, Options::default()) else {
        unreachable!()
    };
    assert!(
        matches!(error, Error::KeyFileMissing(_)),
        "{}",
        whole_text(&error)
    );
    assert!(!folder.master_key().exists());
    fs::rename(folder.path().join("elsewhere"), folder.master_key()).unwrap();
    assert_eq!(contents(&scope("s"), open(&folder).reader()), ["x"]);
}

#[test]
fn a_ciphertext_in_another_place_is_found() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let (one, two) = (scope("one"), scope("two"));
    for scope in [&one, &two] {
        store.record(note(scope, "first")).unwrap();
        store.record(note(scope, "second")).unwrap();
    }
    drop(store);
    // 1 and 2 are the events of one session, 3 and 4 of the other.
    for (a, b, what) in [(1, 2, "two events"), (1, 3, "two sessions")] {
        let db = intruder(&folder);
        swap(a, b, &db);
        let failure = verify(&folder).failure.unwrap();
        assert_eq!(failure.problem.name(), "ciphertext", "{what}");
        assert_eq!(
            failure.place,
            Some(countersign_verify::Place::Row(1)),
            "{what}"
        );
        let without_keys = verify_with(&folder, None).failure.unwrap();
        assert_eq!(without_keys.problem.name(), "ciphertext", "{what}");
        // Whoever reads the payload is not told the wrong one either.
        let reader = Reader::open(&folder).unwrap();
        let error = reader.open_payload(&events(&one, &reader)[0]).unwrap_err();
        assert!(matches!(error, Error::Damaged { seq: 0, .. }), "{error}");
        swap(a, b, &db);
        verified(&folder);
    }
    // Taken away, or added where nothing is sealed.
    let db = intruder(&folder);
    let ciphertext: Vec<u8> = db
        .query_row("SELECT sealed FROM events WHERE id = 1", [], |row| {
            row.get(0)
        })
        .unwrap();
    db.execute("UPDATE events SET sealed = NULL WHERE id = 1", [])
        .unwrap();
    let reader = Reader::open(&folder).unwrap();
    let event = events(&one, &reader).remove(0);
    assert!(matches!(
        reader.open_payload(&event),
        Err(Error::Damaged { .. })
    ));
    assert_eq!(
        verify(&folder).failure.unwrap().problem.name(),
        "ciphertext"
    );
    db.execute("UPDATE events SET sealed = ?1 WHERE id = 1", [&ciphertext])
        .unwrap();
    verified(&folder);
}

fn swap(a: i64, b: i64, db: &rusqlite::Connection) {
    let sealed = |id: i64| -> Vec<u8> {
        db.query_row("SELECT sealed FROM events WHERE id = ?1", [id], |row| {
            row.get(0)
        })
        .unwrap()
    };
    let (of_a, of_b) = (sealed(a), sealed(b));
    db.execute("UPDATE events SET sealed = ?2 WHERE id = ?1", (a, of_b))
        .unwrap();
    db.execute("UPDATE events SET sealed = ?2 WHERE id = ?1", (b, of_a))
        .unwrap();
}

/// The session keys swapped: everything is there, and nothing opens.
#[test]
fn a_session_key_in_another_place_is_found() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    for session in ["one", "two"] {
        store.record(note(&scope(session), session)).unwrap();
    }
    drop(store);
    let db = intruder(&folder);
    db.execute(
        "UPDATE session_keys SET wrapped =
         (SELECT o.wrapped FROM session_keys o WHERE o.session <> session_keys.session)",
        [],
    )
    .unwrap();
    assert_eq!(verify(&folder).failure.unwrap().problem.name(), "unopened");
    let store = open(&folder);
    let error = store.record(note(&scope("one"), "more")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the ciphertext does not decrypt: wrong key, or it was changed"
    );
}

/// Records an event in a session of its own, after the events that must come first.
fn record_alone(event_type: EventType, payload: Json, name: &str, store: &Store) {
    let scope = scope(&format!("{event_type}-{name}"));
    for draft in prelude(event_type, &payload, &scope) {
        store.append(draft, At::Next).unwrap();
    }
    let payload = Payload::admit(event_type, payload).unwrap();
    let draft = Draft {
        scope,
        ts_unix_ms: scene::NOW,
        event_type,
        payload,
    };
    store.record(draft).unwrap();
}

/// What must come before an event of this type with these ids.
fn prelude(event_type: EventType, payload: &Json, scope: &Scope) -> Vec<Draft> {
    use EventType as T;
    let call = payload.get("call_id").cloned();
    let before: &[EventType] = match event_type {
        T::ModelCallFinished => &[T::ModelCallStarted],
        T::ToolCallAllowed | T::ToolCallDenied => &[T::ToolCallProposed],
        T::PolicyDecision if call.is_some() => &[T::ToolCallProposed],
        T::ApprovalRequested if call.is_some() => &[T::ToolCallProposed],
        T::ApprovalDecided if call.is_some() => &[T::ToolCallProposed, T::ApprovalRequested],
        T::ApprovalDecided => &[T::ApprovalRequested],
        T::ToolCallExecuted => &[T::ToolCallProposed, T::ToolCallAllowed],
        T::ToolResult => &[T::ToolCallProposed, T::ToolCallAllowed, T::ToolCallExecuted],
        T::HandoffCompleted => &[T::HandoffRequested],
        _ => &[],
    };
    let ids = Json::object(call.map(|call| ("call_id", call)));
    let text = String::from_utf8(ids.to_jcs().unwrap()).unwrap();
    before
        .iter()
        .map(|event_type| draft(scope, *event_type, &text))
        .collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_list_of_sealed_members_is_complete() {
    for event_type in EventType::ALL {
        let listed = SEALED.iter().find(|(found, _)| found == event_type);
        for member in listed.map_or(&[] as &[&str], |(_, members)| *members) {
            let payload = Json::object([(*member, Json::Null)]);
            let split = Payload::admit(*event_type, payload).unwrap().split();
            let place = format!("/{member}");
            assert!(
                split.sealed.iter().any(|(found, _)| *found == place),
                "{event_type} {place}"
            );
        }
    }
}
