//! All packs against a fresh daemon; and against servers that are wrong in one way each, which the packs
//! must notice.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

#[path = "conformance/faults.rs"]
mod faults;
#[path = "../../tests/replayed.rs"]
mod replayed;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign_canon::{Json, Limits};
use countersign_conformance::{BUILT_IN, Pack};

use faults::FAULTS;

fn countersign(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(arguments)
        .env("BROKEN_SERVER_PROGRAM", env!("CARGO_BIN_EXE_countersign"))
        .output()
        .unwrap()
}

fn json(output: &Output) -> Json {
    let said = String::from_utf8_lossy(&output.stderr);
    let limits = Limits {
        max_bytes: 64 << 20,
        ..Limits::event()
    };
    Json::admit(&output.stdout, &limits).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn texts(json: &Json, member: &str) -> BTreeSet<String> {
    let all = json.get(member).and_then(Json::as_array).unwrap();
    let text = |item: &Json| item.as_str().unwrap().to_owned();
    all.iter().map(text).collect()
}

/// Packs are told of one by one, and whoever ends it finds nothing left.
#[cfg(unix)]
#[test]
fn whoever_is_interrupted_leaves_nothing() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    let folder = replayed::folder();
    let mut running = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["conformance", "run"])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(running.stdout.take().unwrap()).lines();
    assert!(told.next().unwrap().unwrap().starts_with("HOLDS"));
    let id = rustix::process::Pid::from_child(&running);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(130));
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn every_pack_holds_for_a_fresh_daemon() {
    let folder = replayed::folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (junit, badge, report) = (path("r.xml"), path("b.svg"), path("r.json"));
    let output = countersign(&[
        "conformance",
        "run",
        "--format",
        "json",
        "--junit",
        &junit,
        "--badge",
        &badge,
        "--report",
        &report,
    ]);
    let told = json(&output);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(told.get("compliant"), Some(&Json::from(true)), "{text}");
    assert_eq!(told.get("skipped"), Some(&Json::from(0_u64)), "{text}");
    let packs = told.get("packs").and_then(Json::as_array).unwrap();
    assert_eq!(packs.len(), BUILT_IN.len());
    // What is known to fail says why.
    for result in packs
        .iter()
        .flat_map(|pack| pack.get("results").unwrap().as_array().unwrap())
    {
        if result.get("status").and_then(Json::as_str) == Some("XFAIL") {
            let reason = result.get("expected_failure").and_then(Json::as_str);
            assert!(reason.unwrap().len() > 20, "{text}");
        }
    }
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(junit.contains("failures=\"0\"") && junit.ends_with("</testsuites>\n"));
    assert!(std::fs::read_to_string(badge).unwrap().contains("#2e7d32"));
    assert!(Path::new(&report).exists());
}

/// What stands between breaks nothing by itself.
#[test]
fn every_pack_holds_through_a_server_without_a_fault() {
    let through = format!("{} nothing", example().display());
    let output = countersign(&["conformance", "run", "--through", &through]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
}

/// One server for each fault, and every requirement is missed by at least one of them.
#[test]
fn packs_fail_against_servers_that_are_wrong() {
    let broken = example();
    let next = AtomicUsize::new(0);
    let missed = Mutex::new(Vec::new());
    let run = |fault: &str, pack: &str, wanted: &[&str]| {
        let cases = cases(pack, wanted);
        let through = format!("{} {fault}", broken.display());
        let mut arguments = vec!["conformance", "run", "--pack", pack, "--format", "json"];
        arguments.extend(["--through", &through]);
        arguments.extend(cases.iter().flat_map(|case| ["--case", case.as_str()]));
        let output = countersign(&arguments);
        let violated = texts(&json(&output), "violated_reqs");
        for requirement in wanted {
            if output.status.code() != Some(5) || !violated.contains(*requirement) {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                missed
                    .lock()
                    .unwrap()
                    .push(format!("{fault} {requirement}: {text}"));
            }
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                while let Some((fault, pack, wanted, _)) =
                    FAULTS.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    run(fault, pack, wanted);
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "not noticed:\n{}", missed.join("\n"));
}

#[test]
fn every_requirement_has_a_fault_and_the_documents_list_them() {
    let mut killed: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (fault, _, requirements, _) in FAULTS {
        for requirement in *requirements {
            killed
                .entry((*requirement).to_owned())
                .or_default()
                .push(fault);
        }
    }
    let mut all = BTreeSet::new();
    for (name, text) in BUILT_IN {
        let pack = Pack::read(text.as_bytes()).unwrap();
        for id in pack.requirements.keys() {
            assert!(killed.contains_key(id), "no fault is about {id} of {name}");
            all.insert(id.clone());
        }
    }
    for id in killed.keys() {
        assert!(all.contains(id), "there is no requirement {id}");
    }
    let mut table = String::from("| fault | what the server does | noticed by |\n|---|---|---|\n");
    for (fault, _, requirements, words) in FAULTS {
        table.push_str(&format!(
            "| `{fault}` | {words} | {} |\n",
            requirements.join(", ")
        ));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/conformance.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (listed, after) = rest.split_once(END).unwrap();
    if std::env::var_os("COUNTERSIGN_BLESS").is_some() {
        let page = format!("{before}{BEGIN}\n{table}{END}{after}");
        std::fs::write(&path, page).unwrap();
    } else {
        assert_eq!(
            listed.trim_start(),
            table,
            "docs/conformance.md is not up to date"
        );
    }
}

#[test]
fn a_server_that_is_not_there_and_a_pack_that_is_none_are_told_apart() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let output = countersign(&["conformance", "run", "--target", &address]);
    assert_eq!(output.status.code(), Some(69));
    let folder = replayed::folder();
    let file = folder.path().join("pack.yaml");
    std::fs::write(&file, "schema: countersign/conformance/v1\nname: x\n").unwrap();
    let output = countersign(&["conformance", "run", "--pack", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error[C0834]"));
}

/// The cases of a pack that are about these requirements.
fn cases(pack: &str, requirements: &[&str]) -> Vec<String> {
    let (_, text) = BUILT_IN.iter().find(|(name, _)| *name == pack).unwrap();
    let pack = Pack::read(text.as_bytes()).unwrap();
    let cases = pack.cases.into_iter();
    cases
        .filter(|case| requirements.contains(&case.req_id.as_str()))
        .map(|case| case.id)
        .collect()
}

/// The server that can be wrong. A run of all tests has built it; a run of one test alone has not.
fn example() -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_countersign"))
        .parent()
        .unwrap();
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = folder.join("examples/broken_server");
    let changed = |path: &Path| path.metadata().and_then(|metadata| metadata.modified());
    let sources = ["main", "fault", "http", "mcp", "stored"];
    let is_newer = sources.iter().all(|name| {
        let source = package.join(format!("examples/broken_server/{name}.rs"));
        changed(&built).is_ok_and(|built| built > changed(&source).unwrap())
    });
    if !is_newer {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--locked", "--package", "countersign"]);
        build.args(["--example", "broken_server"]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.current_dir(package).status().unwrap().success());
    }
    built
}

const BEGIN: &str = "<!-- faults -->\n";
const END: &str = "<!-- end of faults -->";
