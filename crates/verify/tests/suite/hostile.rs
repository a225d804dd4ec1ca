//! Streams that were made to confuse, exhaust or mislead the verifier.

use std::io::{self, BufReader, Read};

use countersign_canon::{Json, Reason};
use countersign_event::LineError;
use countersign_verify::{Expectation, Finding, Place, Problem, Selection, verify_stream};

use crate::forge::{forge, payload, relink, set};
use crate::log::{Session, export, verify};
use crate::random::Random;

#[test]
fn nothing_is_not_a_log() {
    let report = verify(b"");
    assert_eq!(
        report.failure,
        Some(Finding {
            place: None,
            event: None,
            problem: Problem::Nothing
        })
    );
    assert_eq!((report.events, report.bytes), (0, 0));
    assert_eq!(report.sessions, []);
}

#[test]
fn the_last_line_end_is_optional() {
    let export = export(&session().lines());
    assert!(verify(&export).is_good());
    assert!(verify(&export[..export.len() - 1]).is_good());
}

#[test]
fn every_line_is_an_event() {
    let lines = session().lines();
    let text = export(&lines);
    let end = lines.len() as u64 + 1;
    let with = |at: usize, extra: &[u8]| {
        let mut with = export(&lines[..at]);
        with.extend_from_slice(extra);
        with.extend_from_slice(&export(&lines[at..]));
        with
    };
    bad_line(b"\n", 1);
    bad_line(b"\n\n", 1);
    bad_line(&with(0, b"\n"), 1);
    bad_line(&with(3, b"\n"), 4);
    bad_line(&with(lines.len(), b"\n"), end);
    bad_line(&with(3, b" \n"), 4);
    bad_line(&with(3, b"\0\n"), 4);
    bad_line(&with(3, b"\xff\xfe\n"), 4);
    bad_line(&with(3, b"null\n"), 4);
    bad_line(&with(3, b"{}\n"), 4);
    bad_line(&with(3, b"[]\n"), 4);
    bad_line(&with(0, b"\xef\xbb\xbf"), 1);
    bad_line(&with(lines.len(), b"\0"), end);
    bad_line(&with(lines.len(), &lines[0][..lines[0].len() / 2]), end);
    bad_line(&text[..text.len() - 2], end - 1);
    bad_line(&text.replace(b"\n", b"\r\n"), 1);
    bad_line(&text.replace(b"\n", b"\r"), 1);
    bad_line(&text.replace(b"\n", b"\n\n"), 2);
    bad_line(&text.replace(b"\n", b"\0\n"), 1);
    bad_line(&[b"[".as_slice(), &text].concat(), 1);
}

#[test]
fn content_is_no_place_to_hide() {
    let line = session().lines()[0].clone();
    let text = String::from_utf8(line).unwrap();
    let payload = |value: &str| {
        let start = text.find("\"payload\":").unwrap() + "\"payload\":".len();
        let end = text.find(",\"prev_hash\":").unwrap();
        format!("{}{value}{}\n", &text[..start], &text[end..]).into_bytes()
    };
    let reason = |value: &str| match verify(&payload(value)).failure.unwrap().problem {
        Problem::NotAnEvent(LineError::Json(error)) => error.reason().clone(),
        other => panic!("{value}: {other}"),
    };
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(reason(&deep(129)), Reason::TooDeep { limit: 128 });
    assert_eq!(reason(&deep(1_000_000)), Reason::TooDeep { limit: 128 });
    assert_eq!(
        reason(&"{\"a\":".repeat(1_000_000)),
        Reason::TooDeep { limit: 128 }
    );
    assert_eq!(
        reason("{\"a\":1,\"a\":1}"),
        Reason::DuplicateKey("a".to_owned())
    );
    assert_eq!(reason("\"\u{1}\""), Reason::ControlCharacter(1));
    // Deep enough for every payload: only the hash is wrong.
    assert!(matches!(
        verify(&payload(&deep(128))).failure.unwrap().problem,
        Problem::Hash { .. }
    ));
}

#[test]
fn invalid_utf_8_is_found_inside_a_string() {
    let lines = session().lines();
    let mut text = export(&lines);
    let at = text
        .windows(7)
        .position(|window| window == b"call_id")
        .unwrap();
    for byte in [0x80, 0xc0, 0xed, 0xff] {
        text[at + 11] = byte;
        bad_line(&text, 1);
    }
}

#[test]
fn a_seal_must_be_a_seal() {
    let mut lines = session().lines();
    let at = lines
        .iter()
        .position(|line| line.windows(8).any(|window| window == b"\"sealed\""))
        .unwrap();
    for forged in [
        Json::Null,
        Json::from("x"),
        Json::object([("ciphertext", Json::from("x"))]),
    ] {
        lines[at] = forge(&lines[at], |event| set(payload(event), "sealed", forged));
        relink(&mut lines);
        let failure = verify(&export(&lines)).failure.unwrap();
        assert!(
            matches!(failure.problem, Problem::NotAnEvent(_)),
            "{}",
            failure.problem
        );
        assert_eq!(failure.place, Some(Place::Line(at as u64 + 1)));
    }
}

#[test]
fn a_line_without_end_is_refused_before_it_is_held() {
    for before in [Vec::new(), session().lines()] {
        let text = export(&before);
        let endless = Counted {
            text: &text,
            rest: 200 << 20,
            read: 0,
        };
        let mut source = BufReader::with_capacity(1 << 16, endless);
        let report = verify_stream(
            &mut source,
            &Selection::default(),
            &Expectation::default(),
            &mut |_| {},
        )
        .unwrap();
        let failure = report.failure.unwrap();
        assert_eq!(failure.problem, Problem::TooLong { limit: 64 << 20 });
        assert_eq!(failure.place, Some(Place::Line(before.len() as u64 + 1)));
        assert_eq!(report.events, before.len() as u64);
        let read = source.get_ref().read;
        assert!(
            read <= text.len() + (64 << 20) + (1 << 17),
            "{read} bytes were read"
        );
    }
}

#[test]
fn a_broken_pipe_is_no_verdict() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("gone"))
        }
    }
    let text = export(&session().lines());
    let source = BufReader::new(text.as_slice().chain(Broken));
    let report = verify_stream(
        source,
        &Selection::default(),
        &Expectation::default(),
        &mut |_| {},
    );
    assert_eq!(report.unwrap_err().to_string(), "gone");
}

/// Over 12 MiB: several blocks, each examined by several threads.
#[test]
fn places_are_right_after_many_blocks() {
    let (lines, size) = large();
    let check = |lines: &[Vec<u8>], line: usize, name: &str| {
        let report = verify(&export(lines));
        let failure = report.failure.unwrap();
        assert_eq!(failure.problem.name(), name);
        assert_eq!(failure.place, Some(Place::Line(line as u64 + 1)));
        let good = lines[..line].iter().filter(|line| !line.is_empty());
        assert_eq!(report.events, good.clone().count() as u64);
        assert_eq!(
            report.bytes,
            good.map(|line| line.len() as u64).sum::<u64>()
        );
        failure.event
    };
    assert!(size > 12 << 20 && lines.len() > 1000);
    let mut steps = Vec::new();
    let report = verify_stream(
        export(&lines).as_slice(),
        &Selection::default(),
        &Expectation::default(),
        &mut |step| steps.push(step),
    )
    .unwrap();
    assert!(report.is_good());
    assert_eq!(
        (report.events, report.bytes),
        (lines.len() as u64, size as u64)
    );
    assert!(steps.len() >= 4 && steps.is_sorted_by_key(|step| step.bytes));
    assert_eq!(
        steps.last().map(|step| (step.events, step.bytes)),
        Some((report.events, report.bytes))
    );

    for at in [
        0,
        1,
        lines.len() / 3,
        lines.len() / 2,
        lines.len() - 2,
        lines.len() - 1,
    ] {
        let mut edited = lines.clone();
        another_time(&mut edited[at]);
        let event = check(&edited, at, "hash");
        assert_eq!(event, Some(("t".to_owned(), "large".to_owned(), at as u64)));

        let mut blank = lines.clone();
        blank.insert(at, Vec::new());
        assert_eq!(check(&blank, at, "not-an-event"), None);

        let mut gap = lines.clone();
        gap.remove(at);
        if at < gap.len() {
            let event = check(&gap, at, "gap");
            assert_eq!(
                event,
                Some(("t".to_owned(), "large".to_owned(), at as u64 + 1))
            );
        }
    }
}

#[test]
fn the_first_bad_line_is_the_one_reported() {
    let (lines, _) = large();
    // Bad by themselves and bad in their place, near and far from each other, so that threads find
    // the later ones first.
    for (gap, flipped) in [
        (10, 11),
        (11, 10),
        (5, 300),
        (300, 5),
        (300, lines.len() - 1),
    ] {
        let mut edited = lines.clone();
        another_time(&mut edited[flipped]);
        edited[gap] = forge(&edited[gap], |event| set(event, "seq", 9999u64));
        let failure = verify(&export(&edited)).failure.unwrap();
        let first = gap.min(flipped);
        assert_eq!(failure.place, Some(Place::Line(first as u64 + 1)));
        assert_eq!(
            failure.problem.name(),
            if gap < flipped { "gap" } else { "hash" }
        );
    }
}

#[test]
fn what_the_rules_refuse_is_found_although_every_hash_fits() {
    let check = |events: &[(&str, &str)], expect: &str| {
        let mut session = Session::new("t", "s");
        for (event_type, payload) in events {
            session.record(event_type, payload, &mut Random::seeded(1));
        }
        let failure = verify(&export(&session.lines())).failure.unwrap();
        assert_eq!(failure.place, Some(Place::Line(events.len() as u64)));
        assert_eq!(
            failure.event,
            Some(("t".to_owned(), "s".to_owned(), events.len() as u64 - 1))
        );
        assert_eq!(failure.problem.name(), "order");
        assert_eq!(failure.problem.to_string(), expect);
    };
    check(
        &[
            ("TOOL_CALL_PROPOSED", "{\"call_id\":\"c\"}"),
            ("TOOL_CALL_EXECUTED", "{\"call_id\":\"c\"}"),
        ],
        "out of order: TOOL_CALL_EXECUTED for `c` needs a TOOL_CALL_ALLOWED first",
    );
    check(
        &[("TERMINATION", "{}"), ("MEMORY_READ", "{}")],
        "out of order: MEMORY_READ after TERMINATION: the session is closed",
    );
}

#[test]
fn order_is_kept_per_session() {
    let mut random = Random::seeded(1);
    let mut first = Session::new("t", "a");
    let mut second = Session::new("t", "b");
    first.record("TOOL_CALL_PROPOSED", "{\"call_id\":\"c\"}", &mut random);
    second.record("TOOL_CALL_ALLOWED", "{\"call_id\":\"c\"}", &mut random);
    let failure = verify(&export(&[first.lines(), second.lines()].concat()))
        .failure
        .unwrap();
    assert!(matches!(failure.problem, Problem::Order(_)));
}

/// Changes the last digit of the timestamp, which is right before the closing brace.
fn another_time(line: &mut [u8]) {
    let digit = line.len() - 2;
    line[digit] ^= 1;
}

/// Gives some text, then one letter again and again, and counts what was asked for.
struct Counted<'a> {
    text: &'a [u8],
    rest: usize,
    read: usize,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = if self.text.is_empty() {
            let length = buffer.len().min(self.rest);
            buffer[..length].fill(b'a');
            self.rest -= length;
            length
        } else {
            self.text.read(buffer)?
        };
        self.read += read;
        Ok(read)
    }
}

trait Replace {
    fn replace(&self, from: &[u8], to: &[u8]) -> Vec<u8>;
}

impl Replace for Vec<u8> {
    fn replace(&self, from: &[u8], to: &[u8]) -> Vec<u8> {
        self.split(|byte| from == [*byte])
            .collect::<Vec<_>>()
            .join(to)
    }
}

fn bad_line(text: &[u8], line: u64) {
    let failure = verify(text).failure.expect("the bad line was not found");
    assert!(
        matches!(failure.problem, Problem::NotAnEvent(_)),
        "{}",
        failure.problem
    );
    assert_eq!(failure.place, Some(Place::Line(line)));
    assert_eq!(failure.event, None);
}

fn session() -> Session {
    Session::lived("t", "s", &mut Random::seeded(1), 4)
}

fn large() -> (Vec<Vec<u8>>, usize) {
    let mut random = Random::seeded(7);
    let mut session = Session::new("t", "large");
    while session.count() < 2100 {
        // Lengths that fit no block.
        let reason = "x".repeat(6000 + random.below(6000));
        session.record("TOOL_CALL_PROPOSED", "{}", &mut random);
        session.record(
            "TOOL_CALL_DENIED",
            &format!("{{\"reason\":\"{reason}\"}}"),
            &mut random,
        );
        session.record(
            "POLICY_DECISION",
            &format!("{{\"reason\":\"{reason}\"}}"),
            &mut random,
        );
    }
    let lines = session.lines();
    let size = lines.iter().map(Vec::len).sum();
    (lines, size)
}
