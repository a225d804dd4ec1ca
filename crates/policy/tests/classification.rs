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
    let state = State {
        steps: 0,
        tool_calls: 0,
        model_calls: 0,
        wall_time_ms: 0,
        loop_violation: String::new(),
        tainted: false,
        sanitized: false,
        labels: Vec::new(),
    };
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
