//! Many writers at once: nothing is lost, repeated or forked, and a compare-and-swap has one winner.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use countersign_canon::Hash;
use countersign_event::{EventType, Head, OrderError};
use countersign_store::{At, Error, Folder, Options, Pending, Recorded, Store};

use crate::gate::gated;
use crate::scene::{contents, draft, head, new_folder, note, open, scope, verified};

#[test]
fn many_threads_write_many_sessions() {
    const THREADS: usize = 64;
    const EVENTS: usize = 1000;
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let recorded = on_threads(THREADS, |thread| {
        let scope = scope(&format!("session-{thread}"));
        let mut recorded = Vec::new();
        for chunk in 0..EVENTS / 50 {
            // Some threads wait for each event, some let many run ahead.
            let texts = (0..50).map(|n| format!("{thread}/{}", chunk * 50 + n));
            if thread % 4 == 0 && chunk < 4 {
                recorded.extend(texts.map(|text| store.record(note(&scope, &text)).unwrap()));
            } else {
                let pending: Vec<_> = texts
                    .map(|text| store.append(note(&scope, &text), At::Next).unwrap())
                    .collect();
                recorded.extend(pending.into_iter().map(|pending| pending.wait().unwrap()));
            }
        }
        assert!(recorded.iter().map(Recorded::seq).eq(0..EVENTS as u64));
        recorded
    });
    assert_ids_are_dense(recorded.iter().flatten());

    drop(store);
    let report = verified(&folder);
    assert_eq!(report.events, (THREADS * EVENTS) as u64);
    assert_eq!(report.sessions.len(), THREADS);
    assert!(
        report
            .sessions
            .iter()
            .all(|session| session.events == EVENTS as u64)
    );
    let store = open(&folder);
    for thread in [0, 1, THREADS - 1] {
        let written = contents(&scope(&format!("session-{thread}")), store.reader());
        assert!(
            written
                .into_iter()
                .eq((0..EVENTS).map(|n| format!("{thread}/{n}")))
        );
    }
}

#[test]
fn many_threads_write_one_session() {
    let (_parent, folder) = new_folder();
    let stores = [open(&folder)];
    write_one_session(64, 200, &stores, &folder);
}

/// Two stores on one folder are to each other what two processes are.
#[test]
fn many_threads_of_two_stores_write_one_session() {
    let (_parent, folder) = new_folder();
    let stores = [open(&folder), open(&folder)];
    write_one_session(8, 25, &stores, &folder);
}

fn write_one_session(threads: usize, events: usize, stores: &[Store], folder: &Folder) {
    let shared = scope("shared");
    let recorded = on_threads(threads, |thread| {
        let store = &stores[thread % stores.len()];
        let record = |n| {
            store
                .record(note(&shared, &format!("{thread}/{n}")))
                .unwrap()
        };
        (0..events).map(record).collect::<Vec<_>>()
    });
    let total = threads * events;
    assert_ids_are_dense(recorded.iter().flatten());
    let seqs: BTreeSet<u64> = recorded.iter().flatten().map(Recorded::seq).collect();
    assert!(
        seqs.into_iter().eq(0..total as u64),
        "each place is given out once"
    );
    assert_eq!(verified(folder).events, total as u64);

    let written = contents(&shared, stores[0].reader());
    for (thread, recorded) in recorded.iter().enumerate() {
        assert!(
            recorded.is_sorted_by_key(Recorded::seq),
            "a thread's events keep their order"
        );
        for (n, recorded) in recorded.iter().enumerate() {
            let place = usize::try_from(recorded.seq()).unwrap();
            assert_eq!(written[place], format!("{thread}/{n}"));
        }
    }
}

#[test]
fn of_all_appends_at_one_head_one_wins() {
    const THREADS: usize = 16;
    const ROUNDS: u64 = 100;
    let (_parent, folder) = new_folder();
    let stores = [open(&folder), open(&folder)];
    let contested = scope("contested");
    let mut at = Head::GENESIS;
    for round in 0..ROUNDS {
        let start = Barrier::new(THREADS);
        let outcomes = on_threads(THREADS, |thread| {
            start.wait();
            let draft = note(&contested, &format!("{round}/{thread}"));
            stores[thread % 2]
                .append(draft, At::Head(at))
                .and_then(Pending::wait)
        });
        let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1, "round {round}");
        let winner = won.into_iter().next().unwrap().unwrap();
        assert_eq!(winner.seq(), round, "the winner is where it wanted to be");
        for error in lost.into_iter().map(Result::unwrap_err) {
            assert_conflict(&error, round, round + 1);
        }
        at = head(&winner);
    }
    let report = verified(&folder);
    assert_eq!(
        (report.events, report.sessions[0].head),
        (ROUNDS, at.hash())
    );
}

/// A long history takes a while to read, and meanwhile the other store moves on.
#[test]
fn an_append_lands_at_its_head_or_nowhere() {
    let (_parent, folder) = new_folder();
    let (here, there) = (open(&folder), open(&folder));
    let scope = scope("long");
    let append = |n: u32| {
        there
            .append(note(&scope, &n.to_string()), At::Next)
            .unwrap()
    };
    let pending: Vec<_> = (0..1000).map(append).collect();
    for pending in pending {
        pending.wait().unwrap();
    }
    let moves = AtomicU64::new(0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for _ in 0..100 {
                there.record(note(&scope, "there")).unwrap();
                moves.fetch_add(1, Ordering::SeqCst);
            }
        });
        let mut seen = 0;
        while seen < 100 {
            // Wait for a move of the other store: this one is to lose.
            let now = moves.load(Ordering::SeqCst);
            if now == seen {
                std::thread::yield_now();
                continue;
            }
            seen = now;
            let session = here.reader().session(&scope).unwrap().unwrap();
            let head = Head::after(session.events - 1, session.head);
            let appended = here.append(note(&scope, "here"), At::Head(head));
            match appended.and_then(Pending::wait) {
                Ok(recorded) => assert_eq!(recorded.seq(), head.count()),
                Err(error) => assert!(matches!(error.root(), Error::Conflict(_)), "{error}"),
            }
        }
    });
    verified(&folder);
}

#[test]
fn a_wrong_head_is_a_conflict_and_writes_nothing() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let scope = scope("s");
    let heads: Vec<Head> = (0..3)
        .map(|n| head(&store.record(note(&scope, &format!("{n}"))).unwrap()))
        .collect();
    let real = heads[2].hash().unwrap();
    let wrong = [
        (
            Head::GENESIS,
            "the next event of the session is number 3, not 0".to_owned(),
        ),
        (
            heads[1],
            "the next event of the session is number 3, not 2".to_owned(),
        ),
        (
            Head::after(2, Hash::of(b"x")),
            format!("the event before number 3 has the hash {real}"),
        ),
        (
            Head::after(8, Hash::of(b"x")),
            "the next event of the session is number 3, not 9".to_owned(),
        ),
    ];
    for (wrong, text) in wrong {
        let error = refusal(store.append(note(&scope, "never"), At::Head(wrong)));
        assert!(error.to_string().contains(&text), "{error}");
        assert!(error.is_retryable());
    }
    assert_eq!(verified(&folder).events, 3);
    store
        .append(note(&scope, "3"), At::Head(heads[2]))
        .unwrap()
        .wait()
        .unwrap();
    assert_eq!(contents(&scope, store.reader()), ["0", "1", "2", "3"]);
}

#[test]
fn a_head_that_is_not_yet_durable_is_already_taken() {
    let (_parent, folder) = new_folder();
    let (store, gate) = gated(&folder, 1, |_| {});
    let scope = scope("s");
    let first = store
        .append(note(&scope, "first"), At::Head(Head::GENESIS))
        .unwrap();
    let second = store.append(note(&scope, "second"), At::Head(Head::GENESIS));
    drop(gate);
    let recorded = first.wait().unwrap();
    assert_conflict(&second.and_then(Pending::wait).unwrap_err(), 0, 1);
    let third = store
        .append(note(&scope, "third"), At::Head(head(&recorded)))
        .unwrap();
    assert_eq!(third.wait().unwrap().seq(), 1);
    assert_eq!(contents(&scope, store.reader()), ["first", "third"]);
}

/// Here nobody knows yet that another has written, nor that what is on its way will not be stored.
#[test]
fn an_event_is_not_called_misplaced_while_others_are_on_their_way() {
    let (_parent, folder) = new_folder();
    let (here, gate) = gated(&folder, 2, |_| {});
    let scope = scope("s");
    let _first = here.record(note(&scope, "first")).unwrap();
    let proposed = draft(&scope, EventType::ToolCallProposed, r#"{"call_id":"c"}"#);
    let _there = open(&folder).record(proposed).unwrap();
    let lost = ["a", "b", "c"].map(|text| here.append(note(&scope, text), At::Next).unwrap());
    let denied = || draft(&scope, EventType::ToolCallDenied, r#"{"call_id":"c"}"#);
    thread::scope(|threads| {
        let denying = threads.spawn(|| here.append(denied(), At::Next).and_then(Pending::wait));
        thread::sleep(std::time::Duration::from_millis(100));
        drop(gate);
        if let Err(error) = denying.join().unwrap() {
            assert!(error.is_retryable(), "{error}");
        }
    });
    for lost in lost {
        assert!(lost.wait().is_err());
    }
    let seq = here.record(denied()).map(|recorded| recorded.seq());
    assert_eq!(seq.unwrap(), 2);
}

/// What the other store wrote is unknown here until it is looked up; the right head must still be
/// taken for right.
#[test]
fn the_right_head_is_right_although_somebody_else_wrote_it() {
    let (_parent, folder) = new_folder();
    let (here, there) = (open(&folder), open(&folder));
    let scope = scope("s");
    here.record(note(&scope, "0")).unwrap();
    let mut expected = 1;
    for round in 0..5 {
        let mut last = there.record(note(&scope, "there")).unwrap();
        for _ in 0..round {
            last = there.record(note(&scope, "there")).unwrap();
        }
        let mine = here
            .append(note(&scope, "here"), At::Head(head(&last)))
            .unwrap()
            .wait()
            .unwrap();
        expected += round + 2;
        assert_eq!(mine.seq(), expected - 1);
    }
    assert_eq!(verified(&folder).events, expected);
}

/// This store has prepared a key for the session, then another one makes the session.
#[test]
fn the_right_head_is_right_although_somebody_else_made_the_session() {
    let (_parent, folder) = new_folder();
    let (here, there) = (open(&folder), open(&folder));
    let scope = scope("s");
    let premature = draft(
        &scope,
        EventType::ToolResult,
        r#"{"call_id":"c","content":"x"}"#,
    );
    assert!(matches!(
        refusal(here.append(premature, At::Next)),
        Error::Order(_)
    ));

    let first = there.record(note(&scope, "there")).unwrap();
    let pending = here
        .append(note(&scope, "here"), At::Head(head(&first)))
        .unwrap();
    assert_eq!(pending.wait().unwrap().seq(), 1);
    assert_eq!(contents(&scope, there.reader()), ["there", "here"]);
    verified(&folder);
}

#[test]
fn both_make_the_session_and_one_key_serves_both() {
    let (_parent, folder) = new_folder();
    let stores = [open(&folder), open(&folder)];
    for round in 0..20 {
        let scope = scope(&format!("new-{round}"));
        let start = Barrier::new(2);
        on_threads(2, |thread| {
            start.wait();
            stores[thread]
                .record(note(&scope, &format!("{thread}")))
                .unwrap();
        });
        let mut written = contents(&scope, stores[0].reader());
        written.sort();
        assert_eq!(written, ["0", "1"]);
    }
    assert_eq!(verified(&folder).events, 40);
}

#[test]
fn order_is_judged_by_what_all_have_written() {
    let (_parent, folder) = new_folder();
    let (here, there) = (open(&folder), open(&folder));
    let scope = scope("s");
    here.record(note(&scope, "known here")).unwrap();
    for (event_type, payload) in [
        (
            EventType::ToolCallProposed,
            r#"{"call_id":"c","tool_name":"t"}"#,
        ),
        (EventType::ToolCallAllowed, r#"{"call_id":"c"}"#),
        (EventType::ToolCallExecuted, r#"{"call_id":"c"}"#),
    ] {
        there.record(draft(&scope, event_type, payload)).unwrap();
    }
    let result = draft(
        &scope,
        EventType::ToolResult,
        r#"{"call_id":"c","content":"x"}"#,
    );
    assert_eq!(here.record(result.clone()).unwrap().seq(), 4);
    assert!(matches!(
        there.record(result),
        Err(Error::Order(OrderError::Misplaced { .. }))
    ));

    there
        .record(draft(&scope, EventType::Termination, "{}"))
        .unwrap();
    let late = here.record(note(&scope, "late"));
    assert!(matches!(late, Err(Error::Order(OrderError::Terminated(_)))));
    assert_eq!(verified(&folder).events, 6);
}

#[test]
fn dropping_the_store_waits_for_events_on_their_way() {
    let (_parent, folder) = new_folder();
    let store = open(&folder);
    let scope = scope("s");
    let pending: Vec<_> = (0..500)
        .map(|n| {
            store
                .append(note(&scope, &format!("{n}")), At::Next)
                .unwrap()
        })
        .collect();
    drop(store);
    assert!(pending.into_iter().all(|pending| pending.wait().is_ok()));
    assert_eq!(verified(&folder).events, 500);
}

#[test]
fn a_writer_that_dies_acknowledges_nothing_more() {
    let (_parent, folder) = new_folder();
    let observer = std::sync::Arc::new(|step| {
        assert_ne!(step, countersign_store::Step::Written, "dies on purpose");
    });
    let store = Store::open(
        &folder,
        Options {
            observer: Some(observer),
            ..Options::default()
        },
    )
    .unwrap();
    let scope = scope("s");
    let first = store.append(note(&scope, "lost"), At::Next).unwrap().wait();
    assert!(matches!(first, Err(Error::Stopped)));
    assert!(matches!(
        store.record(note(&scope, "lost")),
        Err(Error::Stopped)
    ));
    drop(store);
    let store = open(&folder);
    store.record(note(&scope, "kept")).unwrap();
    assert_eq!(contents(&scope, store.reader()), ["kept"]);
}

fn on_threads<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..threads).map(|n| scope.spawn(move || work(n))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

fn refusal(appended: Result<Pending, Error>) -> Error {
    appended.map(|_| ()).unwrap_err()
}

fn assert_conflict(error: &Error, expected_seq: u64, count: u64) {
    let Error::Conflict(conflict) = error.root() else {
        panic!("not a conflict: {error}")
    };
    assert_eq!(
        (conflict.expected_seq, conflict.actual.count()),
        (expected_seq, count)
    );
}

/// Every event has a place of its own among all events, and no place is empty.
fn assert_ids_are_dense<'a>(recorded: impl Iterator<Item = &'a Recorded>) {
    let mut ids: Vec<u64> = recorded.map(Recorded::id).collect();
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(1..=ids.len() as u64));
}
