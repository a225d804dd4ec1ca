//! Tidiness as a test: crate edges, file sizes, documents.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at once"
)]

#[path = "../../tests/replayed.rs"]
mod replayed;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use countersign_canon::{Json, Limits, Numbers};

/// Who may see whom, in production code. Arrows go down only.
const EDGES: &[(&str, &[&str])] = &[
    ("canon", &[]),
    ("display", &["canon"]),
    ("event", &["canon"]),
    ("tlog", &["canon"]),
    ("pack", &["canon", "event", "tlog"]),
    ("session", &["canon", "event"]),
    ("approval", &["canon", "event"]),
    ("policy", &["canon", "event", "session"]),
    ("acs", &["canon", "policy"]),
    ("callout", &["acs", "canon"]),
    ("vault", &["canon", "event"]),
    ("store", &["approval", "canon", "event", "tlog", "vault"]),
    (
        "engine",
        &[
            "approval", "canon", "display", "event", "policy", "session", "store",
        ],
    ),
    (
        "verify",
        &[
            "approval", "canon", "event", "evidence", "pack", "redact", "tlog",
        ],
    ),
    ("web", &["canon"]),
    (
        "mcp",
        &[
            "approval", "canon", "display", "engine", "event", "policy", "web",
        ],
    ),
    (
        "api",
        &[
            "approval", "canon", "console", "display", "engine", "event", "policy", "replay",
            "session", "store", "tlog", "verify", "web",
        ],
    ),
    ("console", &["canon", "display"]),
    (
        "benches",
        &[
            "approval", "canon", "engine", "event", "policy", "session", "store", "vault", "verify",
        ],
    ),
    ("conformance", &["canon", "policy"]),
    ("notify", &["canon"]),
    ("redact", &["canon"]),
    ("telemetry", &["canon", "event", "redact"]),
    ("evidence", &["approval", "canon", "event", "redact"]),
    (
        "replay",
        &[
            "acs", "approval", "canon", "event", "policy", "session", "store",
        ],
    ),
    (
        "countersign",
        &[
            "acs",
            "api",
            "approval",
            "callout",
            "canon",
            "conformance",
            "display",
            "engine",
            "event",
            "evidence",
            "mcp",
            "notify",
            "pack",
            "policy",
            "redact",
            "replay",
            "store",
            "telemetry",
            "tlog",
            "vault",
            "verify",
            "web",
        ],
    ),
];

/// What canonical bytes may depend on. A JSON library here could change hashes when some other
/// crate of the build switches on one of its features.
const CANON_DEPENDENCIES: &[&str] = &["sha2", "thiserror"];

/// Crates that open connections, start programs or are doors.
const WAYS_OUT: &[&str] = &[
    "countersign-api",
    "countersign-callout",
    "countersign-engine",
    "countersign-mcp",
    "countersign-notify",
    "countersign-web",
    "h2",
    "hyper",
    "mio",
    "reqwest",
    "rustix",
    "rustls",
    "socket2",
    "ureq",
];

/// Files that are longer than 600 lines, each with the reason why it is one concept.
const LONG_FILES: &[(&str, &str)] = &[(
    "countersign/tests/conformance/faults.rs",
    "one table: every server that is wrong, and what has to notice it",
)];
const LONG: usize = 600;

#[test]
fn crates_see_only_what_is_below_them() {
    let allowed: BTreeMap<&str, BTreeSet<&str>> = EDGES
        .iter()
        .map(|(from, to)| (*from, to.iter().copied().collect()))
        .collect();
    for package in packages() {
        let name = short_name(&package.name);
        let allowed = allowed
            .get(name)
            .unwrap_or_else(|| panic!("`{name}` has no entry in EDGES"));
        let ours = package.dependencies.iter().filter(|name| is_ours(name));
        let seen: BTreeSet<&str> = ours.map(|name| short_name(name)).collect();
        // An arrow that nothing goes along is not drawn.
        assert_eq!(seen, *allowed, "`{name}` sees what is on the left");
    }
}

#[test]
fn canonical_bytes_depend_on_no_json_library() {
    let canon = packages()
        .into_iter()
        .find(|package| package.name == "countersign-canon")
        .unwrap();
    assert_eq!(canon.dependencies, CANON_DEPENDENCIES);
}

/// Replay can cause no effect: nothing that it is made of opens a connection or starts a program.
#[test]
fn replay_has_no_way_out() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--package", "countersign-replay"])
        .args([
            "--edges", "normal", "--prefix", "none", "--format", "{p} {f}",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let names: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(names.contains("countersign-store"), "{text}");
    for name in WAYS_OUT {
        assert!(!names.contains(name), "replay reaches `{name}`");
    }
    let tokio = text.lines().find(|line| line.starts_with("tokio v"));
    let features = tokio
        .and_then(|line| line.rsplit(' ').next())
        .unwrap_or_default();
    let is_way_out =
        |feature: &str| matches!(feature, "net" | "process" | "fs" | "full" | "signal");
    assert!(!features.split(',').any(is_way_out), "{tokio:?}");
}

#[test]
fn files_are_short_or_say_why_not() {
    let reasons: BTreeMap<&str, &str> = LONG_FILES.iter().copied().collect();
    let mut long = BTreeSet::new();
    for file in tracked("rs") {
        let lines = read(&file).lines().count();
        if lines > LONG {
            let reason = reasons.get(file.as_str()).copied().unwrap_or_default();
            assert!(
                reason.len() > 20,
                "{file} has {lines} lines: name its second concept, or say why"
            );
            long.insert(file);
        }
    }
    for file in reasons.keys() {
        assert!(
            long.contains(*file),
            "{file} is short now: remove it from the list"
        );
    }
}

#[test]
fn every_test_that_acceptance_names_is_there() {
    let page = read("docs/acceptance-approvals.md");
    let sources: String = tracked("rs").iter().map(|file| read(file)).collect();
    let quoted = page.split('`').skip(1).step_by(2);
    let is_id = |name: &&str| {
        let mut letters = name.chars();
        letters
            .next()
            .is_some_and(|letter| letter.is_ascii_lowercase())
            && letters.by_ref().take(2).all(|digit| digit.is_ascii_digit())
            && letters.next() == Some('_')
    };
    let names: Vec<&str> = quoted.filter(is_id).collect();
    assert!(names.len() > 80, "{}", names.len());
    for name in names {
        let beginning = name.trim_end_matches('…');
        let found = sources.contains(&format!("fn {beginning}"));
        assert!(found, "no test begins with `{beginning}`");
    }
}

/// A choice that is written down is held by a test, or by an entry of a list that a test reads.
#[test]
fn every_choice_about_agent_control_is_held() {
    let page = read("docs/agent-control-choices.md");
    let sources: String = tracked("rs").iter().map(|file| read(file)).collect();
    let is_name = |name: &&str| {
        let plain = |byte: u8| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
        name.matches('_').count() > 2 && name.bytes().all(plain)
    };
    let names: Vec<&str> = page.split('`').skip(1).step_by(2).filter(is_name).collect();
    assert!(names.len() > 12, "{}", names.len());
    for name in names {
        let is_there = [format!("fn {name}()"), format!("\"{name}\"")];
        let found = is_there.iter().any(|text| sources.contains(text));
        assert!(found, "nothing is called `{name}`");
    }
}

/// A folder that a test makes is looked at when the test ends (`tests/replayed.rs`), or the list says why
/// there is nothing to look at.
#[test]
fn every_test_that_records_ends_with_a_replay() {
    let reasons: BTreeMap<&str, &str> = replayed::UNWATCHED.iter().copied().collect();
    let makes_folders = |file: &String| {
        let is_test = file.starts_with("tests/") || file.contains("/tests/");
        is_test && read(file).contains(concat!("tempfile::", "tempdir()"))
    };
    let found: BTreeSet<String> = tracked("rs").into_iter().filter(makes_folders).collect();
    for file in &found {
        let reason = reasons.get(file.as_str()).copied().unwrap_or_default();
        assert!(
            !reason.is_empty(),
            "{file}: use `replayed::folder()`, or say why nothing is recorded there"
        );
    }
    for file in reasons.keys() {
        assert!(found.contains(*file), "{file} makes no folder any more");
    }
    let sources: String = tracked("rs").iter().map(|file| read(file)).collect();
    for (test, reason) in replayed::EXCEPTIONS {
        assert!(!reason.is_empty(), "{test}");
        let name = test.rsplit("::").next().unwrap_or_default();
        let is_there = name.ends_with(".md") || sources.contains(&format!("fn {name}()"));
        assert!(is_there, "there is no test `{name}`");
    }
}

#[test]
fn crate_roots_forbid_unsafe_code_and_say_what_they_do() {
    let roots = tracked("rs");
    let roots = roots
        .iter()
        .filter(|file| file.ends_with("src/lib.rs") || file.ends_with("src/main.rs"));
    for file in roots {
        let text = read(file);
        assert!(text.contains("#![forbid(unsafe_code)]"), "{file}");
        assert!(text.starts_with("//! "), "{file}");
    }
}

/// Whatever an agent is told, an operator can ask about.
#[test]
fn every_reason_is_explained() {
    let explained = read("countersign/src/command/explain/reasons.rs");
    let mut reasons = BTreeSet::new();
    for file in tracked("rs").into_iter().chain(tracked("rego")) {
        let is_production = [
            "crates/mcp/src/",
            "crates/engine/src/",
            "crates/policy/src/",
        ];
        if !is_production.iter().any(|place| file.starts_with(place)) || file.contains("tests") {
            continue;
        }
        let text = read(&file);
        for before in ["denied(", "reason: ", "\"reason\": "] {
            for (at, _) in text.match_indices(before) {
                let rest = text[at + before.len()..].trim_start();
                let word = rest
                    .strip_prefix('"')
                    .and_then(|rest| rest.split('"').next());
                let is_reason = |word: &&str| {
                    let plain = |c: char| c.is_ascii_uppercase() || c == '_';
                    word.len() > 5 && word.chars().all(plain)
                };
                reasons.extend(word.filter(is_reason).map(str::to_owned));
            }
        }
    }
    assert!(reasons.len() > 20, "{reasons:?}");
    let is_missing = |reason: &&String| !explained.contains(&format!("\"{reason}\": "));
    let missing: Vec<_> = reasons.iter().filter(is_missing).collect();
    assert!(
        missing.is_empty(),
        "`countersign explain` does not know {missing:?}"
    );
}

#[test]
fn modules_have_names() {
    // Tests and benchmarks need `mod.rs` for modules that several of them share.
    let is_shared = |file: &str| file.contains("/tests/") || file.contains("/benches/");
    let nameless: Vec<String> = tracked("rs")
        .into_iter()
        .filter(|file| file.ends_with("/mod.rs") && !is_shared(file))
        .collect();
    assert_eq!(nameless, Vec::<String>::new());
}

#[test]
fn every_document_is_reachable_and_every_link_leads_somewhere() {
    let documents: BTreeSet<String> = tracked("md").into_iter().collect();
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut open = vec!["README.md".to_owned()];
    while let Some(document) = open.pop() {
        if reached.insert(document.clone()) {
            open.extend(
                links(&document)
                    .into_iter()
                    .filter(|target| documents.contains(target)),
            );
        }
    }
    let orphans: Vec<_> = documents
        .difference(&reached)
        .filter(|file| !file.contains("/tests/"))
        .collect();
    assert!(orphans.is_empty(), "nothing links to {orphans:?}");
    for document in &documents {
        for target in links(document) {
            assert!(
                root().join(&target).exists(),
                "{document} links to {target}, which is not there"
            );
        }
    }
}

#[test]
fn documents_are_short() {
    let lines = |file: &str| read(file).lines().count();
    assert!(lines("README.md") <= 150);
    assert!(lines("ARCHITECTURE.md") <= 300);
    assert!(
        tracked("md")
            .iter()
            .filter(|file| file.starts_with("docs/"))
            .count()
            <= 40
    );
}

struct Package {
    name: String,
    /// Names of normal dependencies, sorted.
    dependencies: Vec<String>,
}

fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--locked", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let limits = Limits {
        max_bytes: 1 << 26,
        max_depth: 64,
        numbers: Numbers::Double,
    };
    let metadata = Json::admit(&output.stdout, &limits).unwrap();
    let text = |json: &Json, member: &str| json.get(member).unwrap().as_str().unwrap().to_owned();
    let packages = metadata.get("packages").unwrap().as_array().unwrap();
    packages
        .iter()
        .map(|package| {
            let dependencies = package.get("dependencies").unwrap().as_array().unwrap();
            let normal = dependencies
                .iter()
                .filter(|one| one.get("kind").unwrap().is_null());
            let mut dependencies: Vec<String> = normal.map(|one| text(one, "name")).collect();
            dependencies.sort();
            Package {
                name: text(package, "name"),
                dependencies,
            }
        })
        .collect()
}

fn is_ours(name: &str) -> bool {
    name.starts_with("countersign")
}

fn short_name(name: &str) -> &str {
    name.strip_prefix("countersign-").unwrap_or(name)
}

/// The targets of relative links, as paths from the root.
fn links(document: &str) -> Vec<String> {
    let folder = Path::new(document).parent().unwrap().to_owned();
    read(document)
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .map(|target| target.split('#').next().unwrap_or_default().to_owned())
        .filter(|target| !target.is_empty() && !target.contains("://") && !target.contains(' '))
        .map(|target| normal(&folder.join(target)))
        .collect()
}

fn normal(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part.as_os_str().to_str().unwrap() {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part.to_owned()),
        }
    }
    parts.join("/")
}

/// Files that git tracks, or will.
fn tracked(extension: &str) -> Vec<String> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            &format!("*.{extension}"),
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let files = String::from_utf8(output.stdout).unwrap();
    files
        .lines()
        .filter(|file| root().join(file).exists())
        .map(str::to_owned)
        .collect()
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}
