//! Calls that a human decides about while the client waits.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;

use std::time::Duration;

use countersign_approval::{Decision, Reason, State};
use countersign_event::EventType;
use countersign_mcp::{Frame, FrameLimits, Id, Kind, Seal};
use scene::{Scene, error, json};

const LOOK: Duration = Duration::from_millis(250);

#[test]
fn a_call_that_is_approved_runs_with_the_stored_arguments_and_its_client_gets_the_result() {
    let mut scene = Scene::of_an_approver();
    assert!(
        scene
            .call("1", "deploy", r#"{"to":"prod", "n":1}"#)
            .is_empty()
    );
    assert!(scene.pass(LOOK).is_empty());
    assert_eq!(
        (scene.effects, scene.approvals()),
        (0, vec![State::Pending])
    );
    scene.decide(Decision::Approved);
    let got = scene.pass(LOOK);
    assert_eq!(json(&got[0]).get("id").unwrap().as_u64(), Some(1));
    assert!(json(&got[0]).get("result").is_some(), "{got:?}");
    let sent = scene.server.last().unwrap();
    assert!(
        sent.contains(r#""arguments":{"n":1,"to":"prod"}"#),
        "{sent}"
    );
    assert_eq!(
        (scene.effects, scene.approvals()),
        (1, vec![State::Executed])
    );
    scene.verify();
}

#[test]
fn j05_a_denial_and_silence_are_told_apart() {
    let mut scene = Scene::of_an_approver();
    scene.call("1", "deploy", "{}");
    scene.decide(Decision::Denied(Some(Reason::new("not today").unwrap())));
    let got = scene.pass(LOOK);
    assert_eq!(error(&got[0]), (-32000, "APPROVAL_DENIED".to_owned()));
    assert!(got[0].contains("who says: not today;"), "{got:?}");

    scene.call("2", "deploy", r#"{"n":2}"#);
    let got = scene.pass(Duration::from_secs(300));
    assert_eq!(error(&got[0]).0, -32001);
    assert!(!got[0].contains("denied"), "{got:?}");
    assert_eq!(
        (scene.effects, scene.approvals()),
        (0, vec![State::Pending, State::Denied])
    );
    scene.verify();
}

#[test]
fn nothing_is_due_while_a_look_takes_longer_than_the_client_may_wait() {
    let mut scene = Scene::of_an_approver();
    scene.call("1", "deploy", "{}");
    scene.hold_jobs = true;
    assert!(scene.pass(LOOK).is_empty() && scene.jobs.len() == 1);
    for _ in 0..3 {
        assert!(scene.pass(Duration::from_secs(300)).is_empty());
        assert!(scene.session.deadline().unwrap() > scene.now);
    }
    // It comes back to nothing, and the client hears so at once.
    scene.run_jobs();
    assert!(scene.session.deadline().unwrap() <= scene.now);
    assert_eq!(error(&scene.pass(Duration::ZERO)[0]).0, -32001);
    scene.verify();
}

fn id(number: &str) -> Id {
    let frame = scene::call(number, "deploy", "{}").into_bytes();
    match Frame::read(frame, &FrameLimits::default()).unwrap().kind() {
        Kind::Request { id, .. } => id.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_waits_for_one_call_is_not_woken_for_the_others() {
    let mut scene = Scene::of_an_approver();
    let [one, two, none] = ["1", "2", "3"].map(id);
    scene.call("1", "deploy", "{}");
    scene.pass(Duration::from_millis(100));
    scene.call("2", "deploy", r#"{"n":2}"#);
    let first = scene.session.deadline().unwrap();
    assert_eq!(scene.session.deadline_for(&one), Some(first));
    let second = scene.session.deadline_for(&two).unwrap();
    assert_eq!(second, first + Duration::from_millis(100));
    // Whoever is left looks after a call that nobody waits for.
    let last = scene.session.deadline_for(&none).unwrap();
    assert!(last > second && last <= first + Duration::from_secs(1));
    scene.verify();
}

#[test]
fn a_client_that_leaves_takes_its_request_with_it() {
    let mut scene = Scene::of_an_approver();
    scene.call("1", "deploy", "{}");
    let effects = scene.session.end();
    scene.apply(effects);
    assert_eq!(scene.approvals(), [State::Cancelled]);
    scene.verify();
}

#[test]
fn a_client_that_asked_for_progress_hears_that_it_waits() {
    let mut scene = Scene::of_an_approver();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy","arguments":{},"_meta":{"progressToken":"p\"1"}}}"#;
    assert!(scene.send(call).is_empty());
    let heard = scene.pass(Duration::from_secs(6));
    let params = json(&heard[0]).get("params").unwrap().clone();
    assert_eq!(params.get("progressToken").unwrap().as_str(), Some("p\"1"));
    scene.verify();
}

#[test]
fn a_server_that_dies_ends_the_wait() {
    let mut scene = Scene::of_an_approver();
    scene.call("1", "deploy", "{}");
    let effects = scene.session.server_closed();
    let before = scene.client.len();
    scene.apply(effects);
    assert_eq!(error(&scene.client[before]).1, "SERVER_GONE");
    assert_eq!(scene.approvals(), [State::Cancelled]);
    scene.verify();
}

#[test]
fn the_server_cannot_answer_for_the_human() {
    let mut scene = Scene::of_an_approver();
    scene.call("1", "deploy", "{}");
    let heard = scene.serve(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#);
    assert!(heard.is_empty());
    assert_eq!(scene.approvals(), [State::Pending]);
    scene.verify();
}

#[test]
fn a_client_that_was_told_to_come_back_finds_what_was_decided() {
    let mut scene = Scene::of_an_approver();
    scene.call("1", "deploy", r#"{"n":1}"#);
    assert_eq!(error(&scene.pass(Duration::from_secs(300))[0]).0, -32001);
    scene.decide(Decision::Approved);
    let got = scene.call("2", "deploy", r#"{"n":1}"#);
    assert!(json(&got[0]).get("result").is_some(), "{got:?}");
    assert_eq!(
        (scene.effects, scene.approvals()),
        (1, vec![State::Executed])
    );
    // It was for once.
    let again = scene.call("3", "deploy", r#"{"n":1}"#);
    assert!(
        again.iter().all(|got| json(got).get("result").is_none()),
        "{again:?}"
    );
    assert_eq!(scene.effects, 1);
    scene.verify();
}

#[test]
fn an_approval_is_not_for_other_arguments_nor_for_another_session() {
    let mut scene = Scene::of_an_approver();
    scene.call("1", "deploy", r#"{"n":1}"#);
    let held = scene.pass(Duration::from_secs(300));
    scene.decide(Decision::Approved);
    let data = json(&held[0])
        .get("error")
        .unwrap()
        .get("data")
        .unwrap()
        .clone();
    let approval = data.get("approval").unwrap().as_str().unwrap().to_owned();
    let call = |id: u32, n: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"deploy","arguments":{{"n":{n}}},"_meta":{{"countersign/approval":"{approval}"}}}}}}"#
        )
    };
    let got = scene.send(call(2, 100));
    assert_eq!(error(&got[0]).1, "ARGUMENT_DRIFT");
    assert_eq!(
        (scene.effects, scene.approvals()),
        (0, vec![State::Approved])
    );
    scene.verify();
    scene.reconnect();
    scene.list();
    let got = scene.send(call(1, 1));
    assert_eq!(error(&got[0]).1, "APPROVAL_UNKNOWN");
    assert_eq!(scene.effects, 0);
}

/// A client that can show a form, in a revision in which servers send requests.
fn with_forms(capabilities: &str) -> Scene {
    let mut scene = Scene::of_an_approver();
    scene.send(format!(
        r#"{{"jsonrpc":"2.0","id":"i","method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{capabilities}}}}}"#
    ));
    scene
}

fn question(frames: &[String]) -> (String, countersign_canon::Json) {
    let asked = frames.iter().map(|frame| json(frame));
    let asked = asked.filter(|frame| frame.get("method").is_some());
    let [asked] = &asked.collect::<Vec<_>>()[..] else {
        panic!("{frames:?}");
    };
    assert_eq!(
        asked.get("method").unwrap().as_str(),
        Some("elicitation/create")
    );
    let id = asked.get("id").unwrap().as_str().unwrap().to_owned();
    // Nothing that the server has seen tells how our questions are called.
    assert!(id.starts_with("countersign-0ther-q"), "{id}");
    (id, asked.get("params").unwrap().clone())
}

#[test]
fn a_client_with_forms_is_told_and_its_answer_approves_nothing() {
    let mut scene = with_forms(r#"{"elicitation":{}}"#);
    let (id, params) = question(&scene.call("1", "deploy", "{}"));
    assert_eq!(params.get("mode").unwrap().as_str(), Some("form"));
    let message = params.get("message").unwrap().as_str().unwrap().to_owned();
    assert!(
        message.contains("(code ") && message.contains("approves nothing"),
        "{message}"
    );
    // It is a person who reads it, and not the model that calls.
    assert!(
        message.contains("asks to call «deploy»")
            && message.contains(&scene.code())
            && !message.contains("same call"),
        "{message}"
    );
    assert!(
        message.contains("countersign approval show apr_"),
        "{message}"
    );
    // Whatever the client answers, as often as it likes: nothing runs without an approver.
    for answer in [
        r#"{"action":"accept","content":{}}"#,
        r#"{"action":"accept","content":{"approved":true,"decision":"approved"}}"#,
        r#"{"action":"approve"}"#,
    ] {
        let server = scene.server.len();
        scene.send(format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","result":{answer}}}"#
        ));
        assert!(scene.pass(LOOK).is_empty());
        assert_eq!(
            (scene.effects, scene.approvals()),
            (0, vec![State::Pending])
        );
        // The server does not hear of what it did not ask.
        assert_eq!(scene.server.len(), server);
    }
    let answers = scene.events().into_iter().filter(|(event, payload)| {
        *event == EventType::MemoryWrite
            && payload.get("memory_store").and_then(|store| store.as_str()) == Some("countersign")
    });
    assert_eq!(
        answers.count(),
        1,
        "the first answer is recorded; the others answer nothing"
    );
    assert!(!scene.server.concat().contains("0ther"));
    scene.decide(Decision::Approved);
    let got = scene.pass(LOOK);
    assert!(json(got.last().unwrap()).get("result").is_some(), "{got:?}");
    assert_eq!(scene.effects, 1);
    scene.verify();
}

#[test]
fn a_question_is_closed_when_it_has_lost_its_point() {
    let mut scene = with_forms(r#"{"elicitation":{"form":{}}}"#);
    let (id, _) = question(&scene.call("1", "deploy", "{}"));
    scene.decide(Decision::Denied(None));
    let got = scene.pass(LOOK);
    let [closed, answer] = &got[..] else {
        panic!("{got:?}");
    };
    assert!(
        closed.contains("notifications/cancelled") && closed.contains(&id),
        "{closed}"
    );
    assert_eq!(error(answer).1, "APPROVAL_DENIED");
    scene.verify();
}

#[test]
fn a_client_that_declines_takes_its_call_back() {
    let mut scene = with_forms(r#"{"elicitation":{}}"#);
    let (id, _) = question(&scene.call("1", "deploy", "{}"));
    let got = scene.send(format!(
        r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"action":"decline"}}}}"#
    ));
    assert_eq!(
        error(got.last().unwrap()),
        (-32000, "APPROVAL_WITHDRAWN".to_owned())
    );
    assert_eq!(
        (scene.effects, scene.approvals()),
        (0, vec![State::Cancelled])
    );
    scene.verify();
}

#[test]
fn who_declines_while_a_call_is_looked_at_hears_one_answer() {
    let mut scene = with_forms(r#"{"elicitation":{}}"#);
    let (id, _) = question(&scene.call("1", "deploy", "{}"));
    scene.decide(Decision::Denied(None));
    scene.hold_jobs = true;
    scene.pass(LOOK);
    let looked = scene.jobs.pop_front().unwrap();
    let done = scene.gate.run(looked);
    scene.client.clear();
    scene.send(format!(
        r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"action":"decline"}}}}"#
    ));
    scene.done(done);
    scene.run_jobs();
    let answers = scene.client.iter().filter(|one| one.contains(r#""id":1,"#));
    assert_eq!(answers.count(), 1, "{:?}", scene.client);
    scene.verify();
}

#[test]
fn a_client_that_shows_links_gets_one_where_there_is_a_page() {
    let mut scene = Scene::with(
        |settings| {
            settings.approval_url = Some("https://console.example.com/approvals/".to_owned())
        },
        None,
    );
    scene.register_approver();
    scene.list();
    scene.send(r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"url":{}}}}}"#);
    let (_, params) = question(&scene.call("1", "deploy", "{}"));
    assert_eq!(params.get("mode").unwrap().as_str(), Some("url"));
    let url = params.get("url").unwrap().as_str().unwrap();
    assert!(
        url.starts_with("https://console.example.com/approvals/apr_"),
        "{url}"
    );
    // Without a page there is nothing to show: the call is kept open in silence.
    let mut scene = with_forms(r#"{"elicitation":{"url":{}}}"#);
    assert!(scene.call("1", "deploy", "{}").is_empty());
    scene.verify();
}

/// A call of 2026-07-28 by a client that can show forms.
fn modern(id: u32, args: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"deploy","arguments":{args}{more},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{}}}}}}}}}}"#
    )
}

fn modern_scene(key: u8) -> Scene {
    let seal = std::sync::Arc::new(Seal::new(&[key; 32]));
    let mut scene = Scene::with(move |settings| settings.seal = Some(seal), None);
    scene.register_approver();
    scene.list();
    scene
}

fn state(frames: &[String]) -> String {
    let [frame] = frames else {
        panic!("{frames:?}");
    };
    let result = json(frame).get("result").unwrap().clone();
    assert_eq!(
        result.get("resultType").unwrap().as_str(),
        Some("input_required")
    );
    let asked = result
        .get("inputRequests")
        .unwrap()
        .get("countersign")
        .unwrap();
    assert_eq!(
        asked.get("method").unwrap().as_str(),
        Some("elicitation/create")
    );
    result
        .get("requestState")
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned()
}

fn back(state: &str, action: &str) -> String {
    format!(
        r#","requestState":"{state}","inputResponses":{{"countersign":{{"action":"{action}"}}}}"#
    )
}

#[test]
fn without_requests_of_servers_a_call_is_answered_with_a_question_and_comes_back() {
    let mut scene = modern_scene(1);
    let state = state(&scene.send(modern(1, r#"{"n":1}"#, "")));
    // Accepting approves nothing: the call that came back waits.
    assert!(
        scene
            .send(modern(2, r#"{"n":1}"#, &back(&state, "accept")))
            .is_empty()
    );
    assert!(scene.pass(LOOK).is_empty());
    assert_eq!(
        (scene.effects, scene.approvals()),
        (0, vec![State::Pending])
    );
    scene.decide(Decision::Approved);
    let got = scene.pass(LOOK);
    assert_eq!(json(&got[0]).get("id").unwrap().as_u64(), Some(2));
    assert!(json(&got[0]).get("result").is_some(), "{got:?}");
    // What was ours did not reach the server.
    let sent = scene.server.last().unwrap();
    assert!(
        !sent.contains("requestState") && !sent.contains("inputResponses"),
        "{sent}"
    );
    // It was for once.
    let again = scene.send(modern(3, r#"{"n":1}"#, &back(&state, "accept")));
    assert_eq!(error(&again[0]).1, "APPROVAL_USED");
    assert_eq!(scene.effects, 1);
    scene.verify();
}

#[test]
fn a_state_is_good_for_its_session_its_call_and_its_time() {
    let mut scene = modern_scene(1);
    let good = state(&scene.send(modern(1, r#"{"n":1}"#, "")));
    scene.decide(Decision::Approved);
    let refused =
        |got: Vec<String>| assert_eq!(error(&got[0]), (-32602, "STATE_REFUSED".to_owned()));
    // Other arguments, and a changed state.
    refused(scene.send(modern(2, r#"{"n":2}"#, &back(&good, "accept"))));
    let changed = format!("{}0", &good[..good.len() - 1]);
    let changed = if changed == good {
        format!("{}1", &good[..good.len() - 1])
    } else {
        changed
    };
    refused(scene.send(modern(3, r#"{"n":1}"#, &back(&changed, "accept"))));
    // Another session.
    let mut other = modern_scene(2);
    refused(other.send(modern(1, r#"{"n":1}"#, &back(&good, "accept"))));
    assert_eq!(other.effects, 0);
    // Too late.
    scene.pass(Duration::from_secs(3601));
    refused(scene.send(modern(4, r#"{"n":1}"#, &back(&good, "accept"))));
    assert_eq!(
        (scene.effects, scene.approvals()),
        (0, vec![State::Approved])
    );
    scene.verify();
}

#[test]
fn who_declines_instead_of_coming_back_takes_the_call_back() {
    let mut scene = modern_scene(1);
    let state = state(&scene.send(modern(1, "{}", "")));
    let got = scene.send(modern(2, "{}", &back(&state, "decline")));
    assert_eq!(error(got.last().unwrap()).1, "APPROVAL_WITHDRAWN");
    assert_eq!(
        (scene.effects, scene.approvals()),
        (0, vec![State::Cancelled])
    );
    scene.verify();
}

#[test]
fn what_a_server_wants_back_is_not_lost_behind_what_we_want_back() {
    let mut scene = modern_scene(1);
    let theirs = r#","requestState":"theirs","inputResponses":{"a":{}}"#;
    assert!(scene.send(modern(1, "{}", theirs)).is_empty());
    scene.decide(Decision::Approved);
    scene.pass(LOOK);
    let sent = scene.server.last().unwrap();
    assert!(sent.contains(r#""requestState":"theirs""#), "{sent}");
    scene.verify();
}

#[test]
fn a_tool_that_changes_while_its_call_is_held_does_not_run_as_approved() {
    for announced in [true, false] {
        let mut scene = Scene::of_an_approver();
        scene.call("1", "deploy", "{}");
        scene.tools = scene::TOOLS.replace(
            r#"{"name":"deploy"}"#,
            r#"{"name":"deploy","description":"now with mail"}"#,
        );
        if announced {
            scene.serve(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        } else {
            scene.list();
        }
        scene.decide(Decision::Approved);
        let got = scene.pass(LOOK);
        let refused = got.last().expect("an answer");
        assert_eq!(error(refused).1, "TOOL_CHANGED", "{got:?}");
        assert_eq!(
            (scene.effects, scene.approvals()),
            (0, vec![State::Cancelled])
        );
        scene.verify();
    }
}

#[test]
fn what_stands_beside_the_arguments_is_bound_too() {
    let mut scene = Scene::of_an_approver();
    let deploy = |id: u32, amount: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"deploy","arguments":{{}},"inputResponses":{{"amount":{amount}}}}}}}"#
        )
    };
    scene.send(deploy(1, 1));
    // The client was told to come back, and somebody has approved since.
    scene.pass(Duration::from_secs(300));
    scene.decide(Decision::Approved);
    // Another amount is another call, which nobody has approved.
    assert!(scene.send(deploy(2, 1_000_000)).is_empty());
    assert_eq!(scene.effects, 0);
    let got = scene.send(deploy(3, 1));
    assert!(got[0].contains("result"), "{got:?}");
    assert!(scene.server.last().unwrap().contains(r#""amount":1}"#));
    assert_eq!(scene.effects, 1);
    scene.verify();
}

#[test]
fn what_was_sent_and_not_answered_is_unknown_and_not_failed() {
    for answer in [
        None,
        Some(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]},"result":{}}"#.to_owned()),
        Some(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":"{}"}}}}"#, "x".repeat(3000))),
        Some(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"t"}}"#.to_owned()),
        Some(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s"}}"#.to_owned()),
    ] {
        let mut scene = Scene::of_an_approver();
        scene.call("1", "deploy", "{}");
        scene.answers = false;
        scene.decide(Decision::Approved);
        scene.pass(LOOK);
        match &answer {
            Some(answer) => drop(scene.serve(answer)),
            None => {
                let effects = scene.session.server_closed();
                scene.apply(effects);
            }
        }
        assert_eq!(scene.approvals(), [State::Unknown], "{answer:?}");
        scene.verify();
    }
}
