//! What a server asks the client's model or human by a result, in the revision without requests of a server.

use std::process::Command;

use crate::wrapped::{Client, Place};
use crate::{Daemon, approve, countersign, lay_out, replays};

/// A server that asks by its result what it is told to ask, and says what it heard.
const SERVER: &str = r#"while read -r line; do id=$(echo "$line" | sed 's/.*"id":\([^,]*\),.*/\1/'); case "$line" in
*'"tools/list"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"resultType\":\"complete\",\"tools\":[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}]}}";;
*'"inputResponses"'*) echo "$line" >> "$0.heard"
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"asked\"}]}}";;
*'"tools/call"'*) human=$(echo "$line" | sed 's/.*"human":"\([^"]*\)".*/\1/'); model=$(echo "$line" | sed 's/.*"model":"\([^"]*\)".*/\1/')
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{\"m\":{\"method\":\"sampling/createMessage\",\"params\":{\"maxTokens\":5,\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"$model\"}}]}}, \"h\":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"$human\",\"requestedSchema\":{\"type\":\"object\"}}}},\"requestState\":\"o\"}}";;
esac; done"#;

/// The same, where people are sent to an address.
fn sending(address: &str) -> String {
    let asked = "\\\"requestedSchema\\\":{\\\"type\\\":\\\"object\\\"}";
    let sent = format!("\\\"mode\\\":\\\"url\\\",\\\"url\\\":\\\"https://{address}/\\\"");
    assert!(SERVER.contains(asked));
    SERVER.replace(asked, &sent)
}

fn call(id: u32, (model, human): (&str, &str), more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"model":"{model}","human":"{human}"}}{more},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{"sampling":{{}},"elicitation":{{}}}}}}}}}}"#
    )
}

fn answers((model, human): (&str, &str)) -> String {
    format!(
        r#","requestState":"o","inputResponses":{{"m":{{"role":"assistant","model":"m","content":{{"type":"text","text":"{model}"}}}},"h":{{"action":"accept","content":{{"n":"{human}"}}}}}}"#
    )
}

/// The door to the server, with Agent Control.
fn door(place: &Place, words: &[&str]) -> Command {
    let acs = lay_out(place.folder.path());
    let script = place.path("server.sh");
    std::fs::write(&script, SERVER).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.arg("mcp").args(words);
    command.arg("--data").arg(place.path("data"));
    command.arg("--manifest").arg(place.path("manifest.json"));
    command.args(["--acs", &acs, "--", "sh"]).arg(&script);
    command
}

/// What the client is asked, what it hears when it answers this, and what the server hears.
fn round(asked: (&str, &str), answered: (&str, &str)) -> [String; 3] {
    let place = Place::new();
    let mut client = Client::start(&mut door(&place, &[]));
    let question = client.ask(call(1, asked, ""));
    let answer = match question.contains("inputRequests") {
        true => client.ask(call(2, asked, &answers(answered))),
        false => String::new(),
    };
    client.end();
    place.verify();
    replays(&place.path("data"));
    let begun = place.count("MODEL_CALL_STARTED");
    assert_eq!(place.count("MODEL_CALL_FINISHED"), begun);
    let exported = countersign(&place.path("data"), &["log", "export"]);
    assert!(exported.contains("\"intervention_point\":\"pre_model_call\""));
    [question, answer, place.lines("server.sh.heard").join("\n")]
}

#[test]
fn what_a_result_asks_and_what_comes_back_is_looked_at_like_requests_of_a_server() {
    let [asked, told, heard] = round(("think", "your name"), ("gladly", "dana"));
    let bytes = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"m":{"method":"sampling/createMessage","params":{"maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"think"}}]}}, "h":{"method":"elicitation/create","params":{"message":"your name","requestedSchema":{"type":"object"}}}},"requestState":"o"}}"#;
    assert_eq!(asked, bytes);
    assert!(told.contains("\"asked\""), "{told}");
    let sent = call(2, ("think", "your name"), &answers(("gladly", "dana")));
    assert_eq!(heard, sent);
    // What is changed takes the place of what was there, and nothing else changes.
    let [asked, ..] = round(("now", "answer now"), ("gladly", "dana"));
    let message = r#"{"role":"user","content":{"type":"text","text":"think"}}"#;
    let changed = r#"{"content":{"text":"asked nicely","type":"text"},"role":"user"}"#;
    let changed = bytes.replace(message, changed);
    assert_eq!(asked, changed.replace("your name", "please"));
}

#[test]
fn a_result_of_which_one_question_may_not_pass_does_not_reach_the_client() {
    for (human, reason) in [
        ("a rude question", "rude"),
        ("something odd", "runtime_error:approval_resolver_failed"),
    ] {
        let [refused, ..] = round(("think", human), ("", ""));
        let reason = format!("\"reason\":\"{reason}\"");
        assert!(
            refused.contains("withheld") && refused.contains(&reason),
            "{refused}"
        );
        assert!(
            !refused.contains("think") && !refused.contains(human),
            "{refused}"
        );
        assert!(!refused.contains("\"event\":null"), "{refused}");
    }
}

#[test]
fn where_people_are_sent_is_looked_at() {
    for (address, passes) in [("example.com", true), ("rude.example", false)] {
        let place = Place::new();
        let mut door = door(&place, &[]);
        std::fs::write(place.path("server.sh"), sending(address)).unwrap();
        let mut client = Client::start(&mut door);
        let told = client.ask(call(1, ("think", "sign in"), ""));
        assert_eq!(told.contains(address), passes, "{told}");
        assert_eq!(told.contains("\"reason\":\"rude\""), !passes, "{told}");
        client.end();
        place.verify();
    }
}

#[test]
fn a_question_of_which_some_clients_read_more_than_others_does_not_pass() {
    for server in [sending("example.com"), linking("example.com")] {
        for (key, passes) in [("url", true), ("Url", false)] {
            let place = Place::new();
            let mut door = door(&place, &[]);
            let server = server.replace("\\\"url\\\":", &format!("\\\"{key}\\\":"));
            std::fs::write(place.path("server.sh"), server).unwrap();
            let mut client = Client::start(&mut door);
            let told = client.ask(call(1, ("think", "sign in"), ""));
            assert_eq!(told.contains("example.com"), passes, "{told}");
            client.end();
            place.verify();
        }
    }
}

/// A server that sends people to an address before it does anything.
fn linking(address: &str) -> String {
    let server = r#"while read -r line; do id=$(echo "$line" | sed 's/.*"id":\([^,]*\),.*/\1/'); case "$line" in
*'"tools/list"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"resultType\":\"complete\",\"tools\":[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}]}}";;
*'"tools/call"'*) human=$(echo "$line" | sed 's/.*"human":"\([^"]*\)".*/\1/')
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32042,\"message\":\"first\",\"data\":{\"elicitations\":[ {\"mode\":\"url\",\"url\":\"https://ADDRESS/\",\"message\":\"$human\"}]}}}";;
esac; done"#;
    server.replace("ADDRESS", address)
}

#[test]
fn where_an_error_sends_people_is_looked_at() {
    for (address, human, told) in [
        ("example.com", "sign in", Ok("sign in")),
        ("example.com", "do it now", Ok("please")),
        ("rude.example", "sign in", Err("rude")),
        ("example.com", "a rude word", Err("rude")),
    ] {
        let place = Place::new();
        let mut door = door(&place, &[]);
        std::fs::write(place.path("server.sh"), linking(address)).unwrap();
        let mut client = Client::start(&mut door);
        let got = client.ask(call(1, ("think", human), ""));
        match told {
            Ok(message) => assert_eq!(
                got,
                format!(
                    r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32042,"message":"first","data":{{"elicitations":[ {{"mode":"url","url":"https://{address}/","message":"{message}"}}]}}}}}}"#
                )
            ),
            Err(reason) => {
                assert!(got.contains(&format!("\"reason\":\"{reason}\"")), "{got}");
                assert!(!got.contains(address) && !got.contains(human), "{got}");
            }
        }
        client.end();
        place.verify();
    }
}

#[test]
fn a_call_that_brings_what_may_not_pass_does_not_reach_the_server() {
    for (answer, reason) in [
        (("never", "dana"), "model_said_no"),
        (("gladly", "rude words"), "rude"),
        // An answer is an object, so this change cannot be carried out.
        (("gladly", "now"), "runtime_error:adapter_unsupported"),
    ] {
        let [asked, told, heard] = round(("think", "your name"), answer);
        assert!(asked.contains("inputRequests"), "{asked}");
        let reason = format!("\"reason\":\"{reason}\"");
        assert!(
            told.contains("\"error\"") && told.contains(&reason),
            "{told}"
        );
        assert!(heard.is_empty(), "{heard}");
    }
}

#[test]
fn a_result_that_people_let_pass_still_asks_only_what_may_pass() {
    for (human, passes) in [("your name", true), ("a rude question", false)] {
        let place = Place::new();
        place.run(&["approver", "init", "--name", "dana"]);
        let mut client = Client::start(&mut door(&place, &["--hold-wait", "0"]));
        let look = |id: u32| {
            let call = call(id, ("think", human), "");
            call.replace("\"human\":", "\"say\":\"look\",\"human\":")
        };
        let held = client.ask(look(1));
        assert!(held.contains("look_at_it"), "{held}");
        approve(&place);
        let released = client.ask(look(2));
        assert_eq!(released.contains("inputRequests"), passes, "{released}");
        assert_eq!(released.contains("\"reason\":\"rude\""), !passes);
        client.end();
        place.verify();
    }
}

#[test]
fn the_http_door_looks_at_what_a_result_asks_and_what_comes_back() {
    let place = Place::new();
    let http = Daemon::of(&mut door(&place, &["serve", "--listen", "127.0.0.1:0"]));
    let named = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n";
    let ask = |body: String| http.send("/mcp", named, &body);
    let plain = ("think", "your name");
    let asked = ask(call(1, plain, ""));
    assert!(asked.contains("inputRequests"), "{asked}");
    let refused = ask(call(2, ("think", "a rude question"), ""));
    assert!(
        refused.contains("withheld") && !refused.contains("inputRequests"),
        "{refused}"
    );
    // It comes on another connection, where nobody knows what was asked.
    assert!(ask(call(3, plain, &answers(("gladly", "dana")))).contains("\"asked\""));
    for answer in [("never", "dana"), ("gladly", "rude words")] {
        let refused = ask(call(4, plain, &answers(answer)));
        assert!(refused.contains("\"error\""), "{refused}");
    }
    http.end();
    assert_eq!(place.lines("server.sh.heard").len(), 1);
    place.verify();
}
