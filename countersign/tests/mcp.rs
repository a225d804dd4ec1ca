//! `countersign mcp` between a client and a server, as processes.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod wrapped;

use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::time::Duration;

use wrapped::{Client, INITIALIZE, Place, call};

/// What a client says, one frame at a time.
const SCRIPT: &[&str] = &[
    INITIALIZE,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#" {"id" : 1,"jsonrpc":"2.0", "method":"tools/list","params":{"_meta":{"progressToken":1}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"b":1.50,"a":"\u00e9","z":[ ]}}}"#,
    "{\"params\":{\"arguments\":null,\"name\":\"write\"},\"method\":\"tools/call\",\"id\":\"x\",\"jsonrpc\":\"2.0\"}\r",
    r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","task":{"ttl":1},"_meta":{"traceparent":"00-1-2-01"}},"future":true}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"toy:x"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1.0}}"#,
    r#"{"jsonrpc":"2.0","id":6,"method":"logging/setLevel","params":{"level":"info"}}"#,
];

fn play(mut client: Client) -> Vec<String> {
    let mut got = Vec::new();
    for line in SCRIPT {
        client.send(line);
        if line.contains("\"id\"") {
            // The process id differs, and so do its digits.
            let line = client.receive();
            got.push(line.split(",\"pid\"").next().unwrap().to_owned());
        }
    }
    assert!(client.hears_nothing(Duration::from_millis(100)));
    let (status, stderr) = client.end();
    assert_eq!(status.code(), Some(7), "{stderr}");
    assert_eq!(stderr, "toy: ready\ntoy: end of input\n");
    got
}

#[test]
fn frames_are_the_same_with_and_without_the_wrapper() {
    let (direct, guarded) = (Place::new(), Place::new());
    let expect = play(direct.direct());
    let got = play(guarded.guarded(&[]));
    assert_eq!(got, expect);
    assert_eq!(guarded.lines("received"), direct.lines("received"));
    assert_eq!(guarded.lines("received").len(), SCRIPT.len());
    assert_eq!(guarded.count("TOOL_RESULT"), 4);
    assert_eq!(guarded.count("TERMINATION"), 1);
    guarded.verify();
}

#[test]
fn without_a_manifest_what_a_person_said_only_reads_runs_and_the_rest_is_held() {
    let place = Place::new();
    let mut client = place.wrapped(&[], &[]);
    // That the server says so is not enough.
    assert!(client.call(1, "echo").contains("\"code\":-32001"));
    client.end();
    accept_as_reading(&place, "echo");
    let mut client = place.wrapped(&[], &[]);
    assert!(client.call(1, "echo").contains("done"));
    let held = client.call(2, "write");
    assert!(held.contains("\"code\":-32001"), "{held}");
    assert!(client.call(3, "echo").contains("done"));
    place.waits_for(2, "TOOL_RESULT");
    let unlisted = client.call(4, "not-there");
    assert!(unlisted.contains("TOOL_UNLISTED"), "{unlisted}");
    let (_, stderr) = client.end();
    assert_eq!(stderr.matches("no manifest").count(), 1, "{stderr}");
    assert_eq!(place.lines("effects").len(), 2);
    place.verify();
}

#[test]
fn a_tool_that_changed_since_the_last_time_is_refused() {
    let place = Place::new();
    place.wrapped(&[], &[]).call(1, "echo");
    accept_as_reading(&place, "echo");
    let mut client = place.wrapped(&[], &[]);
    assert!(client.call(1, "echo").contains("done"));
    client.end();
    let named = &["--server", "toy_mcp_server"];
    let mut client = place.wrapped(named, &["--changed"]);
    let refused = client.call(1, "echo");
    assert!(refused.contains("TOOL_CHANGED"), "{refused}");
    client.end();
    assert_eq!(place.lines("effects").len(), 1);
    // Somebody edits the book: the wrapper does not start.
    let book = place.path("data/tools/toy_mcp_server.json");
    let text = std::fs::read_to_string(&book).unwrap();
    std::fs::write(&book, text.replace("Repeats", "Sends")).unwrap();
    let (status, stderr) = place.wrapped(named, &["--changed"]).end();
    assert_eq!(status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("C0812"), "{stderr}");
    // Another one does; whether its tools are its own cannot be told.
    let mut client = place.wrapped(&["--server", "other"], &[]);
    assert!(client.call(1, "echo").contains("TOOL_SHADOWED"));
    let (_, stderr) = client.end();
    assert_eq!(
        stderr.matches("until it can be read").count(),
        1,
        "{stderr}"
    );
    place.verify();
}

#[test]
fn a_session_from_before_a_tool_was_pinned_goes_by_what_was_pinned() {
    let place = Place::new();
    let manifest = place.path("manifest.json").to_str().unwrap().to_owned();
    let options = ["--manifest", &manifest, "--server", "toy"];
    let mut early = place.wrapped(&options, &["--changed"]);
    let mut another = place.guarded(&["--server", "another"]);
    early.ask(INITIALIZE);
    another.ask(INITIALIZE);
    let mut other = place.wrapped(&options, &[]);
    assert!(other.call(1, "echo").contains("done"));
    other.end();
    let refused = early.call(1, "echo");
    assert!(refused.contains("TOOL_CHANGED"), "{refused}");
    assert!(early.call(2, "write").contains("done"));
    early.end();
    // Another server, which was there before, does not get the name either.
    let refused = another.call(1, "echo");
    assert!(refused.contains("TOOL_SHADOWED"), "{refused}");
    another.end();
    assert_eq!(place.lines("effects").len(), 2);
    place.verify();
}

#[test]
fn what_one_program_was_allowed_is_not_allowed_to_another_of_its_name() {
    let place = Place::new();
    place.wrapped(&[], &[]).call(1, "echo");
    accept_as_reading(&place, "echo");
    let mut client = place.wrapped(&[], &[]);
    assert!(client.call(1, "echo").contains("done"));
    client.end();

    let words = place.server();
    let other = place.path("other");
    std::fs::create_dir(&other).unwrap();
    let program = other.join(std::path::Path::new(&words[0]).file_name().unwrap());
    std::fs::copy(&words[0], &program).unwrap();
    let start = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command.args(["mcp", "--hold-wait", "0", "--data"]);
        command.arg(place.path("data")).args(options).arg("--");
        Client::start(command.arg(&program).args(&words[1..]))
    };
    let mut client = start(&[]);
    let held = client.call(1, "echo");
    assert!(held.contains("\"code\":-32001"), "{held}");
    let (_, stderr) = client.end();
    let renamed = "so this server is called `toy_mcp_server-";
    assert!(stderr.contains(renamed), "{stderr}");

    let named = ["--server", "toy_mcp_server"];
    let mut client = start(&named);
    let held = client.call(1, "echo");
    assert!(held.contains("\"code\":-32001"), "{held}");
    let (_, stderr) = client.end();
    assert_eq!(place.lines("effects").len(), 1);
    let accept = stderr
        .lines()
        .find_map(|line| line.split_once("accept-command "));
    let (_, words) = accept.unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["tools", "accept-command"])
        .args(words.split_whitespace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut client = start(&named);
    assert!(client.call(1, "echo").contains("done"));
    client.end();
    // The first is still what it was.
    let mut client = place.wrapped(&[], &[]);
    assert!(client.call(1, "echo").contains("done"));
    client.end();
    place.verify();
}

#[test]
fn a_client_that_leaves_takes_back_what_it_has_asked_for() {
    let place = Place::new();
    let countersign = |arguments: &[&str]| place.run(arguments);
    let key = place.path("dana.key");
    let key = key.to_str().unwrap();
    countersign(&["approver", "init", "--name", "dana", "--key", key]);
    let mut client = place.wrapped(&["--hold-wait", "0"], &[]);
    let held = client.call(1, "write");
    assert!(held.contains("\"code\":-32001"), "{held}");
    assert!(countersign(&["approval", "list"]).contains("HOLD"));
    client.end();
    assert_eq!(countersign(&["approval", "list"]), "nothing is held\n");
    assert!(countersign(&["approval", "list", "--all"]).contains("CANCELLED"));
    countersign(&["approval", "audit"]);
    place.verify();
}

#[test]
fn calls_at_the_same_time_all_come_back() {
    let place = Place::new();
    let mut client = place.guarded(&[]);
    const CALLS: usize = 200;
    for id in 0..CALLS {
        client.send(call(id, "echo"));
    }
    let mut ids: Vec<usize> = (0..CALLS)
        .map(|_| {
            let line = client.answer();
            assert!(line.contains("done"), "{line}");
            line.rsplit("\"id\":")
                .next()
                .unwrap()
                .trim_end_matches('}')
                .parse()
                .unwrap()
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..CALLS).collect::<Vec<_>>());
    client.end();
    assert_eq!(place.lines("effects").len(), CALLS);
    assert_eq!(place.count("TOOL_RESULT"), CALLS);
    place.verify();
}

#[test]
fn a_server_that_dies_leaves_an_answer_its_exit_code_and_a_log() {
    let place = Place::new();
    let mut client = place.guarded(&[]);
    client.ask(INITIALIZE);
    let answer = client.call(1, "die");
    assert!(
        answer.contains("SERVER_GONE") && answer.contains("\"id\":1"),
        "{answer}"
    );
    let (status, _) = client.wait();
    assert_eq!(status.code(), Some(3));
    assert_eq!(place.count("TOOL_CALL_EXECUTED"), 1);
    assert_eq!(place.count("ERROR_RAISED"), 1);
    assert_eq!(place.count("TERMINATION"), 1);
    place.verify();
}

#[test]
fn a_server_that_hangs_is_given_up_and_the_connection_goes_on() {
    let place = Place::new();
    let mut client = place.guarded(&[]);
    let answer = client.call(1, "hang");
    assert!(answer.contains("TIMEOUT"), "{answer}");
    assert!(client.call(2, "echo").contains("done"));
    client.end();
    assert!(
        place
            .lines("received")
            .iter()
            .any(|line| line.contains("notifications/cancelled"))
    );
    place.verify();
}

#[test]
fn garbage_floods_and_huge_frames_from_a_server_do_no_harm() {
    let place = Place::new();
    let mut client = place.guarded(&["--max-frame", "67108864"]);
    let answer = client.call(1, "garbage");
    assert!(
        answer.contains("SERVER_FRAME_REFUSED") && answer.contains("\"id\":1"),
        "{answer}"
    );
    assert!(client.call(2, "flood").contains("done"));
    let answer = client.call(3, "big");
    assert!(
        answer.contains("SERVER_FRAME_REFUSED") && answer.contains("\"id\":3"),
        "{answer}"
    );
    assert!(client.call(4, "echo").contains("done"));
    client.end();
    place.verify();
}

#[test]
fn garbage_and_huge_frames_from_a_client_do_no_harm() {
    let place = Place::new();
    let mut client = place.guarded(&["--max-frame", "1000000"]);
    let huge = format!(
        r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{"name":"echo","arguments":{{"x":"{}"}}}}}}"#,
        "x".repeat(2_000_000)
    );
    let refused = client.ask(&huge);
    assert!(
        refused.contains("\"id\":9") && refused.contains("-32700"),
        "{refused}"
    );
    for hostile in [
        &b"\xff\xfe"[..],
        b"garbage",
        br#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}]"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"Tools/Call","params":{"name":"echo"}}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"echo"}}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"undeclared"}}"#,
    ] {
        let refused = client.ask(hostile);
        assert!(refused.contains("\"error\""), "{refused}");
    }
    client.send(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}"#);
    assert!(client.call(10, "echo").contains("done"));
    client.end();
    assert_eq!(place.lines("effects").len(), 1);
    place.verify();
}

#[test]
fn a_signal_reaches_the_server_and_its_end_is_ours() {
    let place = Place::new();
    let mut client = place.guarded(&[]);
    let pid = server_pid(&client.ask(INITIALIZE));
    kill("-TERM", client.child.id());
    let (status, _) = client.wait();
    assert_eq!(status.code(), Some(128 + 15));
    assert!(!is_alive(pid));
    assert_eq!(place.count("TERMINATION"), 1);
    place.verify();
}

/// Notes signals, and answers late where it is asked to.
const SLOW: &str = r#"
import json, signal, sys, time
def note(number, _): print(signal.Signals(number).name, file=sys.stderr, flush=True)
for name in ("SIGINT", "SIGHUP", "SIGUSR1"): signal.signal(getattr(signal, name), note)
for line in sys.stdin:
    message = json.loads(line)
    time.sleep(7 if "params" in message else 0)
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}), flush=True)
"#;

#[test]
fn what_a_server_does_about_signals_and_when_it_answers_is_its_own() {
    let place = Place::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(["mcp", "--data"]).arg(place.path("data"));
    let mut client = Client::start(command.args(["--", "python3", "-c", SLOW]));
    client.ask(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    for signal in ["-INT", "-HUP", "-USR1"] {
        kill(signal, client.child.id());
    }
    // Longer than a server is given that nobody waits for.
    client.send(r#"{"jsonrpc":"2.0","id":2,"method":"ping","params":{}}"#);
    client.close();
    assert!(client.answer().contains("\"id\": 2"));
    let (status, stderr) = client.wait();
    assert_eq!(status.code(), Some(0), "{stderr}");
    for signal in ["SIGINT", "SIGHUP", "SIGUSR1"] {
        assert!(stderr.contains(signal), "{stderr}");
    }
    place.verify();
}

#[test]
fn the_server_dies_with_us_even_when_we_are_killed() {
    let place = Place::new();
    let mut client = place.guarded(&[]);
    let pid = server_pid(&client.ask(INITIALIZE));
    client.send(call(1, "hang"));
    // Its input ends with us, so it must be busy elsewhere to show what the guard does.
    client.send(call(2, "deaf"));
    std::thread::sleep(Duration::from_millis(300));
    kill("-KILL", client.child.id());
    let (status, _) = client.wait();
    assert_eq!(status.signal(), Some(9));
    let gone = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !is_alive(pid)
    });
    assert!(gone, "the server is still there");
    place.verify();
}

#[test]
fn a_client_that_goes_away_ends_the_server() {
    let place = Place::new();
    let mut client = place.guarded(&[]);
    client.ask(INITIALIZE);
    client.send(call(1, "sleep"));
    let (status, _) = client.end();
    assert_eq!(status.code(), Some(7));
    // The call was decided and forwarded, and its outcome is known.
    assert_eq!(place.count("TOOL_RESULT"), 1);
    place.verify();
}

#[test]
fn what_a_client_asked_before_it_went_away_is_still_done() {
    let place = Place::new();
    let mut client = place.guarded(&[]);
    // The tools are not listed yet, so the call waits for them.
    client.send(call(1, "echo"));
    client.close();
    assert!(client.answer().contains("done"));
    let (status, _) = client.wait();
    assert_eq!(status.code(), Some(7));
    place.verify();
}

#[test]
fn a_policy_beside_the_manifest_has_a_say_and_a_broken_one_stops_the_start() {
    let place = Place::new();
    let policy = place.path("mine.rego");
    let path = policy.to_str().unwrap().to_owned();
    let text = "package mine\nimport rego.v1\n\
        verdict := {\"decision\": \"deny\", \"reason\": \"NOT_TODAY\"} if input.action.tool == \"write\"\n\
        else := {\"decision\": \"allow\", \"reason\": \"OK\"}\n";
    std::fs::write(&policy, text).unwrap();
    let mut client = place.guarded(&["--policy", &path]);
    assert!(client.call(1, "echo").contains("done"));
    let denied = client.call(2, "write");
    assert!(denied.contains("NOT_TODAY"), "{denied}");
    client.end();
    std::fs::write(&policy, "package mine\nverdict := {").unwrap();
    let (status, stderr) = place.guarded(&["--policy", &path]).end();
    assert_eq!(status.code(), Some(3), "{stderr}");
    assert_eq!(place.lines("effects").len(), 1);
    place.verify();
}

#[test]
fn a_command_that_is_not_there_is_said_so() {
    let place = Place::new();
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["mcp", "--data"])
        .arg(place.path("data"))
        .args(["--", "/not/there"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("error[C0811]"));
}

/// Somebody has looked at a tool, and says that it only reads.
fn accept_as_reading(place: &Place, tool: &str) {
    let countersign = |arguments: &[&str]| place.run(arguments);
    let listed = countersign(&["tools", "list"]);
    let row = listed
        .lines()
        .find(|row| row.contains(&format!(" {tool} ")));
    let digest = row.unwrap().split_whitespace().last().unwrap();
    countersign(&["tools", "accept", "toy_mcp_server", tool, digest, "--reads"]);
}

fn server_pid(answer: &str) -> u32 {
    let digits = answer.split("\"pid\":").nth(1).unwrap();
    let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

fn kill(signal: &str, pid: u32) {
    let status = Command::new("kill")
        .arg(signal)
        .arg(pid.to_string())
        .status();
    assert!(status.unwrap().success());
}

fn is_alive(pid: u32) -> bool {
    // A zombie is dead, and waits for somebody else to notice.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .trim_start()
        .to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

#[test]
fn a_client_that_closes_its_end_while_a_call_is_held_ends_everything() {
    for wait in ["0", "30"] {
        let place = Place::new();
        place.run(&["approver", "init", "--name", "dana"]);
        let mut client = place.wrapped(&["--hold-wait", wait], &[]);
        client.send(call(1, "echo"));
        client.close();
        // Nobody waits any more: the call is answered, and the server ends.
        let (_, stderr) = client.wait();
        assert!(stderr.contains("end of input"), "{stderr}");
        assert_eq!(place.lines("effects").len(), 0);
        place.verify();
    }
}

#[test]
fn spans_are_written_for_whoever_asks_in_the_trace_of_the_client() {
    let place = Place::new();
    let file = place.path("spans.ndjson");
    let mut client = place.guarded(&["--telemetry", file.to_str().unwrap()]);
    client.ask(INITIALIZE);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    client.ask(list);
    let traced = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}}"#;
    client.ask(traced);
    client.end();
    let spans = std::fs::read_to_string(file).unwrap();
    let action = spans
        .lines()
        .find(|line| line.contains("\"execute_tool echo\""))
        .unwrap();
    assert!(
        action.contains("\"traceId\":\"4bf92f3577b34da6a3ce929d0e0e4736\""),
        "{action}"
    );
    assert!(
        action.contains("\"parentSpanId\":\"00f067aa0ba902b7\""),
        "{action}"
    );
    assert!(action.contains("mcp.method.name"), "{action}");
    // Everything until the end of the session is there.
    assert_eq!(spans.matches("\"name\":\"TERMINATION\"").count(), 1);
    place.verify();
}

/// The manifest of the place, saying that `write` changes what these words name.
fn with_state(place: &Place, words: &str) {
    let manifest = std::fs::read_to_string(place.path("manifest.json")).unwrap();
    let entry = r#""write":{"#;
    let stated = format!(r#"{entry}"state":{words},"#);
    assert!(manifest.contains(entry), "{manifest}");
    let manifest = manifest.replacen(entry, &stated, 1);
    std::fs::write(place.path("manifest.json"), manifest).unwrap();
}

#[test]
fn a_state_that_the_manifest_names_is_digested_before_a_call_and_after_it() {
    let place = Place::new();
    let effects = place.path("effects");
    let words = format!(
        r#"["other","{}","--kind","test.example.effects","--schema-version","1.0.0","--description","calls"]"#,
        effects.display()
    );
    with_state(&place, &words);
    let mut client = place.guarded(&[]);
    assert!(client.call(1, "echo").contains("done"));
    let before = sum(&effects);
    assert!(client.call(2, "write").contains("done"));
    let after = sum(&effects);
    assert_ne!(before, after);
    client.end();
    let sessions = place.run(&["session", "list", "--format", "json"]);
    let session = sessions.split("\"session_id\":\"").nth(1).unwrap();
    let session = session.split('"').next().unwrap();
    let records = place.run(&["evidence", "aep", "--session", session]);
    let records: Vec<&str> = records.lines().collect();
    assert_eq!(records.len(), 2);
    assert!(!records[0].contains("state_digest"), "{}", records[0]);
    for told in [
        r#""state_digest_kind":"other""#.to_owned(),
        format!(r#""pre_state_digest":"{before}""#),
        format!(r#""post_state_digest":"{after}""#),
    ] {
        assert!(records[1].contains(&told), "{told} in {}", records[1]);
    }
}

#[test]
fn what_cannot_be_looked_at_before_a_call_keeps_it_from_running() {
    let place = Place::new();
    let missing = place.path("nowhere");
    let words = format!(r#""kv-snapshot {} --namespace n""#, missing.display());
    with_state(&place, &words);
    let mut client = place.guarded(&[]);
    let refused = client.call(1, "write");
    assert!(refused.contains("runtime_error:state"), "{refused}");
    assert!(client.call(2, "echo").contains("done"));
    client.end();
    assert_eq!(place.lines("effects").len(), 1);
}

fn sum(file: &std::path::Path) -> String {
    let output = Command::new("sha256sum").arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    format!("sha256:{}", text.split(' ').next().unwrap())
}
