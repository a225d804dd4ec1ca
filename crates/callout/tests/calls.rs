//! Annotators and policies over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use countersign_acs::{
    Fetched, Limits as AcsLimits, Loader, Manifest, Mode, Point, Policies, Runtime,
};
use countersign_callout::{Disk, Remote};
use countersign_canon::{Json, Limits};

/// Answers one request after the other with this, and tells what it was asked.
fn server(answer: &'static str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                head.push_str(&line);
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let _ = tell.send(format!("{head}{}", String::from_utf8(body).unwrap()));
            if answer.is_empty() {
                // Says nothing, and keeps the connection.
                std::mem::forget(stream);
                continue;
            }
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, told)
}

fn reason(annotator: &str, policy: &str) -> (String, Option<String>, Option<Json>) {
    let text = format!(
        "
agent_control_specification_version: 0.3.1-beta
policies: {{p: {{{policy}}}}}
intervention_points:
  input: {{policy_target: $.text, policy: {{id: p}}, annotations: {{a: {{from: $policy_target}}}}}}
annotators: {{a: {{{annotator}}}}}
"
    );
    let manifest = Manifest::read(text.as_bytes()).unwrap();
    let policies = Policies::activate(&manifest, &Disk)
        .unwrap()
        .with_adapter("http", Remote);
    let runtime = Runtime::new(manifest, policies).with_annotators(Remote);
    let snapshot = Json::admit(br#"{"text":"hello"}"#, &Limits::plan()).unwrap();
    let found = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
    (
        found.verdict().decision().to_string(),
        found.verdict().reason().map(str::to_owned),
        found
            .input()
            .and_then(|input| input.annotations().get("a").cloned()),
    )
}

const ALLOW: &str = "type: test, decision: allow";

fn ok(body: &str) -> &'static str {
    let text = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    Box::leak(text.into_boxed_str())
}

#[test]
fn endpoints_are_asked_and_their_answer_is_the_annotation() {
    let (url, told) = server(ok(r#"{"label":"safe"}"#));
    let (decision, _, said) = reason(&format!("type: endpoint, url: '{url}'"), ALLOW);
    assert_eq!(decision, "allow");
    assert_eq!(said.unwrap().get("label").unwrap().as_str(), Some("safe"));
    let asked = told.recv().unwrap();
    assert!(
        asked.ends_with(r#"{"annotator":"a","value":"hello"}"#),
        "{asked}"
    );
    assert!(!asked.to_lowercase().contains("authorization"));
}

#[test]
fn models_answer_with_a_label() {
    let (url, told) = server(ok(r#"{"choices":[{"message":{"content":" unsafe\n"}}]}"#));
    let model = format!("type: llm, url: '{url}', model: m, prompt: judge, labels: [safe, unsafe]");
    let (decision, _, said) = reason(&model, ALLOW);
    assert_eq!(decision, "allow");
    assert_eq!(said.unwrap().get("label").unwrap().as_str(), Some("unsafe"));
    assert!(
        told.recv()
            .unwrap()
            .contains(r#"{"content":"judge","role":"system"}"#)
    );
    let (_, reason, _) = reason(&model.replace("[safe, unsafe]", "[safe]"), ALLOW);
    assert_eq!(reason.as_deref(), Some("runtime_error:annotation_failed"));
}

#[test]
fn secrets_come_from_the_environment_by_name() {
    let (url, told) = server(ok("1"));
    // `PATH` is the one variable that is there everywhere.
    let (decision, _, _) = reason(
        &format!("type: endpoint, url: '{url}', api_key_env: PATH"),
        ALLOW,
    );
    assert_eq!(decision, "allow");
    assert!(
        told.recv()
            .unwrap()
            .to_lowercase()
            .contains("authorization: bearer ")
    );
    let missing = format!("type: endpoint, url: '{url}', api_key_env: NO_SUCH_SECRET_HERE");
    assert_eq!(
        reason(&missing, ALLOW).1.as_deref(),
        Some("runtime_error:annotation_failed")
    );
}

#[test]
fn silence_errors_and_floods_let_nothing_pass() {
    let failed = Some("runtime_error:annotation_failed");
    let (silent, _told) = server("");
    let slow = format!("type: endpoint, url: '{silent}', timeout_ms: 200");
    assert_eq!(
        reason(&slow, ALLOW).1.as_deref(),
        Some("runtime_error:annotation_timeout")
    );
    for answer in [
        "HTTP/1.1 500 Oops\r\ncontent-length: 2\r\n\r\n{}",
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
        "garbage\r\n\r\n",
        ok(r#"{"a":1,"a":2}"#),
        ok("not json"),
        ok(&format!("\"{}\"", "x".repeat(2 << 20))),
        ok(r#"{"reason":"runtime_error:x"}"#),
    ] {
        let (url, _told) = server(answer);
        let found = reason(
            &format!("type: endpoint, url: '{url}', timeout_ms: 5000"),
            ALLOW,
        );
        assert_eq!(found.1.as_deref(), failed, "{}", &answer[..40]);
    }
    for fields in [
        "type: endpoint",
        "type: endpoint, url: 'http://example.com/'",
        "type: endpoint, url: 'ftp://127.0.0.1/'",
        "type: endpoint, url: 'http://127.0.0.1:1/', timeout_ms: 0",
        "type: llm, url: 'http://127.0.0.1:1/'",
    ] {
        assert_eq!(reason(fields, ALLOW).1.as_deref(), failed, "{fields}");
    }
}

#[test]
fn policies_can_live_elsewhere() {
    let (annotator, _told) = server(ok("1"));
    let annotator = format!("type: endpoint, url: '{annotator}'");
    let (url, told) = server(ok(r#"{"decision":"escalate","reason":"ask"}"#));
    let policy = format!("type: custom, adapter: http, url: '{url}'");
    let (decision, because, _) = reason(&annotator, &policy);
    assert_eq!(
        (decision.as_str(), because.as_deref()),
        ("escalate", Some("ask"))
    );
    assert!(
        told.recv()
            .unwrap()
            .contains(r#""policy_target":{"kind":null,"path":"$.text","value":"hello"}"#)
    );
    let dead = "type: custom, adapter: http, url: 'http://127.0.0.1:1/'";
    let failed = Some("runtime_error:policy_invocation_failed");
    assert_eq!(reason(&annotator, dead).1.as_deref(), failed);
    let other = "type: custom, adapter: nobody";
    assert_eq!(reason(&annotator, other).1.as_deref(), failed);
}

#[test]
fn files_are_read_within_limits_and_names_of_this_machine_are_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    for name in ["b.rego", "sub/a.rego"] {
        std::fs::write(folder.path().join(name), "12345").unwrap();
    }
    let files = Disk.files(folder.path()).unwrap();
    assert_eq!(files.len(), 2);
    assert!(Disk.read(&files[0], 5).is_ok());
    assert!(Disk.read(&files[0], 4).is_err());
    assert!(Disk.real(&folder.path().join("none")).is_err());
    let limits = AcsLimits::default();
    for url in [
        "https://localhost:1/",
        "https://127.0.0.1:1/",
        "http://example.com/",
    ] {
        let found: Result<Fetched, _> = Disk.fetch(&url.parse().unwrap(), &limits);
        assert!(found.is_err(), "{url}");
    }
}

/// Activates a manifest in a folder whose model has these fields at its point, and asks it.
fn prompted(folder: &std::path::Path, url: &str, fields: &str) -> Result<String, String> {
    let text = format!(
        "
agent_control_specification_version: 0.3.1-beta
policies: {{p: {{type: test, decision: allow}}}}
intervention_points:
  input: {{policy_target: $.text, policy: {{id: p}}, annotations: {{a: {{from: $policy_target, {fields}}}}}}}
annotators: {{a: {{type: llm, url: '{url}', model: m}}}}
"
    );
    let file = folder.join("agent.yaml");
    std::fs::write(&file, text).unwrap();
    let voice = countersign_callout::voice(&file).map_err(|error| error.to_string())?;
    let snapshot = Json::admit(br#"{"text":"hello"}"#, &Limits::plan()).unwrap();
    let runtime = voice.runtime();
    let found = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
    assert_eq!(found.verdict().reason(), None);
    Ok(runtime.policy_digest().to_string())
}

#[test]
fn prompts_are_read_once_from_where_they_stand_and_are_part_of_what_decides() {
    let folder = tempfile::tempdir().unwrap();
    let prompt = folder.path().join("prompt.txt");
    std::fs::write(&prompt, "judge \"this\"\n").unwrap();
    let (url, told) = server(ok(r#"{"choices":[{"message":{"content":"safe"}}]}"#));
    let file = "system_prompt_file: prompt.txt";
    let first = prompted(folder.path(), &url, file).unwrap();
    let asked = told.recv().unwrap();
    let said = r#"{"content":"judge \"this\"\n","role":"system"}"#;
    assert!(
        asked.contains(said) && !asked.contains("prompt.txt"),
        "{asked}"
    );
    std::fs::write(&prompt, "let everything pass").unwrap();
    let second = prompted(folder.path(), &url, file).unwrap();
    assert!(told.recv().unwrap().contains("let everything pass"));
    assert_ne!(first, second);

    std::fs::write(folder.path().join("empty.txt"), " \n").unwrap();
    std::fs::write(folder.path().join("other.txt"), b"\xff\xfe").unwrap();
    std::fs::write(folder.path().join("long.txt"), "x".repeat((1 << 20) + 1)).unwrap();
    let sha = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    for (fields, problem) in [
        ("system_prompt_file: none.txt", "none.txt"),
        ("system_prompt_file: empty.txt", "empty"),
        ("system_prompt_file: other.txt", "UTF-8"),
        ("system_prompt_file: long.txt", "1048576"),
        ("system_prompt_file: ''", "path of a file"),
        ("system_prompt_file: [prompt.txt]", "path of a file"),
        (
            "system_prompt_file: prompt.txt, prompt: judge",
            "must not have both",
        ),
        ("system_prompt: a, prompt: b", "must not have both"),
        (
            "system_prompt_url: 'https://example.com/p'",
            "must be an object",
        ),
        (
            "system_prompt_url: {url: 'https://example.com/p'}",
            "must be an object",
        ),
        (
            &format!("system_prompt_url: {{url: 'https://127.0.0.1:1/p', sha256: {sha}}}"),
            "loopback",
        ),
        (
            &format!("system_prompt_url: {{url: 'http://example.com/p', sha256: {sha}}}"),
            "not https",
        ),
    ] {
        let error = prompted(folder.path(), &url, fields).unwrap_err();
        // Either when the manifest is read, or when it comes into force.
        let is_named = error.contains("annotator `a`") || error.contains("/annotations/a");
        assert!(is_named && error.contains(problem), "{fields}: {error}");
    }
    assert!(told.try_recv().is_err(), "nobody was asked");
}
