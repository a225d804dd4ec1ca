//! Held calls as tasks, for clients that know them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;

use std::time::Duration;

use countersign_approval::{Decision, State};
use countersign_event::EventType;
use countersign_mcp::Seal;
use scene::{Scene, error, json};

fn modern_scene(key: u8) -> Scene {
    let seal = std::sync::Arc::new(Seal::new(&[key; 32]));
    let mut scene = Scene::with(move |settings| settings.seal = Some(seal), None);
    scene.register_approver();
    scene.list();
    scene
}

/// What a client of 2026-07-28 says that knows tasks and no forms.
const TASKS: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

fn deploy_as_task(scene: &mut Scene, id: u32) -> String {
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"deploy","arguments":{{"n":{id}}},{TASKS}}}}}"#
    );
    let got = scene.send(call);
    let [made] = got.as_slice() else {
        panic!("{got:?}");
    };
    let result = json(made).get("result").unwrap().clone();
    assert_eq!(result.get("resultType").unwrap().as_str(), Some("task"));
    assert_eq!(result.get("status").unwrap().as_str(), Some("working"));
    result.get("taskId").unwrap().as_str().unwrap().to_owned()
}

fn about_task(scene: &mut Scene, id: u32, what: &str, handle: &str) -> Vec<String> {
    scene.send(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tasks/{what}","params":{{"taskId":"{handle}",{TASKS}}}}}"#
    ))
}

/// The one answer to a question about a task.
fn told(got: &[String], id: u64) -> countersign_canon::Json {
    let [answer] = got else {
        panic!("{got:?}");
    };
    let answer = json(answer);
    assert_eq!(answer.get("id").unwrap().as_u64(), Some(id));
    let result = answer.get("result").unwrap().clone();
    assert_eq!(result.get("resultType").unwrap().as_str(), Some("complete"));
    result
}

fn status(told: &countersign_canon::Json) -> &str {
    told.get("status").unwrap().as_str().unwrap()
}

#[test]
fn a_client_that_knows_tasks_gets_a_handle_and_asks_until_somebody_has_decided() {
    let mut scene = modern_scene(1);
    let handle = deploy_as_task(&mut scene, 1);
    for id in 2..5 {
        let told = told(&about_task(&mut scene, id, "get", &handle), u64::from(id));
        assert_eq!(status(&told), "working");
    }
    assert_eq!(
        (scene.effects, scene.approvals()),
        (0, vec![State::Pending])
    );
    scene.decide(Decision::Approved);
    let done = told(&about_task(&mut scene, 5, "get", &handle), 5);
    assert_eq!(status(&done), "completed", "{done:?}");
    assert!(done.get("result").unwrap().get("content").is_some());
    // What ran is what was stored, once; asking again tells it again.
    assert!(scene.server.last().unwrap().contains(r#""n":1"#));
    let again = told(&about_task(&mut scene, 6, "get", &handle), 6);
    assert_eq!(again.get("result"), done.get("result"));
    assert_eq!(scene.effects, 1);
    // The server never hears of our handle.
    assert!(scene.server.iter().all(|frame| !frame.contains(&handle)));
    scene.verify();
}

#[test]
fn the_call_of_a_task_is_given_up_where_no_manifest_says_how_long_it_may_take() {
    let seal = std::sync::Arc::new(Seal::new(&[1; 32]));
    let mut scene = Scene::with(
        move |settings| {
            settings.seal = Some(seal);
            settings.timed_by_policy = false;
        },
        None,
    );
    scene.register_approver();
    scene.list();
    let handle = deploy_as_task(&mut scene, 1);
    scene.decide(Decision::Approved);
    scene.answers = false;
    assert!(about_task(&mut scene, 2, "get", &handle).is_empty());
    let failed = told(&scene.pass(std::time::Duration::from_secs(600)), 2);
    assert_eq!(status(&failed), "failed");
    scene.verify();
}

#[test]
fn a_denied_task_has_failed_and_a_cancelled_one_takes_its_request_back() {
    let mut scene = modern_scene(1);
    let handle = deploy_as_task(&mut scene, 1);
    scene.decide(Decision::Denied(None));
    let failed = told(&about_task(&mut scene, 2, "get", &handle), 2);
    assert_eq!(status(&failed), "failed");
    let reason = failed.get("error").unwrap().get("data").unwrap();
    assert_eq!(
        reason.get("reason").unwrap().as_str(),
        Some("APPROVAL_DENIED")
    );

    let handle = deploy_as_task(&mut scene, 3);
    told(&about_task(&mut scene, 4, "cancel", &handle), 4);
    let cancelled = told(&about_task(&mut scene, 5, "get", &handle), 5);
    assert_eq!(status(&cancelled), "cancelled");
    assert_eq!(
        (scene.effects, scene.approvals()),
        (0, vec![State::Cancelled, State::Denied])
    );
    scene.verify();
}

#[test]
fn a_task_is_known_by_its_handle_in_its_session_for_its_time() {
    let mut scene = modern_scene(1);
    let handle = deploy_as_task(&mut scene, 1);
    scene.decide(Decision::Approved);
    let unknown = |got: Vec<String>| {
        assert_eq!(error(&got[0]), (-32602, "TASK_UNKNOWN".to_owned()));
    };
    let mut other = modern_scene(2);
    unknown(about_task(&mut other, 1, "get", &handle));
    let last = if handle.ends_with('0') { '1' } else { '0' };
    let guessed = format!("{}{last}", &handle[..handle.len() - 1]);
    unknown(about_task(&mut scene, 2, "get", &guessed));
    unknown(about_task(&mut scene, 3, "result", &handle));
    scene.pass(Duration::from_secs(3601));
    unknown(about_task(&mut scene, 4, "get", &handle));
    assert_eq!((scene.effects, other.effects), (0, 0));
    // A handle of the server's own is the server's to know.
    scene.answers = false;
    assert!(about_task(&mut scene, 5, "get", "theirs").is_empty());
    assert!(scene.server.last().unwrap().contains("theirs"));
    scene.verify();
}

#[test]
fn a_server_that_makes_a_task_of_its_own_is_asked_under_its_own_name() {
    let mut scene = modern_scene(1);
    let handle = deploy_as_task(&mut scene, 1);
    scene.decide(Decision::Approved);
    scene.answers = false;
    assert!(about_task(&mut scene, 2, "get", &handle).is_empty());
    let made = scene.serve(
        r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"task","taskId":"their-1","status":"working"}}"#,
    );
    assert_eq!(status(&told(&made, 2)), "working");
    // What it asks is answered under its own name too, and that is recorded.
    let answered = scene.events().len();
    assert!(about_task(&mut scene, 9, "update", &handle).is_empty());
    assert!(scene.server.last().unwrap().contains("tasks/update"));
    assert!(scene.server.last().unwrap().contains("their-1"));
    assert_eq!(scene.types()[answered..], [EventType::MemoryWrite]);
    scene.serve(r#"{"jsonrpc":"2.0","id":9,"result":{"resultType":"complete"}}"#);
    assert!(about_task(&mut scene, 3, "get", &handle).is_empty());
    assert!(scene.server.last().unwrap().contains("their-1"));
    let done = scene.serve(
        r#"{"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","taskId":"their-1","status":"completed","result":{"content":[]}}}"#,
    );
    let done = told(&done, 3);
    assert_eq!(
        (status(&done), done.get("taskId").unwrap().as_str()),
        ("completed", Some(handle.as_str()))
    );
    scene.verify();
}

#[test]
fn a_task_that_is_cancelled_while_it_runs_still_tells_how_it_ended() {
    let mut scene = modern_scene(1);
    let handle = deploy_as_task(&mut scene, 1);
    scene.decide(Decision::Approved);
    scene.answers = false;
    assert!(about_task(&mut scene, 2, "get", &handle).is_empty());
    // Another question meanwhile is answered at once.
    let meanwhile = told(&about_task(&mut scene, 3, "get", &handle), 3);
    assert_eq!(status(&meanwhile), "working");
    told(&about_task(&mut scene, 4, "cancel", &handle), 4);
    assert!(scene.server.last().unwrap().contains("cancelled"));
    // Who stops asking does not stop the task.
    scene.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    let done = scene.serve(r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#);
    assert_eq!(status(&told(&done, 2)), "completed");
    scene.verify();
}

#[test]
fn a_task_that_is_cancelled_while_it_runs_ends_also_when_its_server_says_nothing_more() {
    let mut scene = modern_scene(1);
    let handle = deploy_as_task(&mut scene, 1);
    scene.decide(Decision::Approved);
    scene.answers = false;
    assert!(about_task(&mut scene, 2, "get", &handle).is_empty());
    told(&about_task(&mut scene, 3, "cancel", &handle), 3);
    let sent = scene.server.len();
    let got = scene.pass(Duration::from_secs(6));
    assert_eq!(status(&told(&got, 2)), "cancelled");
    assert_eq!(scene.server.len(), sent, "it was told once");
    // What it says later is not the end of the task.
    let late = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;
    assert!(scene.serve(late).is_empty());
    let again = told(&about_task(&mut scene, 4, "get", &handle), 4);
    assert_eq!(status(&again), "cancelled");
    assert_eq!(scene.faults(), ["cancelled", "server_answer_late"]);
    assert_eq!(scene.approvals(), [State::Unknown]);
    scene.verify();
}

#[test]
fn leaving_takes_the_requests_of_tasks_back() {
    let mut scene = modern_scene(1);
    deploy_as_task(&mut scene, 1);
    let effects = scene.session.end();
    scene.apply(effects);
    assert_eq!(scene.approvals(), vec![State::Cancelled]);
    scene.verify();
}

#[test]
fn a_task_ends_with_its_server_and_old_tasks_take_their_requests_back() {
    let mut scene = modern_scene(1);
    let handle = deploy_as_task(&mut scene, 1);
    scene.hold_jobs = true;
    about_task(&mut scene, 2, "get", &handle);
    let effects = scene.session.server_closed();
    scene.apply(effects);
    scene.hold_jobs = false;
    scene.run_jobs();
    let answered = scene
        .client
        .iter()
        .filter(|one| json(one).get("id").is_some_and(|id| id.as_u64() == Some(2)));
    assert_eq!(answered.count(), 1, "{:?}", scene.client);
    assert_eq!(scene.approvals(), [State::Cancelled]);
    scene.verify();

    let mut scene = modern_scene(1);
    deploy_as_task(&mut scene, 1);
    scene.pass(Duration::from_secs(3601));
    deploy_as_task(&mut scene, 2);
    assert_eq!(scene.approvals(), [State::Pending, State::Cancelled]);
    scene.verify();
}

#[test]
fn what_comes_of_a_task_of_the_server_may_not_be_larger_than_an_answer() {
    let mut scene = Scene::new();
    scene.list();
    scene.answers = false;
    scene.call("1", "read", "{}");
    scene.serve(r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"T","status":"working"}}}"#);
    let mut fetch = |id: u32, method: &str, result: &str| {
        scene.send(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"taskId":"T"}}}}"#
        ));
        let got = scene.serve(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
        ));
        got[0].clone()
    };
    let small = fetch(2, "tasks/result", r#"{"content":[]}"#);
    assert!(small.contains(r#""content":[]"#), "{small}");
    let large = format!(r#"{{"content":"{}"}}"#, "x".repeat(2 << 20));
    for (id, method) in [(3, "tasks/result"), (4, "tasks/get")] {
        let refused = fetch(id, method, &large);
        assert_eq!(error(&refused).1, "OUTPUT_TOO_LARGE");
    }
    // Nor where the server tells of it by itself.
    let mut notify = |result: &str| {
        scene.serve(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{{"taskId":"T","status":"completed","result":{result}}}}}"#
        ))
    };
    assert_eq!(notify(r#"{"content":[]}"#).len(), 1);
    assert!(notify(&large).is_empty());
    assert_eq!(scene.faults(), ["output_too_large"; 3]);
    scene.verify();
}

#[test]
fn what_is_said_about_a_task_is_logged_under_its_name() {
    let mut scene = Scene::new();
    scene.list();
    scene.answers = false;
    scene.send(r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"T","uri":"x:y","name":"p"}}"#);
    scene.serve(r#"{"jsonrpc":"2.0","id":1,"result":{"taskId":"T","status":"working"}}"#);
    let (_, told) = scene.events().pop().unwrap();
    assert_eq!(
        told.get("memory_key").unwrap().as_str(),
        Some("tasks/get T")
    );
    scene.verify();
}

#[test]
fn what_a_server_tells_about_tasks_unasked_comes_to_an_end() {
    let mut scene = modern_scene(7);
    let long = "x".repeat(1 << 20);
    let told = |number: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{{"taskId":"t{number}","status":"working","x":"{long}"}}}}"#
        )
    };
    let passed = (0..70).filter(|number| scene.serve(told(*number)) == [told(*number)]);
    assert_eq!(passed.count(), 63);
    assert_eq!(scene.faults().len(), 7);
    // It can still be asked for.
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t1"}}"#;
    assert_eq!(scene.send(ask).len(), 1);
    scene.verify();
}
