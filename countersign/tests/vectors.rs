//! The canonical forms as the final program computes them, with whatever features its other
//! dependencies have switched on.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use countersign_canon::{Json, Limits};

const VECTORS: &str = include_str!("../../corpus/canon/approvals.json");

#[test]
fn the_program_gives_the_canonical_form_of_every_vector() {
    let vectors = cases("canonical_json_python_v1");
    assert!(vectors.len() > 30);
    let member = |name: &str| -> Vec<String> {
        vectors
            .iter()
            .map(|case| case.get(name).unwrap().as_str().unwrap().to_owned())
            .collect()
    };
    let input = member("input_json").join("\n");
    assert_eq!(
        lines(canon(&["--form", "ascii", "--lines"], &input)),
        member("canon")
    );
    assert_eq!(
        lines(canon(&["--form", "ascii", "--lines", "--hash"], &input)),
        member("sha256")
    );
}

#[test]
fn the_program_refuses_what_it_must() {
    let accepted_elsewhere = cases("reference_accepts_but_ours_should_reject");
    let refused = accepted_elsewhere
        .iter()
        .map(|case| case.get("input_json").unwrap().clone());
    for text in refused.chain(cases("must_reject_syntax")) {
        let text = text.as_str().unwrap().to_owned();
        for form in ["ascii", "jcs"] {
            let output = canon(&["--form", form], &text);
            assert_eq!(output.status.code(), Some(3), "{text}");
            assert!(output.stdout.is_empty(), "{text}");
        }
    }
}

#[test]
fn the_program_writes_rfc_8785() {
    let input = "{\"\\u20ac\":1,\"\\r\":2,\"\\ufb33\":3,\"1\":4,\"\\ud83d\\ude00\":5,\"\\u0080\":6,\
                 \"\\u00f6\":7,\"n\":[333333333.3333333,1E30,4.50,2e-3,0.000000000000000000000000001,-0]}";
    let expected = "{\"\\r\":2,\"1\":4,\"n\":[333333333.3333333,1e+30,4.5,0.002,1e-27,0],\
                    \"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}";
    assert_eq!(lines(canon(&["--form", "jcs"], input)), [expected]);
}

fn cases(section: &str) -> Vec<Json> {
    let vectors = Json::admit(VECTORS.as_bytes(), &Limits::plan()).unwrap();
    vectors.get(section).unwrap().as_array().unwrap().to_vec()
}

fn canon(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .arg("canon")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

fn lines(output: Output) -> Vec<String> {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}
