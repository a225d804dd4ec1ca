//! What holds for any events in any order.

use super::*;
use crate::random::Random;

#[test]
fn random_interleavings_of_good_lives_are_admitted() {
    let mut random = Random::seeded(1);
    for _ in 0..300 {
        let mut lives: Vec<Vec<(&str, String)>> = (0..=random.below(12))
            .map(|number| life(&mut random, number))
            .collect();
        let mut order = Order::default();
        while !lives.is_empty() {
            let at = random.below(lives.len());
            match lives[at].pop() {
                Some((event, ids)) => {
                    assert_eq!(admit(&mut order, (event, &ids)), Ok(()), "{event} {ids}");
                }
                None => drop(lives.swap_remove(at)),
            }
        }
        assert_eq!(admit(&mut order, (OVER, "")), Ok(()));
    }
}

/// The events of one call, model call or hand-off, the last one first; sometimes cut short.
fn life(random: &mut Random, number: usize) -> Vec<(&'static str, String)> {
    let named = random.below(4) > 0;
    let call = if named {
        format!("c{number}")
    } else {
        String::new()
    };
    let mut events = match random.below(6) {
        0 => vec![(STARTED, call.clone()), (FINISHED, call)],
        1 => vec![(HANDED, call.clone()), (TAKEN, call)],
        2 => (0..random.below(4))
            .map(|_| (random.pick(&FREE), call.clone()))
            .collect(),
        _ => tool_life(random, &call),
    };
    if random.below(4) == 0 {
        events.truncate(random.below(events.len() + 1));
    }
    events.reverse();
    events
}

fn tool_life(random: &mut Random, call: &str) -> Vec<(&'static str, String)> {
    let mut events = vec![(PROPOSED, call.to_owned())];
    let decisions = |events: &mut Vec<_>, random: &mut Random| {
        events.extend((0..random.below(3)).map(|_| (DECISION, call.to_owned())));
    };
    decisions(&mut events, random);
    // Approvals tie named calls together; an unnamed call cannot be the one meant.
    let rounds = if call.is_empty() { 0 } else { random.below(3) };
    for round in 0..rounds {
        let ids = format!("{call}:{call}-a{round}");
        events.push((REQUESTED, ids.clone()));
        decisions(&mut events, random);
        events.extend((0..=random.below(2)).map(|_| (DECIDED, ids.clone())));
    }
    decisions(&mut events, random);
    let end: &[&str] = match random.below(3) {
        0 => &[DENIED],
        // Which of several unnamed calls a denial ends cannot be told, so it is the youngest in life.
        1 if !call.is_empty() => &[ALLOWED, DENIED],
        _ => &[ALLOWED, EXECUTED, RESULT],
    };
    events.extend(end.iter().map(|event| (*event, call.to_owned())));
    events
}

#[test]
fn a_refused_event_leaves_no_trace() {
    let mut random = Random::seeded(2);
    let mut refusals = 0;
    for _ in 0..200 {
        let mut order = Order::default();
        for _ in 0..40 {
            let step = random_step(&mut random);
            let mut before = order.clone();
            if admit(&mut order, (step.0, &step.1)).is_ok() {
                continue;
            }
            refusals += 1;
            let mut after = order.clone();
            for _ in 0..30 {
                let (event, ids) = random_step(&mut random);
                let expect = admit(&mut before, (event, &ids));
                assert_eq!(
                    admit(&mut after, (event, &ids)),
                    expect,
                    "{step:?}, then {event} {ids}"
                );
            }
        }
    }
    assert!(refusals > 1000, "{refusals}");
}

/// The rules a second time, as a table of what may come right after what (policy decisions aside,
/// which change nothing).
#[test]
fn tool_calls_follow_the_table() {
    let table: &[(&str, &[Option<&str>])] = &[
        (PROPOSED, &[None]),
        (
            DECISION,
            &[
                Some(PROPOSED),
                Some(REQUESTED),
                Some(DECIDED),
                Some(EXECUTED),
            ],
        ),
        (REQUESTED, &[Some(PROPOSED), Some(REQUESTED), Some(DECIDED)]),
        (DECIDED, &[Some(REQUESTED), Some(DECIDED)]),
        (ALLOWED, &[Some(PROPOSED), Some(DECIDED)]),
        (
            DENIED,
            &[
                Some(PROPOSED),
                Some(REQUESTED),
                Some(DECIDED),
                Some(ALLOWED),
            ],
        ),
        (EXECUTED, &[Some(ALLOWED)]),
        (RESULT, &[Some(EXECUTED)]),
    ];
    let mut random = Random::seeded(3);
    for _ in 0..500 {
        let mut order = Order::default();
        let mut last: HashMap<String, &str> = HashMap::default();
        for number in 0..60 {
            let (event, after) = random.pick(table);
            let call = format!("c{}", random.below(4));
            let ids = match event {
                // Each request is a new one; a decision names its call.
                REQUESTED => format!("{call}:a{number}"),
                _ => call.clone(),
            };
            let good = after.contains(&last.get(&call).copied());
            assert_eq!(
                admit(&mut order, (event, &ids)).is_ok(),
                good,
                "{event} after {last:?}"
            );
            if good && event != DECISION {
                last.insert(call, event);
            }
        }
    }
}

fn random_step(random: &mut Random) -> (&'static str, String) {
    let call = random.pick(&["", "c1", "c2", "c3"]);
    match random.below(8) {
        0 => (
            random.pick(&[STARTED, FINISHED, HANDED, TAKEN]),
            call.to_owned(),
        ),
        1 => {
            let approval = random.pick(&["", "a1", "a2"]);
            (
                random.pick(&[REQUESTED, DECIDED]),
                format!("{call}:{approval}"),
            )
        }
        2 if random.below(20) == 0 => (OVER, String::new()),
        _ => (
            random.pick(&[PROPOSED, DECISION, ALLOWED, DENIED, EXECUTED, RESULT]),
            call.to_owned(),
        ),
    }
}
