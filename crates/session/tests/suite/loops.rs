//! Loops: what is one, with its trace, and what only looks like one.

use countersign_canon::{Json, Limits};
use countersign_event::EventType;
use countersign_session::{Call, LoopRules, LoopViolation, Snapshot};

use crate::history::{Event, apply};

/// What the last step of a script shows under these rules.
///
/// A step is a proposal, `tool args`, the calls being numbered from 0; an outcome of one of them,
/// `=0 content`, `!0 error` or `#0 reason`; a call and its outcome, `tool args = content`; or an
/// event, `EVENT_TYPE payload`. Arguments, contents and errors are one word each.
fn check_with(rules: &LoopRules, script: &str, expect: Option<(&str, &[u64])>) {
    let mut play = Play::default();
    for step in script
        .split(['\n', '|'])
        .map(str::trim)
        .filter(|step| !step.is_empty())
    {
        play.step(step);
    }
    let found = play.snapshot.loop_violation(rules);
    assert_eq!(found.as_ref().map(short), expect, "{script}");
}

fn check(script: &str, expect: Option<(&str, &[u64])>) {
    check_with(&LoopRules::default(), script, expect);
}

fn short(found: &LoopViolation) -> (&str, &[u64]) {
    (found.kind.as_str(), &found.cycle_seqs)
}

#[derive(Default)]
struct Play {
    snapshot: Snapshot,
    calls: usize,
}

impl Play {
    fn step(&mut self, step: &str) {
        match step.split_whitespace().collect::<Vec<_>>()[..] {
            [event, payload] if event.parse::<EventType>().is_ok() => self.event(event, payload),
            [outcome, content] if outcome.starts_with(['=', '!', '#']) => {
                self.outcome(&outcome[..1], outcome[1..].parse().unwrap(), content);
            }
            [tool, args] => self.propose(tool, args),
            [tool, args, outcome, content] => {
                self.propose(tool, args);
                self.outcome(outcome, self.calls - 1, content);
            }
            _ => panic!("what is `{step}`?"),
        }
    }

    fn propose(&mut self, tool: &str, args: &str) {
        let id = self.calls;
        self.calls += 1;
        let payload = format!(r#"{{"call_id":"c{id}","tool_name":"{tool}","args":"{args}"}}"#);
        self.event("TOOL_CALL_PROPOSED", &payload);
    }

    fn outcome(&mut self, outcome: &str, id: usize, content: &str) {
        match outcome {
            "#" => self.event(
                "TOOL_CALL_DENIED",
                &format!(r#"{{"call_id":"c{id}","reason_code":"{content}"}}"#),
            ),
            _ => self.event(
                "TOOL_RESULT",
                &format!(
                    r#"{{"call_id":"c{id}","is_error":{},"content":"{content}"}}"#,
                    outcome == "!"
                ),
            ),
        }
    }

    fn event(&mut self, event_type: &str, payload: &str) {
        apply(
            &mut self.snapshot,
            &Event::new(0, event_type.parse().unwrap(), payload),
        )
        .unwrap();
    }
}

const IDENTICAL: &str = "LOOP_IDENTICAL_CALL";
const NO_PROGRESS: &str = "LOOP_NO_PROGRESS";
const SEQUENCE: &str = "LOOP_REPEATING_SEQUENCE";

#[test]
fn the_same_call_again() {
    check("read a", None);
    check("read a | read a", Some((IDENTICAL, &[0, 1])));
    check("read a | read b", None);
    check("read a | write a", None);
    check("read a | read b | read a", Some((IDENTICAL, &[0, 2])));
    check("read a | read a | read a", Some((IDENTICAL, &[0, 1, 2])));
    let thrice = LoopRules {
        identical_calls: 3,
        ..LoopRules::default()
    };
    check_with(&thrice, "read a | read a", None);
    check_with(
        &thrice,
        "read a | read a | read b | read a",
        Some((IDENTICAL, &[0, 1, 3])),
    );
}

#[test]
fn a_later_different_call_is_free() {
    check("read a | read a | write b", None);
    check("A 1 | B 1 | C 1 | A 2 | B 2 | C 2 | D 1", None);
    check("net 1 ! x | net 2 ! x | net 3 ! x | read a", None);
}

#[test]
fn calls_that_are_out_of_the_window_are_forgotten() {
    let others = |count: usize| {
        (0..count)
            .map(|at| format!(" | read {at}"))
            .collect::<String>()
    };
    check(
        &format!("read a {} | read a", others(30)),
        Some((IDENTICAL, &[0, 31])),
    );
    check(&format!("read a {} | read a", others(31)), None);
}

#[test]
fn many_reads_of_many_files_are_work() {
    check("read a | read b | read c | read d | read e | read f", None);
    check(
        "read a = 1 | read b = 2 | read c = 3 | read d = 4 | read e = 5 | read f = 6",
        None,
    );
}

#[test]
fn a_sequence_of_tools_twice_in_a_row() {
    check("A 1 | B 1 | C 1 | A 2 | B 2", None);
    check(
        "A 1 | B 1 | C 1 | A 2 | B 2 | C 2",
        Some((SEQUENCE, &[0, 1, 2, 3, 4, 5])),
    );
    check(
        "X 0 | A 1 | B 1 | C 1 | A 2 | B 2 | C 2",
        Some((SEQUENCE, &[1, 2, 3, 4, 5, 6])),
    );
    check(
        "A 1 | A 2 | B 3 | A 4 | A 5 | B 6",
        Some((SEQUENCE, &[0, 1, 2, 3, 4, 5])),
    );
    check("A 1 | B 1 | C 1 | A 2 | C 2 | B 2", None);
    check("A 1 | B 1 | C 1 | X 1 | A 2 | B 2 | C 2", None);
    check("A 1 | B 2 | A 3 | B 4 | A 5 | B 6", None);
    let two = "A 1 | B 2 | A 3 | B 4 | A 5 | B 6 | A 7 | B 8";
    check(two, Some((SEQUENCE, &[0, 1, 2, 3, 4, 5, 6, 7])));
    let seven = "A 1 | B 1 | C 1 | D 1 | E 1 | F 1 | G 1 | A 2 | B 2 | C 2 | D 2 | E 2 | F 2 | G 2";
    check(seven, Some((SEQUENCE, &(0..14).collect::<Vec<_>>())));
    let eight = "A 1|B 1|C 1|D 1|E 1|F 1|G 1|H 1|A 2|B 2|C 2|D 2|E 2|F 2|G 2|H 2";
    check(eight, None);
    let longer = LoopRules {
        sequence_max: 8,
        ..LoopRules::default()
    };
    check_with(
        &longer,
        eight,
        Some((SEQUENCE, &(0..16).collect::<Vec<_>>())),
    );
    let shorter = LoopRules {
        sequence_min: 2,
        ..LoopRules::default()
    };
    check_with(
        &shorter,
        "A 1 | B 2 | A 3 | B 4",
        Some((SEQUENCE, &[0, 1, 2, 3])),
    );
}

#[test]
fn one_tool_is_a_sequence_only_with_the_same_arguments() {
    let rules = LoopRules {
        identical_calls: 9,
        ..LoopRules::default()
    };
    check_with(
        &rules,
        "A 1 | A 2 | A 3 | A 1 | A 2 | A 3",
        Some((SEQUENCE, &[0, 1, 2, 3, 4, 5])),
    );
    check_with(&rules, "A 1 | A 2 | A 3 | A 1 | A 2 | A 4", None);
}

#[test]
fn the_same_outcome_again_and_again() {
    check("net 1 ! x | net 2 ! x", None);
    check(
        "net 1 ! x | net 2 ! x | net 3 ! x",
        Some((NO_PROGRESS, &[1, 3, 5])),
    );
    check(
        "net 1 ! x | net 2 ! x | net 3 ! x | net 4",
        Some((NO_PROGRESS, &[1, 3, 5])),
    );
    check(
        "net 1 # NO | net 2 # NO | net 3 # NO | net 4",
        Some((NO_PROGRESS, &[1, 3, 5])),
    );
    let patient = LoopRules {
        no_progress_steps: 4,
        ..LoopRules::default()
    };
    check_with(&patient, "net 1 ! x | net 2 ! x | net 3 ! x", None);
    // What the model says in between changes nothing.
    check(
        r#"net 1 ! x | MODEL_CALL_FINISHED {"content":"hm"}
           net 2 ! x | MODEL_CALL_FINISHED {"content":"again"}
           net 3 ! x | MODEL_CALL_FINISHED {"content":"hm"}"#,
        Some((NO_PROGRESS, &[1, 4, 7])),
    );
}

#[test]
fn other_outcomes_are_progress() {
    check("net 1 ! x | net 2 ! y | net 3 ! x | net 4", None);
    check("net 1 ! x | net 2 = x | net 3 ! x | net 4", None);
    check("net 1 ! x | net 2 # x | net 3 ! x | net 4", None);
    check("net 1 # A | net 2 # B | net 3 # A | net 4", None);
    check("a 1 ! x | b 2 ! x | c 3 ! x | a 4", None);
    check("net 1 ! x | net 2 ! x | read a = 1 | net 3 ! x", None);
}

#[test]
fn a_tool_that_says_ok_each_time_makes_progress() {
    check("write a = ok | write b = ok | write c = ok | write d", None);
    let rules = LoopRules {
        identical_calls: 0,
        ..LoopRules::default()
    };
    let same = "write a = ok | write a = ok | write a = ok";
    check_with(&rules, same, Some((NO_PROGRESS, &[1, 3, 5])));
}

#[test]
fn what_is_not_known_is_no_repetition() {
    let unknown = r#"TOOL_RESULT {"call_id":"c1","is_error":true}"#;
    check(
        &format!("net 1 ! x | net 2 | {unknown} | net 3 ! x | net 4 ! x"),
        None,
    );
    let unnamed = r#"TOOL_RESULT {"is_error":true,"content":"x"}"#;
    check(
        &format!("net 1 | {unnamed} | net 2 | {unnamed} | net 3 | {unnamed}"),
        None,
    );
    let uncoded = |id| format!(r#"TOOL_CALL_DENIED {{"call_id":"c{id}"}}"#);
    check(
        &format!(
            "net 1 | {} | net 2 | {} | net 3 | {}",
            uncoded(0),
            uncoded(1),
            uncoded(2)
        ),
        None,
    );
}

#[test]
fn a_change_of_state_is_progress() {
    for change in [
        r#"SANITIZED_TEXT {"key":"k"}"#,
        r#"MEMORY_READ {"memory_key":"k"}"#,
        r#"HANDOFF_REQUESTED {"to_agent":"b"}"#,
    ] {
        check(
            &format!("net 1 ! x | net 2 ! x | {change} | net 3 ! x"),
            None,
        );
        check(
            &format!("{change} | net 1 ! x | net 2 ! x | net 3 ! x"),
            Some((NO_PROGRESS, &[2, 4, 6])),
        );
    }
    // The same key again is no change, nor is anything that the snapshot does not hold.
    for same in [
        r#"SANITIZED_TEXT {"key":"k"} | net 1 ! x | SANITIZED_TEXT {"key":"k"} | net 2 ! x | net 3 ! x"#,
        r#"ERROR_RAISED {} | net 1 ! x | MEMORY_WRITE {} | net 2 ! x | net 3 ! x"#,
    ] {
        check(same, Some((NO_PROGRESS, &[2, 5, 7])));
    }
}

#[test]
fn parallel_calls_are_one_step() {
    check("net 1 | net 2 | net 3 | net 4 | net 5", None);
    check("net 1 | net 2 | net 3 | !0 x | !1 x | !2 x | net 4", None);
    let three_rounds =
        "net 1 | net 2 | !0 x | !1 x | net 3 | net 4 | !2 x | !3 x | net 5 | net 6 | !4 x";
    check(three_rounds, Some((NO_PROGRESS, &[2, 6, 10])));
}

#[test]
fn a_model_that_says_the_same_without_doing_anything() {
    let same = r#"MODEL_CALL_FINISHED {"content":"thinking"}"#;
    check(&[same; 2].join("|"), None);
    check(&[same; 3].join("|"), Some((NO_PROGRESS, &[0, 1, 2])));
    check(&format!("{same}|{same}|{same}| read a"), None);
    check(&format!("{same}| read a |{same}| read b |{same}"), None);
    let other = r#"MODEL_CALL_FINISHED {"content":"oh"}"#;
    check(&format!("{same}|{same}|{other}|{same}"), None);
    check(&["MODEL_CALL_FINISHED {}"; 4].join("|"), None);
}

#[test]
fn exempt_tools_may_repeat_themselves() {
    let rules = LoopRules {
        exempt_tools: ["poll".to_owned()].into(),
        ..LoopRules::default()
    };
    check_with(
        &rules,
        "poll 1 = no | poll 1 = no | poll 1 = no | poll 1",
        None,
    );
    check_with(
        &rules,
        "poll 1 ! no | poll 1 ! no | poll 1 ! no | poll 1",
        None,
    );
    check_with(&rules, "poll 1 | poll 1 | read a", None);
    check_with(
        &rules,
        "read a | poll 1 | poll 1 | read a",
        Some((IDENTICAL, &[0, 3])),
    );
    check_with(&rules, "poll 1 | poll 1 | poll 1 | A 1 | poll 1", None);
    let woven = "A 1 | poll 1 | B 1 | poll 1 | C 1 | A 2 | poll 1 | B 2 | C 2";
    check_with(&rules, woven, Some((SEQUENCE, &[0, 2, 4, 5, 7, 8])));
}

#[test]
fn rules_can_be_switched_off() {
    let off = LoopRules {
        identical_calls: 0,
        no_progress_steps: 0,
        sequence_min: 1,
        sequence_max: 0,
        ..LoopRules::default()
    };
    check_with(
        &off,
        "A 1 ! x | A 1 ! x | A 1 ! x | A 1 ! x | A 1 ! x | A 1 ! x",
        None,
    );
    let odd = LoopRules {
        sequence_min: 0,
        sequence_max: usize::MAX,
        ..off
    };
    check_with(&odd, "A 1", None);
    check_with(&odd, "A 1 | A 1", Some((SEQUENCE, &[0, 1])));
}

#[test]
fn arguments_are_compared_by_their_canonical_text() {
    let call = |args: Option<&str>| {
        let admit = |text: &str| Json::admit(text.as_bytes(), &Limits::event()).unwrap();
        Call::new(0, "A", args.map(admit).as_ref()).unwrap()
    };
    assert_eq!(
        call(Some(r#"{"x":1,"y":2}"#)),
        call(Some(r#"{"y":2.0, "x":1e0}"#))
    );
    assert_eq!(call(None), call(Some("null")));
    assert_ne!(call(None), call(Some("{}")));
    assert_ne!(call(Some("1")), call(Some("\"1\"")));
}
