//! Who makes place at the HTTP door where all places are taken, and who does not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;
mod web;

use bytes::Bytes;
use countersign_approval::State;
use countersign_event::EventType;
use scene::{call, error};
use tokio::sync::mpsc;
use web::{Answer, Client, Seen, Web, header};

/// Begins so many sessions, of which nothing is open.
async fn crowd(web: &Web, count: usize) {
    let mut client = web.client().await;
    for _ in 0..count {
        client.session = None;
        client.initialize().await;
    }
}

/// What a client hears that names this session, on a connection of its own.
async fn heard(web: &Web, client: &Client) -> u16 {
    let mut other = web.client().await;
    other.session.clone_from(&client.session);
    let ping = r#"{"jsonrpc":"2.0","id":"ping","method":"ping"}"#;
    other.post(ping).await.status
}

/// A server that begins a stream for each call that can be taken up again, and says no more.
fn resumable(seen: &Seen) -> Option<Answer> {
    let is_call = seen.verb == "POST" && seen.is_call();
    is_call.then(|| {
        let (events, stream) = mpsc::unbounded_channel();
        let first = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
        events
            .send(Bytes::from(format!("id: e1\ndata: {first}\n\n")))
            .unwrap();
        // Nobody closes it.
        std::mem::forget(events);
        Answer::Events(stream)
    })
}

/// Begins a session and a call in it, and loses the connection while the server works.
async fn lose_call(web: &Web) -> Client {
    let mut client = web.client().await;
    client.initialize().await;
    let left = *web.left.lock().unwrap();
    client.start("POST", "", &call("1", "read", "{}")).await;
    assert_eq!(client.head().await.0, 200);
    client.piece().await.unwrap();
    let mut lost = web.client().await;
    lost.session = client.session.take();
    drop(client);
    web.until("the door lets go of the stream", |web| {
        *web.left.lock().unwrap() > left
    })
    .await;
    lost
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;

/// The sessions of which the server has heard that they are over.
fn left(web: &Web) -> Vec<String> {
    let seen = web.seen().into_iter();
    let left = seen.filter(|seen| seen.verb == "DELETE");
    left.map(|seen| seen.header("mcp-session-id").unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_hear_of_the_end_of_sessions_keeps_none_of_them() {
    let deaf = |seen: &Seen| (seen.verb == "DELETE").then_some(Answer::Hang);
    let web = Web::with(deaf, |limits| limits.max_sessions = 2).await;
    let mut client = web.client().await;
    for _ in 0..42 {
        client.initialize().await;
        client.session = None;
    }
    web.until("the ends are recorded", |web| {
        web.count(EventType::Termination) == 40
    })
    .await;
    // It is told of some, and of no more while it does not answer.
    let told = left(&web).len();
    assert!((1..=16).contains(&told), "{told}");
    web.until("nobody waits for it", |web| {
        *web.left.lock().unwrap() == told
    })
    .await;
    client.initialize().await;
    web.until("it is told again", |web| left(web).len() > told)
        .await;
    drop(client);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_server_works_on_keeps_its_session_also_where_nobody_listens() {
    let web = Web::with(resumable, |limits| limits.max_sessions = 3).await;
    web.be_patient();
    let client = lose_call(&web).await;
    crowd(&web, 8).await;
    assert_eq!(heard(&web, &client).await, 200);
    assert!(!left(&web).contains(client.session.as_ref().unwrap()));
    drop(client);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_calls_run_in_all_sessions_nobody_makes_place() {
    let web = Web::with(resumable, |limits| limits.max_sessions = 2).await;
    web.be_patient();
    let clients = [lose_call(&web).await, lose_call(&web).await];
    let mut newcomer = web.client().await;
    let got = newcomer.post(HELLO).await;
    assert_eq!(got.status, 503, "{got:?}");
    assert_eq!(error(&got.body).1, "TOO_MANY_SESSIONS");
    for client in &clients {
        assert_eq!(heard(&web, client).await, 200);
    }
    drop((clients, newcomer));
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_people_are_asked_about_keeps_its_session_while_its_client_is_away() {
    let web = Web::with(|_| None, |limits| limits.max_sessions = 3).await;
    web.register_approver();
    let mut client = web.client().await;
    client.initialize().await;
    let got = client.post(&call("1", "deploy", "{}")).await;
    assert_eq!(error(&got.body).0, -32001, "{got:?}");
    let mut away = web.client().await;
    away.session = client.session.take();
    drop(client);
    crowd(&web, 8).await;
    assert_eq!(web.approvals(), [State::Pending]);
    assert_eq!(heard(&web, &away).await, 200);
    drop(away);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_the_server_keeps_its_session_until_it_is_over() {
    let tasks = |seen: &Seen| {
        let said = match seen.verb == "POST" {
            true => seen.method(),
            false => None,
        };
        let result = match said.as_deref() {
            Some("tools/call") => r#"{"task":{"taskId":"t1","status":"working"}}"#,
            Some("tasks/get") => r#"{"taskId":"t1","status":"completed"}"#,
            _ => return None,
        };
        let json = "content-type: application/json\r\n";
        Some(Answer::Body(200, json, seen.result(result)))
    };
    let web = Web::with(tasks, |limits| limits.max_sessions = 3).await;
    let mut client = web.client().await;
    client.initialize().await;
    let got = client.post(&call("1", "read", "{}")).await;
    assert!(got.body.contains("t1"), "{got:?}");
    let mut away = web.client().await;
    away.session = client.session.take();
    drop(client);
    crowd(&web, 8).await;
    assert_eq!(heard(&web, &away).await, 200);
    let get = r#"{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"t1"}}"#;
    let got = away.post(get).await;
    assert!(got.body.contains("completed"), "{got:?}");
    crowd(&web, 8).await;
    assert_eq!(heard(&web, &away).await, 404);
    drop(away);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_needs_no_place_takes_none_and_is_not_turned_away() {
    let web = Web::with(resumable, |limits| limits.max_sessions = 2).await;
    web.be_patient();
    let stateless = r#"{"jsonrpc":"2.0","id":"s","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\n";
    let mut named = web.client().await;
    named.initialize().await;
    let mut idle = web.client().await;
    idle.session = named.session.take();
    named.initialize().await;
    for _ in 0..4 {
        let got = web.client().await.ask("POST", headers, stateless).await;
        assert_eq!(got.status, 200, "{got:?}");
    }
    assert_eq!(heard(&web, &idle).await, 200);
    assert_eq!(left(&web), [""; 0]);
    // Also where nobody can make place.
    drop((named, idle));
    let clients = [lose_call(&web).await, lose_call(&web).await];
    assert_eq!(web.client().await.post(HELLO).await.status, 503);
    let got = web.client().await.ask("POST", headers, stateless).await;
    assert_eq!(got.status, 200, "{got:?}");
    drop(clients);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_makes_place_for_whom_the_server_does_not_let_in() {
    let strict = |seen: &Seen| {
        let hello = seen.verb == "POST" && seen.method().as_deref() == Some("initialize");
        let is_stranger = hello && seen.header("authorization").is_none();
        is_stranger.then(|| Answer::Body(401, "www-authenticate: Bearer\r\n", Vec::new()))
    };
    let web = Web::with(strict, |limits| limits.max_sessions = 2).await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = web.client().await;
        let got = client.ask("POST", "authorization: a\r\n", HELLO).await;
        let mut away = web.client().await;
        away.session = header(&got.head, "mcp-session-id");
        clients.push(away);
    }
    for _ in 0..4 {
        let mut stranger = web.client().await;
        assert_eq!(stranger.post(HELLO).await.status, 401);
    }
    for client in &clients {
        assert_eq!(heard(&web, client).await, 200);
    }
    drop(clients);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_at_the_same_time_takes_no_more_places_than_there_are() {
    let together = std::sync::Arc::new(std::sync::Barrier::new(4));
    let waits = move |seen: &Seen| {
        let hello = seen.verb == "POST" && seen.method().as_deref() == Some("initialize");
        if hello {
            // All of them were let in by the door before the server answers one.
            tokio::task::block_in_place(|| together.wait());
        }
        None
    };
    let web = Web::with(waits, |limits| limits.max_sessions = 2).await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut client = web.client().await;
        client.start("POST", "", HELLO).await;
        clients.push(client);
    }
    let mut named = 0;
    for client in &mut clients {
        let got = client.finish().await;
        match header(&got.head, "mcp-session-id") {
            Some(_) => named += 1,
            None => assert_eq!(error(&got.body).1, "TOO_MANY_SESSIONS"),
        }
    }
    // Each has its session in hand, so none of them makes place.
    assert_eq!(named, 2);
    web.until("the server hears who has none", |web| left(web).len() == 2)
        .await;
    drop(clients);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_used_until_it_ends() {
    let (events, stream) = mpsc::unbounded_channel();
    let stream = std::sync::Mutex::new(Some(stream));
    let listens = move |seen: &Seen| {
        let stream = stream.lock().unwrap().take_if(|_| seen.verb == "GET")?;
        Some(Answer::Events(stream))
    };
    let web = Web::with(listens, |limits| limits.max_sessions = 3).await;
    let mut names = Vec::new();
    let mut client = web.client().await;
    for _ in 0..3 {
        client.session = None;
        client.initialize().await;
        names.push(client.session.clone());
    }
    let mut listener = web.client().await;
    listener.session = names[0].clone();
    listener.start("GET", "", "").await;
    assert_eq!(listener.head().await.0, 200);
    let mut other = web.client().await;
    other.session = names[1].clone();
    assert_eq!(heard(&web, &other).await, 200);
    assert_eq!(heard(&web, &client).await, 200);
    drop(events);
    assert_eq!(listener.piece().await, None);
    // So the other two were unused for longer.
    client.session = None;
    client.initialize().await;
    assert_eq!(heard(&web, &other).await, 404);
    assert_eq!(heard(&web, &listener).await, 200);
    drop((client, listener, other));
    web.close().await;
}
