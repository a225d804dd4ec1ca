//! The stateless question, case by case.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use countersign_canon::{Json, Limits};
use countersign_policy::whatif::{Desk, decide};

const CASES: &str = include_str!("../../../corpus/policy/decide.json");

#[test]
fn every_case_of_the_corpus() {
    let corpus = Json::admit(CASES.as_bytes(), &Limits::plan()).unwrap();
    let cases = corpus.get("cases").unwrap().as_array().unwrap();
    assert!(cases.len() >= 39);
    let mut wrong = Vec::new();
    for case in cases {
        let answer = decide(case.get("request").unwrap());
        let expect = case.get("expect").unwrap();
        let text = |name: &str| expect.get(name).and_then(Json::as_str);
        let fits = text("outcome").is_none_or(|outcome| outcome == answer.outcome())
            && text("outcome_not").is_none_or(|outcome| outcome != answer.outcome())
            && text("reason").is_none_or(|reason| reason == answer.reason)
            && expect.get("constraints").is_none_or(|constraints| {
                answer.constraints.is_some_and(|found| {
                    constraints.get("max_output_bytes").and_then(Json::as_u64)
                        == Some(found.max_output_bytes)
                        && constraints.get("timeout_ms").and_then(Json::as_u64)
                            == Some(found.timeout_ms)
                })
            });
        if !fits {
            let id = case
                .get("id")
                .and_then(Json::as_str)
                .unwrap_or_default()
                .to_owned();
            wrong.push(format!("{id}: {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

thread_local! {
    static DESK: std::cell::RefCell<Desk> = std::cell::RefCell::default();
}

/// Why a call of a tool is denied, under some permissions and in some state.
fn reason(tool: &str, args: &str, permissions: &str, snapshot: &str) -> String {
    let question = format!(
        r#"{{"event": {{"event_type": "TOOL_CALL_PROPOSED",
            "payload": {{"tool_name": "{tool}", "args": {args}}}}},
            "snapshot": {snapshot}, "manifest": {{"permissions": {permissions}}}}}"#
    );
    let limits = Limits {
        numbers: countersign_canon::Numbers::Exact,
        ..Limits::plan()
    };
    let request = Json::admit(question.as_bytes(), &limits).unwrap();
    let answer = DESK.with_borrow_mut(|desk| desk.decide(&request));
    assert_eq!(answer.outcome(), "deny", "{question}");
    answer.reason
}

#[test]
fn a_manifest_that_cannot_be_read_is_refused_by_the_rule_that_looks_there() {
    let check = |tool, args, permissions: &str, expect| {
        assert_eq!(
            reason(tool, args, permissions, "{}"),
            expect,
            "{permissions}"
        );
    };
    for permissions in ["null", "[]", r#""a""#] {
        check("a", "{}", permissions, "PERMISSION_UNDECLARED");
    }
    for tools in ["null", "{}", r#""a""#, "[null]", r#"["a", 5]"#] {
        let permissions = format!(r#"{{"tools": {tools}}}"#);
        check("a", "{}", &permissions, "PERMISSION_UNDECLARED");
    }
    let there = r#"{"domain": "x.com"}"#;
    for net in [
        "null",
        r#"{"domains": null}"#,
        r#"{"domains": "x.com"}"#,
        r#"{"domains": [null]}"#,
        r#"{"domains": [5, "x.com"]}"#,
    ] {
        let permissions = |tools| format!(r#"{{"tools": ["{tools}"], "net": {net}}}"#);
        check("mcp.https", there, &permissions("mcp.https"), "EGRESS_DENY");
        check("net", there, &permissions("a"), "PERMISSION_UNDECLARED");
        // No rule looks there for this tool, and nothing is allowed.
        check("a", there, &permissions("a"), "INVALID_MANIFEST");
    }
    let git = r#"{"bin": "git"}"#;
    for exec in [
        "null",
        r#"{"allowed_bins": null}"#,
        r#"{"allowed_bins": "git"}"#,
    ] {
        let permissions = format!(r#"{{"tools": ["exec"], "exec": {exec}}}"#);
        check("exec", git, &permissions, "EXEC_DENY");
        let order = |snapshot| reason("exec", git, &permissions, snapshot);
        assert_eq!(order(r#"{"steps_consumed": 24}"#), "BUDGET_EXCEEDED");
        assert_eq!(order(r#"{"loop_violation": "x"}"#), "LOOP_DETECTED");
        assert_eq!(order(r#"{"is_tainted": true}"#), "TAINTED_TO_HIGH_RISK");
    }
    for limit in [
        "max_steps",
        "max_tool_calls",
        "max_model_calls",
        "max_wall_time_ms",
    ] {
        for value in ["-1", "null", "true", r#""1000""#, "1.5", "[]"] {
            let permissions =
                format!(r#"{{"tools": ["a", "net"], "budgets": {{"{limit}": {value}}}}}"#);
            check("a", "{}", &permissions, "BUDGET_EXCEEDED");
            check("net", there, &permissions, "EGRESS_DENY");
            check("b", "{}", &permissions, "PERMISSION_UNDECLARED");
        }
    }
    check(
        "a",
        "{}",
        r#"{"tools": ["a"], "budgets": null}"#,
        "BUDGET_EXCEEDED",
    );
    // Of no rule.
    for other in [
        r#""budgets": {"timeout_ms": null}"#,
        r#""budgets": {"max_stepz": 5}"#,
        r#""fs": null"#,
        r#""approval_required": "a""#,
        r#""budget": {}"#,
    ] {
        let permissions = format!(r#"{{"tools": ["a"], {other}}}"#);
        check("a", "{}", &permissions, "INVALID_MANIFEST");
    }
}

#[test]
fn a_snapshot_that_cannot_be_read_is_refused_by_the_rule_that_looks_there() {
    let permissions = r#"{"tools": ["a", "exec", "net"], "exec": {"allowed_bins": ["git"]}}"#;
    let check = |tool, snapshot: &str, expect| {
        let found = reason(tool, r#"{"bin": "git"}"#, permissions, snapshot);
        assert_eq!(found, expect, "{tool}: {snapshot}");
    };
    for counter in ["steps_consumed", "tool_calls_consumed", "wall_time_ms"] {
        for value in [
            r#""1""#,
            "[]",
            "{}",
            "-1",
            "1.5",
            "null",
            "18446744073709551616",
        ] {
            let snapshot = format!(r#"{{"{counter}": {value}, "loop_violation": "x"}}"#);
            check("a", &snapshot, "BUDGET_EXCEEDED");
            check("net", &snapshot, "EGRESS_DENY");
            check("b", &snapshot, "PERMISSION_UNDECLARED");
        }
    }
    for snapshot in ["null", "[]", "5", r#""x""#] {
        check("a", snapshot, "BUDGET_EXCEEDED");
        check("net", snapshot, "EGRESS_DENY");
    }
    check("exec", r#"{"is_tainted": 1}"#, "TAINTED_TO_HIGH_RISK");
    // Of no rule, or of none that speaks.
    check("a", r#"{"is_tainted": 1}"#, "INVALID_SNAPSHOT");
    check("a", r#"{"model_calls_consumed": "1"}"#, "INVALID_SNAPSHOT");
    check("a", r#"{"labels": "x"}"#, "INVALID_SNAPSHOT");
}
