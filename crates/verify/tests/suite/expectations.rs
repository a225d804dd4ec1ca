//! What the caller knows, and which sessions it is about.

use countersign_canon::Hash;
use countersign_event::Line;
use countersign_verify::{Expectation, Problem, Selection};

use crate::log::{Session, export, verify_with};
use crate::random::Random;

#[test]
fn a_head_must_be_the_last_event() {
    let one = session("t", "a");
    let text = export(&one.lines());
    let head = |head| Expectation {
        head: Some(head),
        ..Expectation::default()
    };
    check(&text, &head(one.head()), None);
    let earlier = hash_of(&one, 3);
    check(
        &text,
        &head(earlier),
        Some(Problem::Head {
            expected: earlier,
            found: Some(one.head()),
        }),
    );
    let unknown = Hash::of(b"unknown");
    check(
        &text,
        &head(unknown),
        Some(Problem::Head {
            expected: unknown,
            found: Some(one.head()),
        }),
    );
    // Cut at the end.
    let cut = export(&one.lines()[..4]);
    check(
        &cut,
        &head(one.head()),
        Some(Problem::Head {
            expected: one.head(),
            found: Some(earlier),
        }),
    );
}

#[test]
fn a_count_must_be_the_number_of_events() {
    let one = session("t", "a");
    let text = export(&one.lines());
    let count = |count| Expectation {
        count: Some(count),
        ..Expectation::default()
    };
    check(&text, &count(one.count()), None);
    for wrong in [0, one.count() - 1, one.count() + 1, u64::MAX] {
        check(
            &text,
            &count(wrong),
            Some(Problem::Count {
                expected: wrong,
                found: one.count(),
            }),
        );
    }
    // Head and count are both held against the session that ends there.
    let both = Expectation {
        count: Some(2),
        ..one.expectation()
    };
    check(
        &text,
        &both,
        Some(Problem::Count {
            expected: 2,
            found: one.count(),
        }),
    );
}

#[test]
fn a_contained_hash_may_be_anywhere() {
    let one = session("t", "a");
    let contains = |hash| Expectation {
        contains: Some(hash),
        ..Expectation::default()
    };
    for seq in 0..one.events.len() {
        check(&export(&one.lines()), &contains(hash_of(&one, seq)), None);
        let cut = &export(&one.lines()[..seq]);
        if seq > 0 {
            check(
                cut,
                &contains(hash_of(&one, seq)),
                Some(Problem::NotContained(hash_of(&one, seq))),
            );
        }
    }
    // The hash of an event counts, not a text that looks like it.
    let mut quoting = Session::new("t", "a");
    let payload = format!("{{\"snapshot_hash\":\"{}\"}}", one.head());
    quoting.record("CHECKPOINT_CREATED", &payload, &mut Random::seeded(1));
    check(
        &export(&quoting.lines()),
        &contains(one.head()),
        Some(Problem::NotContained(one.head())),
    );
}

#[test]
fn with_several_sessions_a_hash_names_its_own() {
    let (one, two) = (session("t", "a"), longer("t", "b"));
    let text = export(&[one.lines(), two.lines()].concat());
    check(&text, &one.expectation(), None);
    check(&text, &two.expectation(), None);
    let mixed = Expectation {
        count: Some(two.count()),
        ..one.expectation()
    };
    check(
        &text,
        &mixed,
        Some(Problem::Count {
            expected: two.count(),
            found: one.count(),
        }),
    );
    let unknown = Hash::of(b"unknown");
    let head = Expectation {
        head: Some(unknown),
        ..Expectation::default()
    };
    check(
        &text,
        &head,
        Some(Problem::Head {
            expected: unknown,
            found: None,
        }),
    );
    // A bare count is about every session.
    let count = Expectation {
        count: Some(one.count()),
        ..Expectation::default()
    };
    check(
        &text,
        &count,
        Some(Problem::Count {
            expected: one.count(),
            found: two.count(),
        }),
    );
}

#[test]
fn a_selection_takes_its_sessions_and_no_others() {
    let all = [
        session("t", "a"),
        longer("t", "b"),
        session("u", "a"),
        session("T", "a"),
        session("t/", "a"),
    ];
    let text = export(&all.iter().flat_map(Session::lines).collect::<Vec<_>>());
    let names = |tenant: Option<&str>, session: Option<&str>| {
        let report = verify_with(&text, &select(tenant, session), &Expectation::default());
        assert!(report.is_good());
        let events: u64 = report.sessions.iter().map(|session| session.events).sum();
        assert_eq!(report.events, events);
        let name = |found: &countersign_verify::SessionReport| {
            format!("{}:{}", found.tenant_id, found.session_id)
        };
        report.sessions.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(None, None), ["t:a", "t:b", "u:a", "T:a", "t/:a"]);
    assert_eq!(names(Some("t"), None), ["t:a", "t:b"]);
    assert_eq!(names(None, Some("a")), ["t:a", "u:a", "T:a", "t/:a"]);
    assert_eq!(names(Some("t"), Some("b")), ["t:b"]);
    for session in &all {
        let report = verify_with(&text, &session.selection(), &session.expectation());
        assert_eq!(report.failure, None);
        assert_eq!(report.events, session.count());
    }
    // The head of one session is not the head of another.
    let report = verify_with(&text, &all[1].selection(), &all[0].expectation());
    let expected = Problem::Head {
        expected: all[0].head(),
        found: Some(all[1].head()),
    };
    assert_eq!(
        report.failure.map(|failure| failure.problem),
        Some(expected)
    );
}

#[test]
fn an_unknown_session_is_nothing_to_verify() {
    let one = session("t", "a");
    let text = export(&one.lines());
    for selection in [
        select(Some("t"), Some("b")),
        select(Some("u"), Some("a")),
        select(Some("u"), None),
        select(None, Some("")),
        select(Some("T"), Some("A")),
    ] {
        for expectation in [Expectation::default(), one.expectation()] {
            let report = verify_with(&text, &selection, &expectation);
            assert_eq!(
                report.failure.map(|failure| failure.problem),
                Some(Problem::NoneOfThose {
                    others: one.lines().len() as u64
                })
            );
            assert_eq!(report.events, 0);
        }
    }
}

/// A selection is about chains. Lines that are no events are found wherever they stand.
#[test]
fn lines_outside_a_selection_must_still_be_events() {
    let (one, two) = (session("t", "a"), longer("t", "b"));
    let mut lines = [one.lines(), two.lines()].concat();
    let last = lines.len() - 1;
    // A gap in the other chain is not asked for, a changed bit is.
    lines.remove(last - 2);
    assert!(verify_with(&export(&lines), &one.selection(), &one.expectation()).is_good());
    lines[last - 1][60] ^= 1;
    assert!(!verify_with(&export(&lines), &one.selection(), &one.expectation()).is_good());
}

#[test]
fn an_expectation_knows_whether_it_expects_anything() {
    assert!(Expectation::default().is_empty());
    assert!(!session("t", "a").expectation().is_empty());
    assert!(
        !Expectation {
            contains: Some(Hash::of(b"x")),
            ..Expectation::default()
        }
        .is_empty()
    );
}

fn check(text: &[u8], expectation: &Expectation, expect: Option<Problem>) {
    let failure = verify_with(text, &Selection::default(), expectation).failure;
    if let Some(failure) = &failure {
        assert_eq!(
            (failure.place, &failure.event),
            (None, &None),
            "it is about what is not there"
        );
    }
    assert_eq!(failure.map(|failure| failure.problem), expect);
}

fn select(tenant: Option<&str>, session: Option<&str>) -> Selection {
    Selection {
        tenant_id: tenant.map(str::to_owned),
        session_id: session.map(str::to_owned),
    }
}

fn session(tenant: &str, session: &str) -> Session {
    Session::lived(tenant, session, &mut Random::seeded(1), 3)
}

fn longer(tenant: &str, session: &str) -> Session {
    Session::lived(tenant, session, &mut Random::seeded(1), 5)
}

fn hash_of(session: &Session, seq: usize) -> Hash {
    Line::read(&session.events[seq].line).unwrap().hash
}
