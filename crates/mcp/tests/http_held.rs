//! Calls over HTTP that a human decides about while the client waits.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;
mod web;

use std::sync::Arc;

use countersign_approval::{Decision, State};
use scene::{call, error, json};
use web::{Answer, Client, Seen, Web, header, usual};

async fn web() -> (Web, Client) {
    let web = Web::new().await;
    web.register_approver();
    let mut client = web.client().await;
    client.initialize().await;
    (web, client)
}

/// Another connection of the same client.
async fn beside(web: &Web, client: &Client) -> Client {
    let mut other = web.client().await;
    other.session.clone_from(&client.session);
    other
}

async fn until(web: &Web, states: &[State]) {
    web.until("the approvals are so", |web| web.approvals() == states)
        .await;
}

/// The message in an event.
fn data(event: &str) -> String {
    let data = event.lines().find_map(|line| line.strip_prefix("data: "));
    data.expect(event).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_hears_of_it_on_a_stream_that_ends_with_the_result() {
    let (web, mut client) = web().await;
    let held = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy","arguments":{},"_meta":{"progressToken":"p"}}}"#;
    client.start("POST", "", held).await;
    let (status, head) = client.head().await;
    assert_eq!(status, 200);
    assert_eq!(
        header(&head, "content-type").as_deref(),
        Some("text/event-stream")
    );
    let progress = data(&client.piece().await.unwrap());
    assert!(progress.contains("notifications/progress"), "{progress}");
    web.decide(Decision::Approved);
    let answer = data(&client.piece().await.unwrap());
    assert_eq!(json(&answer).get("id").unwrap().as_u64(), Some(1));
    assert!(answer.contains("done"), "{answer}");
    assert_eq!(client.piece().await, None);
    assert_eq!(web.effects(), 1);
    web.close().await;
}

/// Nobody is left with a connection that was cut, and people with a request that nobody waits for.
#[tokio::test(flavor = "multi_thread")]
async fn a_door_that_closes_answers_the_calls_that_wait_for_people() {
    let (web, mut client) = web().await;
    let mut nameless = web.client().await;
    let told = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"deploy","arguments":{"a":2},"_meta":{"progressToken":"p"}}}"#;
    client.start("POST", "", &call("1", "deploy", "{}")).await;
    until(&web, &[State::Pending]).await;
    nameless.start("POST", "", told).await;
    nameless.head().await;
    let progress = data(&nameless.piece().await.unwrap());
    assert!(progress.contains("notifications/progress"), "{progress}");
    until(&web, &[State::Pending; 2]).await;
    let heard = async {
        let got = client.finish().await;
        let last = data(&nameless.piece().await.unwrap());
        for (answer, id) in [(&got.body, 1), (&last, 2)] {
            assert_eq!(json(answer).get("id").unwrap().as_u64(), Some(id));
            assert_eq!(error(answer), (-32000, "APPROVAL_WITHDRAWN".to_owned()));
        }
        // The connection has not to be cut for that.
        assert_eq!(nameless.piece().await, None);
    };
    let engine = Arc::clone(&web.engine);
    let ((), ()) = tokio::join!(web.close(), heard);
    assert_eq!(scene::approvals(&engine), [State::Cancelled; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_ends_the_session_takes_back_what_it_waits_for() {
    let (web, mut client) = web().await;
    let mut other = beside(&web, &client).await;
    client.start("POST", "", &call("1", "deploy", "{}")).await;
    until(&web, &[State::Pending]).await;
    assert_eq!(other.ask("DELETE", "", "").await.status, 200);
    until(&web, &[State::Cancelled]).await;
    let got = client.finish().await;
    assert_eq!(json(&got.body).get("id").unwrap().as_u64(), Some(1));
    assert_eq!(web.effects(), 0);
    drop((client, other));
    web.close().await;
}

/// A server that gives its sessions no names.
fn nameless(seen: &Seen) -> Option<Answer> {
    let json = "content-type: application/json\r\n";
    let hello = seen.verb == "POST" && seen.method().as_deref() == Some("initialize");
    hello.then(|| {
        let body = seen.result(r#"{"protocolVersion":"2025-11-25"}"#);
        Answer::Body(200, json, body)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_without_a_name_gets_one_that_the_server_does_not_hear() {
    let web = Web::with(nameless, |_| {}).await;
    web.register_approver();
    let mut client = web.client().await;
    client.initialize().await;
    let mut other = beside(&web, &client).await;
    // What one connection waits for another one can cancel.
    client.start("POST", "", &call("1", "deploy", "{}")).await;
    until(&web, &[State::Pending]).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(other.post(cancel).await.status, 202);
    until(&web, &[State::Cancelled]).await;
    client.finish().await;
    // Saying hello again changes nothing.
    let name = client.session.clone();
    let hello = r#"{"jsonrpc":"2.0","id":"again","method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    let got = client.post(hello).await;
    assert!(got.body.contains("result"), "{got:?}");
    assert_eq!(client.session, name);
    // It is one session, from wherever it is called, until the client ends it.
    assert!(
        other
            .post(&call("2", "read", "{}"))
            .await
            .body
            .contains("done")
    );
    assert_eq!(*web.opened.lock().unwrap(), 1);
    assert_eq!(client.ask("DELETE", "", "").await.status, 200);
    assert_eq!(other.post(&call("3", "read", "{}")).await.status, 404);
    assert_eq!(web.effects(), 1);
    let named = |seen: &Seen| seen.header("mcp-session-id").is_some();
    assert!(!web.seen().iter().any(named));
    drop((client, other));
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_wait_side_by_side_each_get_their_own_answer() {
    let (web, mut first) = web().await;
    let mut second = beside(&web, &first).await;
    first
        .start("POST", "", &call("1", "deploy", r#"{"n":1}"#))
        .await;
    until(&web, &[State::Pending]).await;
    second
        .start("POST", "", &call("2", "deploy", r#"{"n":2}"#))
        .await;
    // Nobody decides: both are told to come back, each about its own call.
    for (client, id) in [(&mut second, 2), (&mut first, 1)] {
        let got = client.finish().await;
        assert_eq!(
            json(&got.body).get("id").unwrap().as_u64(),
            Some(id),
            "{got:?}"
        );
        assert_eq!(error(&got.body).0, -32001, "{got:?}");
    }
    assert_eq!(web.effects(), 0);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_comes_on_the_stream_of_its_call_and_its_answer_approves_nothing() {
    let web = Web::new().await;
    web.register_approver();
    let mut client = web.client().await;
    let hello = r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}"#;
    client.session = header(&client.post(hello).await.head, "mcp-session-id");
    client.start("POST", "", &call("1", "deploy", "{}")).await;
    assert_eq!(client.head().await.0, 200);
    let asked = json(&data(&client.piece().await.unwrap()));
    assert_eq!(
        asked.get("method").unwrap().as_str(),
        Some("elicitation/create")
    );
    let id = asked.get("id").unwrap().as_str().unwrap().to_owned();
    let before = web.seen().len();
    let mut other = beside(&web, &client).await;
    let answer =
        format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"action":"accept","content":{{}}}}}}"#);
    assert_eq!(other.post(&answer).await.status, 202);
    assert_eq!((web.effects(), web.seen().len()), (0, before));
    assert_eq!(web.approvals(), [State::Pending]);
    web.decide(Decision::Approved);
    assert!(data(&client.piece().await.unwrap()).contains("done"));
    assert_eq!((client.piece().await, web.effects()), (None, 1));
    web.close().await;
}

/// The same call under the same id, once the door has noticed that nobody waits for it.
async fn made_again(web: &Web, session: &Client, call: &str) -> Client {
    for _ in 0..100 {
        let mut client = beside(web, session).await;
        client.start("POST", "", call).await;
        let (_, head) = client.head().await;
        match header(&head, "content-type").as_deref() {
            Some("text/event-stream") => return client,
            _ => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
        }
    }
    panic!("the call that was lost still waits");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_loses_its_connection_finds_its_request_again() {
    let (web, mut client) = web().await;
    let mut other = beside(&web, &client).await;
    let held = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy","arguments":{},"_meta":{"progressToken":1}}}"#;
    client.start("POST", "", held).await;
    until(&web, &[State::Pending]).await;
    drop(client);
    // It is lost again after its client was told that it waits.
    let mut again = made_again(&web, &other, held).await;
    assert!(again.piece().await.is_some());
    drop(again);
    let mut last = made_again(&web, &other, held).await;
    assert!(last.piece().await.is_some());
    assert_eq!((web.effects(), web.approvals()), (0, vec![State::Pending]));
    web.decide(Decision::Approved);
    assert!(data(&last.piece().await.unwrap()).contains("done"));
    assert_eq!((web.effects(), web.approvals()), (1, vec![State::Executed]));
    // Who ends the session takes back what nobody waits for.
    let another = held.replace(r#""id":1"#, r#""id":2"#);
    let another = another.replace(r#""arguments":{}"#, r#""arguments":{"n":2}"#);
    assert_eq!(last.piece().await, None);
    drop(last);
    let lost = made_again(&web, &other, &another).await;
    drop(lost);
    assert_eq!(other.ask("DELETE", "", "").await.status, 200);
    drop(other);
    until(&web, &[State::Cancelled, State::Executed]).await;
    web.close().await;
}

/// Nobody could come back for it: a client without a session, and one of a revision in which that is the end.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_cannot_come_back_takes_its_request_with_it() {
    let web = Web::new().await;
    web.register_approver();
    let mut client = web.client().await;
    client.start("POST", "", &call("1", "deploy", "{}")).await;
    until(&web, &[State::Pending]).await;
    drop(client);
    until(&web, &[State::Cancelled]).await;
    let mut client = web.client().await;
    let modern = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let headers =
        "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: deploy\r\n";
    client.start("POST", headers, modern).await;
    until(&web, &[State::Pending, State::Cancelled]).await;
    drop(client);
    until(&web, &[State::Cancelled; 2]).await;
    assert_eq!(web.effects(), 0);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_from_another_connection_cancels_the_approval() {
    let (web, mut client) = web().await;
    client.start("POST", "", &call("7", "deploy", "{}")).await;
    until(&web, &[State::Pending]).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    assert_eq!(beside(&web, &client).await.post(cancel).await.status, 202);
    until(&web, &[State::Cancelled]).await;
    let got = client.finish().await;
    assert_eq!(error(&got.body).1, "CANCELLED");
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_requests_of_servers_a_call_is_answered_with_a_question_and_comes_back() {
    let web = Web::new().await;
    web.register_approver();
    let mut client = web.client().await;
    let modern = |id: u32, more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"deploy","arguments":{{}}{more},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{"form":{{}}}}}}}}}}}}"#
        )
    };
    let headers =
        "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: deploy\r\n";
    let got = client.ask("POST", headers, &modern(1, "")).await;
    let result = json(&got.body).get("result").unwrap().clone();
    let state = result
        .get("requestState")
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned();
    web.decide(Decision::Approved);
    let more = format!(
        r#","requestState":"{state}","inputResponses":{{"countersign":{{"action":"accept"}}}}"#
    );
    // It may come back on another connection, and under the same id.
    drop(client);
    let mut client = web.client().await;
    let got = client.ask("POST", headers, &modern(1, &more)).await;
    assert!(got.body.contains("done"), "{got:?}");
    let sent = web.seen().into_iter().rfind(web::Seen::is_call).unwrap();
    assert!(
        sent.message()
            .get("params")
            .unwrap()
            .get("requestState")
            .is_none()
    );
    assert_eq!(web.effects(), 1);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_asked_about_until_its_call_runs_under_its_own_headers() {
    let web = Web::new().await;
    web.register_approver();
    let mut client = web.client().await;
    let message = |id: u32, method: &str, params: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{"extensions":{{"io.modelcontextprotocol/tasks":{{}}}}}}}}}}}}"#
        )
    };
    let headers = |method: &str, name: &str| {
        format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\nmcp-name: {name}\r\n")
    };
    let call = message(1, "tools/call", r#""name":"deploy","arguments":{}"#);
    let made = client
        .ask("POST", &headers("tools/call", "deploy"), &call)
        .await;
    let made = json(&made.body).get("result").unwrap().clone();
    let handle = made.get("taskId").unwrap().as_str().unwrap().to_owned();
    let ask = |id| message(id, "tasks/get", &format!(r#""taskId":"{handle}""#));
    let about = headers("tasks/get", &handle);
    let waits = client.ask("POST", &about, &ask(2)).await;
    assert!(waits.body.contains(r#""status":"working""#), "{waits:?}");
    assert_eq!((web.effects(), web.approvals()), (0, vec![State::Pending]));

    web.decide(Decision::Approved);
    // Clients have several connections, and lose them.
    drop(client);
    let mut client = web.client().await;
    let done = client.ask("POST", &about, &ask(3)).await;
    let result = json(&done.body).get("result").unwrap().clone();
    assert_eq!(result.get("status").unwrap().as_str(), Some("completed"));
    assert!(done.body.contains("done"), "{done:?}");
    let sent = web.seen().into_iter().rfind(web::Seen::is_call).unwrap();
    assert_eq!(sent.header("mcp-method").as_deref(), Some("tools/call"));
    assert_eq!(sent.header("mcp-name").as_deref(), Some("deploy"));
    // Told again, run once.
    let again = client.ask("POST", &about, &ask(4)).await;
    assert!(again.body.contains("done"), "{again:?}");
    assert_eq!(web.effects(), 1);
    web.close().await;
}

/// A client of 2026-07-28 that knows tasks.
struct Tasks {
    client: Client,
    ids: u32,
}

impl Tasks {
    async fn of(web: &Web) -> Self {
        web.register_approver();
        Self {
            client: web.client().await,
            ids: 0,
        }
    }

    async fn ask(
        &mut self,
        method: &str,
        name: &str,
        params: &str,
        more: &str,
    ) -> web::client::Got {
        self.ids += 1;
        let id = self.ids;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{"extensions":{{"io.modelcontextprotocol/tasks":{{}}}}}}}}}}}}"#
        );
        let headers = format!(
            "mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\nmcp-name: {name}\r\n{more}"
        );
        self.client.ask("POST", &headers, &body).await
    }

    /// The handle of a held call.
    async fn deploy(&mut self) -> String {
        let params = r#""name":"deploy","arguments":{}"#;
        let made = self.ask("tools/call", "deploy", params, "").await;
        let made = json(&made.body).get("result").unwrap().clone();
        made.get("taskId").unwrap().as_str().unwrap().to_owned()
    }

    async fn get(&mut self, handle: &str, more: &str) -> countersign_canon::Json {
        let params = format!(r#""taskId":"{handle}""#);
        let got = self.ask("tasks/get", handle, &params, more).await;
        assert_eq!(got.status, 200, "{got:?}");
        // The response of a stream is its last event.
        let answer = match got.body.starts_with("event:") {
            true => data(&got.body),
            false => got.body,
        };
        json(&answer).get("result").unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_server_says_something_else_than_an_answer_has_failed() {
    let broken = |seen: &web::Seen| {
        let broken = Answer::Body(500, "content-type: text/plain\r\n", b"broken".to_vec());
        Some(if seen.is_call() { broken } else { usual(seen) })
    };
    let web = Web::with(broken, |_| {}).await;
    let mut tasks = Tasks::of(&web).await;
    let handle = tasks.deploy().await;
    web.decide(Decision::Approved);
    for _ in 0..2 {
        let told = tasks.get(&handle, "").await;
        assert_eq!(told.get("status").unwrap().as_str(), Some("failed"));
    }
    assert_eq!(web.approvals(), [State::Unknown]);
    web.close().await;
}

/// The list has to come anew before the call may run, and whoever asked about the task is gone by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_goes_on_when_who_asks_about_it_leaves_before_its_call_runs() {
    let (events, stream) = tokio::sync::mpsc::unbounded_channel::<bytes::Bytes>();
    let stream = std::sync::Mutex::new(Some(stream));
    let lists = std::sync::atomic::AtomicUsize::new(0);
    let slow = move |seen: &web::Seen| match seen.method().as_deref() {
        Some("ping") => {
            let (say, words) = tokio::sync::mpsc::unbounded_channel::<bytes::Bytes>();
            let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
            let answer = String::from_utf8(seen.result("{}")).unwrap();
            for message in [changed, &answer] {
                say.send(format!("data: {message}\n\n").into()).unwrap();
            }
            Some(Answer::Events(words))
        }
        Some("tools/list") if lists.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 1 => {
            Some(Answer::Events(stream.lock().unwrap().take().unwrap()))
        }
        _ => None,
    };
    let web = Web::with(slow, |_| {}).await;
    let mut tasks = Tasks::of(&web).await;
    let handle = tasks.deploy().await;
    web.decide(Decision::Approved);
    tasks.ask("ping", "", r#""x":1"#, "").await;
    let lists = |web: &Web| {
        let seen = web.seen().into_iter();
        seen.filter(|seen| seen.method().as_deref() == Some("tools/list"))
            .map(|seen| {
                seen.message()
                    .get("id")
                    .unwrap()
                    .as_str()
                    .map(str::to_owned)
            })
            .collect::<Vec<_>>()
    };
    let leaves = async {
        web.until("the list is asked for anew", |web| lists(web).len() == 2)
            .await;
    };
    tokio::select! {
        told = tasks.get(&handle, "") => panic!("{told:?}"),
        () = leaves => {}
    }
    drop(tasks);
    let mut other = Tasks {
        client: web.client().await,
        ids: 100,
    };
    let told = other.get(&handle, "").await;
    assert_eq!(told.get("status").unwrap().as_str(), Some("working"));
    assert_eq!(web.effects(), 0);
    let id = lists(&web).pop().unwrap().unwrap();
    let list = format!(
        r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"tools":[{}]}}}}"#,
        scene::TOOLS
    );
    events.send(format!("data: {list}\n\n").into()).unwrap();
    web.until("the call runs", |web| web.effects() == 1).await;
    let mut told = other.get(&handle, "").await;
    for _ in 0..100 {
        if told.get("status").unwrap().as_str() != Some("working") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        told = other.get(&handle, "").await;
    }
    assert_eq!(told.get("status").unwrap().as_str(), Some("completed"));
    assert_eq!(web.effects(), 1);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_cancelled_while_it_runs_is_taken_back_from_the_server() {
    for streams in [false, true] {
        let (events, stream) = tokio::sync::mpsc::unbounded_channel::<bytes::Bytes>();
        let stream = std::sync::Mutex::new(Some(stream));
        let hangs = move |seen: &web::Seen| match seen.is_call() {
            true if streams => Some(Answer::Events(stream.lock().unwrap().take().unwrap())),
            true => Some(Answer::Hang),
            false => None,
        };
        let web = Web::with(hangs, |_| {}).await;
        let mut tasks = Tasks::of(&web).await;
        let handle = tasks.deploy().await;
        web.decide(Decision::Approved);
        let mut other = Tasks {
            client: web.client().await,
            ids: 100,
        };
        let carries = async { tasks.get(&handle, "").await };
        let cancels = async {
            web.until("the call runs", |web| web.effects() == 1).await;
            let params = format!(r#""taskId":"{handle}""#);
            other.ask("tasks/cancel", &handle, &params, "").await
        };
        let (told, done) = tokio::join!(carries, cancels);
        assert_eq!(told.get("status").unwrap().as_str(), Some("cancelled"));
        assert!(done.body.contains(r#""resultType":"complete""#), "{done:?}");
        // The server hears it as clients of every revision say it.
        web.until("the server is told", |web| {
            let is_told = |seen: &web::Seen| seen.body.windows(9).any(|part| part == b"cancelled");
            *web.left.lock().unwrap() == 1 && web.seen().iter().any(is_told)
        })
        .await;
        let told = other.get(&handle, "").await;
        assert_eq!(told.get("status").unwrap().as_str(), Some("cancelled"));
        assert_eq!(web.approvals(), [State::Unknown]);
        assert_eq!(web.faults(), ["cancelled"]);
        drop(events);
        web.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_the_server_is_asked_about_under_its_own_name_also_in_headers() {
    let own = |seen: &web::Seen| {
        let answer = match seen.method().as_deref() {
            Some("tools/call") => r#"{"resultType":"task","taskId":"their-1","status":"working"}"#,
            Some("tasks/get") => {
                r#"{"resultType":"complete","taskId":"their-1","status":"completed","result":{"content":[]}}"#
            }
            _ => return Some(usual(seen)),
        };
        let json = "content-type: application/json\r\n";
        Some(Answer::Body(200, json, seen.result(answer)))
    };
    let web = Web::with(own, |_| {}).await;
    let mut tasks = Tasks::of(&web).await;
    let handle = tasks.deploy().await;
    web.decide(Decision::Approved);
    // What the client says in headers about arguments that the call does not have goes nowhere.
    let told = tasks.get(&handle, "mcp-param-region: eu\r\n").await;
    assert_eq!(told.get("status").unwrap().as_str(), Some("working"));
    let call = web.seen().into_iter().rfind(web::Seen::is_call).unwrap();
    assert_eq!(call.header("mcp-param-region"), None);
    let told = tasks.get(&handle, "").await;
    assert_eq!(told.get("status").unwrap().as_str(), Some("completed"));
    assert_eq!(told.get("taskId").unwrap().as_str(), Some(handle.as_str()));
    let asked = web.seen().pop().unwrap();
    assert_eq!(asked.method().as_deref(), Some("tasks/get"));
    assert_eq!(asked.header("mcp-name").as_deref(), Some("their-1"));
    web.close().await;
}
