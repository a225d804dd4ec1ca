//! Listing: every event once, in order, whatever the filter, the page size and the ids.

use std::sync::atomic::{AtomicU64, Ordering};

use countersign_canon::Json;
use countersign_event::{EventType, Line, Payload, Scope, SessionId, TenantId};
use countersign_store::{
    At, Cursor, CursorError, Draft, Error, Filter, PageError, Reader, Store, Stored,
};

use crate::random::Random;
use crate::scene::{NOW, all, content, draft, events, new_folder, note, open, scope, verified};

/// An event as the test remembers it.
#[derive(Clone, Debug, PartialEq)]
struct Written {
    scope: Scope,
    event_type: EventType,
    tool: Option<&'static str>,
    ts_unix_ms: u64,
}

#[test]
fn pages_hold_every_event_once() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let written = write_interleaved(&store);
    let texts = |events: &[Stored]| {
        events
            .iter()
            .map(|event| event.line.clone())
            .collect::<Vec<_>>()
    };
    let log = texts(&all(&Filter::default(), store.reader()));
    assert_eq!(log.len(), written.len());

    for filter in filters() {
        let expected: Vec<_> = written
            .iter()
            .zip(&log)
            .filter(|(event, _)| fits(event, &filter))
            .map(|(_, line)| line.clone())
            .collect();
        for size in 1..=7 {
            let pages = pages(&filter, size, store.reader());
            let full = pages.len().saturating_sub(1);
            assert!(
                pages.iter().take(full).all(|page| page.len() == size),
                "{filter:?}"
            );
            let listed = texts(&pages.concat());
            assert!(
                listed == expected,
                "{filter:?}: {} of {}",
                listed.len(),
                expected.len()
            );
        }
        let last = texts(&store.reader().last(&filter, 5).unwrap());
        assert!(
            last == expected[expected.len().saturating_sub(5)..],
            "{filter:?}"
        );
        assert!(store.reader().last(&filter, 0).unwrap().is_empty());
        assert_eq!(texts(&all(&filter, store.reader())), expected, "{filter:?}");
    }
    // The filters are a test only if they tell events apart.
    let sizes: Vec<_> = filters()
        .iter()
        .map(|filter| written.iter().filter(|event| fits(event, filter)).count())
        .collect();
    assert!(
        sizes
            .iter()
            .skip(1)
            .take(sizes.len() - 2)
            .all(|size| (1..written.len()).contains(size))
    );
    assert_eq!(sizes.last(), Some(&0));
}

fn filters() -> Vec<Filter> {
    let tenant = Some(TenantId::new("t1").unwrap());
    let session = Some(SessionId::new("s1").unwrap());
    let event_type = Some(EventType::ToolCallProposed);
    let tool_name = Some("shell".to_owned());
    let (since_unix_ms, until_unix_ms) = (Some(NOW + 50), Some(NOW + 120));
    let none = Filter::default();
    vec![
        none.clone(),
        Filter {
            tenant: tenant.clone(),
            ..none.clone()
        },
        Filter {
            session: session.clone(),
            ..none.clone()
        },
        Filter {
            tenant: tenant.clone(),
            session: session.clone(),
            ..none.clone()
        },
        Filter {
            event_type,
            ..none.clone()
        },
        Filter {
            tool_name: tool_name.clone(),
            ..none.clone()
        },
        Filter {
            since_unix_ms,
            ..none.clone()
        },
        Filter {
            until_unix_ms,
            ..none.clone()
        },
        Filter {
            since_unix_ms,
            until_unix_ms,
            ..none.clone()
        },
        Filter {
            tenant,
            session,
            event_type,
            tool_name,
            since_unix_ms,
            until_unix_ms,
        },
        Filter {
            tool_name: Some("shel".to_owned()),
            ..none
        },
    ]
}

fn fits(event: &Written, filter: &Filter) -> bool {
    filter
        .tenant
        .as_ref()
        .is_none_or(|tenant| *tenant == event.scope.tenant)
        && filter
            .session
            .as_ref()
            .is_none_or(|session| *session == event.scope.session)
        && filter
            .event_type
            .is_none_or(|event_type| event_type == event.event_type)
        && filter
            .tool_name
            .as_deref()
            .is_none_or(|tool| Some(tool) == event.tool)
        && filter
            .since_unix_ms
            .is_none_or(|since| event.ts_unix_ms >= since)
        && filter
            .until_unix_ms
            .is_none_or(|until| event.ts_unix_ms < until)
}

/// Nine sessions of three tenants, in no order; clocks go back and forth.
fn write_interleaved(store: &Store) -> Vec<Written> {
    let mut random = Random::new(7);
    let mut written = Vec::new();
    let mut pending = Vec::new();
    for n in 0..300 {
        let scope = Scope::new(
            *random.pick(&["t0", "t1", "t2"]),
            *random.pick(&["s0", "s1", "s2"]),
        )
        .unwrap();
        let tool = *random.pick(&["shell", "http"]);
        let (event_type, tool, payload) = match random.below(3) {
            0 => (
                EventType::MemoryRead,
                None,
                r#"{"content":"shell"}"#.to_owned(),
            ),
            1 => (
                EventType::ErrorRaised,
                None,
                r#"{"tool_name":"shell"}"#.to_owned(),
            ),
            _ => {
                let payload = format!(r#"{{"call_id":"{n}","tool_name":"{tool}"}}"#);
                (EventType::ToolCallProposed, Some(tool), payload)
            }
        };
        // Every millisecond is there, the limits of the filters too.
        let ts_unix_ms = NOW + (n * 77) % 200;
        let draft = Draft {
            ts_unix_ms,
            ..draft(&scope, event_type, &payload)
        };
        pending.push(store.append(draft, At::Next).unwrap());
        written.push(Written {
            scope,
            event_type,
            tool,
            ts_unix_ms,
        });
    }
    for pending in pending {
        pending.wait().unwrap();
    }
    written
}

#[test]
fn a_listing_is_a_dense_prefix_while_others_append() {
    const THREADS: u64 = 3;
    const EVENTS: u64 = 200;
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    store.record(note(&scope("first"), "first")).unwrap();
    let acknowledged = AtomicU64::new(1);
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let (store, acknowledged) = (&store, &acknowledged);
            threads.spawn(move || {
                for n in 0..EVENTS {
                    let scope = scope(&format!("session-{}", (thread + n) % 5));
                    store.record(note(&scope, "x")).unwrap();
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        // One reader goes over everything again and again, another one follows the end.
        threads.spawn(|| {
            let mut size = 1;
            loop {
                let before = acknowledged.load(Ordering::SeqCst);
                let pages = pages(&Filter::default(), size, store.reader());
                let listed: Vec<_> = pages.concat().iter().map(|event| event.id).collect();
                assert!(listed.iter().copied().eq(1..=listed.len() as u64));
                assert!(
                    listed.len() as u64 >= before,
                    "an acknowledged event is not listed"
                );
                if before == THREADS * EVENTS + 1 {
                    break;
                }
                size = size % 7 + 1;
            }
        });
        threads.spawn(|| {
            let mut last = 0;
            while last < THREADS * EVENTS + 1 {
                let follow = store.reader().each(&Filter::default(), last, |event| {
                    assert_eq!(event.id, last + 1);
                    last = event.id;
                    Ok::<_, Error>(())
                });
                follow.unwrap();
            }
        });
    });
    verified(&folder);
}

#[test]
fn a_cursor_is_good_for_its_own_listing_only() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    write_interleaved(&store);
    let filters = &filters()[..10];
    for filter in filters {
        let Some(cursor) = store.reader().page(filter, None, 1).unwrap().next else {
            continue;
        };
        let again: Cursor = cursor.to_string().parse().unwrap();
        assert_eq!(again, cursor);
        for other in filters {
            let page = store.reader().page(other, Some(&again), 1);
            match page {
                Ok(page) => assert!(filter == other && page.events.len() == 1),
                Err(error) => {
                    assert!(filter != other);
                    assert!(matches!(error, PageError::Cursor(CursorError::OtherFilter)));
                    let text = "the cursor belongs to a listing with another filter";
                    assert_eq!(error.to_string(), text);
                }
            }
        }
    }
}

#[test]
fn what_is_no_cursor_is_refused() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    write_interleaved(&store);
    let filter = Filter::default();
    let good = store
        .reader()
        .page(&filter, None, 1)
        .unwrap()
        .next
        .unwrap()
        .to_string();
    let longer = format!("{good}00");
    let upper = good.to_uppercase();
    let version = format!("02{}", &good[2..]);
    assert_ne!(upper, good);
    for bad in [
        "",
        "0",
        "zz",
        "1",
        "01",
        "null",
        "../../etc",
        &good[2..],
        &longer,
        &upper,
        &version,
    ] {
        let error = bad.parse::<Cursor>().unwrap_err();
        assert_eq!(error, CursorError::Form, "{bad}");
        assert_eq!(
            error.to_string(),
            "the cursor is not one that this program has given out"
        );
    }
    // A place that is past every event is a place.
    let far = format!("{}{}{}", &good[..2], "f".repeat(16), &good[18..]);
    let page = store
        .reader()
        .page(&filter, Some(&far.parse().unwrap()), 3)
        .unwrap();
    assert!(page.events.is_empty() && page.next.is_none());
}

/// Ids are opaque: no character in them means anything, and no two pairs of them meet.
#[test]
fn no_two_names_are_confused() {
    let long = "x".repeat(1000);
    let ids = [
        "a",
        "b",
        "c",
        "a/b",
        "b/c",
        "a/b/c",
        "/",
        "//",
        "%",
        "_",
        "a%",
        "a_",
        "ab",
        "A",
        " ",
        "a ",
        "\u{0}",
        "a\u{0}",
        "a\u{0}b",
        "\u{e9}",
        "e\u{301}",
        "漢字 😀",
        "'",
        "\"",
        "\\",
        "null",
        ".",
        "..",
        "1",
        "01",
        "1.0",
        &long,
    ];
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let pairs: Vec<_> = ids
        .iter()
        .flat_map(|tenant| ids.map(|session| (*tenant, session)))
        .collect();
    let mut pending = Vec::new();
    for part in ["0", "1"] {
        for (index, (tenant, session)) in pairs.iter().enumerate() {
            let scope = Scope::new(*tenant, *session).unwrap();
            pending.push(
                store
                    .append(note(&scope, &format!("{index}/{part}")), At::Next)
                    .unwrap(),
            );
        }
    }
    for pending in pending {
        pending.wait().unwrap();
    }
    drop(store);

    let store = open(&folder);
    let sessions = store.reader().sessions(None).unwrap();
    assert_eq!(sessions.len(), pairs.len());
    for (index, (tenant, session)) in pairs.iter().enumerate() {
        let scope = Scope::new(*tenant, *session).unwrap();
        assert_eq!(sessions[index].scope, scope);
        assert_eq!(sessions[index].events, 2);
        let stored = events(&scope, store.reader());
        let found: Vec<_> = stored
            .iter()
            .map(|event| content(event, store.reader()))
            .collect();
        assert_eq!(
            found,
            [format!("{index}/0"), format!("{index}/1")],
            "{scope:?}"
        );
        let one = store.reader().event(&scope, 1).unwrap().unwrap();
        assert!(one == stored[1]);
        assert!(store.reader().event(&scope, 2).unwrap().is_none());
    }
    for tenant in ids {
        let tenant = TenantId::new(tenant).unwrap();
        assert_eq!(
            store.reader().sessions(Some(&tenant)).unwrap().len(),
            ids.len()
        );
    }
    let report = verified(&folder);
    assert_eq!(
        (report.events, report.sessions.len()),
        (2 * pairs.len() as u64, pairs.len())
    );
}

#[test]
fn the_largest_event_is_listed_like_any_other() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let scope = scope("s");
    // As long as an event may be when it comes in; what seals it makes it longer.
    let frame = r#"{"args":null,"call_id":"c","server":"","tool_name":"shell"}"#.len();
    let payload = Json::object([
        ("args", Json::Null),
        ("call_id", Json::from("c")),
        ("server", Json::from("x".repeat((4 << 20) - frame))),
        ("tool_name", Json::from("shell")),
    ]);
    let event_type = EventType::ToolCallProposed;
    let admitted = Payload::admit(event_type, payload.clone()).unwrap();
    let draft = Draft {
        scope: scope.clone(),
        ts_unix_ms: NOW,
        event_type,
        payload: admitted,
    };
    store.record(draft).unwrap();
    let filter = Filter {
        tool_name: Some("shell".to_owned()),
        ..Filter::session(&scope)
    };
    let page = store.reader().page(&filter, None, 10).unwrap();
    assert_eq!(page.events.len(), 1);
    assert!(Line::read(&page.events[0].line).unwrap().payload.len() > 4 << 20);
    assert!(store.reader().open_payload(&page.events[0]).unwrap() == payload);
    verified(&folder);
}

#[test]
fn counts_are_of_one_session() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let written = write_interleaved(&store);
    let scope = Scope::new("t1", "s1").unwrap();
    let counts = store.reader().counts(&scope).unwrap();
    for event_type in EventType::ALL {
        let expected = written
            .iter()
            .filter(|event| event.scope == scope && event.event_type == *event_type)
            .count();
        assert_eq!(
            counts.get(event_type).copied().unwrap_or(0),
            expected as u64
        );
    }
}

fn pages(filter: &Filter, size: usize, reader: &Reader) -> Vec<Vec<Stored>> {
    let mut pages = Vec::new();
    let mut cursor: Option<Cursor> = None;
    loop {
        let page = reader.page(filter, cursor.as_ref(), size).unwrap();
        assert!(page.events.len() <= size);
        pages.push(page.events);
        match page.next {
            // Cursors travel as text.
            Some(next) => cursor = Some(next.to_string().parse().unwrap()),
            None => return pages,
        }
    }
}
