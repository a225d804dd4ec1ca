//! A manifest whose origin is not proven is put in force by no door that asks for one.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

#[path = "../../tests/replayed.rs"]
mod replayed;

use std::path::Path;
use std::process::{Command, Output, Stdio};

const MANIFEST: &str = "\
schema: countersign/manifest/v1
name: n
version: 1.0.0
publisher: acme
permissions:
  tools:
    read_file: {side_effect: read}
    touch: {side_effect: mutate-local}
sandbox: {required: true}
";

fn countersign(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn no_door_opens_with_a_manifest_that_nobody_known_has_signed() {
    let folder = replayed::folder();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("plain.yaml"), MANIFEST).unwrap();
    let sign = ["manifest", "sign", "plain.yaml", "--new-key", "acme.key"];
    let signed = countersign(
        folder.path(),
        &[&sign[..], &["--out", "signed.yaml"]].concat(),
    );
    let text = String::from_utf8(signed.stdout).unwrap();
    let line = text.lines().find(|line| line.contains("ed25519:")).unwrap();
    let listed = line.find("ed25519:").unwrap();
    std::fs::write(at("publishers.txt"), &line[listed..]).unwrap();
    std::fs::write(at("nobody.txt"), "# nobody\n").unwrap();
    let changed = std::fs::read_to_string(at("signed.yaml")).unwrap();
    let changed = changed.replace("mutate-local", "read");
    std::fs::write(at("changed.yaml"), changed).unwrap();

    let doors: [&[&str]; 5] = [
        &["mcp", "--data", "d", "--manifest", "M", "T", "--", "cat"],
        &[
            "mcp",
            "serve",
            "--data",
            "d",
            "--listen",
            "256.0.0.1:1",
            "--manifest",
            "M",
            "T",
            "--",
            "cat",
        ],
        &[
            "action",
            "run",
            "--data",
            "d",
            "--session",
            "s",
            "--tool",
            "touch",
            "--person",
            "p",
            "--manifest",
            "M",
            "T",
            "--",
            "touch",
            "ran",
        ],
        &[
            "policy",
            "eval",
            "--tool",
            "read_file",
            "--manifest",
            "M",
            "T",
        ],
        &[
            "policy",
            "explain",
            "--tool",
            "read_file",
            "--manifest",
            "M",
            "T",
        ],
    ];
    for door in doors {
        let run = |manifest: &str, trust: &[&str]| {
            let words = door.iter().flat_map(|word| match *word {
                "M" => vec![manifest.to_owned()],
                "T" => trust.iter().map(|word| (*word).to_owned()).collect(),
                "256.0.0.1:1" => vec!["127.0.0.1:0".to_owned()],
                word => vec![word.to_owned()],
            });
            let words: Vec<String> = words.collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            countersign(folder.path(), &words)
        };
        let prod = ["--trust", "prod", "--publishers", "publishers.txt"];
        let stranger = ["--trust", "prod", "--publishers", "nobody.txt"];
        let unlisted = ["--trust", "prod"];
        let known = ["--publishers", "publishers.txt"];
        for (manifest, trust) in [
            ("plain.yaml", &prod[..]),
            ("changed.yaml", &prod[..]),
            ("signed.yaml", &stranger[..]),
            ("signed.yaml", &unlisted[..]),
            // Nobody has to sign, but whoever has is not to be misquoted.
            ("changed.yaml", &known[..]),
        ] {
            let refused = run(manifest, trust);
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert_eq!(
                refused.status.code(),
                Some(5),
                "{door:?} {manifest}: {said}"
            );
            assert!(said.contains("error[C0504]"), "{door:?} {manifest}: {said}");
        }
        assert!(!at("ran").exists(), "{door:?}");
        // One that serves would not end.
        if door[1] != "serve" {
            let opened = run("signed.yaml", &prod);
            let said = String::from_utf8_lossy(&opened.stderr).into_owned();
            assert_eq!(opened.status.code(), Some(0), "{door:?}: {said}");
            let ran = std::fs::remove_file(at("ran")).is_ok();
            assert_eq!(ran, door[0] == "action");
        }
    }
    let without = countersign(
        folder.path(),
        &["mcp", "--data", "d", "--trust", "prod", "--", "cat"],
    );
    assert_eq!(without.status.code(), Some(5));
}
