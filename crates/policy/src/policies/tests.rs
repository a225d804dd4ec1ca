use super::*;
use crate::facts::{Action, State, Surroundings};
use crate::matcher::Link;
use crate::{Decision, LoadError};

const POLICY: &str = "package shop.limits\nimport rego.v1\n\nverdict := {\"decision\": \"deny\", \
    \"reason\": \"TOO_DEAR\"} if input.action.args.cents > 500\n\
    else := {\"decision\": \"allow\"}\n";

fn source(name: &str, text: &str) -> Source {
    Source {
        name: name.to_owned(),
        text: text.to_owned(),
    }
}

fn load(sources: &PolicySources) -> Result<Policies, LoadError> {
    Policies::load(sources, |rules| match rules {
        Some(rules) => Capability::with_rules(rules, None),
        None => Capability::new(None),
    })
}

fn judge(cents: u64, policies: &Policies) -> (Judgement, Vec<Opinion>) {
    let args = Json::object([("cents", Json::from(cents))]);
    let action = Action {
        tool_name: "pay",
        args: &args,
        sanitizer_key: None,
    };
    let state = State::untouched();
    let surroundings = Surroundings {
        examine: &|_| Link::No,
        base: None,
    };
    let manifest = policies.capability().manifest();
    let facts = Facts::of(&action, state, &surroundings, manifest);
    policies.judge(&facts, &args, None, &|| Json::Null, &Hearing::default())
}

#[test]
fn the_strictest_decides_and_says_why() {
    let policies = load(&PolicySources {
        enforced: vec![source("limits.rego", POLICY)],
        ..PolicySources::default()
    })
    .unwrap();
    let (cheap, _) = judge(5, &policies);
    assert_eq!(cheap.verdict.decision(), Decision::Escalate);
    assert_eq!(cheap.explanation.rule, "side-effect");

    let (dear, opinions) = judge(501, &policies);
    assert_eq!(dear.verdict.decision(), Decision::Deny);
    assert_eq!(dear.verdict.reason(), Some("TOO_DEAR"));
    let why = &dear.explanation;
    let place = (why.rule.as_str(), why.file.as_str(), why.line);
    assert_eq!(place, ("shop.limits", "limits.rego", 4));
    let facts = String::from_utf8(why.facts.to_jcs().unwrap()).unwrap();
    assert_eq!(facts, r#"{"action.args.cents":501}"#);
    assert_eq!(opinions.len(), 1);
}

#[test]
fn a_policy_in_the_shadow_speaks_and_does_not_decide() {
    let policies = load(&PolicySources {
        shadow: vec![source("limits.rego", POLICY)],
        ..PolicySources::default()
    })
    .unwrap();
    let (judgement, opinions) = judge(501, &policies);
    assert_eq!(judgement.verdict.decision(), Decision::Escalate);
    assert_eq!(opinions[0].verdict.decision(), Decision::Deny);
}

#[test]
fn the_digest_tells_enforced_from_shadow() {
    let files = vec![source("limits.rego", POLICY)];
    let enforced = load(&PolicySources {
        enforced: files.clone(),
        ..PolicySources::default()
    });
    let shadow = load(&PolicySources {
        shadow: files,
        ..PolicySources::default()
    });
    assert_ne!(enforced.unwrap().digest(), shadow.unwrap().digest());
}

#[test]
fn files_that_do_not_compile_do_not_answer_or_fail_a_test_are_refused() {
    let check = |policy: &str, test: Option<&str>| {
        load(&PolicySources {
            enforced: vec![source("p.rego", policy)],
            tests: test
                .map(|test| source("p_test.rego", test))
                .into_iter()
                .collect(),
            ..PolicySources::default()
        })
        .err()
        .map(|error| error.to_string())
    };
    let test = |cents: u64| {
        format!(
            "package t\nimport rego.v1\ntest_dear if data.shop.limits.verdict.decision == \"deny\" \
             with input as {{\"action\": {{\"args\": {{\"cents\": {cents}}}}}}}\n"
        )
    };
    assert_eq!(check(POLICY, Some(&test(501))), None);
    let failed = check(POLICY, Some(&test(500))).unwrap();
    assert!(
        failed.starts_with("`p_test.rego`:3: `test_dear` fails"),
        "{failed}"
    );
    let broken = check("package p\nimport rego.v1\nverdict := {", None).unwrap();
    assert!(broken.contains("p.rego"), "{broken}");
    assert_eq!(
        check("package p\nimport rego.v1\nanswer := 1", None).unwrap(),
        "`p.rego`: no rule `verdict` answers"
    );
    let clock =
        "package p\nimport rego.v1\nverdict := {\"decision\": \"allow\"} if time.now_ns() > 0";
    assert!(check(clock, None).unwrap().contains("time.now_ns"));
}

#[test]
fn a_policy_without_an_answer_denies() {
    let partial = "package p\nimport rego.v1\nverdict := {\"decision\": \"allow\"} if input.action.args.cents > 500";
    let policies = load(&PolicySources {
        enforced: vec![source("p.rego", partial)],
        ..PolicySources::default()
    })
    .unwrap();
    let (judgement, _) = judge(5, &policies);
    assert_eq!(
        judgement.verdict.reason(),
        Some("runtime_error:policy_undefined")
    );
    assert!(judgement.constraints.is_none());
}

/// A policy of its own package that always answers this.
fn always(package: &str, answer: &str) -> Source {
    let text = format!("package {package}\nimport rego.v1\nverdict := {answer}\n");
    source(&format!("{package}.rego"), &text)
}

fn enforced(sources: Vec<Source>) -> Policies {
    let manifest = "schema: countersign/manifest/v1\nname: m\nversion: 1.0.0\npublisher: acme\n\
        permissions: {tools: {pay: {side_effect: mutate-external}}}\n";
    let manifest = crate::manifest::Manifest::read(manifest.as_bytes()).unwrap();
    let sources = PolicySources {
        enforced: sources,
        ..PolicySources::default()
    };
    Policies::load(&sources, |_| Capability::new(Some(manifest))).unwrap()
}

#[test]
fn no_change_that_a_policy_asks_for_is_lost() {
    let change = |at: &str| {
        format!(
            r#"{{"decision":"transform","transform":{{"path":"$policy_target.{at}","value":1}}}}"#
        )
    };
    let same = enforced(vec![
        always("a", &change("cents")),
        always("b", &change("cents")),
    ]);
    let (judgement, _) = judge(5, &same);
    assert_eq!(judgement.verdict.decision(), Decision::Transform);

    let other = enforced(vec![
        always("a", &change("cents")),
        always("b", &change("note")),
    ]);
    let (judgement, _) = judge(5, &other);
    assert_eq!(judgement.verdict.decision(), Decision::Deny);
    assert_eq!(
        judgement.verdict.reason(),
        Some("runtime_error:transform_invalid")
    );
    assert!(judgement.constraints.is_none());
}

#[test]
fn labels_of_every_policy_count() {
    let labelled = |decision: &str, label: &str| {
        format!(r#"{{"decision":"{decision}","result_labels":["{label}"]}}"#)
    };
    let policies = enforced(vec![
        always("a", &labelled("allow", "internal")),
        always("b", &labelled("warn", "hr")),
        always("c", &labelled("allow", "hr")),
    ]);
    let (judgement, _) = judge(5, &policies);
    assert_eq!(judgement.verdict.decision(), Decision::Warn);
    let mut labels = judgement.verdict.result_labels().to_vec();
    labels.sort();
    assert_eq!(labels, ["hr", "internal"]);
}

#[test]
fn a_hold_of_what_nobody_declared_is_of_the_irreversible_class() {
    let hold = always("a", r#"{"decision":"escalate","reason":"ASK"}"#);
    let sources = PolicySources {
        enforced: vec![hold.clone()],
        ..PolicySources::default()
    };
    let (undeclared, _) = judge(5, &load(&sources).unwrap());
    assert_eq!(undeclared.verdict.decision(), Decision::Escalate);
    assert!(undeclared.irreversible);

    let (declared, _) = judge(5, &enforced(vec![hold]));
    assert_eq!(declared.verdict.decision(), Decision::Escalate);
    assert!(!declared.irreversible);
}

#[test]
fn observing_stops_nothing_and_says_what_would_have_been() {
    let sources = PolicySources {
        enforced: vec![source("limits.rego", POLICY)],
        ..PolicySources::default()
    };
    let enforcing = load(&sources).unwrap();
    let digest = enforcing.digest();
    let observing = enforcing.observing();
    let (judgement, opinions) = judge(501, &observing);
    assert_eq!(judgement.verdict.decision(), Decision::Allow);
    assert!(judgement.constraints.is_some());
    let said = opinions.last().unwrap();
    assert_eq!(
        (said.policy.as_str(), said.mode),
        ("observed", Mode::Shadow)
    );
    assert_eq!(said.verdict.reason(), Some("TOO_DEAR"));
    assert_ne!(observing.digest(), digest);
}

/// What a tool does is no business of the rules' own data; it decides all the same.
#[test]
fn the_digest_covers_all_of_the_manifest() {
    let with = |effect: &str| {
        let manifest = format!(
            r#"{{"schema":"countersign/manifest/v1","permissions":{{"tools":{{"t":{{"side_effect":"{effect}"}}}}}}}}"#
        );
        let limits = countersign_canon::Limits::event();
        let manifest = Json::admit(manifest.as_bytes(), &limits).unwrap();
        let manifest = Manifest::partial(&manifest).unwrap();
        Policies::new(Capability::new(Some(manifest)).unwrap()).digest()
    };
    assert_eq!(with("read"), with("read"));
    assert_ne!(with("read"), with("unknown"));
}
