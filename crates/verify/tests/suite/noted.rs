//! What the reader of a pack kept, against the pack.

use countersign_canon::Hash;
use countersign_event::Line;
use countersign_pack::Selected;
use countersign_pack::archive::Limits;
use countersign_verify::Selection;
use countersign_verify::pack::{Noted, verify_noted};

use crate::packs::Log;

/// In a pack of several sessions a head names its own, and a count is about those that are selected.
#[test]
fn what_the_reader_noted_is_about_one_session_of_the_pack() {
    let log = Log::new();
    let everything = Selected::Range {
        since_unix_ms: None,
        until_unix_ms: None,
    };
    let indices: Vec<u64> = (0..log.lines.len() as u64).collect();
    let pack = log.parts_of(everything, &indices, |_, _| true);
    let pack = pack.pack(&log.signer);
    let lines = log.lines.iter().map(|line| Line::read(line).unwrap());
    let acting: Vec<Line<'_>> = lines.filter(|line| line.session_id == "acting").collect();
    let found = |noted: &Noted| verify_noted(&pack, &log.trust(), noted, &Limits::default());
    let selection = Selection {
        session_id: Some("acting".to_owned()),
        ..Selection::default()
    };
    let noted = Noted {
        selection,
        head: acting.last().map(|line| line.hash),
        count: Some(acting.len() as u64),
        contains: acting.first().map(|line| line.hash),
    };
    assert_eq!(found(&noted).failure, None);
    for (wrong, name) in [
        (
            Noted {
                head: noted.contains,
                ..noted.clone()
            },
            "head",
        ),
        (
            Noted {
                count: Some(1),
                ..noted.clone()
            },
            "count",
        ),
        (
            Noted {
                contains: Some(Hash::of(b"else")),
                ..noted.clone()
            },
            "not-contained",
        ),
        (
            Noted {
                selection: Selection {
                    tenant_id: Some("else".to_owned()),
                    ..Selection::default()
                },
                ..noted.clone()
            },
            "nothing",
        ),
    ] {
        let failure = found(&wrong).failure;
        assert_eq!(failure.map(|problem| problem.name()), Some(name));
    }
    // Another session of the pack has an event with that hash, but not the one that was asked about.
    let elsewhere = log.lines.iter().map(|line| Line::read(line).unwrap());
    let elsewhere = elsewhere
        .map(|line| line.hash)
        .find(|hash| acting.iter().all(|line| line.hash != *hash));
    let wrong = Noted {
        contains: elsewhere,
        ..noted
    };
    assert!(found(&wrong).failure.is_some());
}
