use super::*;

mod properties;

/// An event and its ids: `call`, `call:approval`, or the context of a hand-off; empty for none.
type Step<'a> = (&'a str, &'a str);

/// All steps but the last must be admitted; the last one too, or be refused with this message.
fn check(steps: &[Step<'_>], expect: Result<(), &str>) {
    let mut order = Order::default();
    let (last, before) = steps.split_last().unwrap();
    for step in before {
        assert_eq!(admit(&mut order, *step), Ok(()), "{step:?} in {steps:?}");
    }
    let found = admit(&mut order, *last).map_err(|error| error.to_string());
    assert_eq!(found, expect.map_err(str::to_owned), "{steps:?}");
}

fn admit(order: &mut Order, (event_type, ids): Step<'_>) -> Result<(), OrderError> {
    let event_type = event_type.parse().unwrap();
    order.admit(event_type, &refs(event_type, ids))
}

fn refs(event_type: EventType, ids: &str) -> Refs<'_> {
    let (first, approval) = ids.split_once(':').unwrap_or((ids, ""));
    let id = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned().into());
    match event_type {
        EventType::HandoffRequested | EventType::HandoffCompleted => Refs {
            context_id: id(first),
            ..Refs::default()
        },
        _ => Refs {
            call_id: id(first),
            approval_id: id(approval),
            context_id: None,
        },
    }
}

const PROPOSED: &str = "TOOL_CALL_PROPOSED";
const DECISION: &str = "POLICY_DECISION";
const ALLOWED: &str = "TOOL_CALL_ALLOWED";
const DENIED: &str = "TOOL_CALL_DENIED";
const EXECUTED: &str = "TOOL_CALL_EXECUTED";
const RESULT: &str = "TOOL_RESULT";
const REQUESTED: &str = "APPROVAL_REQUESTED";
const DECIDED: &str = "APPROVAL_DECIDED";
const STARTED: &str = "MODEL_CALL_STARTED";
const FINISHED: &str = "MODEL_CALL_FINISHED";
const HANDED: &str = "HANDOFF_REQUESTED";
const TAKEN: &str = "HANDOFF_COMPLETED";
const OVER: &str = "TERMINATION";

/// Events that may come at any time.
const FREE: [&str; 5] = [
    "MEMORY_READ",
    "MEMORY_WRITE",
    "CHECKPOINT_CREATED",
    "ERROR_RAISED",
    "SANITIZED_TEXT",
];

#[test]
fn a_full_life() {
    check(
        &[
            (STARTED, "m1"),
            (FINISHED, "m1"),
            (PROPOSED, "c1"),
            (DECISION, "c1"),
            (ALLOWED, "c1"),
            (EXECUTED, "c1"),
            (RESULT, "c1"),
            (OVER, ""),
        ],
        Ok(()),
    );
}

#[test]
fn parallel_calls_interleave() {
    check(
        &[
            (PROPOSED, "c1"),
            (PROPOSED, "c2"),
            (DECISION, "c2"),
            (ALLOWED, "c2"),
            (DECISION, "c1"),
            (EXECUTED, "c2"),
            (DENIED, "c1"),
            (PROPOSED, "c3"),
            (ALLOWED, "c3"),
            (RESULT, "c2"),
            (EXECUTED, "c3"),
            (RESULT, "c3"),
        ],
        Ok(()),
    );
}

#[test]
fn a_step_needs_the_one_before_it() {
    let undecided = "a TOOL_CALL_PROPOSED that is not yet decided";
    let not_held = "a TOOL_CALL_PROPOSED that is neither held nor decided";
    let not_run = "a TOOL_CALL_PROPOSED that has not run";
    let allowed = "a TOOL_CALL_ALLOWED";
    let executed = "a TOOL_CALL_EXECUTED without a result";
    let cases: &[(&[&str], &str)] = &[
        (&[RESULT], executed),
        (&[PROPOSED, RESULT], executed),
        (&[PROPOSED, ALLOWED, RESULT], executed),
        (&[PROPOSED, ALLOWED, EXECUTED, RESULT, RESULT], executed),
        (&[EXECUTED], allowed),
        (&[PROPOSED, EXECUTED], allowed),
        (&[PROPOSED, DECISION, EXECUTED], allowed),
        (&[PROPOSED, DENIED, EXECUTED], allowed),
        (&[PROPOSED, ALLOWED, DENIED, EXECUTED], allowed),
        (&[PROPOSED, ALLOWED, EXECUTED, EXECUTED], allowed),
        (&[PROPOSED, ALLOWED, EXECUTED, RESULT, EXECUTED], allowed),
        (&[ALLOWED], not_held),
        (&[PROPOSED, ALLOWED, ALLOWED], not_held),
        (&[PROPOSED, DENIED, ALLOWED], not_held),
        (&[PROPOSED, ALLOWED, EXECUTED, RESULT, ALLOWED], not_held),
        (&[DENIED], not_run),
        (&[PROPOSED, DENIED, DENIED], not_run),
        (&[PROPOSED, ALLOWED, EXECUTED, DENIED], not_run),
        (&[PROPOSED, ALLOWED, EXECUTED, RESULT, DENIED], not_run),
        (&[DECISION], undecided),
        (&[PROPOSED, DENIED, DECISION], undecided),
        (&[PROPOSED, ALLOWED, EXECUTED, RESULT, DECISION], undecided),
    ];
    for (events, needs) in cases {
        let steps: Vec<_> = events.iter().map(|event| (*event, "c1")).collect();
        let last = events.last().unwrap();
        check(&steps, Err(&format!("{last} for `c1` needs {needs} first")));
        // What another call did helps nothing.
        let mut other: Vec<_> = [PROPOSED, ALLOWED, EXECUTED]
            .map(|event| (event, "c2"))
            .into();
        other.extend(&steps);
        check(&other, Err(&format!("{last} for `c1` needs {needs} first")));
    }
}

#[test]
fn a_held_call_needs_a_decision() {
    let held = [(PROPOSED, "c1"), (DECISION, "c1"), (REQUESTED, "c1:a1")];
    let with = |more: &[Step<'static>]| [&held[..], more].concat();
    let ran = [(ALLOWED, "c1"), (EXECUTED, "c1"), (RESULT, "c1")];

    check(&with(&[&[(DECIDED, "c1:a1")], &ran[..]].concat()), Ok(()));
    check(&with(&[(DECIDED, ":a1"), (ALLOWED, "c1")]), Ok(()));
    check(&with(&[(DECIDED, "c1"), (ALLOWED, "c1")]), Ok(()));
    check(&with(&[(DECIDED, "c1:a1"), (DENIED, "c1")]), Ok(()));
    // Nobody decided in time.
    check(&with(&[(DENIED, "c1")]), Ok(()));
    // Two of two people, a second round, a decision of policy in between.
    check(
        &with(&[(DECIDED, "c1:a1"), (DECIDED, "c1:a1"), (ALLOWED, "c1")]),
        Ok(()),
    );
    check(
        &with(&[
            (DECIDED, "c1:a1"),
            (DECISION, "c1"),
            (REQUESTED, "c1:a2"),
            (DECIDED, "c1:a2"),
            (ALLOWED, "c1"),
        ]),
        Ok(()),
    );
    check(
        &with(&[(REQUESTED, "c1:a2"), (DECIDED, "c1:a2"), (ALLOWED, "c1")]),
        Ok(()),
    );

    let not_held = Err(
        "TOOL_CALL_ALLOWED for `c1` needs a TOOL_CALL_PROPOSED that is neither held nor decided first",
    );
    check(&with(&[(ALLOWED, "c1")]), not_held);
    check(
        &with(&[(DECIDED, "c1:a1"), (REQUESTED, "c1:a2"), (ALLOWED, "c1")]),
        not_held,
    );
    let not_allowed = Err("TOOL_CALL_EXECUTED for `c1` needs a TOOL_CALL_ALLOWED first");
    check(&with(&[(EXECUTED, "c1")]), not_allowed);
    check(&with(&[(DECIDED, "c1:a1"), (EXECUTED, "c1")]), not_allowed);
}

#[test]
fn an_approval_is_about_the_call_it_was_requested_for() {
    let for_call =
        |id| format!("APPROVAL_DECIDED for `{id}` needs an APPROVAL_REQUESTED for this call first");
    let two = [
        (PROPOSED, "c1"),
        (REQUESTED, "c1:a1"),
        (PROPOSED, "c2"),
        (REQUESTED, "c2:a2"),
    ];
    let with = |more: &[Step<'static>]| [&two[..], more].concat();
    check(&with(&[(DECIDED, "c2:a1")]), Err(&for_call("c2")));
    check(&with(&[(DECIDED, "c1:a2")]), Err(&for_call("c1")));
    check(
        &with(&[
            (DECIDED, "c1:a1"),
            (DECIDED, "c2:a2"),
            (ALLOWED, "c1"),
            (ALLOWED, "c2"),
        ]),
        Ok(()),
    );

    let missing = |id: &str| format!("APPROVAL_DECIDED{id} needs its APPROVAL_REQUESTED first");
    check(&[(DECIDED, "")], Err(&missing("")));
    check(&[(DECIDED, ":a1")], Err(&missing(" for `a1`")));
    check(
        &[(PROPOSED, "c1"), (DECIDED, "c1:a1")],
        Err(&missing(" for `a1`")),
    );
    check(&[(PROPOSED, "c1"), (DECIDED, "c1")], Err(&missing("")));
    check(&with(&[(DECIDED, "c1:a3")]), Err(&missing(" for `a3`")));
    check(
        &[(REQUESTED, ":a1"), (PROPOSED, "c1"), (DECIDED, "c1")],
        Err(&for_call("c1")),
    );
    check(
        &[(REQUESTED, ":a1"), (PROPOSED, "c1"), (DECIDED, "c1:a1")],
        Err(&for_call("c1")),
    );
    // The call has ended meanwhile.
    check(
        &with(&[(DENIED, "c1"), (DECIDED, "c1:a1")]),
        Err(&for_call("c1")),
    );
    check(
        &with(&[(DENIED, "c1"), (DECIDED, ":a1")]),
        Err(&for_call("c1")),
    );
    // Approvals about no call.
    check(&[(REQUESTED, ":a1"), (DECIDED, ":a1")], Ok(()));
    check(&[(REQUESTED, ""), (DECIDED, "")], Ok(()));
}

#[test]
fn an_approval_needs_a_call_that_is_open() {
    let needs = |id| {
        format!(
            "APPROVAL_REQUESTED for `{id}` needs a TOOL_CALL_PROPOSED that is not yet decided first"
        )
    };
    check(&[(REQUESTED, "c1:a1")], Err(&needs("c1")));
    check(
        &[(PROPOSED, "c1"), (ALLOWED, "c1"), (REQUESTED, "c1:a1")],
        Err(&needs("c1")),
    );
    check(
        &[(PROPOSED, "c1"), (DENIED, "c1"), (REQUESTED, "c1:a1")],
        Err(&needs("c1")),
    );
}

#[test]
fn ids_are_used_once() {
    check(
        &[(PROPOSED, "c1"), (PROPOSED, "c1")],
        Err("TOOL_CALL_PROPOSED reuses the id `c1`"),
    );
    check(
        &[
            (PROPOSED, "c1"),
            (ALLOWED, "c1"),
            (EXECUTED, "c1"),
            (RESULT, "c1"),
            (PROPOSED, "c1"),
        ],
        Err("TOOL_CALL_PROPOSED reuses the id `c1`"),
    );
    check(
        &[(PROPOSED, "c1"), (DENIED, "c1"), (PROPOSED, "c1")],
        Err("TOOL_CALL_PROPOSED reuses the id `c1`"),
    );
    check(
        &[(STARTED, "m1"), (FINISHED, "m1"), (STARTED, "m1")],
        Err("MODEL_CALL_STARTED reuses the id `m1`"),
    );
    check(
        &[(HANDED, "x"), (HANDED, "x")],
        Err("HANDOFF_REQUESTED reuses the id `x`"),
    );
    check(
        &[(PROPOSED, "c1"), (REQUESTED, "c1:a1"), (REQUESTED, "c1:a1")],
        Err("APPROVAL_REQUESTED reuses the id `a1`"),
    );
    // A model call, a tool call and a hand-off are different things.
    check(
        &[
            (STARTED, "x"),
            (PROPOSED, "x"),
            (HANDED, "x"),
            (FINISHED, "x"),
            (TAKEN, "x"),
        ],
        Ok(()),
    );
}

#[test]
fn ids_in_messages_cannot_steer_a_terminal() {
    check(
        &[(PROPOSED, "\u{1b}[2J\n"), (PROPOSED, "\u{1b}[2J\n")],
        Err("TOOL_CALL_PROPOSED reuses the id `\\u{1b}[2J\\n`"),
    );
    check(
        &[(RESULT, "\u{202e}")],
        Err("TOOL_RESULT for `\\u{202e}` needs a TOOL_CALL_EXECUTED without a result first"),
    );
}

#[test]
fn unnamed_calls_are_counted() {
    let two: Vec<Step<'_>> = [
        PROPOSED, PROPOSED, ALLOWED, ALLOWED, EXECUTED, EXECUTED, RESULT, RESULT,
    ]
    .map(|event| (event, ""))
    .into();
    check(&two, Ok(()));
    let third = |event| [&two[..], &[(event, "")]].concat();
    check(
        &third(RESULT),
        Err("TOOL_RESULT needs a TOOL_CALL_EXECUTED without a result first"),
    );
    check(
        &third(EXECUTED),
        Err("TOOL_CALL_EXECUTED needs a TOOL_CALL_ALLOWED first"),
    );
    check(
        &[(PROPOSED, ""), (ALLOWED, ""), (ALLOWED, "")],
        Err(NOT_HELD),
    );
    check(
        &[(PROPOSED, ""), (DENIED, ""), (ALLOWED, "")],
        Err(NOT_HELD),
    );
    // A named call lends nothing to an unnamed one, nor the other way round.
    check(&[(PROPOSED, "c1"), (ALLOWED, "")], Err(NOT_HELD));
    check(
        &[
            (PROPOSED, ""),
            (ALLOWED, ""),
            (EXECUTED, ""),
            (RESULT, "c1"),
        ],
        Err("TOOL_RESULT for `c1` needs a TOOL_CALL_EXECUTED without a result first"),
    );
    check(&[(DECISION, "")], Ok(()));
}

const NOT_HELD: &str =
    "TOOL_CALL_ALLOWED needs a TOOL_CALL_PROPOSED that is neither held nor decided first";

#[test]
fn model_calls_and_hand_offs_close_what_was_opened() {
    let open = "needs an open MODEL_CALL_STARTED first";
    check(
        &[(FINISHED, "m1")],
        Err(&format!("MODEL_CALL_FINISHED for `m1` {open}")),
    );
    check(
        &[(STARTED, "m1"), (FINISHED, "m2")],
        Err(&format!("MODEL_CALL_FINISHED for `m2` {open}")),
    );
    check(
        &[(STARTED, "m1"), (FINISHED, "m1"), (FINISHED, "m1")],
        Err(&format!("MODEL_CALL_FINISHED for `m1` {open}")),
    );
    check(
        &[(STARTED, "m1"), (FINISHED, "")],
        Err(&format!("MODEL_CALL_FINISHED {open}")),
    );
    check(&[(STARTED, ""), (FINISHED, "")], Ok(()));
    check(
        &[
            (STARTED, "m1"),
            (STARTED, "m2"),
            (FINISHED, "m1"),
            (FINISHED, "m2"),
        ],
        Ok(()),
    );

    let open = "needs an open HANDOFF_REQUESTED first";
    check(
        &[(TAKEN, "x")],
        Err(&format!("HANDOFF_COMPLETED for `x` {open}")),
    );
    check(
        &[(HANDED, "x"), (TAKEN, "x"), (TAKEN, "x")],
        Err(&format!("HANDOFF_COMPLETED for `x` {open}")),
    );
    check(
        &[(HANDED, "x"), (HANDED, "y"), (TAKEN, "y"), (TAKEN, "x")],
        Ok(()),
    );
    check(&[(HANDED, ""), (TAKEN, "")], Ok(()));
}

#[test]
fn nothing_follows_termination() {
    for event_type in EventType::ALL {
        check(
            &[
                (PROPOSED, "c1"),
                (STARTED, "m1"),
                (OVER, ""),
                (event_type.as_str(), "c1"),
            ],
            Err(&format!(
                "{event_type} after TERMINATION: the session is closed"
            )),
        );
    }
    let mut order = Order::default();
    assert!(!order.is_terminated());
    assert_eq!(admit(&mut order, (OVER, "")), Ok(()));
    assert!(order.is_terminated());
}

#[test]
fn some_events_are_free() {
    for event in FREE {
        check(&[(event, "")], Ok(()));
        check(
            &[
                (event, "c1"),
                (PROPOSED, "c1"),
                (event, "c1"),
                (DENIED, "c1"),
                (event, "c1"),
            ],
            Ok(()),
        );
    }
}
