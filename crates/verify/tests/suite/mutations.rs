//! Every mutation of an export is found.
//!
//! `COUNTERSIGN_MUTATIONS` sets how many are tried.

use countersign_canon::{Hash, Json};
use countersign_event::{EventType, Line};
use countersign_verify::{Expectation, Place, Problem, Report};

use crate::forge::{forge, payload, set};
use crate::log::{Session, export, interleaved, sessions, verify, verify_with};
use crate::random::Random;

/// One line of an export, and the session it was recorded in; `None` for one that nobody recorded.
type Owned = (Option<usize>, Vec<u8>);

#[test]
fn every_flipped_bit_is_found_and_placed() {
    // No bit is an exception. The last line end is optional, but it cannot be flipped away: what
    // stands there then is a byte too many.
    let sessions = sessions();
    let mut random = Random::seeded(2);
    let all: Vec<_> = interleaved(&sessions, &mut random)
        .into_iter()
        .map(|(_, event)| event.line)
        .collect();
    let all = export(&all);
    let each: Vec<_> = sessions
        .iter()
        .map(|session| export(&session.lines()))
        .collect();
    assert!(all.iter().filter(|byte| **byte == b'\n').count() > 200);
    for number in 0..mutations() / 2 {
        // One in twenty in the large export: it takes its time.
        let original = if number % 20 == 0 {
            &all
        } else {
            &each[random.below(each.len())]
        };
        let bit = random.below(original.len() * 8);
        flip(original, bit);
    }
    // The bits of the first and the last bytes, whatever the choices above were.
    let smallest = each.iter().min_by_key(|export| export.len()).unwrap();
    for bit in (0..32).chain((smallest.len() - 4) * 8..smallest.len() * 8) {
        flip(smallest, bit);
    }
}

fn flip(original: &[u8], bit: usize) {
    let mut flipped = original.to_vec();
    flipped[bit / 8] ^= 1 << (bit % 8);
    let line = 1 + original[..bit / 8]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count();
    let failure = verify(&flipped)
        .failure
        .unwrap_or_else(|| panic!("bit {bit} of line {line} was not found"));
    assert_eq!(
        failure.place,
        Some(Place::Line(line as u64)),
        "bit {bit}: {}",
        failure.problem
    );
    let expected = matches!(
        failure.problem,
        Problem::NotAnEvent(_) | Problem::Hash { .. }
    );
    assert!(expected, "bit {bit}: {}", failure.problem);
}

#[test]
fn every_mutation_of_lines_is_found() {
    let sessions = sessions();
    let mut random = Random::seeded(3);
    let alone: Vec<Log> = sessions
        .iter()
        .map(|session| Log::of(std::slice::from_ref(session), &mut random))
        .collect();
    let all = Log::of(&sessions, &mut random);
    let mut tally = Tally::default();
    for number in 0..mutations() / 2 {
        // One in twenty in the large export: it takes its time.
        let log = if number % 20 == 0 {
            &all
        } else {
            &alone[random.below(alone.len())]
        };
        let kind = random.pick(KINDS);
        tally.judge(&kind(&mut random, log), &log.sessions);
    }
    let Tally {
        broken,
        tail,
        unchanged,
    } = tally;
    assert_eq!(broken + tail + unchanged, mutations() / 2);
    let share = mutations() / 100;
    assert!(
        broken > 30 * share && tail > 2 * share && unchanged > 0,
        "{broken} {tail} {unchanged}"
    );
}

#[test]
fn sessions_may_be_interleaved_in_any_way() {
    let sessions = sessions();
    let mut random = Random::seeded(4);
    for _ in 0..50 {
        let events = interleaved(&sessions, &mut random);
        let lines: Vec<_> = events.into_iter().map(|(_, event)| event.line).collect();
        let report = verify(&export(&lines));
        assert_eq!(report.failure, None);
        assert_eq!(report.events, lines.len() as u64);
        for session in &sessions {
            let found = report.sessions.iter().find(|found| {
                found.tenant_id == session.scope.tenant.as_str()
                    && found.session_id == session.scope.session.as_str()
            });
            assert_eq!(found.unwrap().head, Some(session.head()));
        }
    }
}

/// An export before anybody has touched it.
struct Log {
    sessions: Vec<Session>,
    lines: Vec<Owned>,
    /// The same sessions, had other things happened.
    other_histories: Vec<Vec<Vec<u8>>>,
    /// Events of a session that is not in the export, without the first: with that one, they would
    /// be a whole new session, about which nobody has lied.
    foreign: Vec<Vec<u8>>,
}

impl Log {
    fn of(sessions: &[Session], random: &mut Random) -> Self {
        let lines = interleaved(sessions, random);
        let other = |session: &Session| {
            let (tenant, id) = (
                session.scope.tenant.as_str(),
                session.scope.session.as_str(),
            );
            Session::lived(tenant, id, &mut Random::seeded(5), 10).lines()
        };
        Self {
            sessions: sessions.to_vec(),
            lines: lines
                .into_iter()
                .map(|(owner, event)| (Some(owner), event.line))
                .collect(),
            other_histories: sessions.iter().map(other).collect(),
            foreign: Session::lived("stranger", "s", &mut Random::seeded(6), 3)
                .lines()
                .split_off(1),
        }
    }
}

type Kind = fn(&mut Random, &Log) -> Vec<Owned>;

const KINDS: &[Kind] = &[
    // Some lines are gone.
    |random, Log { lines, .. }| {
        let at = random.below(lines.len());
        without(lines, at, at + 1)
    },
    |random, Log { lines, .. }| {
        let at = random.below(lines.len());
        let end = at + 1 + random.below(lines.len() - at);
        without(lines, at, end)
    },
    |random, Log { lines, .. }| {
        without(
            lines,
            lines.len() - 1 - random.below(lines.len() / 2),
            lines.len(),
        )
    },
    |random, Log { lines, .. }| without(lines, 0, 1 + random.below(lines.len() - 1)),
    // A line is there twice, right after itself or elsewhere.
    |random, Log { lines, .. }| {
        let at = random.below(lines.len());
        with(lines, at + 1, lines[at].clone())
    },
    |random, Log { lines, .. }| with(lines, random.below(lines.len() + 1), random.pick(lines)),
    // A line of another history of the same session, or of another session.
    |random,
     Log {
         lines,
         other_histories,
         ..
     }| {
        let owner = random.below(other_histories.len());
        let other = random.pick(&other_histories[owner]);
        with(lines, random.below(lines.len() + 1), (Some(owner), other))
    },
    |random, Log { lines, foreign, .. }| {
        with(
            lines,
            random.below(lines.len() + 1),
            (None, random.pick(foreign)),
        )
    },
    // A line that was edited, beside the original.
    |random, Log { lines, .. }| {
        let (_, mut line) = random.pick(lines);
        let at = random.below(line.len());
        line[at] ^= random.pick(&[1, 2, 4, 0x20, 0x80]);
        with(lines, random.below(lines.len() + 1), (None, line))
    },
    // Lines in another order.
    |random, Log { lines, .. }| {
        let mut swapped = lines.to_vec();
        swapped.swap(random.below(lines.len()), random.below(lines.len()));
        swapped
    },
    |random, Log { lines, .. }| {
        let mut swapped = lines.to_vec();
        let at = random.below(lines.len() - 1);
        swapped.swap(at, at + 1);
        swapped
    },
    |random, Log { lines, .. }| {
        let at = random.below(lines.len());
        let moved = without(lines, at, at + 1);
        with(&moved, random.below(moved.len() + 1), lines[at].clone())
    },
    // A line is replaced by an edited one whose own hash is right.
    replaced,
    replaced,
    replaced,
];

fn replaced(
    random: &mut Random,
    Log {
        sessions, lines, ..
    }: &Log,
) -> Vec<Owned> {
    let at = random.below(lines.len());
    let forged = forged(random, &lines[at].1);
    let owner = {
        let line = Line::read(&forged).unwrap();
        sessions.iter().position(|session| {
            line.tenant_id == session.scope.tenant.as_str()
                && line.session_id == session.scope.session.as_str()
        })
    };
    let mut replaced = lines.to_vec();
    replaced[at] = (owner, forged);
    replaced
}

fn forged(random: &mut Random, line: &[u8]) -> Vec<u8> {
    let forged = forge(line, |event| match random.below(8) {
        0 => set(event, "ts_unix_ms", 1 + random.next() % 1_000_000),
        1 => drop(payload(event).insert("note".to_owned(), Json::from("x"))),
        2 => *payload(event) = countersign_canon::Object::new(),
        3 => set(event, "event_type", random.pick(EventType::ALL).as_str()),
        4 => set(event, "seq", random.next() % 100),
        5 => set(
            event,
            "prev_hash",
            Hash::of(&random.next().to_be_bytes()).to_string(),
        ),
        6 => set(
            event,
            "tenant_id",
            random.pick(&["acme", "acme/s", "s", "nobody"]),
        ),
        _ => set(
            event,
            "session_id",
            random.pick(&["s", "s/1", "1", "S", "acme", "nobody"]),
        ),
    });
    match forged == line {
        true => forge(line, |event| set(event, "ts_unix_ms", 1u64)),
        false => forged,
    }
}

/// What a mutation did, worked out from the lines alone.
enum Effect {
    /// Every session is as it was.
    Unchanged,
    /// Some sessions end early, and are otherwise as they were.
    Shorter,
    /// The last event of a session is another one.
    AnotherEnd,
    /// Something that no session has ever been.
    Broken,
}

#[derive(Default)]
struct Tally {
    broken: usize,
    tail: usize,
    unchanged: usize,
}

impl Tally {
    fn judge(&mut self, mutated: &[Owned], sessions: &[Session]) {
        let lines: Vec<_> = mutated.iter().map(|(_, line)| line.clone()).collect();
        let text = export(&lines);
        let report = verify(&text);
        match effect(mutated, sessions) {
            Effect::Unchanged => {
                self.unchanged += 1;
                assert_eq!(report.failure, None);
            }
            Effect::Broken => {
                self.broken += 1;
                assert!(
                    !report.is_good(),
                    "not found in\n{}",
                    String::from_utf8_lossy(&text)
                );
                sane(&report, lines.len());
            }
            Effect::Shorter => {
                self.tail += 1;
                // Nobody can know; whoever has kept the head or the number of events does.
                if !text.is_empty() {
                    assert_eq!(report.failure, None);
                }
                let found = unexpected(&text, sessions, |session| session.expectation());
                assert_eq!(found, changed(mutated, sessions));
                let found = unexpected(&text, sessions, |session| Expectation {
                    count: Some(session.count()),
                    ..Expectation::default()
                });
                assert_eq!(found, changed(mutated, sessions));
            }
            Effect::AnotherEnd => {
                self.tail += 1;
                let found = unexpected(&text, sessions, |session| Expectation {
                    head: Some(session.head()),
                    ..Expectation::default()
                });
                assert_eq!(found, changed(mutated, sessions));
            }
        }
    }
}

/// A report about something bad is about a place that is there, and counts only what is before it.
fn sane(report: &Report, lines: usize) {
    let Some(Place::Line(line)) = report.failure.as_ref().and_then(|failure| failure.place) else {
        panic!("no place in {:?}", report.failure);
    };
    // A line end inside an edited line makes one line more.
    assert!((1..=lines as u64 + 1).contains(&line));
    assert_eq!(report.events, line - 1);
    assert_eq!(
        report.events,
        report
            .sessions
            .iter()
            .map(|session| session.events)
            .sum::<u64>()
    );
}

fn effect(mutated: &[Owned], sessions: &[Session]) -> Effect {
    if mutated.iter().any(|(owner, _)| owner.is_none()) {
        return Effect::Broken;
    }
    let mut effect = Effect::Unchanged;
    for (owner, session) in sessions.iter().enumerate() {
        let found = lines_of(owner, mutated);
        let original = session.lines();
        let same = found
            .iter()
            .zip(&original)
            .take_while(|(found, original)| found == original)
            .count();
        if same == found.len() && same == original.len() {
            continue;
        }
        if same == found.len() {
            effect = Effect::Shorter;
        } else if same + 1 == found.len()
            && found.len() == original.len()
            && !original.contains(&found[same])
        {
            return Effect::AnotherEnd;
        } else {
            return Effect::Broken;
        }
    }
    effect
}

/// Which sessions are not as they were.
fn changed(mutated: &[Owned], sessions: &[Session]) -> Vec<usize> {
    (0..sessions.len())
        .filter(|owner| lines_of(*owner, mutated) != sessions[*owner].lines())
        .collect()
}

fn lines_of(owner: usize, lines: &[Owned]) -> Vec<Vec<u8>> {
    lines
        .iter()
        .filter(|(found, _)| *found == Some(owner))
        .map(|(_, line)| line.clone())
        .collect()
}

/// Which sessions are not what somebody expects who knows them.
fn unexpected(
    text: &[u8],
    sessions: &[Session],
    known: impl Fn(&Session) -> Expectation,
) -> Vec<usize> {
    let bad =
        |session: &Session| !verify_with(text, &session.selection(), &known(session)).is_good();
    (0..sessions.len())
        .filter(|owner| bad(&sessions[*owner]))
        .collect()
}

fn without(lines: &[Owned], from: usize, to: usize) -> Vec<Owned> {
    [&lines[..from], &lines[to..]].concat()
}

fn with(lines: &[Owned], at: usize, line: Owned) -> Vec<Owned> {
    [&lines[..at], &[line], &lines[at..]].concat()
}

pub(crate) fn mutations() -> usize {
    match std::env::var("COUNTERSIGN_MUTATIONS") {
        Ok(count) => count
            .parse()
            .expect("`COUNTERSIGN_MUTATIONS` must be a number"),
        Err(_) => 10_000,
    }
}
