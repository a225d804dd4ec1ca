//! An Agent Control manifest behind the doors, as processes: `countersign mcp --acs` and
//! `countersign serve --acs`.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

#[path = "agent_control/asked.rs"]
mod asked;
#[path = "agent_control/rounds.rs"]
mod rounds;
#[path = "agent_control/warned.rs"]
mod warned;
mod wrapped;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use wrapped::{Client, INITIALIZE, Place};

const MANIFEST: &str = "
agent_control_specification_version: 0.3.1-beta
policies:
  agent: {type: rego, bundle: rules}
intervention_points:
  agent_startup: {policy_target: $.agent_init, policy: {id: agent, query: data.agent.start}}
  pre_model_call: {policy_target: $.messages, policy: {id: agent, query: data.agent.asked}}
  post_model_call: {policy_target: $.response, policy: {id: agent, query: data.agent.answered}}
  pre_tool_call:
    policy_target: $.tool_call.args
    tool_name_from: $.tool_call.name
    policy: {id: agent, query: data.agent.call}
  post_tool_call:
    policy_target: $.tool_result.value
    tool_name_from: $.tool_call.name
    policy: {id: agent, query: data.agent.result}
  input: {policy_target: $.input.body, policy: {id: agent, query: data.agent.words}}
  output: {policy_target: $.response.content, policy: {id: agent, query: data.agent.words}}
  agent_shutdown: {policy_target: $.summary, policy: {id: agent, query: data.agent.allow}}
tools: {echo: {}, write: {clearance: internal}, sleep: {}, resources/read: {}}
";

const RULES: &str = r#"package agent
import rego.v1
args := input.snapshot.tool_call.args
allow := {"decision": "allow"}
default start := {"decision": "allow", "result_labels": ["public"]}
start := {"decision": "deny", "reason": "unknown_client"} if input.policy_target.value.client.name == "evil"
default call := {"decision": "allow"}
call := {"decision": "deny", "reason": "no_secrets"} if args.say == "secret"
call := {"decision": "transform", "transform": {"path": "$policy_target.say", "value": "[gone]"}} if args.say == "card"
call := {"decision": "allow", "result_labels": ["confidential"]} if args.say == "ledger"
call := {"decision": "deny", "reason": "ifc_clearance_violation"} if {
	input.tool.clearance == "internal"
	"confidential" in input.snapshot.ifc.source_labels
}
default result := {"decision": "allow"}
result := {"decision": "deny", "reason": "leaks"} if args.say == "hide"
result := {"decision": "deny", "reason": "leaks"} if args.uri == "toy:hide"
call := {"decision": "deny", "reason": "no_secrets"} if args.uri == "toy:secret"
result := {"decision": "escalate", "reason": "look_at_it"} if args.say == "look"
result := {"decision": "transform", "transform": {"path": "$policy_target.content[0].text", "value": "cleaned"}} if args.say == "clean"
result := {"decision": "transform", "transform": {"path": "$policy_target", "value": "cleaned"}} if args.say == "plain"
result := {"decision": "deny", "reason": "leaks_late"} if late("later hide")
result := {"decision": "transform", "transform": {"path": "$policy_target.content[0].text", "value": "cleaned"}} if late("later clean")
late(word) if {
	args.say == word
	contains(text, "done")
}
result := {"decision": "warn", "reason": "careful", "message": "be careful"} if args.say in {"hot", "hotter"}
result := {"decision": "warn", "reason": "careful", "message": "be careful"} if late("later hot")
call := {"decision": "warn", "reason": "warm", "message": "it is warm"} if args.say == "hotter"
default asked := {"decision": "allow"}
asked := {"decision": "transform", "transform": {"path": "$policy_target[0].content.text", "value": "asked nicely"}} if {
	contains(input.policy_target.value[0].content.text, "now")
	not forbidden
}
forbidden if contains(json.marshal(input.snapshot.model.params), "forbidden")
asked := {"decision": "deny", "reason": "no_such_tools"} if forbidden
default answered := {"decision": "allow"}
answered := {"decision": "deny", "reason": "model_said_no"} if contains(text, "by no means")
answered := {"decision": "deny", "reason": "model_said_no"} if contains(input.policy_target.value.content.text, "never")
text := json.marshal(input.policy_target.value)
default words := {"decision": "allow"}
words := {"decision": "deny", "reason": "rude"} if contains(text, "rude")
words := {"decision": "deny", "reason": "rude"} if contains(json.marshal(input.snapshot.response), "rude")
words := {"decision": "escalate", "reason": "odd"} if contains(text, "odd")
words := {"decision": "transform", "transform": {"path": "$policy_target", "value": "please"}} if contains(text, "now")
"#;

fn lay_out(folder: &Path) -> String {
    std::fs::create_dir_all(folder.join("acs/rules")).unwrap();
    std::fs::write(folder.join("acs/rules/agent.rego"), RULES).unwrap();
    let file = folder.join("acs/agent.yaml");
    std::fs::write(&file, MANIFEST).unwrap();
    file.to_str().unwrap().to_owned()
}

fn say(client: &mut Client, id: usize, tool: &str, word: &str) -> String {
    client.ask(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"say":"{word}"}}}}}}"#
    ))
}

fn countersign(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(arguments)
        .arg("--data")
        .arg(folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}{said}");
    text
}

/// The only session of the log, decided again from the record.
fn replays(folder: &Path) {
    let text = countersign(folder, &["session", "list", "--format", "json"]);
    let at = text.find("\"session_id\":\"").unwrap() + "\"session_id\":\"".len();
    let session = text[at..].split('"').next().unwrap().to_owned();
    countersign(folder, &["replay", &session]);
}

#[test]
fn an_mcp_session_is_governed_from_its_start_to_its_end() {
    let place = Place::new();
    let acs = lay_out(place.folder.path());
    let mut client = place.guarded(&["--acs", &acs]);
    assert!(client.ask(INITIALIZE).contains("protocolVersion"));
    assert!(say(&mut client, 1, "echo", "hello").contains("done"));
    let denied = say(&mut client, 2, "echo", "secret");
    assert!(
        denied.contains("no_secrets") && !denied.contains("done"),
        "{denied}"
    );
    assert!(say(&mut client, 3, "echo", "card").contains("done"));
    let withheld = say(&mut client, 4, "echo", "hide");
    assert!(
        withheld.contains("leaks") && !withheld.contains("done"),
        "{withheld}"
    );
    let cleaned = say(&mut client, 5, "echo", "clean");
    assert!(
        cleaned.contains("cleaned") && !cleaned.contains("done"),
        "{cleaned}"
    );
    // A result of the protocol is an object, so this change cannot be carried out.
    let unfit = say(&mut client, 6, "echo", "plain");
    assert!(unfit.contains("adapter_unsupported") && !unfit.contains("done"));
    // Nobody looks at what stands around a result.
    let around = say(&mut client, 10, "echo", "around");
    assert!(!around.contains("done"), "{around}");
    // What was read as confidential does not go where that must not be.
    assert!(say(&mut client, 7, "write", "first").contains("done"));
    assert!(say(&mut client, 8, "echo", "ledger").contains("done"));
    let kept = say(&mut client, 9, "write", "then");
    assert!(kept.contains("ifc_clearance_violation"), "{kept}");
    client.end();
    let received = place.lines("received").join("\n");
    assert!(
        received.contains("[gone]") && !received.contains("\"card\""),
        "{received}"
    );
    assert!(!received.contains("secret"), "{received}");
    place.verify();
    replays(&place.path("data"));
    let exported = countersign(&place.path("data"), &["log", "export"]);
    for point in [
        "agent_startup",
        "pre_tool_call",
        "post_tool_call",
        "agent_shutdown",
    ] {
        let wanted = format!("\"intervention_point\":\"{point}\"");
        assert!(exported.contains(&wanted), "{point}");
    }
}

#[test]
fn results_of_tasks_are_looked_at_like_others() {
    let place = Place::new();
    let acs = lay_out(place.folder.path());
    let mut client = place.guarded(&["--acs", &acs]);
    client.ask(INITIALIZE);
    let mut id = 0;
    let mut fetch = |client: &mut Client, how: &str, task: &str| {
        id += 1;
        client.ask(format!(
            r#"{{"jsonrpc":"2.0","id":"q{id}","method":"tasks/{how}","params":{{"taskId":"{task}"}}}}"#
        ))
    };
    assert!(say(&mut client, 1, "echo", "later").contains("taskId"));
    for how in ["result", "get"] {
        assert!(fetch(&mut client, how, "t1").contains("done"), "{how}");
    }
    assert!(say(&mut client, 2, "echo", "later hide").contains("taskId"));
    for how in ["result", "get"] {
        let hidden = fetch(&mut client, how, "t2");
        assert!(
            hidden.contains("leaks_late") && !hidden.contains("done"),
            "{hidden}"
        );
        assert!(!hidden.contains(r#""event":null"#), "{hidden}");
    }
    assert!(say(&mut client, 3, "echo", "later clean").contains("taskId"));
    let cleaned = fetch(&mut client, "result", "t3");
    assert!(
        cleaned.contains("cleaned") && !cleaned.contains("done"),
        "{cleaned}"
    );
    // What stands inside of something else cannot be changed, and is not shown as it is.
    let inside = fetch(&mut client, "get", "t3");
    assert!(
        inside.contains("adapter_unsupported") && !inside.contains("done"),
        "{inside}"
    );
    // Nobody knows whose result this is, so nobody can look at it.
    let foreign = fetch(&mut client, "result", "t9");
    assert!(!foreign.contains("done"), "{foreign}");
    let numbered = r#"{"jsonrpc":"2.0","id":"n","method":"tasks/result","params":{"taskId":9}}"#;
    let numbered = client.ask(numbered);
    assert!(!numbered.contains("done"), "{numbered}");
    client.end();
    place.verify();
    replays(&place.path("data"));
}

#[test]
fn what_is_fetched_is_seen_before_it_is_asked_for_and_before_the_agent_has_it() {
    let place = Place::new();
    let acs = lay_out(place.folder.path());
    let mut client = place.guarded(&["--acs", &acs, "--refusals", "result"]);
    client.ask(INITIALIZE);
    let fetch = |client: &mut Client, id: u32, uri: &str| {
        client.ask(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/read","params":{{"uri":"{uri}"}}}}"#
        ))
    };
    assert!(fetch(&mut client, 1, "toy:x").contains("contents"));
    let secret = fetch(&mut client, 2, "toy:secret");
    assert!(secret.contains("no_secrets"), "{secret}");
    let hidden = fetch(&mut client, 3, "toy:hide");
    assert!(
        hidden.contains("leaks") && !hidden.contains("contents"),
        "{hidden}"
    );
    // What refuses it is an error, and so it is with an answer to a task; a call has a result.
    let rude = r#"{"jsonrpc":"2.0","id":4,"method":"tasks/update","params":{"taskId":"t","inputResponses":{"q":"rude"}}}"#;
    let rude = client.ask(rude);
    assert!(rude.contains("\"error\"") && hidden.contains("\"error\""));
    let again = r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#; // It was not sent: nothing waits under its id.
    assert!(client.ask(again).contains("\"result\""));
    assert!(say(&mut client, 5, "echo", "hide").contains("isError"));
    client.end();
    let received = place.lines("received");
    let read = |line: &&String| line.contains("resources/read");
    assert_eq!(received.iter().filter(read).count(), 2, "{received:?}");
    place.verify();
    replays(&place.path("data"));
}

#[test]
fn an_agent_that_may_not_begin_does_nothing() {
    let place = Place::new();
    let acs = lay_out(place.folder.path());
    let mut client = place.guarded(&["--acs", &acs]);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let evil = INITIALIZE.replace("\"name\":\"t\"", "\"name\":\"evil\"");
    let refused = client.ask(evil);
    assert!(refused.contains("unknown_client"), "{refused}");
    assert!(say(&mut client, 1, "echo", "hello").contains("unknown_client"));
    let read = r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"toy:x"}}"#;
    assert!(client.ask(read).contains("unknown_client"));
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.end();
    assert!(place.lines("received").is_empty());
    place.verify();
}

/// Approves the only request that waits, as its approver would.
fn approve(place: &Place) {
    let listed = place.run(&["approval", "list", "--format", "json"]);
    let id = text(&listed, "approval_id").unwrap_or_else(|| panic!("{listed}"));
    let code = text(&listed, "short_code").unwrap_or_else(|| panic!("{listed}"));
    place.run(&["approval", "approve", &id, "--code", &code]);
}

#[test]
fn a_held_result_is_delivered_when_people_let_it_pass_and_the_call_runs_once() {
    let place = Place::new();
    let acs = lay_out(place.folder.path());
    place.run(&["approver", "init", "--name", "dana"]);
    let mut client = place.guarded(&["--acs", &acs, "--hold-wait", "0"]);
    client.ask(INITIALIZE);
    let held = say(&mut client, 1, "echo", "look");
    assert!(
        held.contains("-32001") && held.contains("look_at_it") && !held.contains("done"),
        "{held}"
    );
    // Made again, it still waits, and does not run again.
    let again = say(&mut client, 2, "echo", "look");
    assert!(
        again.contains("-32001") && !again.contains("done"),
        "{again}"
    );
    approve(&place);
    let released = say(&mut client, 3, "echo", "look");
    assert!(released.contains("done"), "{released}");
    let calls = |place: &Place| {
        let received = place.lines("received");
        received
            .iter()
            .filter(|line| line.contains("tools/call"))
            .count()
    };
    assert_eq!(calls(&place), 1);
    // The one use is taken: the next is a call like any other.
    let next = say(&mut client, 4, "echo", "look");
    assert!(next.contains("-32001"), "{next}");
    assert_eq!(calls(&place), 2);
    client.end();
    place.verify();
}

#[test]
fn the_http_door_asks_at_the_same_points() {
    let place = Place::new();
    let acs = lay_out(place.folder.path());
    place.run(&["approver", "init", "--name", "dana"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(["mcp", "serve", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(place.path("data"));
    command.arg("--manifest").arg(place.path("manifest.json"));
    command.args(["--hold-wait", "0", "--acs", &acs, "--"]);
    let mut door = Daemon::of(command.args(place.server()));
    let mut ask = |id: usize, method: &str, params: &str| {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        door.mcp(&body)
    };
    let about = |name: &str| {
        format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"{name}","version":"0"}}}}"#
        )
    };
    assert!(ask(0, "initialize", &about("t")).contains("protocolVersion"));
    let mut call = |id: usize, word: &str| {
        ask(
            id,
            "tools/call",
            &format!(r#"{{"name":"echo","arguments":{{"say":"{word}"}}}}"#),
        )
    };
    assert!(call(1, "hello").contains("done"));
    let denied = call(2, "secret");
    assert!(denied.contains("no_secrets"), "{denied}");
    assert!(call(3, "card").contains("done"));
    let withheld = call(4, "hide");
    assert!(
        withheld.contains("leaks") && !withheld.contains("done"),
        "{withheld}"
    );
    assert!(call(5, "clean").contains("cleaned"));
    let held = call(6, "look");
    assert!(
        held.contains("-32001") && held.contains("look_at_it"),
        "{held}"
    );
    approve(&place);
    assert!(call(7, "look").contains("done"));
    door.session = None;
    let refused = door.mcp(&format!(
        r#"{{"jsonrpc":"2.0","id":8,"method":"initialize","params":{}}}"#,
        about("evil")
    ));
    assert!(refused.contains("unknown_client"), "{refused}");
    door.end();
    let received = place.lines("received").join("\n");
    assert!(
        received.contains("[gone]") && !received.contains("secret"),
        "{received}"
    );
    let looks = received.lines().filter(|line| line.contains("\"look\""));
    assert_eq!(looks.count(), 1, "{received}");
    place.verify();
    let exported = countersign(&place.path("data"), &["log", "export"]);
    for point in ["agent_startup", "post_tool_call", "agent_shutdown"] {
        let wanted = format!("\"intervention_point\":\"{point}\"");
        assert!(exported.contains(&wanted), "{point}");
    }
}

struct Daemon {
    child: Child,
    address: String,
    /// The session that an MCP door gave.
    session: Option<String>,
}

impl Daemon {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::of(
            Command::new(env!("CARGO_BIN_EXE_countersign"))
                .args(["serve", "--no-auth", "--listen", "127.0.0.1:0", "--data"])
                .arg(folder)
                .args(arguments),
        )
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut address = String::new();
        while address.is_empty() {
            let mut line = String::new();
            assert!(said.read_line(&mut line).unwrap() > 0, "it did not start");
            if let Some(rest) = line.strip_prefix("countersign: http://") {
                let place = rest.split([' ', '/']).next();
                address = place.unwrap().trim_end().to_owned();
            }
        }
        std::thread::spawn(move || said.read_to_string(&mut String::new()));
        Self {
            child,
            address,
            session: None,
        }
    }

    fn post(&self, path: &str, body: &str) -> String {
        self.send(path, "", body)
    }

    /// A message to an MCP door, in the session that it gave.
    fn mcp(&mut self, body: &str) -> String {
        let session = self.session.as_ref();
        let session = session.map(|name| format!("Mcp-Session-Id: {name}\r\n"));
        let answer = self.send("/mcp", &session.unwrap_or_default(), body);
        let given = answer.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("mcp-session-id")
                .then(|| value.trim().to_owned())
        });
        self.session = given.or(self.session.take());
        answer
    }

    /// Ends as it should, with everything written.
    fn end(mut self) {
        let id = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(told.success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }

    fn send(&self, path: &str, more: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{more}Content-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn at(&self, point: &str, snapshot: &str) -> String {
        let body = format!(
            r#"{{"tenant_id":"t","session_id":"s","intervention_point":"{point}","snapshot":{snapshot}}}"#
        );
        self.post("/v1/interventions", &body)
    }

    /// Proposes a call, and tells what came of it.
    fn run(&self, word: &str, answer: &str) -> (String, String) {
        let body = format!(
            r#"{{"tenant_id":"t","session_id":"s","tool_name":"echo","args":{{"say":"{word}"}}}}"#
        );
        let proposed = self.post("/v1/actions", &body);
        let (Some(action), Some(permit)) =
            (text(&proposed, "action_id"), text(&proposed, "permit"))
        else {
            return (proposed, String::new());
        };
        let body = format!(r#"{{"permit":"{permit}","content":{answer}}}"#);
        let told = self.post(&format!("/v1/actions/{action}/result"), &body);
        (proposed, told)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(json: &str, member: &str) -> Option<String> {
    let (_, rest) = json.split_once(&format!("\"{member}\":\""))?;
    Some(rest.split('"').next()?.to_owned())
}

#[test]
fn the_daemon_asks_at_every_point() {
    let place = Place::new();
    let acs = lay_out(place.folder.path());
    let manifest = place.path("manifest.json").to_str().unwrap().to_owned();
    let config = place.path("countersign.toml");
    std::fs::write(
        &config,
        format!("acs = \"{acs}\"\nmanifest = \"{manifest}\"\n"),
    )
    .unwrap();
    let config = config.to_str().unwrap().to_owned();
    let daemon = Daemon::start(&place.path("data"), &["--config", &config]);
    let begun = daemon.at("agent_startup", r#"{"agent_init":{"client":{"name":"x"}}}"#);
    assert!(
        begun.contains("\"passed\"") && begun.contains("\"public\""),
        "{begun}"
    );
    let asked = daemon.at("input", r#"{"input":{"body":"do it now"}}"#);
    assert!(
        asked.contains("\"transform\"") && asked.contains("please"),
        "{asked}"
    );
    // Nobody is on the list of approvers.
    let odd = daemon.at("output", r#"{"response":{"content":"odd"}}"#);
    assert!(odd.contains("approval_resolver_failed"), "{odd}");
    let forged = daemon.at(
        "input",
        r#"{"input":{"body":"x"},"ifc":{"source_labels":[]}}"#,
    );
    assert!(forged.starts_with("HTTP/1.1 400"), "{forged}");
    let tool = daemon.at("pre_tool_call", "{}");
    assert!(tool.starts_with("HTTP/1.1 400"), "{tool}");
    assert!(daemon.run("secret", "1").0.contains("no_secrets"));
    let (changed, _) = daemon.run("card", "1");
    assert!(changed.contains("[gone]"), "{changed}");
    assert!(daemon.run("hello", "\"x\"").1.contains("as_it_came"));
    let (_, withheld) = daemon.run("hide", "\"x\"");
    assert!(
        withheld.contains("\"withheld\"") && withheld.contains("leaks"),
        "{withheld}"
    );
    let (_, cleaned) = daemon.run("plain", "\"x\"");
    assert!(
        cleaned.contains("\"changed\"") && cleaned.contains("cleaned"),
        "{cleaned}"
    );
    // Nobody is on the list of approvers: a result that people should see is withheld.
    let (_, unasked) = daemon.run("look", "\"x\"");
    assert!(
        unasked.contains("\"withheld\"") && unasked.contains("approval_resolver_failed"),
        "{unasked}"
    );
    place.run(&["approver", "init", "--name", "dana"]);
    let (_, held) = daemon.run("look", "\"the result\"");
    assert!(
        held.contains("\"held\"") && held.contains("look_at_it"),
        "{held}"
    );
    let approval = text(&held, "approval_id").unwrap();
    let release = || {
        let body = format!(
            r#"{{"tenant_id":"t","session_id":"s","intervention_point":"post_tool_call","approval_id":"{approval}","snapshot":{{}}}}"#
        );
        daemon.post("/v1/interventions", &body)
    };
    assert!(!release().contains("the result"));
    approve(&place);
    let released = release();
    assert!(
        released.contains("\"passed\"") && released.contains("the result"),
        "{released}"
    );
    assert!(!release().contains("the result"));
    drop(daemon);
    place.verify();
    countersign(&place.path("data"), &["replay", "s", "--tenant", "t"]);
}
