//! A log against a checkpoint that somebody kept.

use countersign_canon::Hash;
use countersign_event::Line;
use countersign_tlog::{Range, hash, session_entry};
use countersign_verify::{Expectation, Kept, Problem, Selection, verify_stream, verify_text};

use crate::log::{export, interleaved, sessions};
use crate::random::Random;

/// A few hundred events of several sessions, mixed.
fn mixed() -> Vec<u8> {
    let events = interleaved(&sessions(), &mut Random::seeded(5));
    let lines: Vec<Vec<u8>> = events.into_iter().map(|(_, event)| event.line).collect();
    export(&lines)
}

/// A checkpoint of the first lines.
fn kept(lines: &[&[u8]], size: usize) -> Kept {
    let mut tree = Range::default();
    let mut heads = std::collections::BTreeMap::new();
    for line in &lines[..size] {
        let line = Line::read(line).unwrap();
        tree.push(hash::leaf(line.hash.as_bytes()));
        let name = (line.tenant_id.to_string(), line.session_id.to_string());
        heads.insert(name, (line.seq + 1, line.hash));
    }
    let mut sessions = Range::default();
    for ((tenant, session), (count, head)) in &heads {
        sessions.push(hash::leaf(&session_entry(tenant, session, *count, head)));
    }
    Kept {
        size: size as u64,
        root: tree.root(),
        sessions: Some((sessions.end(), sessions.root())),
    }
}

fn found(text: &[u8], checkpoint: Kept) -> Option<Problem> {
    let expectation = Expectation {
        checkpoint: Some(checkpoint),
        ..Expectation::default()
    };
    let selection = Selection::default();
    let report = verify_text(text, &selection, &expectation, &mut |_| {});
    let stream = verify_stream(text, &selection, &expectation, &mut |_| {}).unwrap();
    assert_eq!(report, stream);
    report.failure.map(|finding| finding.problem)
}

#[test]
fn a_log_is_held_against_any_checkpoint_of_its_past() {
    let text = mixed();
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let lines = &lines[..lines.len() - 1];
    for size in [1, 2, lines.len() / 2, lines.len() - 1, lines.len()] {
        let checkpoint = kept(lines, size);
        assert_eq!(found(&text, checkpoint), None, "{size}");
        let other = Kept {
            root: Hash::of(b"another log"),
            ..checkpoint
        };
        let size = size as u64;
        assert_eq!(found(&text, other), Some(Problem::Rewritten { size }));
        let cut = Kept {
            sessions: Some((1, Hash::of(b"other ends"))),
            ..checkpoint
        };
        assert_eq!(found(&text, cut), Some(Problem::Sessions { size }));
    }
}

#[test]
fn a_log_whose_end_was_cut_is_found() {
    let text = mixed();
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let whole: Vec<&[u8]> = lines.iter().map(|line| &line[..line.len() - 1]).collect();
    let checkpoint = kept(&whole, whole.len());
    let cut = lines[..lines.len() - 1].concat();
    let problem = Problem::Shorter {
        expected: lines.len() as u64,
        found: lines.len() as u64 - 1,
    };
    assert_eq!(found(&cut, checkpoint), Some(problem));
}

/// Two events of different sessions change places: every chain still holds, the log does not.
#[test]
fn events_that_changed_places_are_found() {
    let text = mixed();
    let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let whole: Vec<&[u8]> = lines.iter().map(|line| &line[..line.len() - 1]).collect();
    let checkpoint = kept(&whole, whole.len());
    let session = |line: &[u8]| {
        Line::read(&line[..line.len() - 1])
            .unwrap()
            .session_id
            .to_string()
    };
    let at = (1..lines.len())
        .find(|at| session(lines[*at]) != session(lines[at - 1]))
        .unwrap();
    lines.swap(at, at - 1);
    let size = checkpoint.size;
    assert_eq!(
        found(&lines.concat(), checkpoint),
        Some(Problem::Rewritten { size })
    );
}
