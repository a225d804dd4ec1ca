//! The cases of `corpus/acs`: those of the specification, and ours of the same form.

use std::path::{Path, PathBuf};

use countersign_acs::Case;
use countersign_canon::Json;

use crate::scene::json;

#[test]
fn every_case_of_the_specification_holds() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(corpus().join("spec"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert_eq!(files.len(), 25, "cases are missing");
    for file in files {
        check(&json(&std::fs::read_to_string(file).unwrap()));
    }
}

#[test]
fn every_further_case_holds() {
    let mut seen = std::collections::BTreeSet::new();
    for (file, least) in [("more.json", 140), ("text.json", 130)] {
        let cases = json(&std::fs::read_to_string(corpus().join(file)).unwrap());
        let cases = cases.as_array().unwrap();
        assert!(cases.len() >= least, "{file}: {} cases", cases.len());
        for case in cases {
            let id = case.get("id").and_then(Json::as_str).unwrap().to_owned();
            assert!(seen.insert(id.clone()), "{id} is there twice");
            check(case);
        }
    }
}

#[test]
fn a_wrong_expectation_is_noticed() {
    let text = std::fs::read_to_string(corpus().join("spec/spec-14-effects.case-06.json")).unwrap();
    check(&json(&text));
    for (right, wrong) in [
        (
            r#""decision": "transform",
    "reason": "pii_redaction",
    "transformed"#,
            r#""decision": "allow",
    "reason": "pii_redaction",
    "transformed"#,
        ),
        (
            r#"[REDACTED] to support",
      "metadata""#,
            r#"1234 to support",
      "metadata""#,
        ),
        (
            r#""action_identity": "present""#,
            r#""action_identity": "absent""#,
        ),
    ] {
        let changed = text.replace(right, wrong);
        assert_ne!(changed, text, "{right}");
        assert!(!failures(&json(&changed)).is_empty(), "{wrong}");
    }
}

#[test]
fn what_is_no_case_is_refused() {
    let text = std::fs::read_to_string(corpus().join("spec/spec-14-effects.case-06.json")).unwrap();
    let refused = |right: &str, wrong: &str, problem: &str| {
        let changed = text.replacen(right, wrong, 1);
        assert_ne!(changed, text, "{right}");
        let found = Case::read(&json(&changed)).unwrap_err();
        assert!(found.contains(problem), "{found}");
    };
    refused("\"expected\"", "\"expect\"", "no member `expect`");
    refused(
        "\"decision\": \"transform\",\n    \"reason\": \"pii_redaction\",\n    \"transformed",
        "\"decission\": \"transform\",\n    \"transformed",
        "no member `decission`",
    );
    refused(
        "\"snapshot\"",
        "\"mode\": \"x\", \"snapshot\"",
        "`mode` must be one of",
    );
    refused(
        "\"snapshot\"",
        "\"limits\": {\"x\": 1}, \"snapshot\"",
        "no limit `x`",
    );
    refused(
        "\"intervention_point\": \"",
        "\"intervention_point\": \"x",
        "there is no point",
    );
    assert!(Case::read(&Json::Null).is_err());
}

/// Everything that is not as the case expects.
fn failures(case: &Json) -> Vec<String> {
    Case::read(case).unwrap().failures()
}

fn check(case: &Json) {
    let id = case.get("id").and_then(Json::as_str).unwrap();
    assert_eq!(failures(case), Vec::<String>::new(), "{id}");
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/acs")
}
