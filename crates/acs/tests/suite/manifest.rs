//! What a manifest says when it is wrong, and what it means when it is right.

use countersign_acs::{AnnotatorKind, Manifest, OnTimeout, Point, Policy};

use crate::scene::{INPUT, json, manifest};

/// The problems of a text, one a line.
fn problems(text: &str) -> String {
    Manifest::read(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn every_fault_is_told_at_once_and_with_its_place() {
    let text = "
agent_control_specification_version: 0.4
polices: {}
policies:
  a: {type: rego, policy_set: x}
  b: {type: cedar, bundle: x}
  c: {type: custom}
intervention_points:
  inputs: {}
  input: {policy_target: $pi.x, policy: {id: nobody}, tool_name_from: $.a}
  output: {policy_target: '$.a[*]', policy: {id: a}, annotations: {x: {from: $pi.annotations}}}
tools: {t: []}
approval: {timeout_seconds: 0, on_timeout: never}
";
    assert_eq!(
        problems(text),
        "the manifest: `/polices`: unknown field, did you mean `policies`?\n\
`/agent_control_specification_version`: expected a string, found the number `0.4`\n\
`/policies/a/policy_set`: belongs to policies in Cedar only\n\
`/policies/b/bundle`: unknown field, expected one of `type`, `policy_set`, `policy_path`, `entities_path`, `schema_path`, `query`\n\
`/policies/b`: expected exactly one of `policy_set` and `policy_path`\n\
`/policies/c/adapter`: missing\n\
`/tools/t`: expected an object, found an array\n\
`/approval/timeout_seconds`: must be greater than zero\n\
`/approval/on_timeout`: `never` is not one of `deny`, `allow`, `suspend`\n\
`/intervention_points/input/policy_target`: must lead into the snapshot: `$snap`, `$` or `$.name`\n\
`/intervention_points/input/tool_name_from`: no tool is called at this point\n\
`/intervention_points/inputs`: not one of agent_startup, input, pre_model_call, post_model_call, pre_tool_call, post_tool_call, output, agent_shutdown\n\
`/intervention_points/output/policy_target`: the path is malformed at byte 3\n\
`/intervention_points/output/annotations/x/from`: annotators do not see what others said"
    );
}

#[test]
fn what_refers_to_nothing_is_told_once_the_parts_are_right() {
    let text = "
agent_control_specification_version: 0.3.1-beta
policies: {a: {type: rego}}
intervention_points:
  input: {policy_target: $, policy: {id: b}}
  output: {policy_target: $, policy: {id: a}, annotations: {x: {from: $}}}
  agent_startup: {}
";
    assert_eq!(
        problems(text),
        "the manifest: `/intervention_points/agent_startup/policy_target`: missing\n\
`/intervention_points/agent_startup/policy`: missing\n\
`/intervention_points/input/policy/id`: there is no policy of this name\n\
`/intervention_points/output/annotations/x`: there is no annotator of this name\n\
`/intervention_points/output/policy/query`: missing, and the policy has none either"
    );
}

#[test]
fn json_and_yaml_say_the_same() {
    let yaml = manifest(INPUT);
    let text = String::from_utf8(yaml.source().to_jcs().unwrap()).unwrap();
    let json = manifest(&text);
    assert_eq!(yaml, json);
    assert_eq!(yaml.digest(), json.digest());
}

#[test]
fn the_parts_are_there() {
    let found = manifest(
        "
agent_control_specification_version: 0.3.1-beta
metadata: {owner: team}
policies:
  p: {type: rego, bundle: policies, data_paths: [a.json, b], color: red}
intervention_points:
  pre_tool_call:
    policy_target: $.tool_call.args
    policy_target_kind: tool_args
    tool_name_from: $.tool_call.name
    policy: {id: p, query: data.p.v, strict: true}
    annotations: {pii: {from: $policy_target, threshold: 2}}
annotators: {pii: {type: classifier, provider: x, threshold: 1}}
tools: {send: {clearance: internal, name: other}}
approval: {on_timeout: suspend, resolvers: {ops: {type: slack, channel: c}}}
",
    );
    let point = &found.points()[&Point::PreToolCall];
    assert_eq!(point.target_kind.as_deref(), Some("tool_args"));
    assert_eq!(point.policy.query.as_deref(), Some("data.p.v"));
    assert_eq!(point.policy.fields.len(), 1);
    let annotation = &point.annotations["pii"];
    assert_eq!(annotation.fields.get("threshold"), Some(&json("2")));
    assert_eq!(annotation.fields.get("provider"), Some(&json("\"x\"")));
    assert_eq!(annotation.fields.get("type"), Some(&json("\"classifier\"")));
    assert_eq!(found.annotators()["pii"].kind, AnnotatorKind::Classifier);
    assert_eq!(
        found.tools()["send"],
        json(r#"{"clearance":"internal","name":"send"}"#)
    );
    let Policy::Rego(rego) = &found.policies()["p"] else {
        panic!()
    };
    assert_eq!(rego.data, ["a.json", "b"]);
    let approval = found.approval().unwrap();
    assert_eq!(approval.on_timeout, Some(OnTimeout::Suspend));
    assert_eq!(approval.resolvers["ops"].kind, "slack");
}

#[test]
fn documents_add_up_and_override_nothing() {
    let base = "
agent_control_specification_version: 0.3.1-beta
metadata: {team: {name: a}}
policies: {p: {type: test, decision: allow}}
intervention_points: {input: {policy_target: $.input}}
annotators: {a: {type: llm}, b: {type: llm}}
";
    let child = "
agent_control_specification_version: 0.3.1-beta
metadata: {team: {size: 3}}
intervention_points: {input: {policy: {id: p}, annotations: {b: {from: $}}}}
";
    let merged = Manifest::chain(&[base.as_bytes(), child.as_bytes(), base.as_bytes()]).unwrap();
    assert_eq!(
        merged.source().get("metadata"),
        Some(&json(r#"{"team":{"name":"a","size":3}}"#))
    );
    assert_eq!(merged.points()[&Point::Input].annotations.len(), 1);
    for (section, place) in [
        ("metadata: {team: {name: b}}", "metadata.team.name"),
        ("metadata: {team: 7}", "metadata.team"),
        ("policies: {p: {type: test, decision: deny}}", "policies.p"),
        ("annotators: {a: {type: endpoint}}", "annotators.a"),
        (
            "intervention_points: {input: {policy_target: $snap.input}}",
            "intervention_points.input.policy_target",
        ),
        (
            "intervention_points: {input: {policy: {id: p, x: 1}}}",
            "intervention_points.input.policy",
        ),
        (
            "intervention_points: {input: {annotations: {b: {from: $.x}}}}",
            "intervention_points.input.annotations.b",
        ),
    ] {
        let other = format!("agent_control_specification_version: 0.3.1-beta\n{section}\n");
        let texts = [base.as_bytes(), child.as_bytes(), other.as_bytes()];
        let error = Manifest::chain(&texts).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("manifest 3: `{place}` is already defined, and differently")
        );
    }
    let old = child.replace("0.3.1-beta", "0.3.0-alpha");
    let error = Manifest::chain(&[base.as_bytes(), old.as_bytes()]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("agent_control_specification_version")
    );
    let one = "agent_control_specification_version: 0.3.1-beta\napproval: {timeout_seconds: 1}\n";
    let two = one.replace('1', "2").replace("0.3.2", "0.3.1");
    let texts = [
        base.as_bytes(),
        child.as_bytes(),
        one.as_bytes(),
        two.as_bytes(),
    ];
    assert!(
        Manifest::chain(&texts)
            .unwrap_err()
            .to_string()
            .contains("`approval`")
    );
}

#[test]
fn a_prompt_has_one_source_and_addresses_are_pinned() {
    let sha = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let text = |policy: &str, declared: &str, laid_over: &str| {
        format!(
            "
agent_control_specification_version: 0.3.1-beta
policies: {{p: {{type: rego, query: data.p.v, {policy}}}}}
annotators: {{a: {{type: llm, model: m, {declared}}}, b: {{type: endpoint, prompt: x, system_prompt: y}}}}
intervention_points:
  input: {{policy_target: $, policy: {{id: p}}, annotations: {{a: {{from: $, {laid_over}}}, b: {{from: $}}}}}}
"
        )
    };
    let pinned = |url: &str| format!("{{url: '{url}', sha256: {sha}}}");
    let good = pinned("https://a.example/x");
    for (policy, declared, laid_over) in [
        ("bundle: p.rego", "", ""),
        (
            &*format!("bundle_url: {good}"),
            "",
            &*format!("system_prompt_url: {good}"),
        ),
        ("bundle: p.rego", "system_prompt: x", "system_prompt: y"),
        ("bundle: p.rego", "system_prompt_file: x", ""),
    ] {
        let text = text(policy, declared, laid_over);
        if let Err(error) = Manifest::read(text.as_bytes()) {
            panic!("{text}: {error}");
        }
    }
    let at_point = "/intervention_points/input/annotations/a";
    let near = pinned("https://127.0.0.1/x");
    let plain = pinned("http://a.example/x");
    for (policy, declared, laid_over, place) in [
        (
            "",
            "system_prompt: x, system_prompt_file: y",
            "",
            "/annotators/a`",
        ),
        ("", "system_prompt: x, prompt: y", "", "/annotators/a`"),
        ("", "system_prompt: x", "system_prompt_file: y", at_point),
        (
            "",
            "system_prompt: x",
            &format!("system_prompt_url: {good}"),
            at_point,
        ),
        (
            "",
            "system_prompt_file: ''",
            "",
            "/annotators/a/system_prompt_file`",
        ),
        (
            "",
            &format!("system_prompt_url: {plain}"),
            "",
            "/annotators/a/system_prompt_url`",
        ),
        ("", "", &format!("system_prompt_url: {near}"), at_point),
        (
            "",
            "",
            "system_prompt_url: {url: 'https://a.example/x'}",
            at_point,
        ),
        ("", "", "system_prompt_url: 'https://a.example/x'", at_point),
        (
            &format!("bundle_url: {plain}"),
            "",
            "",
            "/policies/p/bundle_url/url`",
        ),
        (
            &format!("bundle_url: {near}"),
            "",
            "",
            "/policies/p/bundle_url/url`",
        ),
        (
            "bundle_url: {url: 'https://a.example/x'}",
            "",
            "",
            "/policies/p/bundle_url`",
        ),
    ] {
        let text = text(policy, declared, laid_over);
        let found = problems(&text);
        assert!(
            found.contains(place) && found.lines().count() == 1,
            "{text}: {found}"
        );
    }
}

#[test]
fn a_manifest_may_be_a_flow_mapping() {
    let flow = "{agent_control_specification_version: 0.3.1-beta, 'policies': {p: {type: test,},},\n\
                intervention_points: {input: {policy_target: $, policy: {id: p}}}} # all of it";
    let read = Manifest::read(flow.as_bytes()).unwrap();
    assert!(read.points().contains_key(&Point::Input));
    let twice = flow.replace("{agent", "{policies: {}, agent");
    assert!(problems(&twice).contains("unexpected"), "{twice}");
}
