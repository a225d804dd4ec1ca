//! What a manifest calls reading is taken for reading only as far as it is certain.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use countersign_canon::{Digest, Json, Limits};
use countersign_policy::capability::Capability;
use countersign_policy::facts::{Action, Facts, State, Surroundings};
use countersign_policy::manifest::{Manifest, SideEffect};
use countersign_policy::matcher::Link;
use countersign_policy::{Classification, Decision, Offered};

const MANIFEST: &str = "
schema: countersign/manifest/v1
name: m
version: 1.0.0
publisher: acme
permissions:
  tools:
    exec: {side_effect: read, sink: false}
    exec.write: {side_effect: mutate-local, sink: false}
    run: {side_effect: read, arguments: {binary: /line}}
    list: {side_effect: read, server: files, definition: 'sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb'}
    push: {side_effect: mutate-external, server: forge, definition: 'sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb'}
    net.get: {side_effect: network-egress, server: web}
  net: {domains: [x.com]}
  exec: {allowed_bins: [ls, git, find, rm, sort]}
sandbox: {required: true}
";

fn facts(tool: &str, args: &str, manifest: &Manifest) -> Facts {
    let args = Json::admit(args.as_bytes(), &Limits::event()).unwrap();
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
    Facts::of(&action, state, &surroundings, Some(manifest))
}

#[test]
fn commands_of_reading_tools_are_looked_at() {
    let manifest = Manifest::read(MANIFEST.as_bytes()).unwrap();
    let rules = Capability::new(Some(manifest.clone())).unwrap();
    for (tool, args, side_effect, decision) in [
        (
            "exec",
            r#"{"command":"ls -l"}"#,
            SideEffect::Read,
            Decision::Allow,
        ),
        (
            "exec.run",
            r#"{"command":"git status"}"#,
            SideEffect::Read,
            Decision::Allow,
        ),
        (
            "run",
            r#"{"line":"git log --oneline"}"#,
            SideEffect::Read,
            Decision::Allow,
        ),
        (
            "exec",
            r#"{"command":"rm x"}"#,
            SideEffect::Unknown,
            Decision::Escalate,
        ),
        (
            "exec",
            r#"{"command":"find . -delete"}"#,
            SideEffect::Unknown,
            Decision::Escalate,
        ),
        (
            "exec",
            r#"{"bin":"sort","args":["-o","f"]}"#,
            SideEffect::Unknown,
            Decision::Escalate,
        ),
        (
            "run",
            r#"{"line":"git push"}"#,
            SideEffect::Unknown,
            Decision::Escalate,
        ),
        (
            "run",
            r#"{"line":["git","-c","x=y","log"]}"#,
            SideEffect::Unknown,
            Decision::Escalate,
        ),
        (
            "run",
            r#"{"other":"ls"}"#,
            SideEffect::Unknown,
            Decision::Deny,
        ),
        // What stands beside a declared command counts too.
        (
            "run",
            r#"{"line":"find","args":["-delete"]}"#,
            SideEffect::Unknown,
            Decision::Escalate,
        ),
        (
            "run",
            r#"{"line":"find","args":["."],"env":{},"cwd":"/"}"#,
            SideEffect::Read,
            Decision::Allow,
        ),
        (
            "run",
            r#"{"line":"ls","env":{"LD_PRELOAD":"/tmp/x.so"}}"#,
            SideEffect::Unknown,
            Decision::Deny,
        ),
        (
            "run",
            r#"{"line":"ls","command":"rm x"}"#,
            SideEffect::Unknown,
            Decision::Deny,
        ),
        (
            "run",
            r#"{"line":"ls","command":"ls","cmd":"rm x"}"#,
            SideEffect::Unknown,
            Decision::Deny,
        ),
        // What was never called reading stays what it was called.
        (
            "exec.write",
            r#"{"command":"rm x"}"#,
            SideEffect::MutateLocal,
            Decision::Allow,
        ),
    ] {
        let facts = facts(tool, args, &manifest);
        assert_eq!(facts.side_effect, side_effect, "{tool} {args}");
        assert_eq!(facts.doubt.is_some(), side_effect == SideEffect::Unknown);
        let judgement = rules.judge(&facts);
        assert_eq!(judgement.verdict.decision(), decision, "{tool} {args}");
        if decision == Decision::Escalate {
            assert!(judgement.explanation.facts.get("doubt").is_some());
        }
    }
}

#[test]
fn i02_i03_a_tool_of_a_server_needs_its_pin() {
    let manifest = Manifest::read(MANIFEST.as_bytes()).unwrap();
    let side_effect = |tool, server, definition: &[u8]| {
        let offered = Offered {
            server,
            tool,
            definition: Digest::of(definition),
        };
        let classification = Classification::of(&offered, Some(&manifest));
        let facts = facts(tool, r#"{"command":"ls","line":"ls"}"#, &manifest);
        facts.classified(&classification).side_effect
    };
    assert_eq!(side_effect("list", "files", b"a"), SideEffect::Read);
    assert_eq!(side_effect("list", "files", b"b"), SideEffect::Unknown);
    assert_eq!(side_effect("list", "other", b"a"), SideEffect::Unknown);
    assert_eq!(side_effect("run", "files", b"a"), SideEffect::Unknown);
    assert_eq!(
        side_effect("exec.write", "files", b"a"),
        SideEffect::MutateLocal
    );
}

#[test]
fn an_entry_for_another_server_or_definition_is_about_another_tool() {
    let manifest = Manifest::read(MANIFEST.as_bytes()).unwrap();
    let rules = Capability::new(Some(manifest.clone())).unwrap();
    let decision = |tool, server, definition: &[u8]| {
        let offered = Offered {
            server,
            tool,
            definition: Digest::of(definition),
        };
        let classification = Classification::of(&offered, Some(&manifest));
        let facts = facts(tool, r#"{"url":"https://x.com"}"#, &manifest);
        rules
            .judge(&facts.classified(&classification))
            .verdict
            .decision()
    };
    assert_eq!(decision("push", "forge", b"a"), Decision::Allow);
    assert_eq!(decision("push", "forge", b"b"), Decision::Escalate);
    assert_eq!(decision("push", "other", b"a"), Decision::Escalate);
    // By a dotted prefix, and without a definition to compare.
    assert_eq!(decision("net.get.page", "web", b"a"), Decision::Allow);
    assert_eq!(decision("net.get.page", "other", b"a"), Decision::Escalate);
}

#[test]
fn patterns_hold_for_what_stands_beside_a_declared_command() {
    let text = MANIFEST.replace(
        "exec: {allowed_bins: [ls, git, find, rm, sort]}",
        "exec: {allowed_bins: [git], arg_patterns: [status]}",
    );
    let text = text.replace("{binary: /line}", "{binary: /opts/line}");
    let manifest = Manifest::read(text.as_bytes()).unwrap();
    let clear = |args| facts("run", args, &manifest).command_clear;
    assert!(clear(r#"{"opts":{"line":"git status"}}"#));
    assert!(clear(r#"{"opts":{"line":"git","args":["status"]}}"#));
    assert!(!clear(r#"{"opts":{"line":"git","args":["push"]}}"#));
    assert!(!clear(r#"{"opts":{"line":"git status","args":["push"]}}"#));
    assert!(!clear(r#"{"opts":{"line":"git status"},"env":{"A":"b"}}"#));
    assert!(!clear(
        r#"{"opts":{"line":"git status"},"command":"git push"}"#
    ));
    assert!(!clear(r#"{"line":"git status"}"#));
}
