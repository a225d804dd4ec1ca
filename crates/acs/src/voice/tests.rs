use std::sync::Arc;

use countersign_canon::{Json, Limits};
use countersign_policy::capability::{Capability, Judgement};
use countersign_policy::facts::{Action, Facts, State, Surroundings};
use countersign_policy::manifest::Manifest as Capabilities;
use countersign_policy::matcher::Link;
use countersign_policy::{Decision, Policies as Voices};

use super::*;
use crate::{Manifest, NoFiles, Policies, Runtime};

fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::plan()).unwrap()
}

/// The capability rules, which allow reading, with a manifest beside them that says this.
fn voices(target: &str, verdict: &str) -> Voices {
    let text = format!(
        "
agent_control_specification_version: 0.3.1-beta
policies: {{p: {{type: test, verdict: {verdict}}}}}
intervention_points:
  pre_tool_call: {{policy_target: {target}, tool_name_from: $.tool_call.name, policy: {{id: p}}}}
tools: {{read_note: {{}}, wipe: {{}}}}
"
    );
    let manifest = Manifest::read(text.as_bytes()).unwrap();
    let policies = Policies::activate(&manifest, &NoFiles).unwrap();
    let voice = Voice::new(Runtime::new(manifest, policies), Kept::default()).unwrap();
    let capabilities = Capabilities::read(
        br#"{"schema":"countersign/manifest/v1","name":"n","version":"1","publisher":"p",
            "permissions":{"tools":{"read_note":{"side_effect":"read"},"other":{"side_effect":"read"}}}}"#,
    )
    .unwrap();
    Voices::new(Capability::new(Some(capabilities)).unwrap()).with_beside(Arc::new(voice))
}

fn judge(tool: &str, args: &str, voices: &Voices) -> Judgement {
    let args = json(args);
    let action = Action {
        tool_name: tool,
        args: &args,
        sanitizer_key: None,
    };
    let state = State::untouched();
    let surroundings = Surroundings {
        examine: &|_| Link::No,
        base: None,
    };
    let facts = Facts::of(
        &action,
        state,
        &surroundings,
        voices.capability().manifest(),
    );
    let session = json(r#"{"tool_calls_consumed":3,"labels":["internal"],"wall_time_ms":2500}"#);
    let session = || session.clone();
    let hearing = Hearing::default();
    let judged = voices.judge(&facts, &args, Some("agent"), &session, &hearing);
    judged.0
}

#[test]
fn the_strictest_of_both_counts() {
    for (verdict, tool, decision, reason) in [
        ("{decision: allow}", "read_note", Decision::Allow, None),
        (
            "{decision: deny, reason: no}",
            "read_note",
            Decision::Deny,
            Some("no"),
        ),
        (
            "{decision: escalate, reason: ask}",
            "read_note",
            Decision::Escalate,
            Some("ask"),
        ),
        // Allowed by one, unknown to the other.
        ("{decision: allow}", "wipe", Decision::Deny, None),
        (
            "{decision: allow}",
            "other",
            Decision::Deny,
            Some("runtime_error:tool_unknown"),
        ),
        (
            "{decision: maybe}",
            "read_note",
            Decision::Deny,
            Some("runtime_error:policy_output_invalid"),
        ),
    ] {
        let found = judge(tool, "{}", &voices("$.tool_call.args", verdict));
        assert_eq!(found.verdict.decision(), decision, "{verdict} {tool}");
        if reason.is_some() {
            assert_eq!(found.verdict.reason(), reason, "{verdict} {tool}");
        }
    }
}

#[test]
fn a_hold_names_what_would_be_done() {
    let found = judge(
        "read_note",
        "{}",
        &voices("$.tool_call.args", "{decision: escalate}"),
    );
    assert_eq!(found.explanation.rule, "agent_control:pre_tool_call");
    let identity = found.explanation.facts.get("enforced_identity").unwrap();
    assert!(identity.as_str().unwrap().starts_with("sha256:"));
}

#[test]
fn a_change_of_a_part_is_a_change_of_the_arguments() {
    let change =
        "{decision: transform, reason: r, transform: {path: $policy_target, value: clean}}";
    let found = judge(
        "read_note",
        r#"{"a":{"b":"dirty"},"c":1}"#,
        &voices("$.tool_call.args.a.b", change),
    );
    let transform = found.verdict.transform().unwrap();
    assert_eq!(transform.path.to_string(), "$policy_target");
    assert_eq!(transform.value, json(r#"{"a":{"b":"clean"},"c":1}"#));
    let found = judge("read_note", "{}", &voices("$.tool_call.name", change));
    assert_eq!(
        found.verdict.reason(),
        Some("runtime_error:adapter_unsupported")
    );
}

#[test]
fn the_session_is_in_the_snapshot() {
    let session = json(r#"{"tool_calls_consumed":3,"labels":["internal"],"wall_time_ms":2500}"#);
    let found = host_snapshot(Point::Output, Some("agent"), &session);
    assert_eq!(
        found.get("ifc"),
        Some(&json(r#"{"source_labels":["internal"]}"#))
    );
    let budgets = found.get("envelope").unwrap().get("budgets").unwrap();
    assert_eq!(budgets.get("tool_call_count"), Some(&json("3")));
    assert_eq!(budgets.get("elapsed_seconds"), Some(&json("2")));
}

#[test]
fn another_manifest_is_another_digest() {
    let one = voices("$.tool_call.args", "{decision: allow}").digest();
    let two = voices("$.tool_call.args", "{decision: deny}").digest();
    assert_ne!(one, two);
    assert_eq!(
        one,
        voices("$.tool_call.args", "{decision: allow}").digest()
    );
}
