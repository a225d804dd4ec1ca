//! What a wrapped server asks the client's model or human, and what it hears.

use std::process::Command;

use crate::wrapped::{Client, INITIALIZE, Place};
use crate::{countersign, lay_out, replays, say};

/// A server that asks the client's model, and says what it heard.
const SERVER: &str = r#"while read -r line; do case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"0"}}}';;
*'"tools/list"'*) id=$(echo "$line" | sed 's/.*"id":\([^,]*\),.*/\1/'); echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}]}}";;
*'"tools/call"'*) echo '{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"now"}}]}}'
  read -r answer; echo "$answer" >> "$0.heard"
  echo '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"asked"}]}}';;
esac; done"#;

fn sampled(answer: &str) -> (String, String) {
    let place = Place::new();
    let acs = lay_out(place.folder.path());
    let script = place.path("server.sh");
    std::fs::write(&script, SERVER).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.arg("mcp").arg("--data").arg(place.path("data"));
    command.arg("--manifest").arg(place.path("manifest.json"));
    command.args(["--acs", &acs, "--", "sh"]).arg(&script);
    let mut client = Client::start(&mut command);
    client.ask(INITIALIZE.replace("\"capabilities\":{}", "\"capabilities\":{\"sampling\":{}}"));
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"say":"x"}}}"#);
    let asked = client.answer();
    client.send(format!(
        r#"{{"jsonrpc":"2.0","id":"q","result":{{"role":"assistant","model":"m","content":{{"type":"text","text":"{answer}"}}}}}}"#
    ));
    assert!(client.answer().contains("asked"));
    client.end();
    place.verify();
    replays(&place.path("data"));
    assert_eq!(place.count("MODEL_CALL_STARTED"), 1);
    assert_eq!(place.count("MODEL_CALL_FINISHED"), 1);
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

/// A server that asks the client's human, and says what it heard.
const ASKING: &str = r#"while read -r line; do case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"0"}}}';;
*'"tools/list"'*) id=$(echo "$line" | sed 's/.*"id":\([^,]*\),.*/\1/'); echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}]}}";;
*'"tools/call"'*) word=$(echo "$line" | sed 's/.*"say":"\([^"]*\)".*/\1/')
  echo "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"$word\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"string\"}}}}}"
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
    assert!(exported.contains("\"intervention_point\":\"output\""));
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
    let (_, heard) = elicited("your name", "rude words");
    assert!(
        heard.contains("\"error\"") && !heard.contains("rude words"),
        "{heard}"
    );
}
