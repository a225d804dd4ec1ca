use super::*;
use crate::rego::testing::{Fault, outline, results, run};
use crate::rego::{Bundle, BundleError, Source, Value};

fn source(text: &str) -> Source {
    Source {
        name: "p.rego".to_owned(),
        text: format!("package p\nimport rego.v1\n{text}\n"),
    }
}

fn compile(text: &str) -> Result<(), BundleError> {
    Bundle::compile(&[source(text)], Value::new_object(), "data.p.r").map(drop)
}

/// Every kind of thing that holds others, `depth` times around another.
fn nested(depth: usize) -> Vec<String> {
    let around = |open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    };
    vec![
        format!("r := {}", around("[", "1", "]")),
        format!("r := {}", around("{", "1", "}")),
        format!("r := {}", around("{1: ", "1", "}")),
        format!("r := {}", around("{", "1", ": 1}")),
        format!("r := {}", around("(", "1", ")")),
        format!("r := {}", around("-", "x", "")),
        format!("r := {}", around("f(", "x", ")")),
        format!("r := {}", around("x[", "1", "]")),
    ]
}

#[test]
fn as_deep_as_the_limit_compiles_and_deeper_is_refused() {
    for text in nested(MOST_NESTING) {
        let text = format!("x := 1\nf(y) := y\n{text}");
        if let Err(error) = compile(&text) {
            panic!("{text}: {error}");
        }
    }
    // Forty would take the engine longer than anybody waits, ten thousand its stack.
    for depth in [MOST_NESTING + 1, 40, 10_000] {
        for text in nested(depth) {
            let error = compile(&text).unwrap_err();
            let fault = Fault::of(&error, &[]);
            let found = (fault.file.as_str(), fault.line, fault.message.as_str());
            assert_eq!(found, ("p.rego", 3, TOO_DEEP), "{text}");
        }
    }
}

#[test]
fn whoever_hands_a_text_to_the_engine_measures_it() {
    let deep = source(&format!("r := {}1{}", "[".repeat(40), "]".repeat(40)));
    let refused = |error: BundleError| assert!(error.to_string().contains(TOO_DEEP), "{error}");
    let (deep, none) = (std::slice::from_ref(&deep), &[][..]);
    refused(outline(&deep[0]).unwrap_err());
    refused(run(deep, none, None).unwrap_err());
    refused(run(none, deep, None).unwrap_err());
    refused(results(deep, none, None).unwrap_err());
    refused(results(none, deep, None).unwrap_err());
}

#[test]
fn a_bar_makes_brackets_dearer() {
    let check = |open: &str, close: &str, depth: usize| {
        let text = format!("r if {{ {}1{} }}", open.repeat(depth), close.repeat(depth));
        compile(&text).map_err(|error| Fault::of(&error, &[]).message)
    };
    for (open, close) in [
        ("[x | x := ", "]"),
        ("{1: x | x := ", "}"),
        ("{1 | ", " | 1}"),
        ("[1 | ", " | 1]"),
        ("[1 | ", ", 1]"),
        ("{1 | ", ": 1}"),
        ("[{1 | (", "), 1}]"),
    ] {
        assert_eq!(check(open, close, 3), Ok(()), "{open}");
        let refused = check(open, close, 11).unwrap_err();
        assert!([TOO_OFTEN, TOO_DEEP].contains(&&*refused), "{refused}");
    }
    // Nor may a text do so often what it may do once.
    let line = format!("{}1{}\n", "[".repeat(10), "]".repeat(10));
    let lines = |many: usize| {
        (0..many)
            .map(|n| format!("r{n} := {line}"))
            .collect::<String>()
    };
    assert_eq!(check_text(&lines(1)), Ok(()));
    assert_eq!(check_text(&lines(1000)), Err(TOO_OFTEN));
    // What stands behind a comma is read once.
    let row = format!("[0, {}]\n", "[0, [0, [0, [0, [0]]]]],".repeat(10));
    let rows = (0..500)
        .map(|n| format!("r{n} := {row}"))
        .collect::<String>();
    assert_eq!(check_text(&rows), Ok(()));
}

#[test]
fn chains_end() {
    for link in ["+ 1", "* 1", "| {1}", "& {1}", "== 1", "in [1]", "- 1"] {
        let chain = |links: usize| format!("r := 1{}", format!("\n{link}").repeat(links));
        assert_eq!(check_text(&chain(MOST_LINKS - 1)), Ok(()), "{link}");
        let refused = compile(&chain(MOST_LINKS + 1)).unwrap_err();
        let message = Fault::of(&refused, &[]).message;
        assert_eq!(message, TOO_LONG, "{link}");
        assert_eq!(check_text(&chain(10_000)), Err(TOO_LONG), "{link}");
    }
    compile(&format!("r := 1{}", "\n+ 1".repeat(MOST_LINKS))).unwrap();
    // Heights of things inside others add up.
    let inner = "+ 1".repeat(MOST_LINKS / 2 + 1);
    let both = format!("r := (1 {inner}) {inner}");
    assert_eq!(check_text(&both), Err(TOO_LONG));
    // Statements are not a chain.
    let statements = "\tinput.a.b == input.c.d\n\tnot input.e\n\t-1 < input.f\n".repeat(1000);
    assert_eq!(check_text(&format!("r if {{\n{statements}}}")), Ok(()));
}

#[test]
fn imports_end() {
    let imports = |many| {
        (0..many)
            .map(|n| format!("import data.a{n}\n"))
            .collect::<String>()
    };
    assert_eq!(check_text(&imports(MOST_IMPORTS)), Ok(()));
    assert_eq!(
        check_text(&imports(MOST_IMPORTS + 1)),
        Err(TOO_MANY_IMPORTS)
    );
}

#[test]
fn texts_and_comments_hold_no_brackets() {
    let many = "[{(".repeat(20);
    for text in [
        format!("r := \"{many}\""),
        format!("r := \"\\\"{many}\""),
        format!("r := \"\\\\\" # \"{many}"),
        format!("r := `\"\n{many}`"),
        format!("r := 1 # {many}"),
    ] {
        compile(&text).unwrap();
    }
    let found = check(&format!("a\n`\n`\n  # \"\n  \"\\\"#\" {many}")).unwrap_err();
    assert_eq!((found.line, found.column), (5, 9 + MOST_NESTING));
    // A text that does not end hides nothing.
    assert_eq!(check_text(&format!("\"\\\n{many}")), Err(TOO_DEEP));
}

fn check_text(text: &str) -> Result<(), &'static str> {
    check(text).map_err(|excess| excess.problem)
}

#[test]
fn nothing_is_left_out_behind_a_nul() {
    let refused = compile("r := 1\n\0\nr := 2").unwrap_err().to_string();
    assert!(refused.contains("p.rego:4"), "{refused}");
}
