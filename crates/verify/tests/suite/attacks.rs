//! Packs that the log itself signs to deceive: parts of other packs, other checkpoints, other places.

use countersign_canon::{Hash, Json};
use countersign_event::{Line, Opening, Salt};
use countersign_pack::archive::Limits;
use countersign_pack::{DisclosedOpening, Selected};
use countersign_tlog::{Checkpoint, Kind, Range, Signer, hash};
use countersign_verify::pack::{PackProblem, Trust, verify_pack};

use crate::packs::{Log, Parts};

/// The name of what was found.
fn found(log: &Log, parts: &Parts) -> Option<&'static str> {
    log.verify(&parts.pack(&log.signer))
        .failure
        .map(|problem| problem.name())
}

fn signed(checkpoint: &Checkpoint, signer: &Signer) -> Vec<u8> {
    let mut note = checkpoint.to_note().unwrap();
    note.add(signer.sign(&note));
    note.to_string().into_bytes()
}

#[test]
fn parts_of_two_packs_do_not_make_one() {
    let log = Log::new();
    let good = || log.parts("acting");
    let mut parts = good();
    parts.sessions = log.parts("s").sessions;
    assert_eq!(found(&log, &parts), Some("sessions"));
    let mut parts = log.parts("s");
    parts.selected = good().selected;
    assert_eq!(found(&log, &parts), Some("not-selected"));
    let mut parts = good();
    parts.inclusion = log.parts("s").inclusion;
    assert_eq!(found(&log, &parts), Some("inclusion"));
    let mut parts = good();
    parts.indices = log.parts("s").indices;
    assert_eq!(found(&log, &parts), Some("inclusion"));
    let more = log.parts_of(good().selected, &good().indices, |_, session| {
        session == "acting" || session == "s"
    });
    assert_eq!(found(&log, &more), Some("sessions"));
    let mut twice = good();
    twice.lines.insert(1, twice.lines[0].clone());
    twice.indices.insert(1, twice.indices[0]);
    assert_eq!(found(&log, &twice), Some("inclusion"));
}

#[test]
fn another_checkpoint_does_not_fit() {
    let log = Log::new();
    let good = || log.parts("acting");
    // One that was good before the last event of the session was there.
    let mut tree = Range::default();
    let last = good().indices.last().copied().unwrap();
    for line in log.lines.iter().take(usize::try_from(last).unwrap()) {
        tree.push(hash::leaf(Line::read(line).unwrap().hash.as_bytes()));
    }
    let mut older = log.checkpoint.clone();
    (older.size, older.root) = (tree.end(), tree.root());
    let mut parts = good();
    parts.checkpoint = signed(&older, &log.signer);
    assert_eq!(found(&log, &parts), Some("inclusion"));
    let mut elsewhere = log.checkpoint.clone();
    elsewhere.origin = "example.com/other".to_owned();
    let mut parts = good();
    parts.checkpoint = signed(&elsewhere, &log.signer);
    assert_eq!(found(&log, &parts), Some("signature"));
    // The same name, and another key: in the checkpoint, in the list of keys, in both.
    let namesake = Signer::new("example.com/log", &[6; 32]).unwrap();
    let mut parts = good();
    parts.keys = namesake.key(Kind::Note).to_string();
    assert!(found(&log, &parts).is_some());
    parts.checkpoint = signed(&log.checkpoint, &namesake);
    let report = log.verify(&parts.pack(&namesake));
    assert_eq!(report.failure, Some(PackProblem::Untrusted));
}

/// Who is trusted to look at checkpoints does not become a log by it.
#[test]
fn a_witness_is_no_log() {
    let log = Log::new();
    let witness = Signer::new("example.com/log", &[8; 32]).unwrap();
    let mut parts = log.parts("acting");
    parts.keys = witness.key(Kind::Cosignature).to_string();
    let mut note = log.checkpoint.to_note().unwrap();
    note.add(witness.cosign(&note, 1_700_000_000));
    parts.checkpoint = note.to_string().into_bytes();
    let trust = Trust {
        keys: vec![witness.key(Kind::Cosignature)],
        people: Vec::new(),
    };
    let report = verify_pack(&parts.pack(&witness), &trust, &Limits::default());
    assert_eq!(report.failure, Some(PackProblem::Untrusted));
}

/// A checkpoint that says nothing about sessions proves no end of one.
#[test]
fn what_a_checkpoint_does_not_say_is_not_told_as_checked() {
    let log = Log::new();
    let mut silent = log.checkpoint.clone();
    silent.extensions.clear();
    let good = log.parts("acting");
    let last = good.indices.len() - 1;
    let mut cut = log.parts_of(good.selected, &good.indices[..last], |_, s| s == "acting");
    cut.checkpoint = signed(&silent, &log.signer);
    let line = Line::read(&cut.lines[last - 1]).unwrap();
    let sessions = String::from_utf8(cut.sessions).unwrap();
    let head = Line::read(&good.lines[last]).unwrap().hash.to_string();
    let sessions = sessions.replace(&head, &line.hash.to_string());
    let count = format!("\"count\":{}", last + 1);
    cut.sessions = sessions
        .replace(&count, &format!("\"count\":{last}"))
        .into_bytes();
    let report = log.verify(&cut.pack(&log.signer));
    assert_eq!(report.failure, None);
    assert!(!report.checked.iter().any(|what| what.contains("is whole")));
    let unsaid = "where the sessions ended: the checkpoint does not say";
    assert!(report.not_checked.iter().any(|what| what == unsaid));
}

#[test]
fn a_pack_of_everything_holds_everything() {
    let log = Log::new();
    let all = || Selected::Range {
        since_unix_ms: None,
        until_unix_ms: None,
    };
    let some = log.parts_of(all(), &log.parts("acting").indices, |_, s| s == "acting");
    assert_eq!(found(&log, &some), Some("incomplete"));
    let every: Vec<u64> = (0..log.checkpoint.size).collect();
    let whole = log.parts_of(all(), &every, |_, _| true);
    let report = log.verify(&whole.pack(&log.signer));
    assert_eq!(report.failure, None);
    let held = "that the pack holds every event of the log up to its checkpoint";
    assert!(report.checked.iter().any(|what| what == held));

    let since = || Selected::Range {
        since_unix_ms: Some(0),
        until_unix_ms: None,
    };
    let mut indices = log.parts("acting").indices;
    indices.remove(3);
    let gap = log.parts_of(since(), &indices, |_, s| s == "acting");
    let report = log.verify(&gap.pack(&log.signer));
    assert_eq!(report.failure, None);
    let told = "1 event(s) between those of the pack";
    assert!(report.not_checked.iter().any(|what| what.starts_with(told)));
}

#[test]
fn an_opening_belongs_to_one_place_of_one_event() {
    let log = Log::new();
    let parts = log.parts("acting");
    let hash = |line: &[u8]| Line::read(line).unwrap().hash;
    let elsewhere = log.parts("s").lines;
    let events: [Hash; 3] = [
        hash(&parts.lines[0]),
        hash(&elsewhere[0]),
        Hash::of(b"no event"),
    ];
    for event in events {
        for place in ["/args", "/args/", "args", "", "/Args", "/\u{430}rgs"] {
            let opening = DisclosedOpening {
                event,
                place: place.to_owned(),
                opening: Opening {
                    salt: Salt::from_bytes([7; 16]),
                    value: Json::from("made up"),
                },
            };
            let mut parts = log.parts("acting");
            parts.openings = opening.to_line().unwrap();
            parts.openings.push(b'\n');
            let name = found(&log, &parts);
            assert!(
                matches!(name, Some("commitment" | "opening")),
                "{place}: {name:?}"
            );
        }
    }
}
