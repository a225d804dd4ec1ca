use countersign_canon::{Json, Limits};

use super::*;
use crate::whatif::{Answer, decide};

fn source(name: &str, text: &str) -> Source {
    let text = format!(
        "package {}\nimport rego.v1\n{text}\n",
        name.replace(".rego", "")
    );
    Source {
        name: name.to_owned(),
        text,
    }
}

fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::plan()).unwrap()
}

#[test]
fn a_test_passes_only_if_it_is_true() {
    let policy = source("p.rego", "small if input.n < 3\nbig if input.n >= 3");
    let tests = source(
        "p_test.rego",
        "test_true if data.p.small with input.n as 1\n\
         test_undefined if data.p.small with input.n as 3\n\
         test_false := false\n\
         test_number := 1\n\
         test_error if data.p.nothing(1)\n\
         test_twice if true\n\
         test_twice if false\n\
         helper := false",
    );
    let tested = run(&[policy], &[tests], None).unwrap();
    let found: Vec<(&str, u64, &str)> = tested
        .tests
        .iter()
        .map(|test| {
            (
                &*test.name,
                test.line,
                test.failure.as_deref().unwrap_or("passed"),
            )
        })
        .collect();
    assert_eq!(found[0], ("test_true", 3, "passed"));
    assert_eq!(found[1], ("test_undefined", 4, "it is undefined"));
    assert_eq!(found[2], ("test_false", 5, "it is false"));
    assert_eq!(found[3], ("test_number", 6, "it is not a boolean"));
    let error = "p_test.rego:7: could not find function data.p.nothing";
    assert_eq!(found[4], ("test_error", 7, error));
    assert_eq!(
        found[5],
        ("test_twice", 8, "the name is used more than once")
    );
    assert_eq!(found.len(), 7);
    let lines = |lines: &BTreeSet<u64>| lines.iter().copied().collect::<Vec<_>>();
    assert_eq!(lines(&tested.coverage[0].covered), [3]);
    assert_eq!(lines(&tested.coverage[0].missed), [4]);
}

#[test]
fn a_policy_that_nothing_reaches_is_not_covered() {
    let policies = [
        source("p.rego", "a := 1"),
        source("q.rego", "b := 1\nc := 2"),
    ];
    let tests = source("p_test.rego", "test_a if data.p.a == 1");
    let tested = run(&policies, &[tests], None).unwrap();
    assert_eq!(tested.coverage[1].missed, BTreeSet::from([3, 4]));
    assert!(tested.coverage[1].covered.is_empty());
}

#[test]
fn every_branch_and_every_default_has_to_be_reached() {
    let check = |policy: &str, test: &str, covered: &[u64], missed: &[u64]| {
        let policy = source("p.rego", policy);
        let tests = source("p_test.rego", test);
        let tested = run(std::slice::from_ref(&policy), &[tests], None).unwrap();
        assert_eq!(tested.tests[0].failure, None, "{}", policy.text);
        let coverage = &tested.coverage[0];
        let found = [&coverage.covered, &coverage.missed]
            .map(|lines| lines.iter().copied().collect::<Vec<_>>());
        assert_eq!(
            found,
            [covered.to_vec(), missed.to_vec()],
            "{}",
            policy.text
        );
    };
    let small = "test_small if data.p.size == \"small\" with input.n as 1";
    let big = "test_big if data.p.size == \"big\" with input.n as 9";
    // The value behind `else` stands alone on its line.
    let branches = "size := \"small\" if input.n < 3\nelse := \"big\"";
    check(branches, small, &[3], &[4]);
    check(branches, big, &[3, 4], &[]);
    let commented =
        "size := \"small\" if input.n < 3\n\nelse := lower(\"BIG\") # else := 1\nother := 1";
    check(commented, small, &[3], &[5, 6]);
    check(commented, big, &[3, 5], &[6]);
    let called = "size := \"small\" if input.n < 3\nelse := {\n\"a\": \"big\",\n}.a";
    check(called, small, &[3], &[6]);
    let three = "size := \"small\" if input.n < 3\nelse := \"mid\" if input.n < 5\nelse := \"big\"";
    check(three, small, &[3], &[4, 5]);
    check(three, big, &[3, 4, 5], &[]);
    // Of a function.
    let function = "f(n) := \"small\" if n < 3\nelse := \"big\"\nsize := f(input.n)";
    check(function, small, &[3, 5], &[4]);
    check(function, big, &[3, 4, 5], &[]);
    // A default counts when it speaks.
    let default = "default size := \"big\"\nsize := \"small\" if {\n\tinput.n < 3\n}";
    check(default, small, &[4, 5], &[3]);
    check(default, big, &[3, 5], &[4]);
    // Inside a comprehension, and the key of a set.
    let inside = "size := concat(\"\", [x |\n\tsome x in {\"small\"}\n\tinput.n < 3\n\tlower(x)\n])\nothers contains\n\t\"x\"";
    check(inside, small, &[3, 4, 5, 6], &[9]);
}

#[test]
fn tests_call_no_more_than_policies() {
    let tests = source("p_test.rego", "test_now if time.now_ns() > 0");
    let error = run(&[], std::slice::from_ref(&tests), None).unwrap_err();
    let fault = Fault::of(&error, &[tests]);
    assert_eq!(
        (fault.file.as_str(), fault.line),
        ("p_test.rego", 3),
        "{fault}"
    );
}

#[test]
fn a_manifest_stands_in_data() {
    let manifest = Manifest::partial(&json(r#"{"permissions":{"tools":["deploy"]}}"#)).unwrap();
    let tests = [source(
        "p_test.rego",
        "test_known if data.manifest.tools.deploy",
    )];
    assert_eq!(
        run(&[], &tests, Some(&manifest)).unwrap().tests[0].failure,
        None
    );
    assert!(run(&[], &tests, None).unwrap().tests[0].failure.is_some());
}

#[test]
fn outlines_name_packages_and_rules() {
    let text =
        "package a.b[\"c-d\"]\nimport rego.v1\nf(x) := 2\ns contains 1\ndefault d := 3\nx.y := 1\n";
    let found = outline(&Source {
        name: "o.rego".to_owned(),
        text: text.to_owned(),
    });
    let found = found.unwrap();
    assert_eq!(found.package, "data.a.b[\"c-d\"]");
    let rules: Vec<(&str, u64)> = found
        .rules
        .iter()
        .map(|rule| (&*rule.name, rule.line))
        .collect();
    assert_eq!(rules, [("f", 3), ("s", 4), ("d", 5), ("x.y", 6)]);
}

#[test]
fn calls_of_functions_that_are_not_there_are_found() {
    let policies = [
        source(
            "p.rego",
            "import data.q\nimport data.q.g as h\nf(x) := x\nr if { f(q.g(1)) }\ns := h(1)",
        ),
        source(
            "q.rego",
            "g(x) := count([x])\nu if walk(input, [_, _])\nv := missing.thing(1)",
        ),
    ];
    let outlines: Vec<Outline> = policies.iter().map(|one| outline(one).unwrap()).collect();
    let faults: Vec<String> = unknown_calls(&outlines)
        .iter()
        .map(Fault::to_string)
        .collect();
    assert_eq!(
        faults,
        [
            "p.rego:7: there is no function `h`",
            "q.rego:5: there is no function `missing.thing`"
        ]
    );
}

#[test]
fn faults_name_their_place() {
    let check = |text: &str, expect: &str| {
        let source = source("dir/x:y.rego", text);
        let source = Source {
            text: source.text.replace("package dir/x:y", "package p"),
            ..source
        };
        let error = outline(&source).unwrap_err();
        assert_eq!(Fault::of(&error, &[source]).to_string(), expect);
    };
    check("r := ", "dir/x:y.rego:4: expecting expression");
}

#[test]
fn cases_say_what_they_expect() {
    let one = |expect: &str| {
        let document = format!(r#"{{"cases":[{{"id":"c","request":{{}},"expect":{expect}}}]}}"#);
        cases(&json(&document))
    };
    let check = |expect: &str, failure: Option<&str>| {
        let case = &one(expect).unwrap()[0];
        assert_eq!(case.failure(&decide(&case.request)).as_deref(), failure);
    };
    let found = r#", found {"constraints":{},"outcome":"deny","reason":"PERMISSION_UNDECLARED"}"#;
    check(
        r#"{"outcome":"deny","reason":"PERMISSION_UNDECLARED","constraints":{}}"#,
        None,
    );
    check(r#"{"outcome_not":"allow"}"#, None);
    check(
        r#"{"outcome":"allow","reason":"OK"}"#,
        Some(&format!(
            r#"expected outcome "allow" and expected reason "OK"{found}"#
        )),
    );
    check(
        r#"{"outcome_not":"deny"}"#,
        Some(&format!(r#"expected outcome_not "deny"{found}"#)),
    );
    for expect in ["{}", r#"{"outcom":"deny"}"#, "null"] {
        assert!(one(expect).is_err(), "{expect}");
    }
    assert_eq!(cases(&json("{}")), Err(CaseError::NoCases));
    assert_eq!(Answer::unreadable().outcome(), "deny");
}
