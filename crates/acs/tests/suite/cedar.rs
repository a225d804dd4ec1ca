//! Policies in Cedar.

use countersign_acs::{Mode, Point, Policies, Runtime};
use countersign_canon::Json;

use crate::memory::Memory;
use crate::scene::{Annotators, json, manifest};

fn text(policy: &str) -> String {
    format!(
        "
agent_control_specification_version: 0.3.1-beta
policies: {{p: {{type: cedar, {policy}}}}}
intervention_points:
  pre_tool_call:
    policy_target: $.tool_call.args
    tool_name_from: $.tool_call.name
    policy: {{id: p}}
    annotations: {{risk: {{from: $policy_target}}}}
  output: {{policy_target: $.response, policy_target_kind: reply, policy: {{id: p}}}}
annotators: {{risk: {{type: classifier}}}}
tools: {{pay: {{clearance: internal}}}}
"
    )
}

const SNAPSHOT: &str = r#"{
    "envelope": {"agent": {"id": "alice"}, "budgets": {"tool_call_count": 999}},
    "tool_call": {"name": "pay", "args": {"amount": 5000, "rate": 0.25, "odd": 0.123456, "none": null, "tags": ["a", null]}},
    "annotations": {"risk": {"score": 0}},
    "response": "hi"
}"#;

fn decide(policies: &str, point: Point) -> (String, Option<String>) {
    let quoted = Json::from(policies).to_jcs().unwrap();
    ask(
        &text(&format!(
            "policy_set: {}",
            String::from_utf8(quoted).unwrap()
        )),
        &Memory::default(),
        point,
        SNAPSHOT,
    )
    .unwrap()
}

fn ask(
    text: &str,
    memory: &Memory,
    point: Point,
    snapshot: &str,
) -> Result<(String, Option<String>), String> {
    let manifest = manifest(text);
    let policies = Policies::activate(&manifest, memory).map_err(|error| error.to_string())?;
    let mut annotators = Annotators::default();
    annotators
        .outputs
        .insert("risk".to_owned(), json(r#"{"score":7}"#));
    let runtime = Runtime::new(manifest, policies).with_annotators(annotators);
    let snapshot = json(snapshot);
    let found = runtime.evaluate(point, &snapshot, Mode::Enforce);
    let verdict = found.verdict();
    Ok((
        verdict.decision().to_string(),
        verdict.reason().map(str::to_owned),
    ))
}

fn check(policies: &str, decision: &str, reason: Option<&str>) {
    let found = decide(policies, Point::PreToolCall);
    assert_eq!(
        (found.0.as_str(), found.1.as_deref()),
        (decision, reason),
        "{policies}"
    );
}

const PERMIT: &str = "permit(principal, action, resource);";

#[test]
fn permits_allow_forbids_deny_and_silence_denies() {
    check(PERMIT, "allow", None);
    check(
        r#"permit(principal == Agent::"alice", action == Action::"pre_tool_call", resource == Tool::"pay");"#,
        "allow",
        None,
    );
    check(
        r#"permit(principal == Agent::"bob", action, resource);"#,
        "deny",
        Some("no_matching_policy"),
    );
    let forbid = format!("{PERMIT} forbid(principal, action, resource);");
    check(&forbid, "deny", Some("policy1"));
    let named = format!(r#"{PERMIT} @id("too_much") forbid(principal, action, resource);"#);
    check(&named, "deny", Some("too_much"));
    let found = decide(
        r#"permit(principal, action == Action::"output", resource == PolicyTarget::"reply");"#,
        Point::Output,
    );
    assert_eq!(found.0, "allow");
}

#[test]
fn the_context_is_the_snapshot_without_its_envelope_and_what_annotators_said() {
    for condition in [
        "context.tool_call.args.amount > 100",
        "context.annotations.risk.score == 7",
        "context.tool_call.args.rate == decimal(\"0.25\")",
        "context.tool_call.args has odd",
        "context.tool_call.args.tags.contains(\"a\")",
    ] {
        let policies =
            format!("{PERMIT} forbid(principal, action, resource) when {{ {condition} }};");
        check(&policies, "deny", Some("policy1"));
    }
    for condition in ["context has envelope", "context.tool_call.args has none"] {
        let policies =
            format!("{PERMIT} forbid(principal, action, resource) when {{ {condition} }};");
        check(&policies, "allow", None);
    }
}

#[test]
fn a_policy_that_fails_refuses_the_action() {
    for condition in [
        "context.envelope.budgets.tool_call_count > 3",
        "context.tool_call.args.none == 1",
        "context.tool_call.args.amount > \"x\"",
        "context.tool_call.args.odd.greaterThan(decimal(\"0.1\"))",
    ] {
        let policies =
            format!("{PERMIT} forbid(principal, action, resource) when {{ {condition} }};");
        check(
            &policies,
            "deny",
            Some("runtime_error:policy_invocation_failed"),
        );
    }
}

#[test]
fn advice_makes_an_allow_stricter() {
    let advised = |advice: &str| {
        let advice = Json::from(advice).to_jcs().unwrap();
        let advice = String::from_utf8(advice).unwrap();
        format!("{PERMIT} @advice({advice}) permit(principal, action, resource);")
    };
    check(
        &advised(r#"{"verdict":"warn","reason":"look"}"#),
        "warn",
        Some("look"),
    );
    check(
        &advised(r#"{"verdict":"escalate","reason":"ask","message":"m"}"#),
        "escalate",
        Some("ask"),
    );
    let change =
        r#"{"verdict":"transform","transform":{"path":"$policy_target.amount","value":1}}"#;
    check(&advised(change), "transform", None);
    let both = format!(
        "{} {}",
        advised(r#"{"verdict":"escalate","reason":"ask"}"#),
        advised(r#"{"verdict":"warn","reason":"look"}"#)
    );
    check(&both, "escalate", Some("ask"));
    let differing = format!(
        "{} {}",
        advised(change),
        advised(&change.replace(":1", ":2"))
    );
    check(
        &differing,
        "deny",
        Some("runtime_error:policy_output_invalid"),
    );
    let forbidden = format!(
        "{} forbid(principal, action, resource);",
        advised(r#"{"verdict":"warn"}"#)
    );
    check(&forbidden, "deny", Some("policy2"));
}

#[test]
fn wrong_policies_are_told_before_anything_is_asked() {
    let refused = |policy: &str| {
        let memory = Memory::default()
            .file("/schema.cedarschema", "entity Agent; entity Tool; action pre_tool_call appliesTo { principal: Agent, resource: Tool, context: {} };")
            .file("/entities.json", "{}");
        ask(&text(policy), &memory, Point::Output, SNAPSHOT).unwrap_err()
    };
    for (policy, problem) in [
        ("policy_set: permit(", "unexpected"),
        (
            "policy_set: '@advice(\"no json\") permit(principal, action, resource);'",
            "@advice",
        ),
        (
            "policy_set: '@advice(\"{}\") permit(principal, action, resource);'",
            "`verdict` must be",
        ),
        (
            r#"policy_set: '@advice("{\"verdict\":\"approve\"}") permit(principal, action, resource);'"#,
            "`verdict` must be",
        ),
        (
            r#"policy_set: '@advice("{\"verdict\":\"transform\"}") permit(principal, action, resource);'"#,
            "transform",
        ),
        (
            r#"policy_set: '@advice("{\"verdict\":\"warn\",\"transform\":{\"path\":\"$policy_target\",\"value\":1}}") permit(principal, action, resource);'"#,
            "transform",
        ),
        (
            r#"policy_set: '@advice("{\"verdict\":\"warn\",\"x\":1}") permit(principal, action, resource);'"#,
            "unknown field `x`",
        ),
        (
            r#"policy_set: '@advice("{\"verdict\":\"warn\"}") forbid(principal, action, resource);'"#,
            "gives no advice",
        ),
        (
            "policy_set: 'permit(principal == ?principal, action, resource);'",
            "templates",
        ),
        ("policy_path: /none.cedar", "not found"),
        (
            "policy_set: 'permit(principal, action, resource) when { context.x };', schema_path: /schema.cedarschema",
            "x",
        ),
        (
            "policy_set: 'permit(principal, action, resource);', entities_path: /entities.json",
            "entities.json",
        ),
        (
            "policy_set: 'permit(principal, action, resource);', query: {who: {}}",
            "unknown field `who`",
        ),
        (
            "policy_set: 'permit(principal, action, resource);', query: {principal: {type: A}}",
            "id_from",
        ),
    ] {
        let error = refused(policy);
        assert!(error.contains(problem), "{policy}: {error}");
    }
}

#[test]
fn files_folders_entities_and_other_questions() {
    let memory = Memory::default()
        .file("/p/b.cedar", "@id(\"second\") forbid(principal in Group::\"interns\", action, resource);")
        .file("/p/a.cedar", PERMIT)
        .file("/p/notes.txt", "not a policy")
        .file(
            "/entities.json",
            r#"[{"uid":{"type":"Agent","id":"alice"},"attrs":{},"parents":[{"type":"Group","id":"interns"}]}]"#,
        );
    let with = |policy: &str| ask(&text(policy), &memory, Point::PreToolCall, SNAPSHOT).unwrap();
    assert_eq!(with("policy_path: /p").0, "allow");
    let found = with("policy_path: /p, entities_path: /entities.json");
    assert_eq!(found, ("deny".to_owned(), Some("second".to_owned())));
    let other = "policy_set: 'permit(principal == User::\"pay\", action == Action::\"spend\", resource == Tool::\"pay\") when { context == {\"n\": 5000} };',
      query: {principal: {type: User, id_from: $tool.name}, action: {type: Action, id: spend}, context: {n: $policy_target.amount}}";
    assert_eq!(with(other).0, "allow");
    let lost = "policy_set: 'permit(principal, action, resource);', query: {principal: {type: User, id_from: $.nobody}}";
    let found = with(lost);
    assert_eq!(
        found.1.as_deref(),
        Some("runtime_error:policy_invocation_failed")
    );
    let nobody = ask(
        &text(&format!("policy_set: '{PERMIT}'")),
        &memory,
        Point::PreToolCall,
        r#"{"tool_call":{"name":"pay","args":{}}}"#,
    );
    assert_eq!(
        nobody.unwrap().1.as_deref(),
        Some("runtime_error:policy_invocation_failed")
    );
}
