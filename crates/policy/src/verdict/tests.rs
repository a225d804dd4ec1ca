use super::*;
use countersign_canon::Limits;

fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

fn read(text: &str) -> Result<Verdict, VerdictError> {
    Verdict::from_policy(&json(text))
}

#[test]
fn plain_verdicts_are_read() {
    for decision in ["allow", "warn", "escalate", "deny"] {
        let verdict = read(&format!(r#"{{"decision":"{decision}"}}"#)).unwrap();
        assert_eq!(verdict.decision().as_str(), decision);
        assert_eq!((verdict.reason(), verdict.message()), (None, None));
        assert!(verdict.evidence().is_none() && verdict.result_labels().is_empty());
    }
}

#[test]
fn everything_that_is_not_plainly_a_verdict_is_refused() {
    let huge = format!(
        r#"{{"decision":"allow","evidence":{{"artefact":"{}"}}}}"#,
        "x".repeat(5000)
    );
    let cases = [
        "[]",
        "null",
        "{}",
        r#"{"decision":"Allow"}"#,
        r#"{"decision":null}"#,
        r#"{"decision":true}"#,
        r#"{"decision":"allow","reason":7}"#,
        r#"{"decision":"allow","reason":"runtime_error:x"}"#,
        r#"{"decision":"allow","message":[]}"#,
        r#"{"decision":"allow","effects":[]}"#,
        r#"{"decision":"allow","effects":null}"#,
        r#"{"decision":"allow","effects":"x"}"#,
        r#"{"decision":"allow","effects":[{"type":"replace"}]}"#,
        r#"{"decision":"allow","transform":{"path":"$policy_target.x","value":1}}"#,
        r#"{"decision":"transform"}"#,
        r#"{"decision":"transform","transform":null}"#,
        r#"{"decision":"transform","transform":{"path":"$policy_target.x"}}"#,
        r#"{"decision":"transform","transform":{"value":1}}"#,
        r#"{"decision":"transform","transform":{"path":"$policy_target..x","value":1}}"#,
        r#"{"decision":"transform","transform":{"path":"policy_target.x","value":1}}"#,
        r#"{"decision":"transform","transform":{"path":"$policy_targets.x","value":1}}"#,
        r#"{"decision":"transform","transform":{"path":"$[0]","value":1}}"#,
        r#"{"decision":"allow","result_labels":"secret"}"#,
        r#"{"decision":"allow","result_labels":["ok",7]}"#,
        r#"{"decision":"allow","evidence":"sha256:x"}"#,
        r#"{"decision":"allow","evidence":{"artefact":42}}"#,
        r#"{"decision":"allow","evidence":{"verification_pointers":{"k":42}}}"#,
        &huge,
    ];
    for case in cases {
        let error = read(case).expect_err(case);
        assert_eq!(
            error.reason(),
            "runtime_error:policy_output_invalid",
            "{case}"
        );
    }
    assert!(
        read(cases[9])
            .unwrap_err()
            .to_string()
            .contains("transform decision")
    );
}

#[test]
fn a_transform_stays_inside_the_action() {
    for path in [
        "$snap.tool_call.args",
        "$",
        "$.tool_call",
        "$pi.policy_target.value",
        "$tool.name",
    ] {
        let case =
            format!(r#"{{"decision":"transform","transform":{{"path":"{path}","value":1}}}}"#);
        let error = read(&case).unwrap_err();
        assert_eq!(
            error.reason(),
            "runtime_error:transform_target_forbidden",
            "{path}"
        );
    }
}

#[test]
fn null_is_a_value_and_null_members_are_absent() {
    let verdict =
        read(r#"{"decision":"transform","transform":{"path":"$policy_target.f","value":null}}"#);
    assert_eq!(verdict.unwrap().transform().unwrap().value, Json::Null);
    let verdict =
        read(r#"{"decision":"allow","reason":null,"result_labels":null,"evidence":null}"#).unwrap();
    assert_eq!(verdict.reason(), None);
    assert!(verdict.result_labels().is_empty());
}

#[test]
fn evidence_and_labels_are_passed_on() {
    let verdict = read(
        r#"{"decision":"allow","result_labels":["internal","b"],
            "evidence":{"artefact":"sha256:ab","verification_pointers":{"k":"https://x"}}}"#,
    )
    .unwrap();
    assert_eq!(verdict.result_labels(), ["internal", "b"]);
    let evidence = verdict.evidence().unwrap();
    assert_eq!(evidence.artefact.as_deref(), Some("sha256:ab"));
    assert_eq!(evidence.verification_pointers["k"], "https://x");
}

#[test]
fn the_strictest_verdict_wins_and_the_first_of_equals() {
    for (index, mild) in Decision::ALL.into_iter().enumerate() {
        for strict in Decision::ALL.into_iter().skip(index) {
            let (a, b) = (Verdict::new(mild, "mild"), Verdict::new(strict, "strict"));
            assert_eq!(a.clone().strictest(b.clone()).decision(), strict);
            assert_eq!(b.strictest(a).decision(), strict);
        }
    }
    let first = Verdict::new(Decision::Deny, "first");
    let winner = first.strictest(Verdict::new(Decision::Deny, "second"));
    assert_eq!(winner.reason(), Some("first"));
}

#[test]
fn transforms_change_existing_places_only() {
    let replace = |path: &str| {
        let mut target = json(r#"{"a":[1,{"b c":2}],"n":null}"#);
        let path: TargetPath = path.parse()?;
        path.replace(&mut target, Json::from("new"))?;
        Ok::<_, TargetError>(String::from_utf8(target.to_jcs().unwrap()).unwrap())
    };
    assert_eq!(replace("$policy_target").unwrap(), r#""new""#);
    assert_eq!(
        replace("$policy_target.n").unwrap(),
        r#"{"a":[1,{"b c":2}],"n":"new"}"#
    );
    assert_eq!(
        replace("$policy_target.a[0]").unwrap(),
        r#"{"a":["new",{"b c":2}],"n":null}"#
    );
    assert_eq!(
        replace(r#"$policy_target.a[1]["b c"]"#).unwrap(),
        r#"{"a":[1,{"b c":"new"}],"n":null}"#
    );
    for missing in [
        "$policy_target.x",
        "$policy_target.a[2]",
        "$policy_target.a.b",
        "$policy_target[0]",
    ] {
        assert_eq!(replace(missing), Err(TargetError::Missing), "{missing}");
    }
    for bad in [
        "$policy_target.",
        "$policy_target[",
        "$policy_target[-1]",
        "$policy_target.a]",
    ] {
        assert_eq!(replace(bad), Err(TargetError::Malformed), "{bad}");
    }
}

#[test]
fn only_three_decisions_permit() {
    let permitted: Vec<_> = Decision::ALL
        .into_iter()
        .filter(|decision| decision.permits())
        .collect();
    assert_eq!(
        permitted,
        [Decision::Allow, Decision::Warn, Decision::Transform]
    );
}
