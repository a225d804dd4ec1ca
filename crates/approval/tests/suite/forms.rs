//! Every format has one text: what a reader accepts is exactly what would be written.

use countersign_approval::audit::{Anchor, Entry, SignedHead};
use countersign_approval::lease::SignedLease;
use countersign_approval::*;

use crate::golden::golden;
use crate::random::Random;

/// Reads a text and writes it again, if it can be read.
type Again = fn(&[u8]) -> Option<Vec<u8>>;

const FORMS: &[(&str, Again)] = &[
    ("envelope", |text| {
        Some(Envelope::read(text).ok()?.to_text())
    }),
    ("lease", |text| {
        Some(SignedLease::read(text).ok()?.to_text())
    }),
    ("head", |text| Some(SignedHead::read(text).ok()?.to_text())),
    ("anchor", |text| Some(Anchor::read(text).ok()?.to_text())),
    ("audit", |text| {
        let (entry, prev) = Entry::read(text).ok()?;
        Some(entry.to_line(prev))
    }),
];

#[test]
fn what_is_read_is_what_would_be_written() {
    let (mut random, golden) = (Random::seeded(5), golden());
    for (name, again) in FORMS {
        let value = &golden[*name];
        let good = value.as_str().or_else(|| value[1].as_str()).unwrap();
        assert_eq!(again(good.as_bytes()).unwrap(), good.as_bytes());
        let mut accepted = 0;
        for _ in 0..4000 {
            let text = mutate(&mut random, good.as_bytes());
            if let Some(written) = again(&text) {
                accepted += 1;
                assert_eq!(written, text, "{name}");
            }
        }
        assert!(accepted > 10, "{name}: {accepted}");
    }
}

#[test]
fn a_submission_means_the_same_however_it_is_written() {
    let (mut random, golden) = (Random::seeded(6), golden());
    let good = golden["submission"].as_str().unwrap();
    let spaced = good
        .replace("\":", "\" : ")
        .replace("{\"approver\"", "\n{ \"approver\"");
    let parse = |text: &[u8]| Submission::parse(text);
    assert_eq!(parse(spaced.as_bytes()), parse(good.as_bytes()));
    for _ in 0..4000 {
        if let Ok(submission) = parse(&mutate(&mut random, good.as_bytes())) {
            assert_eq!(parse(&submission.to_text()), Ok(submission));
        }
    }
}

#[test]
fn other_texts_of_a_lease_are_refused() {
    let golden = golden();
    let good = golden["lease"].as_str().unwrap();
    let hosts = "\"api.example.com\",\"example.com\"";
    for (from, to) in [
        ("[1,500]", "[1.0,500]"),
        ("[1,500]", "[1,500,1]"),
        ("[1,500]", "[500,1]"),
        (hosts, "\"example.com\",\"api.example.com\""),
        (hosts, "\"example.com\",\"example.com\""),
        ("\"max_uses\":5", "\"max_uses\":0"),
        ("\"kind\":\"exact\"", "\"kind\":\"glob\""),
        ("/tmp/workspace/out", "/tmp/workspace/../out"),
        (
            "\"granted_at_ms\":1771113600000",
            "\"granted_at_ms\":1771113600000.0",
        ),
        (
            "\"expires_at_ms\":1771114500000",
            "\"expires_at_ms\":99999999999999999",
        ),
        (
            "\"budget\":{\"argument\":\"amount\"",
            "\"budget\":{\"argument\":\"host\"",
        ),
    ] {
        let changed = good.replace(from, to);
        assert_ne!(changed, good, "{from}");
        assert!(SignedLease::read(changed.as_bytes()).is_err(), "{to}");
    }
}

/// Changes, removes, repeats or swaps something small.
fn mutate(random: &mut Random, text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    let place = random.below(text.len());
    match random.below(4) {
        0 => text[place] = random.pick(b"0123456789abcdef\"\\{}[],:. unz-"),
        1 => drop(text.remove(place)),
        2 => text.insert(place, random.pick(b"0123456789abcdef\"\\{}[],:. -")),
        _ => {
            let other = random.below(text.len());
            text.swap(place, other);
        }
    }
    text
}
