//! What a report says: neither more nor less than what was done.

use countersign_canon::Hash;
use countersign_event::{EventType, Line, LinkError, OrderError};
use countersign_verify::{Expectation, Place, Problem, Report, Selection};

use crate::log::{Session, export, verify, verify_with};
use crate::random::Random;

const LINKS: &str =
    "the link of each of them to the one before it, from the first of its session on";
const ORDER: &str = "their order within each call, approval and hand-off";
const CUT: &str = "that no event was cut from the end: give --head or --count from your own notes";
const ANEW: &str = "that the whole history was not written anew: give --head from your own notes";
const LEFT_OUT: &str = "that no whole session was left out";
const CLOCKS: &str = "that the recorded clocks were right, and that tools did what they reported";
const ENDED: &str = "everything after the place where the check ended";

#[test]
fn a_good_session_of_public_events() {
    let session = public("s");
    let text = export(&session.lines());
    let hashes = "the hash of each of 2 event(s), recomputed";
    check(
        &verify(&text),
        &[hashes, LINKS, ORDER],
        &[CUT, ANEW, LEFT_OUT, CLOCKS],
    );

    let with = |expectation| verify_with(&text, &session.selection(), &expectation);
    let head = Some(session.head());
    let count = Some(2);
    check(
        &with(Expectation {
            head,
            count,
            contains: head,
            ..none()
        }),
        &[
            hashes,
            LINKS,
            ORDER,
            "the given head",
            "the given count",
            "that the given hash is in the log",
        ],
        &[CLOCKS],
    );
    check(
        &with(Expectation { head, ..none() }),
        &[hashes, LINKS, ORDER, "the given head"],
        &[CLOCKS],
    );
    check(
        &with(Expectation { count, ..none() }),
        &[hashes, LINKS, ORDER, "the given count"],
        &[ANEW, CLOCKS],
    );
    check(
        &with(Expectation {
            contains: head,
            ..none()
        }),
        &[hashes, LINKS, ORDER, "that the given hash is in the log"],
        &[CUT, ANEW, CLOCKS],
    );
}

#[test]
fn sealed_content_is_not_in_an_export() {
    let mut session = public("s");
    session.record(
        "ERROR_RAISED",
        "{\"message\":\"x\"}",
        &mut Random::seeded(1),
    );
    check(
        &verify(&export(&session.lines())),
        &["the hash of each of 3 event(s), recomputed", LINKS, ORDER],
        &[
            CUT,
            ANEW,
            LEFT_OUT,
            "the sealed content of 1 event(s): an export holds commitments only",
            CLOCKS,
        ],
    );
}

#[test]
fn a_head_speaks_of_one_session() {
    let (one, two) = (public("a"), public("b"));
    let text = export(&[one.lines(), two.lines()].concat());
    let report = verify_with(
        &text,
        &Selection::default(),
        &Expectation {
            head: Some(one.head()),
            ..none()
        },
    );
    check(
        &report,
        &[
            "the hash of each of 4 event(s), recomputed",
            LINKS,
            ORDER,
            "the given head",
        ],
        &[
            "that the other 1 session(s) were not cut at the end or written anew: a head speaks of one session",
            LEFT_OUT,
            "in which order events of different sessions were recorded",
            CLOCKS,
        ],
    );
    let report = verify_with(&text, &one.selection(), &one.expectation());
    check(
        &report,
        &[
            "the hash of each of 2 event(s), recomputed",
            LINKS,
            ORDER,
            "the given head",
            "the given count",
        ],
        &[
            "the links and the order of 2 event(s) outside the selection",
            CLOCKS,
        ],
    );
}

#[test]
fn a_check_that_ended_early_says_so() {
    let session = public("s");
    let mut lines = session.lines();
    lines[1][20] ^= 1;
    let text = export(&lines);
    check(
        &verify(&text),
        &[
            "the hash of each of 1 event(s) before the first bad one, recomputed",
            LINKS,
            ORDER,
        ],
        &[ENDED, CUT, ANEW, LEFT_OUT, CLOCKS],
    );
    // What was given was not looked at.
    check(
        &verify_with(&text, &session.selection(), &session.expectation()),
        &[
            "the hash of each of 1 event(s) before the first bad one, recomputed",
            LINKS,
            ORDER,
        ],
        &[
            ENDED,
            "what was given to compare with: the check ended before",
            CLOCKS,
        ],
    );
    lines[0][20] ^= 1;
    check(
        &verify(&export(&lines)),
        &[],
        &[ENDED, CUT, ANEW, LEFT_OUT, CLOCKS],
    );
    check(
        &verify(&export(&session.lines()[1..])),
        &[],
        &[ENDED, CUT, ANEW, LEFT_OUT, CLOCKS],
    );
}

#[test]
fn what_is_missing_was_looked_for() {
    let session = public("s");
    let cut = export(&session.lines()[..1]);
    let report = verify_with(&cut, &session.selection(), &session.expectation());
    assert!(!report.is_good());
    check(
        &report,
        &["the hash of each of 1 event(s), recomputed", LINKS, ORDER],
        &[CLOCKS],
    );
    check(&verify(b""), &[], &[CUT, ANEW, LEFT_OUT, CLOCKS]);
}

#[test]
fn sessions_are_reported_as_far_as_they_are_good() {
    let mut random = Random::seeded(1);
    let mut one = public("a");
    one.record("TERMINATION", "{}", &mut random);
    let two = public("b");
    let mut lines = [one.lines(), two.lines()].concat();
    let report = verify(&export(&lines));
    let found: Vec<_> = report
        .sessions
        .iter()
        .map(|found| {
            (
                found.session_id.as_str(),
                found.events,
                found.head,
                found.terminated,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("a", 3, Some(one.head()), true),
            ("b", 2, Some(two.head()), false)
        ]
    );
    assert_eq!(
        report.bytes,
        lines.iter().map(|line| line.len() as u64).sum::<u64>()
    );

    let first = Line::read(&two.events[0].line).unwrap().hash;
    lines[4][20] ^= 1;
    let report = verify(&export(&lines));
    let found: Vec<_> = report
        .sessions
        .iter()
        .map(|found| (found.session_id.as_str(), found.events, found.head))
        .collect();
    assert_eq!(found, [("a", 3, Some(one.head())), ("b", 1, Some(first))]);
    // A session whose first event is bad has no good event.
    lines[3][20] ^= 1;
    assert_eq!(verify(&export(&lines)).sessions.len(), 1);
}

#[test]
fn the_first_bad_event_is_named() {
    let (one, two) = (public("a"), public("b"));
    let check = |lines: &[&Vec<u8>], place: u64, event: Option<(&str, u64)>, name: &str| {
        let lines: Vec<_> = lines.iter().map(|line| (*line).clone()).collect();
        let failure = verify(&export(&lines)).failure.unwrap();
        assert_eq!(failure.place, Some(Place::Line(place)));
        assert_eq!(
            failure.event,
            event.map(|(session, seq)| ("t".to_owned(), session.to_owned(), seq))
        );
        assert_eq!(failure.problem.name(), name);
    };
    let ([a0, a1], [b0, b1]) = (&one.lines()[..], &two.lines()[..]) else {
        panic!("two events each")
    };
    let (mut other_hash, mut unreadable) = (b1.clone(), b1.clone());
    other_hash[50] = if other_hash[50] == b'0' { b'1' } else { b'0' };
    unreadable[0] = b'[';
    check(&[a0, b0, a1, &other_hash], 4, Some(("b", 1)), "hash");
    check(&[a0, b0, a1, &unreadable], 4, None, "not-an-event");
    check(&[a0, b1, a1], 2, Some(("b", 1)), "gap");
    check(&[a0, b0, a1, b0], 4, Some(("b", 0)), "reused-seq");
    let mut fork = Session::new("t", "a");
    fork.record(
        "MEMORY_READ",
        "{\"memory_key\":\"other\"}",
        &mut Random::seeded(1),
    );
    check(
        &[b0, &fork.lines()[0], a1],
        3,
        Some(("a", 1)),
        "broken-link",
    );
}

#[test]
fn problems_have_names_that_stay() {
    let hash = Hash::of(b"x");
    let not_an_event = Problem::NotAnEvent(Line::read(b"").unwrap_err());
    let order = OrderError::Terminated(EventType::MemoryRead);
    let gap = LinkError::Gap {
        expected: 1,
        found: 2,
    };
    let reused = LinkError::Reused {
        expected: 2,
        found: 1,
    };
    let broken = LinkError::Broken {
        seq: 1,
        expected: Some(hash),
        found: None,
    };
    let names = [
        (not_an_event, "not-an-event"),
        (Problem::TooLong { limit: 1 }, "too-long"),
        (
            Problem::Hash {
                stated: hash,
                computed: hash,
            },
            "hash",
        ),
        (Problem::Link(gap), "gap"),
        (Problem::Link(reused), "reused-seq"),
        (Problem::Link(broken), "broken-link"),
        (Problem::Order(order), "order"),
        (
            Problem::Head {
                expected: hash,
                found: None,
            },
            "head",
        ),
        (
            Problem::Count {
                expected: 1,
                found: 2,
            },
            "count",
        ),
        (Problem::NotContained(hash), "not-contained"),
        (Problem::Nothing, "nothing"),
        (Problem::Column("seq"), "column"),
        (Problem::RowGap { expected: 1 }, "row-gap"),
        (Problem::Ciphertext("was changed"), "ciphertext"),
        (Problem::Unopened(String::new()), "unopened"),
        (Problem::Commitment("/args".to_owned()), "commitment"),
        (Problem::Database(String::new()), "database"),
    ];
    for (problem, name) in names {
        assert_eq!(problem.name(), name);
    }
}

#[test]
fn messages() {
    let hash = Hash::of(b"x");
    let head = Problem::Head {
        expected: hash,
        found: None,
    };
    assert_eq!(
        head.to_string(),
        format!("the session ends at nothing, not at the given head {hash}")
    );
    let count = Problem::Count {
        expected: 3,
        found: 2,
    };
    assert_eq!(
        count.to_string(),
        "the session has 2 event(s), not the given 3"
    );
    assert_eq!(Place::Line(7).to_string(), "line 7");
    assert_eq!(Place::Row(7).to_string(), "row 7");
}

#[track_caller]
fn check(report: &Report, checked: &[&str], not_checked: &[&str]) {
    assert_eq!(report.checked, checked);
    assert_eq!(report.not_checked, not_checked);
}

/// Two events that have nothing to seal.
fn public(session: &str) -> Session {
    let mut public = Session::new("t", session);
    for _ in 0..2 {
        public.record(
            "MEMORY_READ",
            "{\"memory_key\":\"k\"}",
            &mut Random::seeded(1),
        );
    }
    public
}

fn none() -> Expectation {
    Expectation::default()
}
