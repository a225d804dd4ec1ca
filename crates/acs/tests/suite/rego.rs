//! Policies in Rego: compiled once, asked in process.

use countersign_acs::{Mode, Point, Policies, Runtime};

use crate::memory::Memory;
use crate::scene::{json, manifest};

const RULES: &str = r#"package bank
import rego.v1
import data.lib

default verdict := {"decision": "allow"}

verdict := {"decision": "deny", "reason": "too_much"} if {
	input.policy_target.value.amount > data.limits.most
}

verdict := {"decision": "escalate", "reason": "foreign"} if {
	input.policy_target.value.amount <= data.limits.most
	lib.foreign(input.snapshot.tool_call.args.country)
}

other := {"decision": "warn", "reason": input.tool.name}
"#;

const LIB: &str = "package lib\nimport rego.v1\nforeign(country) if country != \"ch\"\n";

fn bank(point: &str) -> String {
    format!(
        "
agent_control_specification_version: 0.3.1-beta
policies: {{p: {{type: rego, query: data.bank.verdict, bundle: /b, data: /extra/limits.json}}}}
intervention_points:
  pre_tool_call:
    policy_target: $.tool_call.args
    tool_name_from: $.tool_call.name
    policy: {{id: p{point}}}
tools: {{pay: {{clearance: internal}}}}
"
    )
}

fn memory() -> Memory {
    Memory::default()
        .file("/b/bank.rego", RULES)
        .file("/b/lib/lib.rego", LIB)
        .file("/b/bank_test.rego", "package broken {")
        .file("/b/README.md", "not a policy")
        .file("/b/deep/data.yaml", "x: 1\n")
        .file("/extra/limits.json", r#"{"limits":{"most":100}}"#)
}

fn decide(text: &str, snapshot: &str) -> (String, Option<String>) {
    let manifest = manifest(text);
    let policies = Policies::activate(&manifest, &memory()).unwrap();
    let runtime = Runtime::new(manifest, policies);
    let snapshot = json(snapshot);
    let found = runtime.evaluate(Point::PreToolCall, &snapshot, Mode::Enforce);
    (
        found.verdict().decision().to_string(),
        found.verdict().reason().map(str::to_owned),
    )
}

fn call(args: &str) -> String {
    format!(r#"{{"tool_call":{{"name":"pay","args":{args}}}}}"#)
}

#[test]
fn bundles_answer_with_their_data_and_libraries() {
    for (args, decision, reason) in [
        (r#"{"amount":5,"country":"ch"}"#, "allow", None),
        (r#"{"amount":500,"country":"ch"}"#, "deny", Some("too_much")),
        (
            r#"{"amount":5,"country":"xx"}"#,
            "escalate",
            Some("foreign"),
        ),
    ] {
        let found = decide(&bank(""), &call(args));
        assert_eq!(
            (found.0.as_str(), found.1.as_deref()),
            (decision, reason),
            "{args}"
        );
    }
    let found = decide(&bank(", query: data.bank.other"), &call("{}"));
    assert_eq!(found, ("warn".to_owned(), Some("pay".to_owned())));
}

#[test]
fn what_has_no_answer_is_refused() {
    let failing = |rules: &str| {
        let text = bank("").replace("bundle: /b", "bundle: /r");
        let manifest = manifest(&text);
        let memory = memory().file(
            "/r/r.rego",
            &format!("package bank\nimport rego.v1\n{rules}\n"),
        );
        let policies = Policies::activate(&manifest, &memory).map_err(|error| error.to_string())?;
        let snapshot = json(&call(r#"{"n":0}"#));
        let runtime = Runtime::new(manifest, policies);
        let found = runtime.evaluate(Point::PreToolCall, &snapshot, Mode::Enforce);
        Ok::<_, String>(found.verdict().reason().unwrap_or_default().to_owned())
    };
    let failed = Ok("runtime_error:policy_invocation_failed".to_owned());
    assert_eq!(
        failing("verdict := {\"decision\": \"allow\"} if input.nothing"),
        failed
    );
    assert_eq!(
        failing("verdict := {\"decision\": \"allow\"} if 1 / input.policy_target.value.n > 0"),
        failed
    );
    let endless = "verdict := {\"decision\": count([1 | some a in numbers.range(1, 3000); some b in numbers.range(1, 3000); a == b])}";
    assert_eq!(failing(endless), failed);
    let invalid = Ok("runtime_error:policy_output_invalid".to_owned());
    assert_eq!(failing("verdict := true"), invalid);
    assert_eq!(
        failing("verdict := {\"decision\": \"allow\", 1: 2}"),
        invalid
    );
    for (rules, problem) in [
        ("verdict := http.send({})", "http.send"),
        ("verdict := {\"decision\": time.now_ns()}", "time.now_ns"),
        (
            "verdict := {\"decision\": rand.intn(\"x\", 2)}",
            "rand.intn",
        ),
        ("verdict := ", "/r/r.rego"),
        ("other := 1", "compile"),
    ] {
        let error = failing(rules).unwrap_err();
        assert!(error.contains(problem), "{rules}: {error}");
    }
}

#[test]
fn bundles_that_are_not_there_are_told() {
    for (change, problem) in [
        (("bundle: /b, ", ""), "no file of policy"),
        (("bundle: /b", "bundle: /nowhere"), "not found"),
        (
            ("data: /extra/limits.json", "data: /none.json"),
            "not found",
        ),
        (
            ("data.bank.verdict", "'data.bank[0]'"),
            "does not name a rule",
        ),
        (("data.bank.verdict", "input.x"), "does not name a rule"),
    ] {
        let manifest = manifest(&bank("").replace(change.0, change.1));
        let error = Policies::activate(&manifest, &memory())
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(problem), "{error}");
    }
}
