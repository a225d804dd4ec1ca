//! The policy library: its own tests, and its modules in a running manifest.

use std::path::{Path, PathBuf};

use countersign_acs::{Mode, Offline, Point, Policies, Runtime};
use countersign_canon::Json;
use countersign_policy::rego::{Source, testing};

use crate::memory::Memory;
use crate::scene::{Annotators, json, manifest};

fn library() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/library")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_module_passes_its_tests_and_is_covered_by_them() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(library().join("rego"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let source = |path: &PathBuf| Source {
        name: path.file_name().unwrap().to_str().unwrap().to_owned(),
        text: read(path),
    };
    let (tests, modules): (Vec<Source>, Vec<Source>) = files
        .iter()
        .map(source)
        .partition(|source| source.name.ends_with("_test.rego"));
    assert_eq!((modules.len(), tests.len()), (9, 9));
    let tested = testing::run(&modules, &tests, None).unwrap();
    assert!(tested.tests.len() > 30, "{}", tested.tests.len());
    for test in &tested.tests {
        assert_eq!(
            test.failure, None,
            "{}:{} {}",
            test.file, test.line, test.name
        );
    }
    for file in &tested.coverage {
        assert!(
            file.missed.is_empty(),
            "{} is not covered: {:?}",
            file.file,
            file.missed
        );
    }
}

/// What a Rego policy with the library says about a tool call.
fn rego(rules: &str, snapshot: &str) -> (String, Option<String>, Option<Json>) {
    let text = "
agent_control_specification_version: 0.3.1-beta
policies: {p: {type: rego, query: data.p.verdict, bundle: /p, library: true}}
intervention_points:
  pre_tool_call:
    policy_target: $.tool_call.args
    tool_name_from: $.tool_call.name
    policy: {id: p}
    annotations: {shape: {from: $policy_target}, secrets: {from: $policy_target}}
annotators:
  shape: {type: classifier, builtin: shape}
  secrets: {type: classifier, builtin: secrets, redact: true}
tools: {send: {clearance: internal}}
";
    let manifest = manifest(text);
    let rules = format!("package p\nimport rego.v1\nimport data.countersign.library\n{rules}\n");
    let memory = Memory::default().file("/p/p.rego", &rules);
    let policies = Policies::activate(&manifest, &memory).unwrap_or_else(|error| panic!("{error}"));
    let runtime = Runtime::new(manifest, policies).with_annotators(Offline::default());
    let snapshot = json(snapshot);
    let found = runtime.evaluate(Point::PreToolCall, &snapshot, Mode::Enforce);
    let verdict = found.verdict();
    (
        verdict.decision().to_string(),
        verdict.reason().map(str::to_owned),
        found.transformed().cloned(),
    )
}

fn send(args: &str, labels: &str) -> String {
    format!(r#"{{"tool_call":{{"name":"send","args":{args}}},"ifc":{{"source_labels":{labels}}}}}"#)
}

#[test]
fn addresses_cannot_fool_egress() {
    let rules = "verdict := library.egress.verdict(input.annotations.shape, [\"api.good.com\", \"*.docs.org\"])";
    for (args, decision) in [
        (r#"{"url":"https://api.good.com/x"}"#, "allow"),
        (r#"{"url":"HTTPS://API.GOOD.COM.:8443/x?y#z"}"#, "allow"),
        (r#"{"deep":[{"uri":"https://a.docs.org/"}]}"#, "allow"),
        (r#"{"text":"no address"}"#, "allow"),
        (r#"{"url":"https://api.good.com:x@evil.example/"}"#, "deny"),
        (r#"{"url":"https://api.good.com@evil.example/"}"#, "deny"),
        (r#"{"url":"https://evil.example/#.api.good.com"}"#, "deny"),
        (r#"{"url":"https://evil.example\\@api.good.com/"}"#, "deny"),
        (r#"{"url":"https://api.good.com.evil.example/"}"#, "deny"),
        (r#"{"uri":"https://evil.example/"}"#, "deny"),
        (r#"{"anything":["https://evil.example/"]}"#, "deny"),
        (r#"{"url":"https://аpi.good.com/"}"#, "deny"),
        (r#"{"url":"//evil.example/x"}"#, "deny"),
        (
            r#"{"host":"evil.example","url":"https://api.good.com/"}"#,
            "deny",
        ),
        (r#"{"url":"https://0x7f000001/"}"#, "deny"),
        (r#"{"url":"file:///etc/passwd"}"#, "deny"),
        (r#"{"url":"https:evil.example/x"}"#, "deny"),
        (r#"{"url":"https:\\\\evil.example/"}"#, "deny"),
        (r#"{"url":"\thttps://evil.example/"}"#, "deny"),
        (r#"{"url":"https://evil.exam\nple/"}"#, "deny"),
        (r#"{"url":"https://evil.example%2eapi.good.com/"}"#, "deny"),
        (r#"{"url":"https://api.good.com%00.evil.example/"}"#, "deny"),
        (
            r#"{"url":"https://api.good.com:443:evil.example/"}"#,
            "deny",
        ),
        (r#"{"url":"https://[::1]/"}"#, "deny"),
        (r#"{"url":"http://2130706433/"}"#, "deny"),
        (r#"{"url":"wss://evil.example/"}"#, "deny"),
        (r#"{"url":"https://docs.org/"}"#, "deny"),
        (r#"{"url":"https://xn--pi-7kc.good.com/"}"#, "deny"),
    ] {
        let found = rego(rules, &send(args, "[]"));
        assert_eq!(found.0, decision, "{args}: {:?}", found.1);
    }
}

#[test]
fn objects_are_searched_and_cleaned() {
    let rules = "verdict := library.redaction.verdict(input.annotations.secrets)";
    let found = rego(
        rules,
        &send(r#"{"to":["x"],"body":{"note":"ssn 123-45-6789"}}"#, "[]"),
    );
    assert_eq!(found.0, "transform");
    assert_eq!(
        found.2,
        Some(json(r#"{"to":["x"],"body":{"note":"ssn [us_ssn]"}}"#))
    );
    let rules = "verdict := library.patterns.verdict(input.annotations.secrets, [\"us_ssn\"])";
    let found = rego(rules, &send(r#"{"body":{"note":"ssn 123-45-6789"}}"#, "[]"));
    assert_eq!(found.1.as_deref(), Some("pattern_denied"));
}

#[test]
fn labels_clear_or_refuse() {
    let rules = "verdict := library.labels.verdict";
    for (labels, decision, reason) in [
        (r#"["internal"]"#, "allow", None),
        (r#"["public","internal"]"#, "allow", None),
        (
            r#"["confidential"]"#,
            "deny",
            Some("ifc_clearance_violation"),
        ),
        (r#"[]"#, "deny", Some("ifc_labels_unusable")),
        (r#""internal""#, "deny", Some("ifc_labels_unusable")),
        (r#"["purple"]"#, "deny", Some("ifc_labels_unusable")),
        ("null", "deny", Some("ifc_labels_unusable")),
    ] {
        let found = rego(rules, &send("{}", labels));
        assert_eq!(
            (found.0.as_str(), found.1.as_deref()),
            (decision, reason),
            "{labels}"
        );
    }
}

#[test]
fn modules_are_asked_for_by_name() {
    let refused = |library: &str| {
        let text = format!(
            "
agent_control_specification_version: 0.3.1-beta
policies: {{p: {{type: rego, query: data.p.verdict, bundle: /p, library: {library}}}}}
intervention_points: {{input: {{policy_target: $, policy: {{id: p}}}}}}
"
        );
        let rules = "package p\nimport rego.v1\nverdict := {\"decision\": \"allow\"}\n";
        let memory = Memory::default().file("/p/p.rego", rules);
        Policies::activate(&manifest(&text), &memory)
            .err()
            .map(|error| error.to_string())
    };
    assert_eq!(refused("[labels, drift]"), None);
    for wrong in ["[lables]", "7", "[1]"] {
        let error = refused(wrong).unwrap();
        assert!(
            error.contains("`library` must be true, or a list of: approval"),
            "{error}"
        );
    }
}

/// What a Cedar module says.
fn cedar(module: &str, annotations: &str, snapshot: &str) -> (String, Option<String>) {
    let text = "
agent_control_specification_version: 0.3.1-beta
policies: {p: {type: cedar, policy_path: /p.cedar, entities_path: /entities.json}}
intervention_points:
  pre_tool_call:
    policy_target: $.tool_call.args
    tool_name_from: $.tool_call.name
    policy: {id: p}
    annotations: {NAMES}
annotators: {shape: {type: llm}, secrets: {type: llm}, drift: {type: llm}, confidence: {type: llm}}
tools: {pay: {}}
";
    let said = json(annotations);
    let names: Vec<String> = said
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, _)| format!("{name}: {{from: $}}"))
        .collect();
    let manifest = manifest(&text.replace("NAMES", &names.join(", ")));
    let policy = read(&library().join(format!("cedar/{module}.cedar")));
    let entities = r#"[{"uid":{"type":"Tool","id":"pay"},"parents":[],
        "attrs":{"most_calls":3,"hosts":["api.good.com"],"covers":["public","internal"],"free_amount":100,"most_amount":1000}}]"#;
    let memory = Memory::default()
        .file("/p.cedar", &policy)
        .file("/entities.json", entities);
    let policies = Policies::activate(&manifest, &memory).unwrap_or_else(|error| panic!("{error}"));
    let annotators = Annotators {
        outputs: said.into_object().unwrap().into_iter().collect(),
        ..Annotators::default()
    };
    let runtime = Runtime::new(manifest, policies).with_annotators(annotators);
    let snapshot = json(snapshot);
    let found = runtime.evaluate(Point::PreToolCall, &snapshot, Mode::Enforce);
    let verdict = found.verdict();
    (
        verdict.decision().to_string(),
        verdict.reason().map(str::to_owned),
    )
}

#[test]
fn modules_in_cedar_decide_and_refuse_what_they_do_not_see() {
    let call = |args: &str, more: &str| {
        format!(
            r#"{{"envelope":{{"agent":{{"id":"a"}}}},"tool_call":{{"name":"pay","args":{args}}}{more}}}"#
        )
    };
    let nothing = Some("no_matching_policy");
    let failed = Some("runtime_error:policy_invocation_failed");
    let plain = call("{}", "");
    let check = |module: &str, said: &str, snapshot: &str, decision: &str, reason: Option<&str>| {
        let found = cedar(module, said, snapshot);
        assert_eq!(
            (found.0.as_str(), found.1.as_deref()),
            (decision, reason),
            "{module} {said} {snapshot}"
        );
    };
    check(
        "budgets",
        "{}",
        &call("{}", r#","budgets":{"tool_call_count":2}"#),
        "allow",
        None,
    );
    check(
        "budgets",
        "{}",
        &call("{}", r#","budgets":{"tool_call_count":3}"#),
        "deny",
        nothing,
    );
    check("budgets", "{}", &plain, "deny", nothing);
    check(
        "budgets",
        "{}",
        &call("{}", r#","budgets":{"tool_call_count":"2"}"#),
        "deny",
        failed,
    );
    let shape = |hosts: &str, unclear: u8| {
        format!(r#"{{"shape":{{"hosts":{hosts},"unclear":{unclear},"complete":true}}}}"#)
    };
    check(
        "egress",
        &shape(r#"["api.good.com"]"#, 0),
        &plain,
        "allow",
        None,
    );
    check(
        "egress",
        &shape(r#"["api.good.com","evil.example"]"#, 0),
        &plain,
        "deny",
        nothing,
    );
    check("egress", &shape("[]", 1), &plain, "deny", nothing);
    check("egress", "{}", &plain, "deny", failed);
    let labels = |labels: &str| call("{}", &format!(r#","ifc":{{"source_labels":{labels}}}"#));
    check("labels", "{}", &labels(r#"["internal"]"#), "allow", None);
    check(
        "labels",
        "{}",
        &labels(r#"["internal","secret"]"#),
        "deny",
        nothing,
    );
    check("labels", "{}", &labels("[]"), "deny", nothing);
    check("labels", "{}", &plain, "deny", nothing);
    check("labels", "{}", &labels(r#""internal""#), "deny", failed);
    check(
        "approval",
        "{}",
        &call(r#"{"amount":100}"#, ""),
        "allow",
        None,
    );
    check(
        "approval",
        "{}",
        &call(r#"{"amount":101}"#, ""),
        "escalate",
        Some("amount_over_limit"),
    );
    check(
        "approval",
        "{}",
        &call(r#"{"amount":1001}"#, ""),
        "deny",
        Some("amount_forbidden"),
    );
    check(
        "approval",
        "{}",
        &call(r#"{"amount":-1}"#, ""),
        "deny",
        nothing,
    );
    check("approval", "{}", &plain, "deny", failed);
    check(
        "patterns",
        r#"{"secrets":{"found":false}}"#,
        &plain,
        "allow",
        None,
    );
    check(
        "patterns",
        r#"{"secrets":{"found":true}}"#,
        &plain,
        "deny",
        nothing,
    );
    check("patterns", "{}", &plain, "deny", failed);
    let drift = |score: &str| format!(r#"{{"drift":{{"score":{score}}}}}"#);
    check("drift", &drift("10"), &plain, "allow", None);
    check("drift", &drift("30"), &plain, "warn", Some("drift"));
    check("drift", &drift("70"), &plain, "escalate", Some("drift"));
    check("drift", "{}", &plain, "deny", failed);
    check(
        "confidence",
        r#"{"confidence":{"percent":80}}"#,
        &plain,
        "allow",
        None,
    );
    check(
        "confidence",
        r#"{"confidence":{"percent":79}}"#,
        &plain,
        "deny",
        nothing,
    );
    check(
        "redaction",
        r#"{"secrets":{"found":true}}"#,
        &plain,
        "transform",
        Some("redacted"),
    );
    check(
        "redaction",
        r#"{"secrets":{"found":false}}"#,
        &plain,
        "allow",
        None,
    );
}
