use super::*;
use crate::facts::{Action, State, Surroundings};
use crate::matcher::Link;
use countersign_canon::{Json, Limits};

fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

fn calm() -> State {
    State::untouched()
}

fn judge(capability: &Capability, tool: &str, args: &str, state: State) -> Judgement {
    let args = json(args);
    let action = Action {
        tool_name: tool,
        args: &args,
        sanitizer_key: None,
    };
    let surroundings = Surroundings {
        examine: &|_| Link::No,
        base: None,
    };
    capability.judge(&Facts::of(
        &action,
        state,
        &surroundings,
        capability.manifest(),
    ))
}

fn check(manifest: &str, tool: &str, args: &str, state: State, expect: (Decision, &str)) {
    let manifest = Manifest::partial(&json(manifest)).unwrap();
    let capability = Capability::new(Some(manifest)).unwrap();
    assert_eq!(capability.not_admitted(), None);
    let judgement = judge(&capability, tool, args, state);
    let found = (
        judgement.verdict.decision(),
        judgement.verdict.reason().unwrap_or_default(),
    );
    assert_eq!(found, expect, "{tool} {args}");
    assert_eq!(judgement.constraints.is_some(), expect.0.permits());
    assert!(
        judgement.explanation.line > 0,
        "{:?}",
        judgement.explanation
    );
}

const MANIFEST: &str = r#"{"permissions":{
    "tools":["read_file","write_file","exec","mcp.https","deploy"],
    "fs":{"read_roots":["/data"],"write_roots":["/data/out"]},
    "net":{"domains":["x.com","*.y.com"]},
    "exec":{"allowed_bins":["git"],"arg_patterns":["status( -s)?"]},
    "approval_required":["deploy"]}}"#;

#[test]
fn the_rules_speak_in_their_order() {
    let deny = |reason| (Decision::Deny, reason);
    let allow = (Decision::Allow, "OK");
    check(
        MANIFEST,
        "nobody",
        "{}",
        calm(),
        deny("PERMISSION_UNDECLARED"),
    );
    check(
        MANIFEST,
        "mcp.https.get",
        r#"{"url":"https://a.y.com/x"}"#,
        calm(),
        allow,
    );
    check(
        MANIFEST,
        "mcp.httpsfoo",
        "{}",
        calm(),
        deny("PERMISSION_UNDECLARED"),
    );
    check(
        MANIFEST,
        "mcp.https",
        r#"{"url":"https://x.com@evil.com"}"#,
        calm(),
        deny("EGRESS_DENY"),
    );
    let spent = State {
        steps: 24,
        loop_violation: "L".into(),
        ..calm()
    };
    check(
        MANIFEST,
        "read_file",
        r#"{"path":"/data/a"}"#,
        spent,
        deny("BUDGET_EXCEEDED"),
    );
    let looping = State {
        loop_violation: "L".into(),
        tainted: true,
        ..calm()
    };
    check(
        MANIFEST,
        "exec",
        r#"{"cmd":"git status"}"#,
        looping,
        deny("LOOP_DETECTED"),
    );
    let tainted = State {
        tainted: true,
        ..calm()
    };
    check(
        MANIFEST,
        "exec",
        r#"{"cmd":"rm x"}"#,
        tainted.clone(),
        deny("TAINTED_TO_HIGH_RISK"),
    );
    let sanitized = State {
        sanitized: true,
        ..tainted
    };
    check(
        MANIFEST,
        "exec",
        r#"{"cmd":"git status -s"}"#,
        sanitized,
        allow,
    );
    check(
        MANIFEST,
        "exec",
        r#"{"cmd":"git push"}"#,
        calm(),
        deny("EXEC_DENY"),
    );
    check(
        MANIFEST,
        "exec",
        r#"{"cmd":"git status; rm x"}"#,
        calm(),
        deny("EXEC_DENY"),
    );
    check(
        MANIFEST,
        "read_file",
        r#"{"path":"/data/../etc/passwd"}"#,
        calm(),
        deny("PATH_DENY"),
    );
    check(
        MANIFEST,
        "write_file",
        r#"{"path":"/data/a"}"#,
        calm(),
        deny("PATH_DENY"),
    );
    check(
        MANIFEST,
        "write_file",
        r#"{"path":"/data/out/a"}"#,
        calm(),
        allow,
    );
    check(
        MANIFEST,
        "deploy",
        "{}",
        calm(),
        (Decision::Escalate, "APPROVAL_REQUIRED"),
    );
}

#[test]
fn without_a_manifest_everything_is_held() {
    let capability = Capability::new(None).unwrap();
    let judgement = judge(&capability, "anything", "{}", calm());
    assert_eq!(judgement.verdict.decision(), Decision::Escalate);
    assert_eq!(judgement.verdict.reason(), Some("SIDE_EFFECT_UNKNOWN"));
}

#[test]
fn rules_that_give_no_answer_deny() {
    let manifest = || Manifest::partial(&json(MANIFEST)).ok();
    for (text, reason) in [
        (
            "decision := 1 if input.nothing",
            "runtime_error:policy_undefined",
        ),
        ("decision := {}", "runtime_error:policy_failed"),
        (
            r#"decision := {"decision":"allow"}"#,
            "runtime_error:policy_failed",
        ),
        (
            r#"decision := {"rule":"x","decision":"permit"}"#,
            "runtime_error:policy_failed",
        ),
        (
            "decision := 1 if input.network\ndecision := 2 if not input.exec\ndecision := 3 if not input.exec",
            "runtime_error:policy_failed",
        ),
    ] {
        let text = format!("package countersign.capability\nimport rego.v1\n{text}\n");
        let rules = Source {
            name: "mine.rego".into(),
            text,
        };
        let capability = Capability::with_rules(rules, manifest()).unwrap();
        let judgement = judge(&capability, "read_file", "{}", calm());
        assert_eq!(judgement.verdict.decision(), Decision::Deny);
        assert_eq!(judgement.verdict.reason(), Some(reason));
        assert!(judgement.constraints.is_none());
    }
}

#[test]
fn a_hold_for_taint_is_irreversible_unless_the_effect_is_declared() {
    let manifest = |entry: &str| {
        let text = format!(
            r#"{{"schema":"countersign/manifest/v1","permissions":{{"tools":{{"write_file":{entry}}}}}}}"#
        );
        Capability::new(Some(Manifest::partial(&json(&text)).unwrap())).unwrap()
    };
    let tainted = || State {
        tainted: true,
        ..calm()
    };
    for (entry, state, reason, irreversible) in [
        ("{}", tainted(), "TAINTED_TO_HIGH_RISK", true),
        (
            r#"{"side_effect":"mutate-local"}"#,
            tainted(),
            "TAINTED_TO_HIGH_RISK",
            false,
        ),
        ("{}", calm(), "SIDE_EFFECT_UNKNOWN", false),
        (
            r#"{"approval":"required"}"#,
            calm(),
            "APPROVAL_REQUIRED",
            true,
        ),
    ] {
        let judgement = judge(&manifest(entry), "write_file", "{}", state);
        assert_eq!(judgement.verdict.decision(), Decision::Escalate);
        assert_eq!(judgement.verdict.reason(), Some(reason));
        assert_eq!(judgement.irreversible, irreversible, "{entry} {reason}");
    }
}

#[test]
fn an_explanation_asks_for_no_more_than_is_missing() {
    let manifest = r#"{"permissions":{"tools":["exec","net"],"net":{"domains":["x.com"]},
        "exec":{"allowed_bins":["ls"]}}}"#;
    let rules = Capability::new(Some(Manifest::partial(&json(manifest)).unwrap())).unwrap();
    for (tool, args, change) in [
        (
            "exec",
            r#"{"cmd":"ls; rm x"}"#,
            "list rm under permissions.exec.allowed_bins",
        ),
        (
            "net",
            r#"{"url":"https://x.com","host":"y.com"}"#,
            "list y.com under permissions.net.domains",
        ),
    ] {
        let judgement = judge(&rules, tool, args, calm());
        assert_eq!(judgement.explanation.change, change);
    }
}

#[test]
fn every_path_of_a_call_has_to_be_inside() {
    let classic = r#"{"permissions":{"tools":["read_file"],"fs":{"read_roots":["/data"]}}}"#;
    let declared = r#"{"schema":"countersign/manifest/v1","permissions":{"fs":{"read_roots":["/data"]},
        "tools":{"many":{"side_effect":"read","arguments":{"path":"/paths"}}}}}"#;
    let files = r#"{"permissions":{"tools":["read_text_file","read_multiple_files","create_file"],
        "fs":{"read_roots":["/data"],"write_roots":["/data/out"]}}}"#;
    let allow = (Decision::Allow, "OK");
    let deny = (Decision::Deny, "PATH_DENY");
    for (manifest, tool, args, expect) in [
        (classic, "read_file", r#"{"path":"/data/a"}"#, allow),
        (
            classic,
            "read_file",
            r#"{"path":"/data/a","paths":["/etc/passwd"]}"#,
            deny,
        ),
        (
            classic,
            "read_file",
            r#"{"path":"/data/a","target":"/etc/passwd"}"#,
            deny,
        ),
        (
            classic,
            "read_file",
            r#"{"paths":["/data/a","/data/b"]}"#,
            allow,
        ),
        (
            declared,
            "many",
            r#"{"paths":["/data/a","/data/b"]}"#,
            allow,
        ),
        (
            declared,
            "many",
            r#"{"paths":["/data/a","/data/../etc"]}"#,
            deny,
        ),
        (
            declared,
            "many",
            r#"{"paths":["/data/a",["/data/b"]]}"#,
            deny,
        ),
        (declared, "many", r#"{"paths":["/data/a",5]}"#, deny),
        (declared, "many", r#"{"paths":[]}"#, deny),
        (declared, "many", r#"{"paths":"/data/a"}"#, allow),
        (files, "read_text_file", r#"{"path":"/etc/passwd"}"#, deny),
        (
            files,
            "read_multiple_files",
            r#"{"paths":["/etc/passwd"]}"#,
            deny,
        ),
        (files, "create_file", r#"{"path":"/data/a"}"#, deny),
        (files, "create_file", r#"{"path":"/data/out/a"}"#, allow),
    ] {
        check(manifest, tool, args, calm(), expect);
    }
}

#[test]
fn what_is_declared_to_leave_for_the_network_is_looked_at_whatever_it_is_called() {
    let manifest = r#"{"schema":"countersign/manifest/v1","permissions":{
        "tools":{"fetch":{"side_effect":"network-egress"}},"net":{"domains":["x.com"]}}}"#;
    let deny = (Decision::Deny, "EGRESS_DENY");
    let allow = (Decision::Allow, "OK");
    check(
        manifest,
        "fetch",
        r#"{"url":"https://x.com/"}"#,
        calm(),
        allow,
    );
    check(
        manifest,
        "fetch",
        r#"{"url":"https://evil.com/"}"#,
        calm(),
        deny,
    );
    check(manifest, "fetch", r#"{"url":7}"#, calm(), deny);
    // Where it goes is fixed, as far as the arguments tell.
    check(manifest, "fetch", r#"{"text":"hi"}"#, calm(), allow);
}

#[test]
fn roots_for_reading_alone_leave_none_for_writing() {
    let manifest = |schema: &str| {
        format!(
            r#"{{"schema":"{schema}","permissions":{{
            "tools":{{"write_file":{{"side_effect":"mutate-local"}}}},"fs":{{"read_roots":["/data"]}}}}}}"#
        )
    };
    let args = r#"{"path":"/data/a"}"#;
    let deny = (Decision::Deny, "PATH_DENY");
    check(
        &manifest("countersign/manifest/v1"),
        "write_file",
        args,
        calm(),
        deny,
    );
}
