//! The daemon as a process, and what it tells: spans, numbers and log lines, none with a secret.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

#[path = "../../tests/replayed.rs"]
mod replayed;
#[path = "../../tests/secrets.rs"]
mod shapes;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use countersign_canon::{Json, Limits, Numbers};
use countersign_event::Line;
use countersign_store::{Filter, Folder, Reader};
use rustix::process::{Pid, Signal, kill_process};
use shapes::ALONE;

const MANIFEST: &str = r#"{"schema":"countersign/manifest/v1","name":"toy","version":"1","publisher":"tests","permissions":{"tools":{"read_file":{"side_effect":"read"}},"budgets":{"max_steps":1000000,"max_tool_calls":1000000,"max_wall_time_ms":1000000000}},"loops":{"identical_calls":0,"no_progress_steps":0,"sequence_min":0,"sequence_max":0}}"#;

struct Daemon {
    child: Child,
    address: String,
    token: String,
    /// Reads all the time what is said: a pipe holds only so much.
    log: JoinHandle<String>,
}

impl Daemon {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder.join("data"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut token = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut token).unwrap();
        let token = token.trim_end().rsplit(' ').next().unwrap().to_owned();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut log = String::new();
        assert!(said.read_line(&mut log).unwrap() > 0, "it does not start");
        let address = log.split("http://").nth(1).expect(&log);
        let address = address.split([' ', '"']).next().unwrap().to_owned();
        Self {
            child,
            address,
            token,
            log: std::thread::spawn(move || {
                let _ = said.read_to_string(&mut log);
                log
            }),
        }
    }

    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let time = Some(Duration::from_secs(60));
        stream.set_read_timeout(time).unwrap();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: Bearer {}\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, body.to_owned())
    }

    /// Ends it; gives everything that it has said.
    fn end(mut self) -> String {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let log = self.log.join().unwrap();
        assert!(self.child.wait().unwrap().success(), "{log}");
        log
    }
}

/// The metrics, once these lines are among them: what is recorded is counted a moment later.
fn metrics_with(daemon: &Daemon, lines: &[String]) -> String {
    let mut metrics = String::new();
    for _ in 0..200 {
        let (status, text) = daemon.ask("GET", "/metrics", "", "");
        assert_eq!(status, 200);
        metrics = text;
        if lines.iter().all(|line| metrics.contains(line.as_str())) {
            return metrics;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{lines:?} are not in {metrics}");
}

fn json(text: &str) -> Json {
    let limits = Limits {
        max_bytes: usize::MAX,
        max_depth: 100,
        numbers: Numbers::Double,
    };
    Json::admit(text.as_bytes(), &limits).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn text<'j>(json: &'j Json, path: &str) -> &'j str {
    let found = path.split('.').try_fold(json, |json, name| json.get(name));
    found.and_then(Json::as_str).unwrap_or_default()
}

fn quoted(text: &str) -> String {
    String::from_utf8(Json::from(text).to_sorted_ascii()).unwrap()
}

/// A folder with a manifest and a configuration that tells as much as can be told.
fn talkative() -> (replayed::Kept, PathBuf) {
    let folder = replayed::folder();
    let manifest = folder.path().join("manifest.json");
    std::fs::write(&manifest, MANIFEST).unwrap();
    let file = folder.path().join("countersign.toml");
    let config = format!(
        "manifest = {:?}\n[telemetry]\ncontent = true\n[log]\nformat = \"json\"\nlevel = \"debug\"\n",
        manifest.to_str().unwrap()
    );
    std::fs::write(&file, config).unwrap();
    (folder, file)
}

fn spans(folder: &Path) -> Vec<Json> {
    let file = folder.join("data/telemetry/spans.ndjson");
    let lines = std::fs::read_to_string(file).unwrap();
    let span = |line: &str| {
        let whole = json(line);
        let resource = &whole.get("resourceSpans").unwrap().as_array().unwrap()[0];
        let scope = &resource.get("scopeSpans").unwrap().as_array().unwrap()[0];
        scope.get("spans").unwrap().as_array().unwrap()[0].clone()
    };
    lines.lines().map(span).collect()
}

/// Recognised wherever they stand.
fn all_secrets() -> Vec<&'static str> {
    let told_by_their_names = [
        "password=correct-horse-battery",
        "Authorization: Bearer opaque-token-value",
    ];
    ALONE.iter().copied().chain(told_by_their_names).collect()
}

/// The part that must not be seen anywhere.
fn needle(secret: &str) -> &str {
    match secret {
        "postgres://app:hunter2@db.internal:5432/prod" => "hunter2",
        "amqps://svc:p%40ss@mq.internal/vhost" => "p%40ss",
        "password=correct-horse-battery" => "correct-horse-battery",
        "Authorization: Bearer opaque-token-value" => "opaque-token-value",
        "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXX" => "B00000000/XXXXXXXX",
        secret => secret.split('\n').nth(1).unwrap_or(secret),
    }
}

/// The places of one secret: a name, a value, an array, JSON inside a text, an address.
fn args(secret: &str) -> String {
    let inner = format!(
        "{{\"note\":{},\"deep\":[{}]}}",
        quoted(secret),
        quoted(secret)
    );
    let query: String = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("access_token", secret)
        .finish();
    format!(
        r#"{{{}:"a name",{}:"v","value":{},"list":["x",{},["y",{}]],"nested":{},"url":"https://api.internal/v1?page=2&{query}"}}"#,
        quoted(secret),
        quoted(&format!("x {secret} y")),
        quoted(secret),
        quoted(secret),
        quoted(secret),
        quoted(&inner),
    )
}

#[test]
fn no_secret_is_told_and_every_event_is_stored_as_it_came() {
    let secrets = all_secrets();
    let (folder, config) = talkative();
    let daemon = Daemon::start(folder.path(), &["--config", config.to_str().unwrap()]);
    for (number, secret) in secrets.iter().enumerate() {
        let (args, quote) = (args(secret), quoted(secret));
        let session = format!("s{number}");
        // As arguments and as a result, which are sealed.
        let body = format!(
            r#"{{"tenant_id":"acme","session_id":"{session}","tool_name":"read_file","args":{args}}}"#
        );
        let (status, answer) = daemon.ask("POST", "/v1/actions", "", &body);
        assert_eq!(status, 201, "{answer}");
        let action = json(&answer);
        let path = format!("/v1/actions/{}/result", text(&action, "action_id"));
        let permit = text(&action, "permit");
        let body = format!(r#"{{"permit":"{permit}","content":{args}}}"#);
        assert_eq!(daemon.ask("POST", &path, "", &body).0, 201);
        // As the name of a tool and of a call, which are not.
        let body = format!(
            r#"{{"tenant_id":"acme","session_id":"{session}","tool_name":{quote},"call_id":{},"args":{args}}}"#,
            quoted(&format!("call {secret}"))
        );
        daemon.ask("POST", "/v1/actions", "", &body);
        let body = format!(
            r#"{{"tenant_id":"acme","session_id":"{session}","event_type":"MEMORY_WRITE","payload":{{"memory_key":{quote},"memory_store":{quote},"content":{args}}}}}"#
        );
        assert_eq!(daemon.ask("POST", "/v1/events", "", &body).0, 201);
        let body = format!(
            r#"{{"tenant_id":"acme","session_id":"{session}","event_type":"ERROR_RAISED","payload":{{"code":{quote},"message":{quote}}}}}"#
        );
        assert_eq!(daemon.ask("POST", "/v1/events", "", &body).0, 201);
        // In addresses, headers and names of requests.
        let query: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        let line = secret.replace('\n', " ");
        // A name of a request has no spaces; without its lines a key is none any more.
        let first = secret.split('\n').next().unwrap_or_default();
        let plain: String = first.chars().filter(char::is_ascii_graphic).collect();
        let headers = format!("X-Request-Id: {plain}\r\nX-Api-Key: {line}\r\n");
        daemon.ask("GET", &format!("/v1/{query}?token={query}"), &headers, "");
        daemon.ask(
            "GET",
            &format!("/v1/sessions/{query}?tenant_id=acme"),
            &headers,
            "",
        );
    }
    let metrics = metrics_with(
        &daemon,
        &[
            format!(
                "countersign_decisions_total{{outcome=\"allow\"}} {}\n",
                secrets.len()
            ),
            format!("countersign_upstream_seconds_count {}\n", secrets.len()),
        ],
    );
    let token = daemon.token.clone();
    let log = daemon.end();
    let file = folder.path().join("data/telemetry/spans.ndjson");
    let exported = std::fs::read_to_string(file).unwrap();
    assert!(log.lines().count() > 5 * secrets.len(), "{log}");
    for (what, told) in [
        ("span", &exported),
        ("log line", &log),
        ("metric", &metrics),
    ] {
        for secret in &secrets {
            let needle = needle(secret);
            let shown = told.lines().find(|line| line.contains(needle));
            assert_eq!(shown, None, "{needle} is in a {what}");
        }
        assert!(!told.contains(token.rsplit('_').next().unwrap()), "{what}");
    }
    // Every event has its span, and content was told: what is missing was taken out, not left away.
    let reader = Reader::open(&Folder::new(folder.path().join("data"))).unwrap();
    let events = reader.last(&Filter::default(), usize::MAX >> 1).unwrap();
    let spans = spans(folder.path());
    let is_event = |span: &&Json| {
        text(span, "name")
            .chars()
            .all(|it| it.is_uppercase() || it == '_')
    };
    assert_eq!(spans.iter().filter(is_event).count(), events.len());
    let actions = spans
        .iter()
        .filter(|span| text(span, "name").starts_with("execute_tool"));
    assert_eq!(actions.count(), 2 * secrets.len());
    assert!(exported.contains("gen_ai.tool.call.arguments"));
    assert!(exported.contains("gen_ai.tool.call.result"));
    assert!(exported.contains("[EMAIL]") && exported.contains("[TOKEN]"));
    // The log has all of it as it came.
    for (number, secret) in secrets.iter().enumerate() {
        let session = format!("s{number}");
        let first = events.iter().find(|event| {
            let line = Line::read(&event.line).unwrap();
            line.session_id == session && line.seq == 0
        });
        let payload = reader.open_payload(first.unwrap()).unwrap();
        assert_eq!(payload.get("args"), Some(&json(&args(secret))));
    }
}

/// Secrets that are split, encoded, or written in the syntax of something else.
#[test]
fn no_shape_of_the_corpus_is_told() {
    let shapes = json(include_str!("../../corpus/redact/shapes.json"));
    let shapes = shapes.as_array().unwrap();
    let (folder, config) = talkative();
    let daemon = Daemon::start(folder.path(), &["--config", config.to_str().unwrap()]);
    for (number, shape) in shapes.iter().enumerate() {
        let value = String::from_utf8(shape.get("value").unwrap().to_sorted_ascii()).unwrap();
        let body = format!(
            r#"{{"tenant_id":"acme","session_id":"s{number}","tool_name":"read_file","args":{{"x":{value}}}}}"#
        );
        let (status, answer) = daemon.ask("POST", "/v1/actions", "", &body);
        assert_eq!(status, 201, "{answer}");
    }
    let log = daemon.end();
    let file = folder.path().join("data/telemetry/spans.ndjson");
    let exported = std::fs::read_to_string(file).unwrap();
    assert!(exported.matches("gen_ai.tool.call.arguments").count() >= shapes.len());
    for shape in shapes {
        for secret in shape.get("secret").unwrap().as_array().unwrap() {
            let secret = secret.as_str().unwrap();
            for told in [&exported, &log] {
                let shown = told.lines().find(|line| line.contains(secret));
                assert_eq!(shown, None, "{:?}", shape.get("what"));
            }
        }
    }
}

#[test]
fn a_callers_trace_goes_through_the_daemon() {
    let (folder, config) = talkative();
    let daemon = Daemon::start(folder.path(), &["--config", config.to_str().unwrap()]);
    let trace = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";
    let body = r#"{"tenant_id":"acme","session_id":"s1","tool_name":"rm","args":{}}"#;
    assert_eq!(daemon.ask("POST", "/v1/actions", trace, body).0, 201);
    let body = r#"{"tenant_id":"acme","session_id":"s1","event_type":"MODEL_CALL_STARTED","payload":{"call_id":"m1","model_id":"m"}}"#;
    assert_eq!(daemon.ask("POST", "/v1/events", trace, body).0, 201);
    let body = body.replace("STARTED", "FINISHED");
    assert_eq!(daemon.ask("POST", "/v1/events", "", &body).0, 201);
    daemon.end();
    let spans = spans(folder.path());
    for name in ["execute_tool rm", "chat m"] {
        let span = spans
            .iter()
            .find(|span| text(span, "name") == name)
            .unwrap();
        assert_eq!(text(span, "traceId"), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(text(span, "parentSpanId"), "00f067aa0ba902b7");
    }
}

#[test]
fn disabled_telemetry_exports_nothing_and_leaves_other_programs_alone() {
    let folder = replayed::folder();
    let daemon = Daemon::start(folder.path(), &["--telemetry-disabled"]);
    let body = r#"{"tenant_id":"acme","session_id":"s1","event_type":"MEMORY_WRITE","payload":{"memory_key":"k"}}"#;
    assert_eq!(daemon.ask("POST", "/v1/events", "", body).0, 201);
    let variables = std::fs::read(format!("/proc/{}/environ", daemon.child.id()));
    if let Ok(variables) = variables {
        let variables = String::from_utf8_lossy(&variables).into_owned();
        assert!(!variables.contains("OTEL_SDK_DISABLED"), "{variables}");
    }
    let (_, metrics) = daemon.ask("GET", "/metrics", "", "");
    assert!(
        metrics.contains("countersign_append_seconds_count 1"),
        "{metrics}"
    );
    assert!(
        metrics.contains("countersign_spans_exported_total 0"),
        "{metrics}"
    );
    daemon.end();
    assert!(!folder.path().join("data/telemetry").exists());
}

#[test]
fn every_decision_case_through_the_daemon() {
    let corpus = json(include_str!("../../corpus/policy/decide.json"));
    let folder = replayed::folder();
    let daemon = Daemon::start(folder.path(), &[]);
    for case in corpus.get("cases").unwrap().as_array().unwrap() {
        let request = String::from_utf8(case.get("request").unwrap().to_sorted_ascii()).unwrap();
        let (status, answer) = daemon.ask("POST", "/v1/policy/decide", "", &request);
        let expect = case.get("expect").unwrap();
        let unwanted = expect.get("outcome_not").and_then(Json::as_str);
        if unwanted.is_some() && (400..500).contains(&status) {
            continue;
        }
        assert_eq!(status, 200, "{} {answer}", text(case, "id"));
        let found = json(&answer);
        assert_ne!(
            Some(text(&found, "outcome")),
            unwanted,
            "{}",
            text(case, "id")
        );
        for name in ["outcome", "reason", "constraints"] {
            if let Some(wanted) = expect.get(name) {
                assert_eq!(
                    found.get(name),
                    Some(wanted),
                    "{}: {answer}",
                    text(case, "id")
                );
            }
        }
    }
    daemon.end();
}
