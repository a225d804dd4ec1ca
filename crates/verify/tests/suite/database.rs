//! Verifying a database: what is found, where, and what the report says about it.

use std::collections::BTreeSet;

use countersign_event::Line;
use countersign_verify::database::{count_events, verify_database};
use countersign_verify::{Expectation, Place, Problem, Selection};

use crate::forge::{forge, set};
use crate::log::{Event, Hidden, Session, interleaved};
use crate::random::Random;
use crate::stored::{Stored, drop_triggers, log};

#[test]
fn a_good_database_is_good() {
    let (sessions, events) = log();
    let stored = Stored::of(&sessions, &events);
    let report = stored.verify_opened(&Hidden);
    assert_eq!(report.failure, None);
    assert_eq!(report.events, events.len() as u64);
    assert_eq!(count_events(&stored.path()), Some(report.events));
    let size = |event: &Event| event.line.len() + event.ciphertext.as_ref().map_or(0, Vec::len);
    assert_eq!(
        report.bytes,
        events
            .iter()
            .map(|(_, event)| size(event) as u64)
            .sum::<u64>()
    );
    for session in &sessions {
        let report = stored.verify_with(&session.selection(), &session.expectation(), None);
        assert_eq!(report.failure, None);
        assert_eq!(report.events, session.count());
    }
}

#[test]
fn what_was_checked_is_said() {
    let mut session = Session::new("t", "s");
    let mut random = Random::seeded(1);
    session.record("MEMORY_READ", "{}", &mut random);
    session.record("MEMORY_READ", "{\"content\":\"x\"}", &mut random);
    let stored = Stored::in_turn(std::slice::from_ref(&session));
    let checked = [
        "the hash of each of 2 event(s), recomputed",
        "the link of each of them to the one before it, from the first of its session on",
        "their order within each call, approval and hand-off",
        "the row of each of them against its content",
        "that no row is missing before the last one",
        "the pages and indexes of the database file",
        "the digest of 1 ciphertext(s)",
    ];
    let rest = [
        "the audit of approvals: `countersign approval audit` does",
        "what else the database holds: approvals, leases, tokens, the stored tree and its checkpoints",
        "that the recorded clocks were right, and that tools did what they reported",
    ];
    let report = stored.verify_with(&session.selection(), &session.expectation(), None);
    assert_eq!(
        report.checked,
        [&checked[..], &["the given head", "the given count"]].concat()
    );
    assert_eq!(
        report.not_checked,
        [
            &["the sealed content of 1 event(s): the master key is not here"][..],
            &rest
        ]
        .concat()
    );

    let report = stored.verify_with(&session.selection(), &session.expectation(), Some(&Hidden));
    let opened = "the sealed content of 1 event(s) against its commitments";
    assert_eq!(
        report.checked,
        [&checked[..], &[opened, "the given head", "the given count"]].concat()
    );
    assert_eq!(report.not_checked, rest);

    // A check that ended early has not seen what comes after, nor the file as a whole.
    stored.tamper("UPDATE events SET sealed = NULL WHERE id = 2");
    let report = stored.verify_with(&session.selection(), &session.expectation(), None);
    assert_eq!(
        report.checked,
        [
            "the hash of each of 1 event(s) before the first bad one, recomputed",
            checked[1],
            checked[2],
            checked[3],
        ]
    );
    assert_eq!(
        report.not_checked,
        [
            &[
                "everything after the place where the check ended",
                "what was given to compare with: the check ended before",
            ][..],
            &rest
        ]
        .concat()
    );
}

#[test]
fn an_end_that_was_cut_is_found_by_its_head() {
    let (sessions, events) = log();
    let stored = Stored::of(&sessions, &events);
    drop_triggers(&stored.open());
    let original = stored.bytes();
    for cut in 1..events.len() {
        stored.replace(&original);
        let left = events.len() - cut;
        stored
            .open()
            .execute("DELETE FROM events WHERE id > ?1", [left as i64])
            .unwrap();
        let gone: BTreeSet<usize> = events[left..].iter().map(|(owner, _)| *owner).collect();
        for (owner, session) in sessions.iter().enumerate() {
            for expectation in [
                session.expectation(),
                Expectation {
                    head: Some(session.head()),
                    ..Expectation::default()
                },
                Expectation {
                    count: Some(session.count()),
                    ..Expectation::default()
                },
            ] {
                let report = stored.verify_with(&session.selection(), &expectation, None);
                // A session without any event is found whatever is asked for.
                let orphaned = gone
                    .iter()
                    .any(|owner| events[..left].iter().all(|(left, _)| left != owner));
                assert_eq!(
                    report.is_good(),
                    !gone.contains(&owner) && !orphaned,
                    "cut {cut}"
                );
            }
        }
    }
}

#[test]
fn an_end_that_was_forged_is_found_by_its_head() {
    let session = Session::lived("t", "s", &mut Random::seeded(1), 3);
    let stored = Stored::in_turn(std::slice::from_ref(&session));
    let forged = forge(&session.events.last().unwrap().line, |event| {
        set(event, "ts_unix_ms", 1u64)
    });
    let db = stored.open();
    drop_triggers(&db);
    let line = std::str::from_utf8(&forged).unwrap();
    db.execute(
        "UPDATE events SET line = ?1 WHERE id = (SELECT max(id) FROM events)",
        [line],
    )
    .unwrap();
    let hash = Line::read(&forged).unwrap().hash;
    let report = stored.verify_with(&Selection::default(), &session.expectation(), None);
    let expected = Problem::Head {
        expected: session.head(),
        found: Some(hash),
    };
    assert_eq!(
        report.failure.map(|failure| failure.problem),
        Some(expected)
    );
}

#[test]
fn rows_of_different_sessions_may_come_in_any_order() {
    let (sessions, _) = log();
    let mut random = Random::seeded(3);
    for _ in 0..10 {
        let stored = Stored::of(&sessions, &interleaved(&sessions, &mut random));
        assert_eq!(stored.verify_opened(&Hidden).failure, None);
    }
}

#[test]
fn problems_are_named_and_placed() {
    let (sessions, events) = log();
    let check = |sql: &str, place: Option<i64>, name: &str| {
        let stored = Stored::of(&sessions, &events);
        stored.tamper(sql);
        let failure = stored.verify().failure.unwrap();
        assert_eq!(failure.problem.name(), name, "{sql}: {}", failure.problem);
        assert_eq!(failure.place, place.map(Place::Row), "{sql}");
    };
    let last = events.len() as i64;
    let sealed = |seals: bool| {
        1 + events
            .iter()
            .position(|(_, event)| event.ciphertext.is_some() == seals)
            .unwrap() as i64
    };
    check("DELETE FROM events WHERE id = 1", Some(1), "row-gap");
    check("DELETE FROM events WHERE id = 7", Some(7), "row-gap");
    check("UPDATE events SET id = 0 WHERE id = 1", Some(1), "row-gap");
    check("UPDATE events SET id = -1 WHERE id = 1", Some(1), "row-gap");
    check(
        &format!("UPDATE events SET id = 9999 WHERE id = {last}"),
        Some(last),
        "row-gap",
    );
    check(
        "UPDATE events SET seq = 900 WHERE id = 5",
        Some(5),
        "column",
    );
    check("UPDATE events SET seq = -1 WHERE id = 5", Some(5), "column");
    check(
        "UPDATE events SET session = 99, seq = 900 WHERE id = 5",
        Some(5),
        "column",
    );
    check(
        "UPDATE sessions SET tenant_id = 'x' WHERE id = 1",
        Some(first_of(0, &events)),
        "column",
    );
    check(
        "UPDATE sessions SET session_id = 'x' WHERE id = 2",
        Some(first_of(1, &events)),
        "column",
    );
    check(
        "DELETE FROM sessions WHERE id = 2",
        Some(first_of(1, &events)),
        "column",
    );
    check(
        "UPDATE events SET line = 'x' WHERE id = 3",
        Some(3),
        "not-an-event",
    );
    check(
        "UPDATE events SET line = line || ' ' WHERE id = 3",
        Some(3),
        "not-an-event",
    );
    check(
        "UPDATE events SET line = replace(line, '\"ts_unix_ms\":17', '\"ts_unix_ms\":18') WHERE id = 3",
        Some(3),
        "hash",
    );
    check(
        &format!(
            "UPDATE events SET sealed = x'00' WHERE id = {}",
            sealed(true)
        ),
        Some(sealed(true)),
        "ciphertext",
    );
    check(
        &format!(
            "UPDATE events SET sealed = NULL WHERE id = {}",
            sealed(true)
        ),
        Some(sealed(true)),
        "ciphertext",
    );
    check(
        &format!(
            "UPDATE events SET sealed = x'' WHERE id = {}",
            sealed(false)
        ),
        Some(sealed(false)),
        "ciphertext",
    );
    check(
        "INSERT INTO sessions (tenant_id, session_id) VALUES ('new', 'new')",
        None,
        "nothing",
    );
    check("DROP TABLE events", None, "database");
    check("ALTER TABLE events DROP COLUMN sealed", None, "database");
}

#[test]
fn a_failure_counts_what_was_good_before_it() {
    let (sessions, events) = log();
    let stored = Stored::of(&sessions, &events);
    stored.tamper("UPDATE events SET seq = 900 WHERE id = 20");
    let report = stored.verify();
    let failure = report.failure.unwrap();
    let (owner, event) = &events[19];
    let scope = &sessions[*owner].scope;
    let seq = Line::read(&event.line).unwrap().seq;
    let named = (
        scope.tenant.as_str().to_owned(),
        scope.session.as_str().to_owned(),
        seq,
    );
    assert_eq!(failure.event, Some(named));
    assert_eq!(report.events, 19);
    assert_eq!(
        report
            .sessions
            .iter()
            .map(|session| session.events)
            .sum::<u64>(),
        19
    );
}

/// The chain covers the rows. Indexes, types and the schema decide who gets to see them.
#[test]
fn rows_must_be_visible_to_everybody() {
    let (sessions, events) = log();
    let check = |sql: &str, message: &str| {
        let stored = Stored::of(&sessions, &events);
        stored.tamper(sql);
        match stored.verify().failure.unwrap().problem {
            Problem::Database(found) => assert!(found.contains(message), "{found}"),
            other => panic!("{sql}: {other}"),
        }
    };
    let loosen = "PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '') WHERE name = 'events';
        PRAGMA writable_schema = RESET;";
    check(
        &format!("{loosen} UPDATE events SET line = CAST(line AS BLOB) WHERE id = 9"),
        "line",
    );
    check(
        &format!("{loosen} UPDATE events SET sealed = 'text' WHERE id = 9"),
        "sealed",
    );
    check(
        &format!("{loosen} UPDATE events SET seq = 'text' WHERE id = 9"),
        "seq",
    );
    check(
        "ALTER TABLE events RENAME TO hidden; CREATE VIEW events AS SELECT * FROM hidden",
        "`events` is not a table",
    );
    check(
        "ALTER TABLE sessions RENAME TO hidden; CREATE VIEW sessions AS SELECT * FROM hidden",
        "`sessions` is not a table",
    );
    let disguise = "ALTER TABLE events RENAME TO hidden;
        CREATE VIEW events AS SELECT * FROM hidden;
        PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET type = 'table' WHERE name = 'events';
        PRAGMA writable_schema = RESET;";
    check(disguise, "schema");

    // An index that has lost an event: who asks by its number gets nothing.
    let hide = "PRAGMA writable_schema = ON;
        CREATE TABLE scratch (session INTEGER NOT NULL, seq INTEGER NOT NULL, UNIQUE (session, seq));
        INSERT INTO scratch SELECT session, seq FROM events WHERE id <> 9;
        UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_scratch_1')
            WHERE name = 'sqlite_autoindex_events_1';
        DELETE FROM sqlite_schema WHERE tbl_name = 'scratch';
        PRAGMA writable_schema = RESET;";
    check(hide, "");
}

#[test]
fn what_is_not_a_database_is_not_verified() {
    let stored = Stored::empty();
    let unreadable = |stored: &Stored| match stored.verify().failure.unwrap().problem {
        Problem::Database(message) => message,
        other => panic!("{other}"),
    };
    unreadable(&stored);
    assert!(!stored.path().exists(), "a verifier makes no file");
    assert_eq!(count_events(&stored.path()), None);
    for content in [&b""[..], b"SQLite format 3\0", b"{}\n", &[0; 4096]] {
        stored.replace(content);
        unreadable(&stored);
        assert_eq!(count_events(&stored.path()), None);
    }
    let whole = Stored::in_turn(&[Session::lived("t", "s", &mut Random::seeded(1), 3)]).bytes();
    for end in (0..whole.len()).step_by(512) {
        stored.replace(&whole[..end]);
        assert!(!stored.verify().is_good(), "cut at {end}");
    }
}

#[test]
fn an_empty_log_is_nothing_to_verify() {
    let failure = Stored::of(&[], &[]).verify().failure.unwrap();
    assert_eq!(failure.problem, Problem::Nothing);
    assert_eq!(failure.place, None);
}

#[test]
fn many_rows_are_read_in_batches() {
    let mut random = Random::seeded(4);
    let mut session = Session::new("t", "s");
    let content = "x".repeat(60_000);
    for _ in 0..180 {
        session.record(
            "MEMORY_READ",
            &format!("{{\"content\":\"{content}\"}}"),
            &mut random,
        );
    }
    let stored = Stored::in_turn(std::slice::from_ref(&session));
    let mut steps = Vec::new();
    let report = verify_database(
        &stored.path(),
        &Selection::default(),
        &session.expectation(),
        Some(&Hidden),
        &mut |step| steps.push(step),
    );
    assert_eq!(report.failure, None);
    assert!(steps.len() > 2 && steps.is_sorted_by_key(|step| step.events));
    assert_eq!(
        steps.last().map(|step| (step.events, step.bytes)),
        Some((180, report.bytes))
    );

    stored.tamper("UPDATE events SET sealed = x'01' WHERE id = 170");
    let report = stored.verify();
    assert_eq!(report.failure.unwrap().place, Some(Place::Row(170)));
    assert_eq!(report.events, 169);
    stored.tamper("DELETE FROM events WHERE id = 160");
    assert_eq!(
        stored.verify().failure.unwrap().place,
        Some(Place::Row(160))
    );
}

fn first_of(owner: usize, events: &[(usize, Event)]) -> i64 {
    1 + events
        .iter()
        .position(|(found, _)| *found == owner)
        .unwrap() as i64
}
