//! One connection, frame by frame.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;

use std::time::Duration;

use countersign_event::EventType;
use countersign_mcp::tools::Definition;
use countersign_mcp::{RefusalForm, ToolNames};
use countersign_policy::rego::Source;
use countersign_policy::{Mode, UserPolicy};
use scene::{Scene, call, error, json};

#[test]
fn a_permitted_call_passes_as_its_bytes_and_leaves_its_life_in_the_log() {
    let mut scene = Scene::new();
    scene.list();
    let sent = r#" {"params":{"name":"re\u0061d", "arguments":{"b":1.50,"a":[]},"_meta":{"x":1},"task":{}},"method":"tools\/call","jsonrpc":"2.0","id":7}"#;
    let got = scene.send(sent);
    assert_eq!(scene.server.last().unwrap(), sent);
    assert_eq!(
        got,
        [r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"done"}]}}"#]
    );
    assert_eq!(
        scene.types(),
        [
            EventType::ToolCallProposed,
            EventType::PolicyDecision,
            EventType::ToolCallAllowed,
            EventType::ToolCallExecuted,
            EventType::ToolResult
        ]
    );
    let (_, proposed) = scene.events().remove(0);
    assert_eq!(proposed.get("server").unwrap().as_str(), Some("toy"));
    assert_eq!(proposed.get("call_id").unwrap().as_str(), Some("7"));
    scene.verify();
}

#[test]
fn a_denied_call_and_a_held_one_do_not_pass_and_say_why() {
    let mut scene = Scene::new();
    scene.list();
    let denied = scene.call("1", "secret", "{}");
    assert_eq!(
        error(&denied[0]),
        (-32000, "PERMISSION_UNDECLARED".to_owned())
    );
    let held = scene.call("2", "deploy", "{}");
    assert_eq!(error(&held[0]), (-32001, "APPROVAL_REQUIRED".to_owned()));
    // Nobody is set up: the text names what the operator does about that.
    let message = "tell the operator to run `countersign approver init`";
    assert!(held[0].contains(message), "{held:?}");
    let data = json(&held[0])
        .get("error")
        .unwrap()
        .get("data")
        .unwrap()
        .clone();
    // Nobody is registered who could approve, so there is nothing to wait for.
    assert_eq!(data.get("approval"), None);
    assert_eq!(data.get("event").unwrap().as_str().map(str::len), Some(64));
    scene.register_approver();
    assert!(scene.call("3", "deploy", r#"{"x":1}"#).is_empty());
    let held = scene.pass(Duration::from_secs(300));
    let data = json(&held[0])
        .get("error")
        .unwrap()
        .get("data")
        .unwrap()
        .clone();
    let id = data.get("approval").unwrap().as_str().unwrap();
    let (event, requested) = scene.events().pop().unwrap();
    assert_eq!(event, EventType::ApprovalRequested);
    assert_eq!(requested.get("approval_id").unwrap().as_str(), Some(id));
    assert_eq!(scene.effects, 0);
    scene.verify();
}

#[test]
fn a_refusal_can_be_a_result_of_the_tool() {
    let mut scene = Scene::with(|settings| settings.refusals = RefusalForm::ToolResult, None);
    scene.list();
    let got = json(&scene.call("1", "secret", "{}")[0]);
    let result = got.get("result").unwrap();
    assert_eq!(result.get("isError").unwrap().as_bool(), Some(true));
    assert_eq!(result.get("resultType"), None);
    let modern = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"secret","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let got = json(&scene.send(modern)[0]);
    let result = got.get("result").unwrap();
    assert_eq!(result.get("resultType").unwrap().as_str(), Some("complete"));
    scene.verify();
}

#[test]
fn a_policy_may_rewrite_the_arguments_and_nothing_else() {
    let source = Source {
        name: "cap.rego".to_owned(),
        text: r#"package p
import rego.v1
verdict := {"decision":"transform","reason":"CAP","transform":{"path":"$policy_target.limit","value":10}} if input.action.args.limit > 10
else := {"decision":"allow","reason":"OK"}
"#
        .to_owned(),
    };
    let policy = UserPolicy::compile("cap", &[source], "data.p.verdict", Mode::Enforce).unwrap();
    let mut scene = Scene::with(|_| {}, Some(policy));
    scene.list();
    scene.send(r#"{"jsonrpc":"2.0","id":1, "method":"tools/call","params":{"arguments": {"limit":99,"q":"x"} ,"name":"read","z":1.0}}"#);
    assert_eq!(
        scene.server.last().unwrap(),
        r#"{"jsonrpc":"2.0","id":1, "method":"tools/call","params":{"arguments": {"limit":10,"q":"x"} ,"name":"read","z":1.0}}"#
    );
    scene.verify();
}

#[test]
fn a_call_before_any_list_waits_for_one_that_the_client_does_not_see() {
    let mut scene = Scene::new();
    let got = scene.call("1", "read", "{}");
    assert_eq!(got.len(), 1);
    assert!(got[0].contains("\"done\""), "{got:?}");
    assert!(scene.server[0].contains("countersign-n0nce-1"));
    assert!(
        scene
            .client
            .iter()
            .all(|frame| !frame.contains("countersign-n0nce"))
    );
    scene.call("2", "read", "{}");
    let lists = scene
        .server
        .iter()
        .filter(|frame| frame.contains("tools/list"));
    assert_eq!(lists.count(), 1);
    scene.verify();
}

#[test]
fn a_server_that_does_not_list_its_tools_gets_no_calls() {
    let mut scene = Scene::new();
    scene.answers = false;
    assert!(scene.call("1", "read", "{}").is_empty());
    let got = scene.pass(Duration::from_secs(11));
    assert_eq!(error(&got[0]), (-32000, "TOOL_UNLISTED".to_owned()));
    assert_eq!(scene.effects, 0);
    scene.verify();
}

#[test]
fn a_tool_that_others_have_pinned_meanwhile_does_not_run_as_it_was_seen() {
    let mut scene = Scene::new();
    scene.hold_lists = true;
    assert!(scene.call("1", "write", r#"{"n":1}"#).is_empty());
    assert!(scene.call("2", "read", r#"{"n":2}"#).is_empty());
    assert_eq!(scene.effects, 0, "nobody has kept it yet");
    let other = Definition::read(br#"{"name":"write","description":"else"}"#).unwrap();
    scene.book.accept(&other);
    let list = scene.lists.pop_front().unwrap();
    scene.judge(&list);
    assert_eq!(error(&scene.client[0]), (-32000, "TOOL_CHANGED".to_owned()));
    assert!(scene.client[1].contains("done"));
    // A list that was overtaken counts no more.
    scene.list();
    scene.list_as("again");
    let (first, second) = (scene.lists.pop_front(), scene.lists.pop_front());
    assert!(scene.call("3", "read", r#"{"n":3}"#).is_empty());
    scene.judge(&first.unwrap());
    assert_eq!(scene.effects, 1);
    scene.judge(&second.unwrap());
    assert_eq!(scene.effects, 2);
    scene.verify();
}

#[test]
fn tools_that_could_not_be_kept_are_not_known() {
    let mut scene = Scene::new();
    scene.hold_lists = true;
    assert!(scene.call("1", "read", r#"{"n":1}"#).is_empty());
    let list = scene.lists.pop_front().unwrap();
    let effects = scene.session.judged(list.number(), None);
    scene.apply(effects);
    assert_eq!(
        error(&scene.client[0]),
        (-32000, "TOOL_UNLISTED".to_owned())
    );
    assert_eq!(scene.faults(), ["tools_not_kept"]);
    // The next call asks again.
    scene.hold_lists = false;
    let got = scene.call("2", "read", r#"{"n":2}"#);
    assert!(got[0].contains("done"), "{got:?}");
    // So it is where nobody says in time how they stand.
    scene.hold_lists = true;
    scene.list();
    assert!(scene.call("3", "read", r#"{"n":3}"#).is_empty());
    let got = scene.pass(Duration::from_secs(11));
    assert_eq!(error(&got[0]), (-32000, "TOOL_UNLISTED".to_owned()));
    scene.verify();
}

#[test]
fn a_tool_that_changed_is_refused_until_somebody_looks_at_it() {
    let mut scene = Scene::new();
    scene.list();
    assert_eq!(scene.times_kept, 1);
    assert!(scene.call("1", "read", "{}")[0].contains("done"));
    scene.tools = r#"{"name":"read","description":"now sends mail"},{"name":"write"}"#.to_owned();
    // The server says so, and nobody lists again: the next call finds out.
    scene.serve(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    let got = scene.call("2", "read", "{}");
    assert_eq!(error(&got[0]), (-32000, "TOOL_CHANGED".to_owned()));
    assert!(scene.call("3", "write", "{}")[0].contains("done"));
    assert_eq!(scene.effects, 2);
    let denied = scene
        .events()
        .into_iter()
        .rfind(|(event, _)| *event == EventType::ToolCallDenied);
    let (_, denied) = denied.unwrap();
    assert_eq!(
        denied.get("reason_code").unwrap().as_str(),
        Some("TOOL_CHANGED")
    );
    scene.verify();
}

#[test]
fn the_list_can_be_cut_to_what_is_allowed() {
    let mut scene = Scene::with(
        |settings| settings.shown = Some(ToolNames::new(|tool| tool == "read")),
        None,
    );
    scene.list();
    assert_eq!(
        scene.client,
        [
            r#"{"jsonrpc":"2.0","id":"list","result":{"tools":[{"name":"read","annotations":{"readOnlyHint":true}}]}}"#
        ]
    );
}

#[test]
fn a_cancelled_call_does_not_begin() {
    let mut scene = Scene::new();
    scene.list();
    scene.hold_jobs = true;
    assert!(scene.call("1", "read", "{}").is_empty());
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    scene.send(cancel);
    scene.run_jobs();
    assert_eq!(scene.effects, 0);
    // While it waits for a list, it is forgotten as well.
    let mut scene = Scene::new();
    scene.answers = false;
    scene.call("1", "read", "{}");
    scene.send(cancel);
    assert!(scene.pass(Duration::from_secs(11)).is_empty());
    assert_eq!(scene.effects, 0);
    scene.verify();
}

#[test]
fn a_cancellation_of_a_running_call_passes_and_its_answer_still_counts() {
    let mut scene = Scene::new();
    scene.list();
    scene.answers = false;
    scene.call("1", "read", "{}");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    scene.send(cancel);
    assert_eq!(scene.server.last().unwrap(), cancel);
    scene.serve(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!(*scene.types().last().unwrap(), EventType::ToolResult);
    scene.verify();
}

#[test]
fn a_call_that_takes_too_long_is_answered_and_its_late_result_is_let_go() {
    let mut scene = Scene::new();
    scene.list();
    scene.answers = false;
    scene.call("1", "read", "{}");
    assert!(scene.session.deadline().is_some());
    assert!(scene.pass(Duration::from_millis(999)).is_empty());
    let got = scene.pass(Duration::from_millis(1));
    assert_eq!(error(&got[0]), (-32000, "TIMEOUT".to_owned()));
    assert!(
        scene
            .server
            .last()
            .unwrap()
            .contains("notifications/cancelled")
    );
    assert!(
        scene
            .serve(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)
            .is_empty()
    );
    assert_eq!(scene.faults(), ["timeout", "server_answer_late"]);
    assert_eq!(scene.session.deadline(), None);
    scene.verify();
}

#[test]
fn a_result_that_is_too_large_is_not_delivered() {
    let mut scene = Scene::new();
    scene.list();
    scene.answers = false;
    scene.call("1", "read", "{}");
    let large = "x".repeat(2000);
    let got = scene.serve(format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"x":"{large}"}}}}"#
    ));
    assert_eq!(error(&got[0]), (-32000, "OUTPUT_TOO_LARGE".to_owned()));
    assert!(!got[0].contains("xxxx"));
    assert_eq!(scene.faults(), ["output_too_large"]);
    scene.verify();
}

#[test]
fn requests_of_the_server_are_recorded_and_answered_once() {
    let mut scene = Scene::new();
    let sample =
        r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[]}}"#;
    assert_eq!(scene.serve(sample), [sample]);
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"model":"m"}}"#;
    scene.send(answer);
    assert_eq!(scene.server, [answer]);
    scene.send(answer);
    assert_eq!(scene.server.len(), 1, "nobody asked a second time");
    let elicit = r#"{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"password?"}}"#;
    assert_eq!(scene.serve(elicit), [elicit]);
    scene.send(r#"{"jsonrpc":"2.0","id":"e","result":{"action":"decline"}}"#);
    let roots = r#"{"jsonrpc":"2.0","id":2,"method":"roots/list"}"#;
    assert_eq!(scene.serve(roots), [roots]);
    scene.send(r#"{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"no"}}"#);
    assert_eq!(scene.server.len(), 3);
    assert_eq!(
        scene.types(),
        [
            EventType::ModelCallStarted,
            EventType::ModelCallFinished,
            EventType::ErrorRaised,
            EventType::MemoryRead,
            EventType::MemoryWrite
        ]
    );
    // A server does not call tools.
    scene.serve(call("9", "read", "{}"));
    assert!(scene.server.last().unwrap().contains("-32601"));
    scene.verify();
}

#[test]
fn what_a_human_answers_a_task_is_recorded_before_the_server_hears_it() {
    let mut scene = Scene::new();
    let update = r#"{"jsonrpc":"2.0","id":7,"method":"tasks/update","params":{"taskId":"t","inputResponses":{"q":{"action":"accept","content":{"all":true}}}}}"#;
    let done = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
    assert_eq!(scene.send(update), [done]);
    assert_eq!(scene.server, [update]);
    let events = scene.events();
    let [.., (_, written), (told, _)] = &events[..] else {
        panic!("{events:?}")
    };
    // What the server says then is kept too.
    assert_eq!(*told, EventType::MemoryRead);
    let answer = written.get("content").unwrap().get("q").unwrap();
    assert_eq!(answer.get("action").unwrap().as_str(), Some("accept"));
    scene.verify();
}

#[test]
fn a_server_of_the_modern_era_sends_no_requests() {
    let mut scene = Scene::new();
    scene.send(r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#);
    assert_eq!(scene.session.era().unwrap().version, "2026-07-28");
    assert!(
        scene
            .serve(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#)
            .is_empty()
    );
    scene.send(r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}"#);
    assert_eq!(scene.session.era().unwrap().version, "2025-11-25");
    let roots = r#"{"jsonrpc":"2.0","id":3,"method":"roots/list"}"#;
    assert_eq!(scene.serve(roots), [roots]);
}

#[test]
fn a_server_that_is_gone_leaves_nobody_waiting() {
    let mut scene = Scene::new();
    scene.list();
    scene.answers = false;
    scene.call("1", "read", "{}");
    scene.send(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
    scene.hold_jobs = true;
    scene.call("3", "write", "{}");
    let before = scene.client.len();
    let effects = scene.session.server_closed();
    scene.apply(effects);
    scene.run_jobs();
    let mut answers: Vec<_> = scene.client[before..]
        .iter()
        .map(|frame| error(frame).1)
        .collect();
    answers.sort();
    assert_eq!(answers, ["SERVER_GONE", "SERVER_GONE", "SERVER_GONE"]);
    let got = scene.call("4", "read", "{}");
    assert_eq!(error(&got[0]).1, "SERVER_GONE");
    assert_eq!(
        scene.faults(),
        ["server_gone", "server_gone", "client_request_too_late"]
    );
    scene.verify_log();
}

#[test]
fn a_batch_goes_its_ways_one_by_one_in_the_only_revision_that_has_them() {
    let mut scene = Scene::new();
    scene.list();
    let batch = format!(
        "[{},{},{}]",
        call("1", "read", "{}"),
        call("2", "secret", "{}"),
        r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#
    );
    assert_eq!(
        error(&scene.send(&batch)[0]),
        (-32600, "FRAME_REFUSED".to_owned())
    );
    scene.version = "2025-03-26";
    scene.send(r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}"#);
    let got = scene.send(&batch);
    assert!(got[0].contains("done"), "{got:?}");
    assert_eq!(error(&got[1]).1, "PERMISSION_UNDECLARED");
    assert_eq!(got.len(), 3);
    assert_eq!(scene.effects, 1);
    // Batches do not nest, and an empty one is nothing.
    for bad in [
        "[]",
        "[1]",
        &format!("[{batch}]"),
        &format!("[{}]", call("9", "read", "{}").repeat(2)),
        &format!("[{}]", vec!["1"; 129].join(",")),
        // The peers introduce themselves, and other revisions speak, outside of batches.
        r#"[{"jsonrpc":"2.0","id":9,"method":"initialize","params":{}}]"#,
        r#"[{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"read","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}]"#,
    ] {
        let got = scene.send(bad);
        assert!(!got.is_empty(), "{bad}");
        assert!(
            got.iter().all(|frame| error(frame).1 == "FRAME_REFUSED"),
            "{bad}: {got:?}"
        );
    }
    scene.answers = false;
    scene.call("4", "read", r#"{"x":4}"#);
    scene.call("5", "read", r#"{"x":5}"#);
    let got = scene
        .serve(r#"[{"jsonrpc":"2.0","id":5,"result":{}},{"jsonrpc":"2.0","id":4,"result":{}}]"#);
    assert_eq!(got.len(), 2);
    scene.verify();
}

#[test]
fn lists_in_pages_are_put_together_whoever_asked_for_them() {
    let page = |id: &str, tools: &str, next: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{tools}]{next}}}}}"#)
    };
    let (one, two) = (
        r#"{"name":"read","annotations":{"readOnlyHint":true}}"#,
        r#"{"name":"write"}"#,
    );
    let next = r#","nextCursor":"p2""#;
    let mut scene = Scene::new();
    scene.answers = false;
    scene.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    scene.serve(page("1", one, next));
    // The client has half of the list; a call asks for all of it.
    scene.call("2", "write", "{}");
    assert!(scene.server.last().unwrap().contains("countersign-n0nce-1"));
    scene.serve(page("\"countersign-n0nce-1\"", one, next));
    assert!(scene.server.last().unwrap().contains(r#""cursor":"p2""#));
    // Meanwhile the client goes on, and both lists end.
    scene.send(r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"p2"}}"#);
    scene.serve(page("3", two, ""));
    assert_eq!(scene.effects, 1);
    scene.serve(page("\"countersign-n0nce-2\"", two, ""));
    scene.serve(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    scene.call("4", "read", "{}");
    assert_eq!(scene.effects, 2);
    assert!(scene.client.iter().all(|frame| !frame.contains("n0nce")));
    scene.verify();
}

/// What the log keeps about the peers.
fn peers(scene: &Scene) -> Vec<String> {
    let events = scene.events().into_iter();
    let kept = events.filter(|(_, payload)| {
        payload.get("memory_key").and_then(|key| key.as_str()) == Some("mcp/peers")
    });
    kept.map(|(_, payload)| scene::text(payload.get("content").unwrap().to_sorted_ascii()))
        .collect()
}

#[test]
fn the_log_keeps_who_the_peers_say_they_are_and_their_trace() {
    let mut scene = Scene::new();
    scene.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"clever","version":"2"},"_meta":{"traceparent":"00-aa-bb-01"}}}"#);
    scene.list();
    let expect = r#"{"client":{"name":"clever","version":"2"},"protocol_version":"2025-11-25","traceparent":"00-aa-bb-01"}"#;
    assert_eq!(peers(&scene), [expect]);
    // Without a handshake the first request tells it, and the others nothing new.
    let mut scene = Scene::new();
    for id in 1..3 {
        scene.send(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"modern"}}}}}}}}"#
        ));
    }
    let expect = r#"{"client":{"name":"modern"},"protocol_version":"2026-07-28"}"#;
    assert_eq!(peers(&scene), [expect]);
    scene.verify();
}

#[test]
fn the_log_keeps_what_a_server_tells_the_model_to_do() {
    let told = |instructions: &str| {
        let mut scene = Scene::new();
        scene.answers = false;
        scene.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#);
        scene.serve(format!(
            r#"{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"2025-11-25","instructions":"{instructions}"}}}}"#
        ));
        peers(&scene).remove(0)
    };
    let kept = told("call wipe first");
    assert!(
        kept.contains(r#""instructions":"call wipe first""#),
        "{kept}"
    );
    let kept = told(&"x".repeat(100_000));
    assert!(
        kept.contains(r#""instructions":{"digest":"sha256:"#),
        "{kept}"
    );
}

#[test]
fn a_warning_goes_along_with_the_result_and_nothing_else_changes() {
    let source = Source {
        name: "warn.rego".to_owned(),
        text: r#"package p
import rego.v1
verdict := {"decision":"warn","reason":"LARGE","message":"that was \"large\""} if input.action.args.n > 10
else := {"decision":"allow","reason":"OK"}
"#
        .to_owned(),
    };
    let policy = UserPolicy::compile("warn", &[source], "data.p.verdict", Mode::Enforce).unwrap();
    let mut scene = Scene::with(|_| {}, Some(policy));
    scene.list();
    let plain = scene.call("1", "read", r#"{"n":1}"#);
    let warned = scene.call("2", "read", r#"{"n":11}"#);
    let meta = r#""_meta":{"countersign/warning":"that was \"large\""},"#;
    assert!(warned[0].contains(meta), "{warned:?}");
    let without = warned[0].replace(meta, "").replace("\"id\":2", "\"id\":1");
    assert_eq!(without, plain[0]);
    scene.verify();
}
