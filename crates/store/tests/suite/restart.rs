//! A store that was closed and opened again is the same store.

use countersign_event::{EventType, Head, OrderError, Scope};
use countersign_store::{
    At, Cursor, Error, Filter, Pending, Reader, SessionSummary, Store, Stored,
};

use crate::scene::{draft, events, head, new_folder, note, open, scope, verified};

#[test]
fn everything_is_as_it_was() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    write_a_bit_of_everything(&store);
    let before = State::of(store.reader());
    assert!(before.sessions.iter().any(|session| session.terminated));
    assert!(
        before
            .sessions
            .iter()
            .any(|session| session.erased_unix_ms.is_some())
    );
    drop(store);
    for _ in 0..3 {
        let store = open(&folder);
        assert!(State::of(store.reader()) == before);
        assert!(State::of(&Reader::open(&folder).unwrap()) == before);
    }
    // Also from a copy of the files, as a backup would be.
    let (_parent, copy) = new_folder();
    std::fs::create_dir(copy.path()).unwrap();
    for file in crate::scene::files(&folder) {
        std::fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
    }
    assert!(State::of(open(&copy).reader()) == before);
    verified(&copy);
}

/// What a caller kept before the restart, a head or a cursor, still means the same.
#[test]
fn heads_and_cursors_outlive_the_store() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let scope = scope("s");
    let mut last = None;
    for n in 0..5 {
        last = Some(store.record(note(&scope, &n.to_string())).unwrap());
    }
    let last = last.unwrap();
    let page = store
        .reader()
        .page(&Filter::session(&scope), None, 2)
        .unwrap();
    let cursor = page.next.unwrap().to_string();
    drop(store);

    let store = open(&folder);
    let cursor: Cursor = cursor.parse().unwrap();
    let rest = store
        .reader()
        .page(&Filter::session(&scope), Some(&cursor), 9)
        .unwrap();
    assert_eq!(
        rest.events.iter().map(|event| event.id).collect::<Vec<_>>(),
        [3, 4, 5]
    );
    let stale = store.append(note(&scope, "never"), At::Head(Head::after(3, last.hash())));
    assert!(matches!(
        stale.and_then(Pending::wait),
        Err(Error::Conflict(_))
    ));
    let next = store
        .append(note(&scope, "5"), At::Head(head(&last)))
        .unwrap()
        .wait()
        .unwrap();
    assert_eq!((next.seq(), next.id()), (5, 6));
    verified(&folder);
}

#[test]
fn the_order_of_calls_outlives_the_store() {
    let (_parent, folder) = new_folder();
    let scope = scope("s");
    let record =
        |event_type, payload: &str| open(&folder).record(draft(&scope, event_type, payload));
    for (event_type, payload) in [
        (EventType::ToolCallProposed, r#"{"call_id":"c"}"#),
        (EventType::ToolCallProposed, r#"{"call_id":"d"}"#),
        (EventType::ToolCallAllowed, r#"{"call_id":"c"}"#),
        (EventType::ToolCallExecuted, r#"{"call_id":"c"}"#),
        (EventType::ToolCallProposed, "{}"),
        (EventType::ToolCallAllowed, "{}"),
        (EventType::ToolCallExecuted, "{}"),
        (EventType::HandoffRequested, r#"{"context_id":"h"}"#),
    ] {
        record(event_type, payload).unwrap();
    }
    let misplaced = |event_type, payload| {
        let outcome = record(event_type, payload);
        assert!(
            matches!(outcome, Err(Error::Order(OrderError::Misplaced { .. }))),
            "{payload}"
        );
    };
    let reused = |event_type, payload| {
        let outcome = record(event_type, payload);
        assert!(
            matches!(outcome, Err(Error::Order(OrderError::Reused { .. }))),
            "{payload}"
        );
    };
    reused(EventType::ToolCallProposed, r#"{"call_id":"c"}"#);
    reused(EventType::HandoffRequested, r#"{"context_id":"h"}"#);
    misplaced(EventType::ToolResult, r#"{"call_id":"d"}"#);
    misplaced(EventType::ToolResult, r#"{"call_id":"e"}"#);
    record(EventType::ToolResult, r#"{"call_id":"c","content":"x"}"#).unwrap();
    misplaced(EventType::ToolResult, r#"{"call_id":"c","content":"x"}"#);
    // The call without an id has one result too.
    record(EventType::ToolResult, "{}").unwrap();
    misplaced(EventType::ToolResult, "{}");
    record(
        EventType::HandoffCompleted,
        r#"{"context_id":"h","success":true}"#,
    )
    .unwrap();
    misplaced(
        EventType::HandoffCompleted,
        r#"{"context_id":"h","success":true}"#,
    );

    record(EventType::Termination, r#"{"detail":"over"}"#).unwrap();
    for event_type in EventType::ALL {
        let late = record(*event_type, "{}").unwrap_err();
        let expected = format!("{event_type} after TERMINATION: the session is closed");
        assert_eq!(late.to_string(), expected);
    }
    assert_eq!(verified(&folder).events, 12);
}

/// Everything that a reader can see.
#[derive(PartialEq)]
struct State {
    sessions: Vec<SessionSummary>,
    pages: Vec<(Vec<Stored>, Option<String>)>,
    payloads: Vec<Result<Vec<u8>, String>>,
}

impl State {
    fn of(reader: &Reader) -> Self {
        let sessions = reader.sessions(None).unwrap();
        let mut pages = Vec::new();
        let mut cursor = None;
        loop {
            let page = reader.page(&Filter::default(), cursor.as_ref(), 7).unwrap();
            pages.push((page.events, page.next.as_ref().map(ToString::to_string)));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let open = |event: &Stored| match reader.open_payload(event) {
            Ok(payload) => Ok(payload.to_jcs().unwrap()),
            Err(error) => Err(error.to_string()),
        };
        let payloads = sessions
            .iter()
            .flat_map(|session| events(&session.scope, reader))
            .map(|e| open(&e))
            .collect();
        Self {
            sessions,
            pages,
            payloads,
        }
    }
}

fn write_a_bit_of_everything(store: &Store) {
    for n in 0..6 {
        let scope = Scope::new(format!("tenant {}", n % 2), format!("session/{n}")).unwrap();
        for part in 0..5 {
            store.record(note(&scope, &format!("{n}/{part}"))).unwrap();
        }
        store
            .record(draft(
                &scope,
                EventType::CheckpointCreated,
                r#"{"snapshot_seq":3}"#,
            ))
            .unwrap();
        store
            .record(draft(&scope, EventType::ErrorRaised, r#"[1,"two",null]"#))
            .unwrap();
        if n % 3 == 0 {
            store
                .record(draft(&scope, EventType::Termination, "{}"))
                .unwrap();
        }
        if n == 1 {
            store.erase(&scope, 9).unwrap();
        }
        if n == 4 {
            store.rotate_master_key().unwrap();
        }
    }
}
