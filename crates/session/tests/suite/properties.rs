//! What holds for every history.

use countersign_event::EventType;
use countersign_session::{LoopKind, LoopRules, Next, Snapshot, Terms};

use crate::history::{Event, apply, fold_events};
use crate::random::Random;

#[test]
fn a_restart_at_any_point_changes_no_byte() {
    let mut random = Random::seeded(1);
    for _ in 0..300 {
        let events = history(&mut random, 150);
        let mut through = Snapshot::default();
        let mut restarted = Snapshot::default();
        for event in &events {
            apply(&mut through, event).unwrap();
            apply(&mut restarted, event).unwrap();
            if random.below(8) == 0 {
                restarted = Snapshot::from_bytes(&restarted.to_bytes()).unwrap();
            }
            assert_eq!(restarted, through);
        }
        assert_eq!(restarted.to_bytes(), through.to_bytes());
        assert_eq!(restarted.hash(), through.hash());
        countersign_canon::jcs::check(&through.to_bytes(), &countersign_canon::Limits::event())
            .unwrap();
    }
}

#[test]
fn the_same_events_give_the_same_bytes_on_every_thread() {
    let events = history(&mut Random::seeded(2), 600);
    let expected = fold_events(&events).to_bytes();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(fold_events(&events).to_bytes(), expected));
        }
    });
}

#[test]
fn asking_about_the_next_call_foretells_what_is_found_once_it_is_made() {
    let rules = LoopRules {
        exempt_tools: ["poll".to_owned()].into(),
        ..LoopRules::default()
    };
    let mut random = Random::seeded(3);
    let mut kinds = Vec::new();
    for _ in 0..400 {
        let mut snapshot = Snapshot::default();
        for event in history(&mut random, 120) {
            let mut after = snapshot.clone();
            apply(&mut after, &event).unwrap();
            // A proposal that names its tool: the one that the window has gained.
            let newest = after.recent_calls().last();
            if let Some(call) = newest.filter(|call| call.seq == snapshot.counters().events) {
                let asked = snapshot.loop_violation_with(call, &rules);
                assert_eq!(asked, after.loop_violation(&rules));
                kinds.extend(asked.map(|found| found.kind));

                let terms = Terms {
                    loops: &rules,
                    trusted_tools: &|_, _| false,
                };
                let next = Next {
                    call,
                    ts_unix_ms: event.ts_unix_ms,
                };
                let (before, after) =
                    (snapshot.view(Some(&next), &terms), after.view(None, &terms));
                assert_eq!(before.wall_time_ms, after.wall_time_ms);
                assert_eq!(before.loop_violation, after.loop_violation);
                assert_eq!(before.tool_calls_consumed + 1, after.tool_calls_consumed);
            }
            snapshot = after;
        }
    }
    for kind in [
        LoopKind::IdenticalCall,
        LoopKind::NoProgress,
        LoopKind::RepeatingSequence,
    ] {
        assert!(kinds.contains(&kind), "no history has shown {kind}");
    }
}

#[test]
fn counters_only_grow_and_trust_only_shrinks() {
    let mut random = Random::seeded(5);
    for _ in 0..200 {
        let mut before = Snapshot::default();
        for event in history(&mut random, 150) {
            let mut after = before.clone();
            apply(&mut after, &event).unwrap();
            let (old, new) = (before.counters(), after.counters());
            assert_eq!(new.events, old.events + 1);
            assert!(new.wall_time_ms >= old.wall_time_ms);
            assert!(new.steps_consumed() >= old.steps_consumed());
            assert!(new.steps_consumed() <= old.steps_consumed() + 1);
            assert!(after.trust() <= before.trust());
            assert!(after.trust_for(&|_, _| false) == after.trust());
            assert!(after.trust_for(&|_, _| true) >= after.trust());
            assert!(after.is_tainted() || !before.is_tainted() || after.is_closed());
            assert_eq!(after.is_tainted_for(&|_, _| false), after.is_tainted());
            before = after;
        }
    }
}

#[test]
fn a_long_session_has_a_small_snapshot() {
    let mut random = Random::seeded(6);
    let events: Vec<Event> = (0..10_000).map(|at| event(at, &mut random)).collect();
    let bytes = fold_events(&events).to_bytes().len();
    assert!(bytes < 64 << 10, "{bytes} bytes");
}

#[test]
fn no_session_has_a_snapshot_over_the_limit() {
    // The longest names that are kept, of characters that take the most room.
    let long = |kind: &str, at: usize| format!("{kind}{at:0>5}{}", "\\\"".repeat(122));
    let mut events = Vec::new();
    for at in 0..400 {
        let [tool, id, key, server] = ["t", "i", "k", "s"].map(|kind| long(kind, at));
        let mut add = |event_type, text: &str| {
            events.push(Event::new((1 << 53) - 1, event_type, text));
        };
        let proposed = format!(r#"{{"tool_name":"{tool}","call_id":"{id}","server":"{server}"}}"#);
        add(EventType::ToolCallProposed, &proposed);
        if at < 200 {
            add(EventType::ToolResult, &format!(r#"{{"call_id":"{id}"}}"#));
        }
        add(EventType::SanitizedText, &format!(r#"{{"key":"{key}"}}"#));
        add(
            EventType::MemoryRead,
            &format!(r#"{{"memory_key":"{key}"}}"#),
        );
    }
    let snapshot = fold_events(&events);
    let bytes = snapshot.to_bytes();
    assert!(bytes.len() > 275 << 10, "{} bytes", bytes.len());
    assert!(
        bytes.len() < Snapshot::MAX_BYTES - (32 << 10),
        "{} bytes",
        bytes.len()
    );
    assert_eq!(Snapshot::from_bytes(&bytes).unwrap(), snapshot);
}

/// A history of some events up to about `longest`, in no particular order. Few names, so that things
/// repeat; sometimes many, so that lists fill up; and now and then the same failure again and again.
pub(crate) fn history(random: &mut Random, longest: usize) -> Vec<Event> {
    let length = random.below(longest);
    let mut events = Vec::new();
    while events.len() < length {
        match random.below(20) {
            0 => failures(&mut events, random),
            _ => events.push(event(events.len(), random)),
        }
    }
    if random.below(4) == 0 {
        events.push(Event::new(0, EventType::Termination, "{}"));
    }
    events
}

fn failures(events: &mut Vec<Event>, random: &mut Random) {
    for _ in 0..random.below(8) {
        let id = events.len();
        let proposed = format!(r#"{{"call_id":"f{id}","tool_name":"net","args":{id}}}"#);
        let result = format!(r#"{{"call_id":"f{id}","is_error":true,"content":"down"}}"#);
        events.push(Event::new(0, EventType::ToolCallProposed, &proposed));
        events.push(Event::new(0, EventType::ToolResult, &result));
    }
}

fn event(at: usize, random: &mut Random) -> Event {
    let many = random.below(8) == 0;
    let mut n = |few: usize| random.below(if many { 400 } else { few });
    let tool = ["read", "write", "poll", "web.fetch"]
        .get(n(4))
        .map_or(format!("t{}", n(400)), |tool| tool.to_string());
    let (a, b, c) = (n(12), n(2), n(3));
    let (event_type, text) = match random.below(20) {
        0..4 => (
            "TOOL_CALL_PROPOSED",
            format!(r#"{{"call_id":"c{a}","tool_name":"{tool}","args":{{"x":{b}}}}}"#),
        ),
        4 => (
            "TOOL_CALL_PROPOSED",
            format!(r#"{{"call_id":"c{a}","tool_name":"{tool}","server":"s{b}","args":{c}}}"#),
        ),
        5..8 => (
            "TOOL_RESULT",
            format!(
                r#"{{"call_id":"c{a}","is_error":{},"content":"r{c}"}}"#,
                b == 1
            ),
        ),
        8 => (
            "TOOL_RESULT",
            format!(r#"{{"call_id":"c{a}","tool_name":"{tool}","result_labels":["l{b}"]}}"#),
        ),
        9 => (
            "TOOL_CALL_DENIED",
            format!(r#"{{"call_id":"c{a}","reason_code":"R{b}"}}"#),
        ),
        10 => ("MODEL_CALL_STARTED", format!(r#"{{"call_id":"m{a}"}}"#)),
        11 => (
            "MODEL_CALL_FINISHED",
            format!(r#"{{"call_id":"m{a}","content":{{"s":[{b}]}}}}"#),
        ),
        12 => ("MEMORY_READ", format!(r#"{{"memory_key":"k{c}"}}"#)),
        13 => ("SANITIZED_TEXT", format!(r#"{{"key":"s{c}"}}"#)),
        14 => (
            "HANDOFF_REQUESTED",
            format!(r#"{{"context_id":"h{c}","to_agent":"a{b}"}}"#),
        ),
        15 => ("HANDOFF_COMPLETED", format!(r#"{{"context_id":"h{c}"}}"#)),
        16 => ("POLICY_DECISION", format!(r#"{{"outcome":"o{c}"}}"#)),
        17 if b == 0 => (
            "ERROR_RAISED",
            format!(r#"{{"call_id":"c{a}","message":"e{c}"}}"#),
        ),
        17 => ("TOOL_CALL_PROPOSED", format!("[{a}]")),
        18 => (
            "TOOL_CALL_PROPOSED",
            format!(r#"{{"tool_name":"{}"}}"#, "long ".repeat(c * 20)),
        ),
        _ => ("TOOL_RESULT", "null".to_owned()),
    };
    // Mostly forward.
    let ts_unix_ms = 1_760_000_000_000 + at as u64 * 10 + random.below(50) as u64;
    Event::new(ts_unix_ms, event_type.parse().unwrap(), &text)
}
