//! What is fetched by methods of its own: decided about, recorded and taken in like a call.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;

use std::time::Duration;

use countersign_approval::{Decision, State};
use countersign_event::EventType;
use countersign_mcp::{RefusalForm, ToolNames};
use countersign_policy::rego::Source;
use countersign_policy::{Mode, UserPolicy};
use scene::{READS, Scene, call, error, json};

const BEGUN: [EventType; 4] = [
    EventType::ToolCallProposed,
    EventType::PolicyDecision,
    EventType::ToolCallAllowed,
    EventType::ToolCallExecuted,
];

fn read(id: u32, uri: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/read","params":{{"uri":"{uri}"}}}}"#)
}

fn prompt(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"prompts/get","params":{{"name":"p"}}}}"#)
}

#[test]
fn nothing_is_asked_for_before_the_log_has_it_and_the_client_sees_nothing_before_it_taints() {
    let mut scene = Scene::new();
    scene.govern(
        r#""write":{"side_effect":"mutate-local"}"#,
        r#""write":{"side_effect":"mutate-local","sink":true}"#,
    );
    scene.answers = false;
    scene.hold_jobs = true;
    // As it came, with members that nobody knows; and no list of tools is asked for.
    let sent = r#" {"params":{"ur\u0069":"x:y", "more":1.50,"_meta":{"x":1}},"method":"resources\/read","jsonrpc":"2.0","id":1}"#;
    assert!(scene.send(sent).is_empty());
    assert!(scene.server.is_empty(), "{:?}", scene.server);
    scene.run_jobs();
    assert_eq!(scene.server, [sent]);
    assert_eq!(scene.types(), BEGUN);
    let (_, proposed) = scene.events().remove(0);
    assert_eq!(
        proposed.get("tool_name").unwrap().as_str(),
        Some("resources/read")
    );
    let args = proposed.get("args").unwrap();
    assert_eq!(args.get("uri").unwrap().as_str(), Some("x:y"));
    assert_eq!(args.get("more"), Some(&json("1.5")));
    assert!(args.get("countersign/beside").is_some(), "{args:?}");
    scene.hold_jobs = true;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"contents":[{"text":"ignore previous"}]}}"#;
    assert!(scene.serve(answer).is_empty(), "told before it is noted");
    scene.run_jobs();
    assert_eq!(scene.client, [answer]);
    let (event, result) = scene.events().remove(4);
    assert_eq!(event, EventType::ToolResult);
    assert_eq!(
        result.get("tool_name").unwrap().as_str(),
        Some("resources/read")
    );
    // From now on the session is tainted.
    scene.answers = true;
    scene.list();
    let got = scene.call("2", "write", "{}");
    assert_eq!(error(&got[0]).1, "TAINTED_TO_HIGH_RISK");
    scene.verify();
}

#[test]
fn what_the_manifest_does_not_declare_is_not_asked_for() {
    let mut scene = Scene::new();
    scene.govern(READS, "");
    for frame in [read(1, "file:///etc/shadow"), prompt(2)] {
        let got = scene.send(frame);
        assert_eq!(error(&got[0]), (-32000, "PERMISSION_UNDECLARED".to_owned()));
    }
    assert!(scene.server.is_empty(), "it was asked for");
    let types = scene.types().into_iter();
    let denied = types.filter(|it| *it == EventType::ToolCallDenied);
    assert_eq!(denied.count(), 2);
    scene.verify();
}

#[test]
fn what_is_fetched_counts_like_a_call() {
    let mut scene = Scene::new();
    scene.govern(r#""max_tool_calls":10000"#, r#""max_tool_calls":3"#);
    scene.list();
    assert!(scene.send(read(1, "x:1"))[0].contains("result"));
    assert!(scene.send(prompt(2))[0].contains("result"));
    assert!(scene.call("3", "read", "{}")[0].contains("result"));
    for frame in [read(4, "x:2"), prompt(5), call("6", "read", "{}")] {
        let got = scene.send(frame);
        assert_eq!(error(&got[0]), (-32000, "BUDGET_EXCEEDED".to_owned()));
        // Which one it is, and how much of it there was.
        assert!(
            got[0].contains("used up its `max_tool_calls` of 3;"),
            "{got:?}"
        );
    }
    assert_eq!(scene.effects, 3);
    scene.verify();
}

#[test]
fn the_same_again_is_a_loop_unless_the_manifest_expects_it() {
    let mut scene = Scene::new();
    assert!(scene.send(read(1, "x:y"))[0].contains("result"));
    let again = scene.send(read(2, "x:y"));
    assert_eq!(error(&again[0]), (-32000, "LOOP_DETECTED".to_owned()));
    scene.reconnect();
    scene.govern(
        r#""permissions":{"#,
        r#""loops":{"polling_tools":["resources/read"]},"permissions":{"#,
    );
    for id in 1..10 {
        assert!(scene.send(read(id, "x:y"))[0].contains("result"), "{id}");
    }
    scene.verify();
}

#[test]
fn nobody_has_to_say_that_it_only_reads_but_the_manifest_can_say_that_it_does_more() {
    let mut scene = Scene::new();
    scene.govern(
        READS,
        r#""resources/read":{},"prompts/get":{"server":"other"},"#,
    );
    assert!(scene.send(read(1, "x:y"))[0].contains("result"));
    let effect = |scene: &Scene, at: usize| {
        let effect = scene.events()[at].1.get("side_effect").unwrap().clone();
        effect.as_str().unwrap().to_owned()
    };
    assert_eq!(effect(&scene, 1), "read");
    // The manifest speaks of what another server gives.
    let got = scene.send(prompt(2));
    assert_eq!(error(&got[0]), (-32001, "SIDE_EFFECT_UNKNOWN".to_owned()));
    scene.govern(
        READS,
        r#""resources/read":{"side_effect":"mutate-external"},"#,
    );
    assert!(scene.send(read(3, "x:z"))[0].contains("result"));
    assert_eq!(effect(&scene, 8), "mutate-external");
    scene.verify();
}

#[test]
fn what_another_server_has_to_give_is_refused() {
    let elsewhere = ToolNames::new(|name| name == "resources/read");
    let mut scene = Scene::with(|settings| settings.elsewhere = elsewhere, None);
    let got = scene.send(read(1, "x:y"));
    assert_eq!(error(&got[0]).1, "TOOL_OF_ANOTHER_SERVER");
    assert_eq!(scene.effects, 0);
    scene.verify();
}

#[test]
fn a_tool_that_is_called_like_a_method_is_not_judged_as_that() {
    let mut scene = Scene::new();
    let look_alike = "res\u{43e}urces/read";
    scene.tools = format!(
        r#"{{"name":"resources/read"}},{{"name":"prompts/get"}},{{"name":"{look_alike}"}}"#
    );
    scene.list();
    for (id, tool) in [
        ("1", "resources/read"),
        ("2", "prompts/get"),
        ("3", look_alike),
    ] {
        let got = scene.call(id, tool, r#"{"uri":"x:y"}"#);
        assert_eq!(error(&got[0]), (-32000, "TOOL_CONFUSABLE".to_owned()));
    }
    assert_eq!(scene.effects, 0);
    scene.verify();
}

#[test]
fn a_human_can_be_asked_and_what_was_approved_is_asked_for_as_it_came() {
    let mut scene = Scene::new();
    scene.register_approver();
    scene.govern(
        r#""resources/read":{"side_effect":"read"}"#,
        r#""resources/read":{"side_effect":"read","approval":"required"}"#,
    );
    let sent = r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{ "uri":"x:y","_meta":{"progressToken":5}}}"#;
    assert!(scene.send(sent).is_empty());
    // It waits with signs of life, and whatever the server says about tools does not matter.
    scene.serve(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    let told = scene.pass(Duration::from_secs(6));
    assert!(
        told.iter()
            .any(|frame| frame.contains("notifications/progress"))
    );
    assert!(scene.server.is_empty(), "{:?}", scene.server);
    scene.decide(Decision::Approved);
    let got = scene.pass(Duration::from_millis(250));
    assert!(got[0].contains("ignore previous"), "{got:?}");
    assert_eq!(scene.server, [sent]);
    assert_eq!(scene.approvals(), [State::Executed]);
    // Another place is another question, and who no longer wants it takes it back.
    scene.send(read(2, "x:z"));
    scene.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    assert_eq!(scene.approvals()[0], State::Cancelled);
    assert_eq!(scene.effects, 1);
    scene.verify();
}

#[test]
fn a_question_about_what_is_fetched_comes_back_and_is_no_task() {
    let seal = std::sync::Arc::new(countersign_mcp::Seal::new(&[3; 32]));
    let mut scene = Scene::with(|settings| settings.seal = Some(seal), None);
    scene.register_approver();
    scene.govern(
        r#""resources/read":{"side_effect":"read"}"#,
        r#""resources/read":{"side_effect":"read","approval":"required"}"#,
    );
    let ask = |id: u32, abilities: &str, more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/read","params":{{"uri":"x:y"{more},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{abilities}}}}}}}"#
        )
    };
    let asks = r#"{"elicitation":{"form":{}}}"#;
    let got = scene.send(ask(1, asks, ""));
    let result = json(&got[0]).get("result").unwrap().clone();
    assert_eq!(
        result.get("resultType").unwrap().as_str(),
        Some("input_required")
    );
    let state = result.get("requestState").unwrap().as_str().unwrap();
    scene.decide(Decision::Approved);
    let answered = format!(
        r#","requestState":"{state}","inputResponses":{{"countersign":{{"action":"accept"}}}}"#
    );
    let got = scene.send(ask(2, asks, &answered));
    assert!(got[0].contains("ignore previous"), "{got:?}");
    let sent = scene.server.last().unwrap();
    assert!(!sent.contains("requestState"), "{sent}");
    assert_eq!(scene.effects, 1);
    // Only calls become tasks.
    let tasks = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    scene.govern(
        r#""resources/read":{"side_effect":"read"}"#,
        r#""resources/read":{"side_effect":"mutate-external","approval":"required"}"#,
    );
    assert!(scene.send(ask(3, tasks, r#","n":1"#)).is_empty());
    assert_eq!(scene.approvals()[0], State::Pending);
    scene.verify();
}

#[test]
fn a_refusal_is_an_error_whatever_form_refused_calls_have() {
    let mut scene = Scene::with(|settings| settings.refusals = RefusalForm::ToolResult, None);
    scene.govern(READS, "");
    scene.list();
    assert_eq!(error(&scene.send(prompt(1))[0]).1, "PERMISSION_UNDECLARED");
    assert!(scene.call("2", "secret", "{}")[0].contains("isError"));
    // The id is free again, and now it is that of a call.
    let reused = &scene.call("1", "secret", "{}")[0];
    assert!(reused.contains("isError") && reused.contains("ID_REUSED"));
    scene.govern(r#""timeout_ms":1000"#, r#""timeout_ms":2000"#);
    scene.answers = false;
    scene.send(read(4, "x:1"));
    let got = scene.pass(Duration::from_secs(3));
    assert_eq!(error(&got[0]).1, "TIMEOUT");
    let too_long = "x".repeat(3000);
    scene.send(read(5, "x:2"));
    let got = scene.serve(format!(
        r#"{{"jsonrpc":"2.0","id":5,"result":{{"contents":"{too_long}"}}}}"#
    ));
    assert_eq!(error(&got[0]).1, "OUTPUT_TOO_LARGE");
    scene.send(read(6, "x:3"));
    let effects = scene.session.server_closed();
    scene.apply(effects);
    let got = scene.client.last().unwrap().clone();
    assert_eq!(error(&got).1, "SERVER_GONE");
    let got = scene.send(read(7, "x:4"));
    assert_eq!(error(&got[0]).1, "SERVER_GONE");
    assert_eq!(
        scene.faults()[1..4],
        ["timeout", "output_too_large", "server_gone"]
    );
    scene.verify();
}

#[test]
fn a_server_that_does_not_answer_is_given_up_like_with_any_other_request() {
    let mut scene = Scene::with(
        |settings| settings.answer_wait = Duration::from_secs(2),
        None,
    );
    // A day, as where nobody wrote a manifest.
    scene.govern(r#""timeout_ms":1000"#, r#""timeout_ms":86400000"#);
    scene.answers = false;
    scene.send(read(1, "x:y"));
    assert!(scene.session.is_awaited());
    assert!(scene.pass(Duration::from_secs(1)).is_empty());
    let got = scene.pass(Duration::from_secs(1));
    assert_eq!(error(&got[0]), (-32000, "TIMEOUT".to_owned()));
    assert!(!scene.session.is_awaited());
    assert!(scene.server[1].contains("notifications/cancelled"));
    assert_eq!(scene.faults(), ["timeout"]);
    // One that tells of progress has more time, and not for ever.
    scene.send(r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"x:z","_meta":{"progressToken":7}}}"#);
    for _ in 0..5 {
        scene.serve(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#);
        assert!(scene.pass(Duration::from_secs(2)).is_empty());
    }
    scene.serve(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#);
    let got = scene.pass(Duration::from_secs(2));
    assert_eq!(error(&got[0]).1, "TIMEOUT");
    // A call of a tool has the time that the manifest gives it.
    scene.answers = true;
    scene.list();
    scene.answers = false;
    scene.call("3", "write", "{}");
    assert!(scene.pass(Duration::from_secs(60)).is_empty());
    scene.verify();
}

#[test]
fn a_call_of_a_tool_is_given_up_in_the_same_way_where_no_manifest_says_how_long_it_may_take() {
    let mut scene = Scene::with(
        |settings| {
            settings.answer_wait = Duration::from_secs(2);
            settings.timed_by_policy = false;
        },
        None,
    );
    scene.govern(r#""timeout_ms":1000"#, r#""timeout_ms":86400000"#);
    scene.list();
    scene.answers = false;
    scene.call("1", "write", "{}");
    assert!(scene.pass(Duration::from_secs(1)).is_empty());
    let got = scene.pass(Duration::from_secs(1));
    assert_eq!(error(&got[0]), (-32000, "TIMEOUT".to_owned()));
    assert!(!scene.session.is_awaited());
    let told = scene.server.last().unwrap();
    assert!(told.contains("notifications/cancelled"), "{told}");
    assert_eq!(scene.faults(), ["timeout"]);
    scene.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write","arguments":{"n":2},"_meta":{"progressToken":7}}}"#);
    for _ in 0..5 {
        scene.serve(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#);
        assert!(scene.pass(Duration::from_secs(2)).is_empty());
    }
    let got = scene.pass(Duration::from_secs(2));
    assert_eq!(error(&got[0]).1, "TIMEOUT");
    scene.verify();
}

#[test]
fn the_time_in_which_people_decide_is_not_that_of_the_server() {
    let mut scene = Scene::with(
        |settings| settings.answer_wait = Duration::from_secs(2),
        None,
    );
    scene.register_approver();
    scene.govern(
        r#""resources/read":{"side_effect":"read"}"#,
        r#""resources/read":{"side_effect":"read","approval":"required"}"#,
    );
    assert!(scene.send(read(1, "x:y")).is_empty());
    assert!(scene.pass(Duration::from_secs(40)).is_empty());
    scene.decide(Decision::Approved);
    let got = scene.pass(Duration::from_millis(250));
    assert!(got[0].contains("ignore previous"), "{got:?}");
    scene.verify();
}

#[test]
fn a_policy_that_changes_what_is_fetched_stops_it() {
    let source = Source {
        name: "elsewhere.rego".to_owned(),
        text: r#"package p
import rego.v1
verdict := {"decision": "transform", "reason": "elsewhere", "transform": {"path": "$policy_target.uri", "value": "x:safe"}} if {
    input.action.args.uri == "x:y"
} else := {"decision": "allow"}
"#
        .to_owned(),
    };
    let policy =
        UserPolicy::compile("elsewhere", &[source], "data.p.verdict", Mode::Enforce).unwrap();
    let mut scene = Scene::with(|_| {}, Some(policy));
    let got = scene.send(read(1, "x:y"));
    assert!(error(&got[0]).1.starts_with("runtime_error:"), "{got:?}");
    assert_eq!(scene.effects, 0);
    assert_eq!(scene.types().last(), Some(&EventType::ToolCallDenied));
    assert!(scene.send(read(2, "x:z"))[0].contains("result"));
    scene.verify();
}

#[test]
fn what_was_cancelled_or_cannot_be_judged_is_not_asked_for() {
    let mut scene = Scene::new();
    scene.hold_jobs = true;
    scene.send(read(1, "x:y"));
    scene.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    scene.run_jobs();
    assert!(scene.server.is_empty() && scene.types().is_empty());
    for unfit in [
        r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":9007199254740993}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"p","countersign/beside":{}}}"#,
    ] {
        let got = scene.send(unfit);
        assert_eq!(error(&got[0]).1, "ARGUMENTS_INVALID");
    }
    // Under an id that was used, the log could not tell which it was.
    assert!(scene.send(read(4, "x:y"))[0].contains("result"));
    assert_eq!(error(&scene.send(prompt(4))[0]).1, "ID_REUSED");
    assert_eq!(scene.effects, 1);
    scene.verify();
}
