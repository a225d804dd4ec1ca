use super::*;
use countersign_canon::{Json, Limits};

fn bundle(text: &str) -> Result<Bundle, BundleError> {
    let text = format!("package p\nimport rego.v1\n{text}\n");
    let source = Source {
        name: "p.rego".into(),
        text,
    };
    Bundle::compile(&[source], Value::new_object(), "data.p.r")
}

fn input(text: &str) -> Value {
    to_value(&Json::admit(text.as_bytes(), &Limits::event()).unwrap())
}

#[test]
fn values_survive_the_way_there_and_back() {
    for text in [
        "null",
        "true",
        "[1,-2,0.5,1e+21,[]]",
        r#"{"a":{"b":"ü😀"},"n":9007199254740991}"#,
    ] {
        let json = Json::admit(text.as_bytes(), &Limits::event()).unwrap();
        let back = from_value(&to_value(&json)).unwrap();
        assert_eq!(back.to_jcs().unwrap(), text.as_bytes());
    }
}

#[test]
fn what_a_policy_must_not_call_is_refused() {
    for call in [
        "rand.intn(\"x\", 5)",
        "time.now_ns()",
        "http.send({})",
        "uuid.rfc4122(\"x\")",
        "opa.runtime()",
    ] {
        let refused = bundle(&format!("r := {call}"))
            .err()
            .unwrap_or_else(|| panic!("{call}"));
        let text = refused.to_string();
        assert!(
            text.contains("must not call") || text.contains("p.rego") || text.contains("compile"),
            "{text}"
        );
    }
    let hidden = bundle("f(x) := rand.intn(\"a\", x)\nr := {y | some y in [f(3)]}")
        .err()
        .unwrap();
    assert_eq!(hidden, BundleError::Forbidden("rand.intn".into()));
}

#[test]
fn policies_that_do_not_parse_name_their_place() {
    let error = bundle("r := ").err().unwrap().to_string();
    assert!(error.contains("p.rego") && error.contains('4'), "{error}");
}

#[test]
fn no_answer_is_an_error() {
    let bundle = bundle("r := 1 if input.x\nr := 2 if input.y").unwrap();
    assert_eq!(bundle.evaluate(&input("{}")), Err(EvalError::Undefined));
    assert!(matches!(
        bundle.evaluate(&input(r#"{"x":true,"y":true}"#)),
        Err(EvalError::Failed(_))
    ));
    assert_eq!(
        bundle.evaluate(&input(r#"{"x":true}"#)),
        Ok(Value::from(1_u64))
    );
}

#[test]
fn an_evaluation_that_does_not_end_is_ended() {
    let text = "r := count([1 | some a in numbers.range(1, 3000); some b in numbers.range(1, 3000); a == b])";
    assert!(matches!(
        bundle(text).unwrap().evaluate(&input("{}")),
        Err(EvalError::Failed(_))
    ));
}

#[test]
fn the_machine_is_not_trusted_with_doubtful_constructs() {
    for (text, construct) in [
        (
            "checks.a := false\nchecks.b := true\nbad if { some _, ok in checks; not ok }\nr if not bad",
            "a rule name of several parts",
        ),
        (
            "default f(_) := 7\nf(x) := x if x > 9\nr := f(1)",
            "a default for a function",
        ),
        ("q if input.x\nr if q with input.x as true", "with"),
        ("r := [v | walk(input, [_, v])]", "walk"),
        ("r if { every x in input.names { x == \"a\" } }", "every"),
        ("r if 10 / input.n > 5", "arithmetic"),
        ("r if to_number(input.n) > 5", "a builtin that can fail"),
        (
            "r if regex.match(input.n, \"x\")",
            "a builtin that can fail",
        ),
        (
            "r if { some x in input.tool; x }",
            "a search in what may be no list",
        ),
        (
            "r if { some x in {\"a\": [1], \"b\": \"text\"}[input.tool]; x }",
            "a search in what may be no list",
        ),
        (
            "r if input.names[_] == 1",
            "a variable that is searched for",
        ),
        (
            "r if { some i; input.tool[i] == 1 }",
            "a variable that is searched for",
        ),
        (
            "r if count(input.tool) == 1",
            "a count of what may be no list",
        ),
        ("r if input.tool > 5", "an order of what may be no numbers"),
        (
            "f(x) if x < 5\nr if f(input.tool)",
            "an order of what may be no numbers",
        ),
        ("r if ({1} & input.tool) == {1}", "set operations"),
        (
            "r if level > 5\nlevel := 9 if input.x\nlevel := 1 if input.y",
            "a rule with several values",
        ),
        (
            "r if f(input) > 5\nf(x) := 9 if x.x\nf(x) := 1 if x.y",
            "a rule with several values",
        ),
    ] {
        let mut bundle = bundle(text).unwrap();
        assert!(bundle.syntax.doubtful.contains(construct), "{text}");
        assert!(matches!(
            bundle.admit_machine(&[input("{}")]),
            Err(NotAdmitted::Doubtful(_))
        ));
        assert_eq!(bundle.machine(), Machine::NotUsed);
    }
}

#[test]
fn the_machine_serves_only_after_it_was_tried() {
    let mut bundle = bundle("r := [input.n]").unwrap();
    assert_eq!(bundle.admit_machine(&[]), Err(NotAdmitted::Untried));
    assert_eq!(
        bundle.admit_machine(&[input(r#"{"n":1}"#), input("{}")]),
        Ok(())
    );
    assert_eq!(bundle.machine(), Machine::Serving);
    for n in 0..600_u64 {
        let answer = bundle.evaluate(&input(&format!("{{\"n\":{n}}}")));
        assert_eq!(answer, Ok(Value::from(vec![Value::from(n)])));
    }
}

#[test]
fn a_wrong_answer_of_the_machine_refuses_and_ends_its_service() {
    // Looking for members of a text: the interpreter fails, the machine does not notice. The trial
    // input does not show it.
    let text = "r := \"deny\" if bad\nelse := \"allow\"\nbad if { some x in input.x; x == 1 }";
    let mut bundle = bundle(text).unwrap();
    assert_eq!(
        bundle.admit_machine(&[input("{}")]),
        Err(NotAdmitted::Doubtful("a search in what may be no list"))
    );
    // Were the gate blind to it:
    assert_eq!(bundle.try_machine(&[input("{}")]), Ok(()));
    let tricky = input(r#"{"x":"text"}"#);
    assert_eq!(bundle.evaluate(&tricky), Err(EvalError::Disagreement));
    assert_eq!(bundle.machine(), Machine::Demoted);
    assert!(matches!(
        bundle.evaluate(&tricky),
        Err(EvalError::Failed(_))
    ));
}

#[test]
fn the_digest_tells_bundles_apart() {
    let one = bundle("r := 1").unwrap().digest();
    assert_eq!(one, bundle("r := 1").unwrap().digest());
    assert_ne!(one, bundle("r := 2").unwrap().digest());
}

#[test]
fn a_builtin_that_stands_in_for_a_function_is_a_call_of_it() {
    for (builtin, arguments) in [
        ("rand.intn", "\"x\", 5"),
        ("numbers.range", "1, 1000000000"),
    ] {
        let text = format!("f(a, b) := 1\nr := y if {{ y := f({arguments}) with f as {builtin} }}");
        let refused = bundle(&text).err();
        assert!(
            matches!(
                refused,
                Some(BundleError::Forbidden(_) | BundleError::Unbounded { .. })
            ),
            "{text}: {refused:?}"
        );
    }
}

#[test]
fn calls_that_could_take_all_memory_are_refused() {
    for call in [
        "numbers.range(1, 1000000000)",
        "numbers.range(1, input.n)",
        "numbers.range_step(1, 1000000, 1)",
        "numbers.range_step(input.n, 5, 1)",
        "sprintf(\"%1000000000d\", [1])",
        "sprintf(\"%01000d\", [1])",
        "sprintf(\"%.999999999f\", [1])",
        "sprintf(input.f, [1])",
        "bits.lsh(1, 4000000000)",
        "bits.lsh(1, input.n)",
        "net.cidr_expand(\"0.0.0.0/0\")",
        "graph.reachable_paths(input.g, [\"a\"])",
        "replace(input.a, \"\", input.b)",
        "strings.replace_n({\"\": input.b}, input.a)",
        "regex.replace(input.a, \"\", input.b)",
        "concat(input.a, input.b)",
        "product(input.n)",
        "json.patch(input.a, input.b)",
        "json.marshal_with_options(input.a, {\"indent\": input.b})",
    ] {
        let refused = bundle(&format!("r := {call}")).err();
        assert!(
            matches!(refused, Some(BundleError::Unbounded { .. })),
            "{call}: {refused:?}"
        );
    }
    for (call, expect) in [
        ("count(numbers.range(-5, 5))", "11"),
        ("count(numbers.range_step(0, 10, 5))", "3"),
        (
            "sprintf(\"%5d%% %s %.2f\", [1, \"a\", 0.5])",
            "\"    1% a 0.50\"",
        ),
        ("bits.lsh(1, 10)", "1024"),
        ("replace(input.t, \"e\", \"xx\")", "\"txxxt\""),
        ("strings.replace_n({\"e\": \"a\"}, input.t)", "\"taxt\""),
        ("concat(\", \", [\"a\", \"b\"])", "\"a, b\""),
        ("product([2, 3])", "6"),
    ] {
        let answer = bundle(&format!("r := {call}"))
            .unwrap()
            .evaluate(&input(r#"{"t":"text"}"#))
            .unwrap();
        assert_eq!(answer.to_json_str().unwrap(), expect, "{call}");
    }
}

#[test]
fn an_input_that_is_too_large_to_be_walked_is_refused() {
    let bundle = bundle("r := count([1 | walk(input, [_, 1])])").unwrap();
    assert_eq!(bundle.evaluate(&input("[[1]]")), Ok(Value::from(1_u64)));
    let deep = format!(
        "{}{}1{}",
        "[".repeat(60),
        "1,".repeat(60_000),
        "]".repeat(60)
    );
    assert!(matches!(
        bundle.evaluate(&input(&deep)),
        Err(EvalError::Failed(_))
    ));
}

#[test]
fn functions_that_call_themselves_are_refused() {
    for text in [
        "f(x) := f(x + 1)\nr := f(1)",
        "f(x) := g(x)\ng(x) := h(x)\nh(x) := data.p.f(x)\nr := f(1)",
        "f(x) := {y | some y in [f(x)]}\nr := 1",
        "f(x) := 1 if x == 0\nelse := f(x - 1)\nr := f(3)",
        // By way of rules, packages and everything that there is.
        "f(x) := r if x\nr := f(true)",
        "f(x) := count(s)\ns contains f(1)\nr := 1",
        "f(x) := data.p.r\nr := f(1)",
        "f(x) := data.p[x]\nr := f(\"r\")",
        "f(x) := count(data)\nr := f(1)",
        "import data.p as q\nf(x) := q.r\nr := f(1)",
        "import data.p as q\nf(x) := count(q)\nr := f(1)",
        "f(x) := [r][0]\nr := f(1)",
    ] {
        let refused = bundle(text).err();
        assert!(
            matches!(refused, Some(BundleError::Recursive(_))),
            "{text}: {refused:?}"
        );
    }
    for text in [
        "f(x) := g(x)\ng(x) := x + count([x])\nr := f(1)",
        "f(x) := 1 if x == 0\nf(x) := 2 if x == 1\nr := f(f(1))",
        // A parameter hides the rule of its name.
        "f(r) := r\nr := f(1)",
        "f(x) := x.y\nr := f({\"y\": 1}) if s\ns if input.t",
    ] {
        assert!(bundle(text).is_ok(), "{text}");
    }
}

#[test]
fn functions_of_several_packages_are_told_apart() {
    let compile = |p: &str, lib: &str| {
        let source = |name: &str, text: &str| Source {
            name: format!("{name}.rego"),
            text: format!("package {name}\nimport rego.v1\n{text}\n"),
        };
        let sources = [source("p", p), source("lib", lib)];
        Bundle::compile(&sources, Value::new_object(), "data.p.r").err()
    };
    let own = "import data.lib\nf(x) := lib.f(x)\nr := f(1)";
    assert_eq!(compile(own, "f(x) := x"), None);
    let back = "import data.p\nf(x) := p.f(x)";
    assert!(matches!(
        compile(own, back),
        Some(BundleError::Recursive(_))
    ));
    let named = "import data.lib.g\nf(x) := g(x)\nr := f(1)";
    let back = "g(x) := data.p.f(x)";
    assert!(matches!(
        compile(named, back),
        Some(BundleError::Recursive(_))
    ));
}
