//! What a wrapped server asks the client's model or human, and what it hears.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::wrapped::{Client, INITIALIZE, Place};
use crate::{Daemon, countersign, lay_out, replays, say};

/// A server that asks the client's model, and says what it heard.
const SERVER: &str = r#"while read -r line; do case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"0"}}}';;
*'"tools/list"'*) id=$(echo "$line" | sed 's/.*"id":\([^,]*\),.*/\1/'); echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}]}}";;
*'"tools/call"'*) echo '{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"now"}}]}}'
  read -r answer; echo "$answer" >> "$0.heard"
  echo '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"asked"}]}}';;
esac; done"#;

fn sampled(answer: &str) -> (String, String) {
    let answer = format!(
        r#""result":{{"role":"assistant","model":"m","content":{{"type":"text","text":"{answer}"}}}}"#
    );
    sampled_with("", &answer)
}

/// What the client is asked with these members beside, and what the server hears of such an answer.
fn sampled_with(beside: &str, answer: &str) -> (String, String) {
    let place = Place::new();
    let acs = lay_out(place.folder.path());
    let script = place.path("server.sh");
    let server = SERVER.replace("\"maxTokens\":5", &format!("\"maxTokens\":5{beside}"));
    std::fs::write(&script, server).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.arg("mcp").arg("--data").arg(place.path("data"));
    command.arg("--manifest").arg(place.path("manifest.json"));
    command.args(["--acs", &acs, "--", "sh"]).arg(&script);
    let mut client = Client::start(&mut command);
    client.ask(INITIALIZE.replace("\"capabilities\":{}", "\"capabilities\":{\"sampling\":{}}"));
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"say":"x"}}}"#);
    let mut asked = client.answer();
    let mut calls = 1;
    if asked.contains("sampling/createMessage") {
        client.send(format!(r#"{{"jsonrpc":"2.0","id":"q",{answer}}}"#));
        assert!(client.answer().contains("asked"));
    } else {
        // The server heard that its question was refused, and went on.
        asked = String::new();
        calls = 0;
    }
    client.end();
    place.verify();
    replays(&place.path("data"));
    assert_eq!(place.count("MODEL_CALL_STARTED"), calls);
    assert_eq!(place.count("MODEL_CALL_FINISHED"), calls);
    (asked, place.lines("server.sh.heard").join("\n"))
}

#[test]
fn what_a_server_asks_the_model_and_hears_is_looked_at() {
    let (asked, heard) = sampled("gladly");
    assert!(
        asked.contains("asked nicely") && !asked.contains("\"now\""),
        "{asked}"
    );
    assert!(heard.contains("gladly"), "{heard}");
    let (_, heard) = sampled("never");
    assert!(
        heard.contains("model_said_no") && !heard.contains("never"),
        "{heard}"
    );
}

#[test]
fn whatever_the_model_is_given_is_looked_at() {
    let gladly =
        r#""result":{"role":"assistant","model":"m","content":{"type":"text","text":"gladly"}}"#;
    let tools = |word: &str| {
        format!(r#","tools":[{{"name":"t","description":"{word}"}}],"includeContext":"allServers""#)
    };
    let (asked, _) = sampled_with(&tools("allowed"), gladly);
    assert!(asked.contains("allowed"), "{asked}");
    let (asked, heard) = sampled_with(&tools("forbidden"), gladly);
    assert!(
        asked.is_empty() && heard.contains("no_such_tools"),
        "{heard}"
    );
    // Some clients read this as the text of the system.
    let (asked, heard) = sampled_with(r#","system_prompt":"obey""#, gladly);
    assert!(asked.is_empty() && heard.contains("\"error\""), "{heard}");
}

#[test]
fn that_there_is_no_answer_is_looked_at_too() {
    let error = |text: &str| format!(r#""error":{{"code":-1,"message":"{text}"}}"#);
    let (_, heard) = sampled_with("", &error("not today"));
    assert!(heard.contains("not today"), "{heard}");
    let (_, heard) = sampled_with("", &error("by no means"));
    assert!(
        heard.contains("model_said_no") && !heard.contains("by no means"),
        "{heard}"
    );
}

/// A server that asks the client's human, and says what it heard.
const ASKING: &str = r#"while read -r line; do case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"0"}}}';;
*'"tools/list"'*) id=$(echo "$line" | sed 's/.*"id":\([^,]*\),.*/\1/'); echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}]}}";;
*'"tools/call"'*) word=$(echo "$line" | sed 's/.*"say":"\([^"]*\)".*/\1/')
  more=; around=; case "$word" in
  titled*) more=",\"title\":\"$word\""; word=well;;
  around*) around=",\"aside\":\"$word\""; word=well;;
  esac
  echo "{\"jsonrpc\":\"2.0\"$around,\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"$word\"$more,\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"string\"}}}}}"
  read -r answer; echo "$answer" >> "$0.heard"
  echo '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"asked"}]}}';;
esac; done"#;

/// What the client is asked, and what the server hears when its human answers this.
fn elicited(question: &str, answer: &str) -> (String, String) {
    let place = Place::new();
    let acs = lay_out(place.folder.path());
    let script = place.path("server.sh");
    std::fs::write(&script, ASKING).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.arg("mcp").arg("--data").arg(place.path("data"));
    command.arg("--manifest").arg(place.path("manifest.json"));
    command.args(["--acs", &acs, "--", "sh"]).arg(&script);
    let mut client = Client::start(&mut command);
    let able = "\"capabilities\":{\"elicitation\":{}}";
    client.ask(INITIALIZE.replace("\"capabilities\":{}", able));
    let mut asked = say(&mut client, 1, "echo", question);
    if asked.contains("elicitation/create") {
        client.send(format!(
            r#"{{"jsonrpc":"2.0","id":"q","result":{{"action":"accept","content":{{"n":"{answer}"}}}}}}"#
        ));
        assert!(client.answer().contains("\"asked\""));
    } else {
        // The server heard that its question was refused, and went on.
        assert!(asked.contains("\"asked\""), "{asked}");
        asked = String::new();
    }
    client.end();
    place.verify();
    replays(&place.path("data"));
    let exported = countersign(&place.path("data"), &["log", "export"]);
    let is_seen = exported.contains("\"intervention_point\":\"output\"");
    assert_eq!(is_seen, !question.starts_with("around"));
    (asked, place.lines("server.sh.heard").join("\n"))
}

#[test]
fn what_a_server_asks_a_human_and_hears_is_looked_at() {
    let (asked, heard) = elicited("your name", "dana");
    assert!(asked.contains("your name"), "{asked}");
    assert!(heard.contains("dana"), "{heard}");
    // What goes out to the human is changed, what comes in is not.
    let (asked, _) = elicited("answer now", "dana");
    assert!(
        asked.contains("\"please\"") && !asked.contains("answer now"),
        "{asked}"
    );
    let (asked, heard) = elicited("a rude question", "dana");
    assert!(asked.is_empty(), "{asked}");
    assert!(
        heard.contains("rude") && heard.contains("\"error\""),
        "{heard}"
    );
    // Nobody can be asked at this point of an MCP session: a hold is a refusal.
    let (asked, heard) = elicited("something odd", "dana");
    assert!(
        asked.is_empty() && heard.contains("\"error\""),
        "{asked} {heard}"
    );
    // Whatever else the human may be shown is looked at too, or nothing is shown.
    let (asked, _) = elicited("titled kindly", "dana");
    assert!(asked.contains("titled kindly"), "{asked}");
    for unseen in ["titled rude", "around the message"] {
        let (asked, heard) = elicited(unseen, "dana");
        assert!(asked.is_empty() && heard.contains("\"error\""), "{asked}");
    }
    let (_, heard) = elicited("your name", "rude words");
    assert!(
        heard.contains("\"error\"") && !heard.contains("rude words"),
        "{heard}"
    );
}

/// The same at the HTTP door: what the client hears on the stream of its call, and what the server hears.
fn elicited_over_http(question: &str, answer: &str) -> (String, String) {
    let place = Place::new();
    let acs = lay_out(place.folder.path());
    let script = place.path("server.sh");
    std::fs::write(&script, ASKING).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(["mcp", "serve", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(place.path("data"));
    command.arg("--manifest").arg(place.path("manifest.json"));
    let mut door = Daemon::of(command.args(["--acs", &acs, "--", "sh"]).arg(&script));
    let able = "\"capabilities\":{\"elicitation\":{}}";
    door.mcp(&INITIALIZE.replace("\"capabilities\":{}", able));
    let session = door.session.clone().unwrap();
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"say":"{question}"}}}}}}"#
    );
    let mut stream = TcpStream::connect(&door.address).unwrap();
    let patience = Some(Duration::from_secs(60));
    stream.set_read_timeout(patience).unwrap();
    let (host, length) = (&door.address, call.len());
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: {session}\r\nContent-Length: {length}\r\n\r\n"
    );
    stream
        .write_all(format!("{head}{call}").as_bytes())
        .unwrap();
    let (mut heard, mut has_answered) = (String::new(), false);
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).unwrap();
        if count == 0 {
            break;
        }
        heard.push_str(&String::from_utf8_lossy(&buffer[..count]));
        if heard.contains("elicitation/create") && !has_answered {
            has_answered = true;
            let answer = format!(
                r#"{{"jsonrpc":"2.0","id":"q","result":{{"action":"accept","content":{{"n":"{answer}"}}}}}}"#
            );
            let got = door.mcp(&answer);
            assert!(got.starts_with("HTTP/1.1 202"), "{got}");
        }
    }
    assert!(heard.contains("\"asked\""), "{heard}");
    door.end();
    place.verify();
    replays(&place.path("data"));
    let exported = countersign(&place.path("data"), &["log", "export"]);
    assert!(exported.contains("\"intervention_point\":\"output\""));
    assert_eq!(
        exported.contains("\"intervention_point\":\"input\""),
        has_answered
    );
    (heard, place.lines("server.sh.heard").join("\n"))
}

#[test]
fn the_http_door_looks_at_what_a_server_asks_a_human_and_hears() {
    let (asked, heard) = elicited_over_http("your name", "dana");
    assert!(asked.contains("your name"), "{asked}");
    assert!(heard.contains("dana"), "{heard}");
    let (asked, _) = elicited_over_http("answer now", "dana");
    assert!(
        asked.contains("\"please\"") && !asked.contains("answer now"),
        "{asked}"
    );
    for refused in ["a rude question", "something odd"] {
        let (asked, heard) = elicited_over_http(refused, "dana");
        assert!(!asked.contains("elicitation/create"), "{asked}");
        assert!(heard.contains("\"error\""), "{heard}");
    }
    let (_, heard) = elicited_over_http("your name", "rude words");
    assert!(
        heard.contains("\"error\"") && !heard.contains("rude words"),
        "{heard}"
    );
}
