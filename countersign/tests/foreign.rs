//! Servers that somebody else started: the packs are pointed at them, and shadow policies are promoted.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

#[path = "../../tests/replayed.rs"]
mod replayed;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use countersign_canon::{Json, Limits};
use countersign_conformance::{Act, BUILT_IN, Pack};

fn countersign(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn json(output: &Output) -> Json {
    let said = String::from_utf8_lossy(&output.stderr);
    Json::admit(&output.stdout, &Limits::event()).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// How many cases came out so.
fn count(report: &Json, outcome: &str) -> u64 {
    report.get(outcome).and_then(Json::as_u64).unwrap()
}

/// Every case with its outcome and its reason.
fn results(report: &Json) -> Vec<(String, String, String)> {
    let packs = report.get("packs").and_then(Json::as_array).unwrap();
    let results = packs
        .iter()
        .flat_map(|pack| pack.get("results").and_then(Json::as_array).unwrap());
    let text = |result: &Json, name: &str| {
        let text = result.get(name).and_then(Json::as_str);
        text.unwrap_or_default().to_owned()
    };
    results
        .map(|one| (text(one, "id"), text(one, "status"), text(one, "detail")))
        .collect()
}

/// Another program altogether: it knows one route and two rules, and one kind of caller.
fn stranger() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap());
        }
    });
    address
}

fn answer(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut length, mut token) = (String::new(), 0, String::new());
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "authorization" => token = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let asked = Json::admit(&body, &Limits::event()).unwrap_or(Json::Null);
    let at = |path: &[&str]| path.iter().try_fold(&asked, |json, name| json.get(name));
    let tool = at(&["event", "payload", "tool_name"]).and_then(Json::as_str);
    let declared = at(&["manifest", "permissions", "tools"]).and_then(Json::as_array);
    let (status, body) = match first.split(' ').nth(1).unwrap_or_default() {
        "/healthz" => (200, "{}".to_owned()),
        _ if token != "Bearer open-sesame" => (401, "{}".to_owned()),
        "/v1/policy/decide" => {
            let is_declared = declared
                .unwrap_or_default()
                .iter()
                .any(|one| one.as_str() == tool);
            let said = match is_declared {
                true => r#"{"outcome":"allow","reason":"fine"}"#,
                false => r#"{"outcome":"deny","reason":"PERMISSION_UNDECLARED"}"#,
            };
            (200, said.to_owned())
        }
        _ => (404, "{}".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} So\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let _ = stream.write_all((head + &body).as_bytes());
}

#[test]
fn another_program_is_judged_by_the_same_packs() {
    let folder = replayed::folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let server = stranger();
    let (token, junit, badge, known) = (
        path("token"),
        path("report.xml"),
        path("badge.json"),
        path("known"),
    );
    std::fs::write(&token, "open-sesame\n").unwrap();
    let questions = [
        "conformance",
        "run",
        "--target",
        &server,
        "--pack",
        "questions",
    ];
    let reports = ["--junit", &junit, "--badge", &badge, "--format", "json"];
    let with_token = [&questions[..], &["--token-file", &token], &reports].concat();
    let output = countersign(&with_token);
    assert_eq!(output.status.code(), Some(5));
    let report = json(&output);
    assert_eq!(
        report.get("target").and_then(Json::as_str),
        Some(server.as_str())
    );
    assert!(count(&report, "passed") > 3, "{report:?}");
    assert!(count(&report, "failed") > 3, "{report:?}");
    let failed: Vec<(String, String, String)> = results(&report)
        .into_iter()
        .filter(|(_, status, _)| status == "FAIL")
        .collect();
    assert!(failed.iter().any(|(id, _, _)| id == "BS-004"), "{failed:?}");
    assert!(
        failed.iter().all(|(_, _, why)| !why.is_empty()),
        "{failed:?}"
    );
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert_eq!(xml.matches("<failure ").count(), failed.len(), "{xml}");
    let shield = std::fs::read_to_string(&badge).unwrap();
    assert!(shield.contains("\"schemaVersion\":1"), "{shield}");
    assert!(!shield.contains("2e7d32"), "{shield}");

    // What is known to fail says why, and does not count.
    let listed: String = failed
        .iter()
        .map(|(id, _, _)| format!("{id}: that server has two rules\n"))
        .collect();
    std::fs::write(&known, listed).unwrap();
    let forgiving = [&with_token[..], &["--known", &known]].concat();
    let output = countersign(&forgiving);
    let report = json(&output);
    // One case that we expect to fail holds there, which is a failure of the expectation.
    let known = count(&report, "expected_failures");
    assert_eq!(known + count(&report, "failed"), failed.len() as u64);
    assert!(known > 3, "{report:?}");

    // The token counts: without it, or with another, nobody answers a question.
    let without = [&questions[..], &reports].concat();
    let wrong = [&questions[..], &["--token", "wrong"], &reports].concat();
    for refused in [without, wrong] {
        let output = countersign(&refused);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("C0901") && output.stdout.is_empty(), "{said}");
    }

    // Packs about more than one question cannot be prepared there.
    let output = countersign(&[
        "conformance",
        "run",
        "--target",
        &server,
        "--token-file",
        &token,
        "--pack",
        "approvals",
        "--format",
        "json",
    ]);
    assert_eq!(output.status.code(), Some(5));
}

struct Daemon {
    child: Child,
    address: String,
    token: String,
}

impl Daemon {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let token = line.trim_end().rsplit(' ').next().unwrap().to_owned();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut address = String::new();
        while address.is_empty() {
            let mut line = String::new();
            assert!(said.read_line(&mut line).unwrap() > 0, "it did not start");
            if let Some(rest) = line.strip_prefix("countersign: ") {
                address = rest.split(' ').next().unwrap().trim_end().to_owned();
            }
        }
        std::thread::spawn(move || said.read_to_string(&mut String::new()));
        Self {
            child,
            address,
            token,
        }
    }

    fn post(&self, path: &str, body: &str) -> (u16, String) {
        self.ask(&self.token, "POST", path, body)
    }

    fn metrics(&self) -> String {
        self.ask(&self.token, "GET", "/metrics", "").1
    }

    fn ask(&self, token: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let host = self.address.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            token,
            body.len()
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        (status, text)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A plain reverse proxy: every byte goes on, in both directions.
fn proxy(behind: &str) -> String {
    let behind = behind.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (client, server) = (stream.unwrap(), TcpStream::connect(&behind).unwrap());
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Write);
            });
            let (mut from, mut to) = (server, client);
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Write);
            });
        }
    });
    address
}

/// The manifests that a pack wants in force: of Agent Control, and of what may be used.
fn wanted_manifests() -> (Vec<u8>, Vec<u8>) {
    let (_, text) = BUILT_IN.iter().find(|(name, _)| *name == "points").unwrap();
    let pack = Pack::read(text.as_bytes()).unwrap();
    let manifest = pack.before.iter().find_map(|step| match &step.act {
        Act::Govern {
            agent_control,
            manifest,
        } => Some((agent_control.to_sorted(), manifest.to_sorted())),
        _ => None,
    });
    manifest.unwrap()
}

/// What the packs say about a daemon with an approver, behind a proxy, by its address and its token.
fn behind_a_proxy(name: &str, arguments: &[&str], packs: &[&str], more: &[&str]) -> Json {
    let folder = replayed::folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (data, key, token) = (path(name), path("dana.key"), path("token"));
    let init = ["approver", "init", "--name", "dana", "--key", &key];
    assert!(
        countersign(&[&init[..], &["--data", &data]].concat())
            .status
            .success()
    );
    let daemon = Daemon::start(Path::new(&data), arguments);
    std::fs::write(&token, &daemon.token).unwrap();
    let address = proxy(&daemon.address);
    let target = ["conformance", "run", "--target", &address];
    let known = ["--approver", "dana", "--approver-key", &key];
    let form = ["--token-file", &token, "--format", "json"];
    let packs: Vec<&str> = packs.iter().flat_map(|pack| ["--pack", *pack]).collect();
    let output = countersign(&[&target[..], &known, &form, &packs, more].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    json(&output)
}

#[test]
fn a_daemon_behind_a_proxy_holds_with_its_tokens() {
    let packs = [
        "events",
        "capability",
        "taint",
        "points",
        "approvals",
        "redaction",
        "hostile",
    ];
    let report = behind_a_proxy("data", &[], &packs, &[]);
    assert!(count(&report, "passed") > 50, "{report:?}");
    // What cannot be tried from outside is skipped, and says why.
    let skipped: Vec<_> = results(&report)
        .into_iter()
        .filter(|(_, status, _)| status == "SKIP")
        .collect();
    assert_eq!(skipped.len() as u64, count(&report, "skipped"));
    for (id, _, why) in &skipped {
        assert!(why.contains("--"), "{id}: {why}");
    }
    let is_skipped = |id: &str| skipped.iter().any(|(skipped, _, _)| skipped == id);
    assert!(is_skipped("PT-01") && is_skipped("RE-02"), "{skipped:?}");
}

#[test]
fn a_daemon_with_the_manifests_of_a_pack_is_tried_with_them() {
    let folder = replayed::folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (acs, manifest) = (path("acs.json"), path("manifest.json"));
    let wanted = wanted_manifests();
    std::fs::write(&acs, wanted.0).unwrap();
    std::fs::write(&manifest, wanted.1).unwrap();
    let arguments = ["--acs", &acs, "--manifest", &manifest];
    let report = behind_a_proxy("governed", &arguments, &["points"], &["--agent-control"]);
    assert_eq!(count(&report, "passed"), 9, "{report:?}");
}

const SHADOWED: &str = r#"{"manifest":{"schema":"countersign/manifest/v1","name":"n","version":"1.0.0","publisher":"p",
    "permissions":{"tools":{"read_file":{"side_effect":"read"}}}},
    "shadow":[{"name":"limits.rego","text":"package limits\nimport rego.v1\nverdict := {\"decision\": \"deny\", \"reason\": \"NOT_ANY_MORE\"}"}]}"#;

#[test]
fn what_stood_in_the_shadow_decides_when_it_is_promoted() {
    let folder = replayed::folder();
    let daemon = Daemon::start(&folder.path().join("data"), &[]);
    let token = folder.path().join("token");
    std::fs::write(&token, &daemon.token).unwrap();
    let token = token.to_str().unwrap();
    let (status, said) = daemon.post("/v1/policies/activate", SHADOWED);
    assert_eq!(status, 201, "{said}");
    let wanted = r#"{"role":"agent","name":"a","tenant_id":"t"}"#;
    let (_, made) = daemon.post("/v1/tokens", wanted);
    let agent = made.split("\"token\":\"").nth(1).expect(&made);
    let agent = agent.split('"').next().unwrap().to_owned();
    let mut paths = 0;
    let mut call = || {
        paths += 1;
        let body =
            format!(r#"{{"session_id":"s","tool_name":"read_file","args":{{"path":"/{paths}"}}}}"#);
        daemon.ask(&agent, "POST", "/v1/actions", &body).1
    };
    let said = call();
    assert!(said.contains("\"running\""), "{said}");
    let promote = |more: &[&str]| {
        let server = ["policy", "promote", "--server", &daemon.address];
        countersign(&[&server[..], &["--token-file", token], more].concat())
    };
    // Whoever thinks of other policies promotes nothing.
    let digest = format!("sha256:{}", "0".repeat(64));
    let stale = promote(&["--only-after", &digest]);
    assert!(!stale.status.success(), "{stale:?}");
    assert!(call().contains("\"running\""));
    // What it would have stopped is counted before anybody lets it.
    let differs = r#"countersign_shadow_differences_total{decided="allow",would="deny"} 2"#;
    let is_counted = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        daemon.metrics().contains(differs)
    });
    assert!(is_counted, "{}", daemon.metrics());
    let promoted = promote(&[]);
    let text = String::from_utf8_lossy(&promoted.stdout).into_owned();
    assert!(promoted.status.success(), "{promoted:?}");
    assert!(
        text.contains("PROMOTED ✓") && text.contains("limits"),
        "{text}"
    );
    let denied = call();
    assert!(denied.contains("NOT_ANY_MORE"), "{denied}");
    let undone = promote(&["--undo"]);
    assert!(
        String::from_utf8_lossy(&undone.stdout).contains("UNDONE ✓"),
        "{undone:?}"
    );
    assert!(call().contains("\"running\""));
    // Nobody else may, and nobody is there at all.
    let stranger = folder.path().join("other");
    std::fs::write(&stranger, "cst_00").unwrap();
    let refused = countersign(&[
        "policy",
        "promote",
        "--server",
        &daemon.address,
        "--token-file",
        stranger.to_str().unwrap(),
    ]);
    assert!(!refused.status.success());
    let address = daemon.address.clone();
    drop(daemon);
    let gone = countersign(&[
        "policy",
        "promote",
        "--server",
        &address,
        "--token-file",
        token,
    ]);
    assert_eq!(gone.status.code(), Some(69), "{gone:?}");
}
