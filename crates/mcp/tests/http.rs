//! The HTTP door between a client and a server that counts.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;
mod web;

use std::time::Duration;

use bytes::Bytes;
use countersign_event::EventType;
use tokio::sync::mpsc;

use scene::{call, error};
use web::{Answer, Client, Seen, Web, header};

const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_allowed_passes_byte_by_byte() {
    let web = Web::new().await;
    let mut client = web.client().await;
    client.initialize().await;
    let odd = "{ \"params\":{\"arguments\":{\"b\":1.0,\"a\":\"\\u0061\"},\"x\":[ ],\"name\":\"read\"},\r\n\t\"id\" : 7 ,\"method\":\"tools\\/call\",\"jsonrpc\":\"2.0\"}";
    let got = client
        .ask(
            "POST",
            "x-trace: kept\r\nconnection: x-hop\r\nx-hop: 1\r\n",
            odd,
        )
        .await;
    assert_eq!(got.status, 200);
    assert_eq!(
        got.body,
        r#"{"jsonrpc":"2.0","id":7,"result":{ "content" : [{"type":"text","text":"done"}] }}"#
    );
    let seen = web.seen().into_iter().find(Seen::is_call).unwrap();
    assert_eq!(String::from_utf8(seen.body.clone()).unwrap(), odd);
    assert_eq!(seen.header("x-trace").as_deref(), Some("kept"));
    assert_eq!(seen.header("x-hop"), None);
    assert_eq!(seen.header("mcp-session-id"), client.session);
    assert_eq!(seen.header("accept-encoding").as_deref(), Some("identity"));
    // The log knows the session's name by its digest, and the client by what it says.
    let session = client.session.clone().unwrap();
    let log: String = web
        .events()
        .iter()
        .map(|(_, payload)| {
            format!(
                "{}\n",
                String::from_utf8(payload.to_sorted_ascii()).unwrap()
            )
        })
        .collect();
    let digest = countersign_canon::Digest::of(session.as_bytes()).to_string();
    assert!(log.contains(&digest) && !log.contains(&session), "{log}");
    assert!(log.contains("clever-client"), "{log}");
    web.close().await;
}

/// A client that has its result and asks nothing more leaves nothing open in the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_recorded_although_nothing_follows_it() {
    let web = Web::new().await;
    let mut client = web.client().await;
    client.initialize().await;
    let got = client.post(&call("1", "write", "{}")).await;
    assert!(got.body.contains("done"), "{got:?}");
    let recorded = async {
        let is_result = |(event, _): &(EventType, _)| *event == EventType::ToolResult;
        while !web.recorded().iter().any(is_result) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), recorded).await;
    assert!(in_time.is_ok(), "{:?}", web.recorded());
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn held_and_denied_calls_do_not_reach_the_server() {
    let web = Web::new().await;
    let mut client = web.client().await;
    client.initialize().await;
    for (id, tool, code) in [
        ("1", "deploy", -32001),
        ("2", "secret", -32000),
        ("3", "none", -32000),
    ] {
        let got = client.post(&call(id, tool, "{}")).await;
        assert_eq!((got.status, error(&got.body).0), (200, code), "{tool}");
    }
    assert_eq!(web.effects(), 0);
    let got = client.post(&call("4", "write", "{}")).await;
    assert!(got.body.contains("done"), "{got:?}");
    assert_eq!(web.effects(), 1);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn we_read_every_page_before_a_call_goes_on() {
    let pages = |seen: &Seen| {
        let message = seen.message();
        let cursor = message
            .get("params")
            .and_then(|params| params.get("cursor"));
        let page = match cursor.and_then(|cursor| cursor.as_str().map(str::to_owned)) {
            None => r#"{"tools":[{"name":"other"}],"nextCursor":"2"}"#,
            Some(two) if two == "2" => r#"{"tools":[{"name":"more"}],"nextCursor":"3"}"#,
            Some(_) => r#"{"tools":[{"name":"write"}]}"#,
        };
        let is_list = seen.method().as_deref() == Some("tools/list");
        let head = "content-type: application/json\r\n";
        is_list.then(|| Answer::Body(200, head, seen.result(page)))
    };
    let web = Web::with(pages, |_| {}).await;
    let mut client = web.client().await;
    client.initialize().await;
    let got = client.post(&call("1", "write", "{}")).await;
    assert!(got.body.contains("done"), "{got:?}");
    assert_eq!(web.effects(), 1);
    web.close().await;
}

/// A server that sends events as the test says.
async fn streaming() -> (Web, Events) {
    let (events, receiver) = mpsc::unbounded_channel();
    let receiver = std::sync::Mutex::new(Some(receiver));
    let stream = move |seen: &Seen| {
        (seen.is_call() || seen.verb == "GET")
            .then(|| receiver.lock().unwrap().take().map(Answer::Events))?
    };
    (Web::with(stream, |_| {}).await, events)
}

#[tokio::test(flavor = "multi_thread")]
async fn events_pass_one_by_one_as_they_came() {
    let (web, events) = streaming().await;
    let mut client = web.client().await;
    client.initialize().await;
    client.start("POST", "", &call("1", "read", "{}")).await;
    let stream = [
        ": a comment\n\n",
        "id: 0\nretry: 50\ndata:\n\n",
        "event: message\r\nid: 1\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"method\":\"notifications/progress\",\"params\":{\"progress\":1}}\r\n\r\n",
        "data: {\"jsonrpc\":\"2.0\",\"id\":\"s1\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"?\"}}\n\n",
        "data:{\"result\":{\"content\":[]},\"jsonrpc\":\"2.0\",\"id\":1}\n\n",
    ];
    events
        .send(Bytes::from_static(stream[0].as_bytes()))
        .unwrap();
    let (status, head) = client.head().await;
    assert_eq!(status, 200);
    assert_eq!(
        header(&head, "content-type").as_deref(),
        Some("text/event-stream")
    );
    // Each event is there before the server has sent the next.
    assert_eq!(client.piece().await.as_deref(), Some(stream[0]));
    for event in &stream[1..] {
        events.send(Bytes::from_static(event.as_bytes())).unwrap();
        assert_eq!(client.piece().await.as_deref(), Some(*event));
    }
    drop(events);
    assert_eq!(client.piece().await, None);
    // The answer to the server's question is a request of its own.
    let mut other = web.client().await;
    other.session.clone_from(&client.session);
    let answer = r#"{"jsonrpc":"2.0","id":"s1","result":{"action":"decline"}}"#;
    assert_eq!(other.post(answer).await.status, 202);
    assert_eq!(web.seen().last().unwrap().body, answer.as_bytes());
    // An answer that nobody asked for goes nowhere.
    let before = web.seen().len();
    assert_eq!(other.post(answer).await.status, 202);
    assert_eq!(web.seen().len(), before);
    assert!(web.faults().contains(&"client_answer_unasked".to_owned()));
    web.close().await;
}

/// A call whose stream has begun, what the server says on that stream, and what it says on the next one.
async fn begun() -> (Web, Client, Events, Events) {
    let (events, receiver) = mpsc::unbounded_channel();
    let (again, resumed) = mpsc::unbounded_channel();
    let streams = std::sync::Mutex::new(vec![resumed, receiver]);
    let behave = move |seen: &Seen| {
        (seen.is_call() || seen.verb == "GET")
            .then(|| streams.lock().unwrap().pop().map(Answer::Events))?
    };
    let web = Web::with(behave, |_| {}).await;
    let mut client = web.client().await;
    client.initialize().await;
    client.start("POST", "", &call("1", "read", "{}")).await;
    events
        .send(Bytes::from_static(b"id: e1\nretry: 10\ndata:\n\n"))
        .unwrap();
    client.head().await;
    client.piece().await;
    (web, client, events, again)
}

type Events = mpsc::UnboundedSender<Bytes>;

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_taken_up_again_where_it_ended() {
    let (web, mut client, events, again) = begun().await;
    // The server ends the stream early; the client asks for the rest.
    drop(events);
    assert_eq!(client.piece().await, None);
    client.start("GET", "last-event-id: e1\r\n", "").await;
    let answer = "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n";
    again.send(Bytes::from_static(answer.as_bytes())).unwrap();
    assert_eq!(client.head().await.0, 200);
    assert_eq!(client.piece().await.as_deref(), Some(answer));
    let seen = web.seen().last().unwrap().clone();
    assert_eq!(seen.header("last-event-id").as_deref(), Some("e1"));
    assert_eq!(web.count(EventType::ToolResult), 1);
    drop(again);
    assert_eq!(client.piece().await, None);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_comes_on_the_stream_that_was_taken_up_again_also_while_the_old_one_seems_open() {
    let (web, lost, events, again) = begun().await;
    // The client has another network now: nobody hears that its old connection is gone.
    let mut client = web.client().await;
    client.session.clone_from(&lost.session);
    client.start("GET", "last-event-id: e1\r\n", "").await;
    let answer = "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n";
    again.send(Bytes::from_static(answer.as_bytes())).unwrap();
    assert_eq!(client.head().await.0, 200);
    assert_eq!(client.piece().await.as_deref(), Some(answer));
    assert_eq!(web.count(EventType::ToolResult), 1);
    drop((again, events, lost));
    assert_eq!(client.piece().await, None);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_taken_a_stream_up_again_hears_that_its_time_is_over() {
    let (web, mut client, events, again) = begun().await;
    drop(events);
    assert_eq!(client.piece().await, None);
    client.start("GET", "last-event-id: e1\r\n", "").await;
    let keep = Bytes::from_static(b": keep\n\n");
    again.send(keep).unwrap();
    assert_eq!(client.head().await.0, 200);
    assert_eq!(client.piece().await.as_deref(), Some(": keep\n\n"));
    let told = client.piece().await.unwrap();
    assert!(
        told.contains("TIMEOUT") && told.contains(r#""id":1"#),
        "{told}"
    );
    hears_cancellation(&web).await;
    drop(again);
    assert_eq!(client.piece().await, None);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_hears_that_its_time_is_over_also_where_nobody_takes_its_stream_up_again() {
    let (web, mut client, events, again) = begun().await;
    drop(events);
    assert_eq!(client.piece().await, None);
    hears_cancellation(&web).await;
    drop(again);
    web.close().await;
}

async fn hears_cancellation(web: &Web) {
    web.until("the server hears that nobody waits", |web| {
        let is_cancellation = |body: &[u8]| {
            let text = String::from_utf8_lossy(body);
            text.contains("notifications/cancelled")
        };
        web.seen().iter().any(|seen| is_cancellation(&seen.body))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_speaks_first_on_a_stream_of_its_own() {
    let (web, events) = streaming().await;
    let mut client = web.client().await;
    client.initialize().await;
    client.start("GET", "", "").await;
    let ask = "data: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"roots/list\"}\n\n";
    events.send(Bytes::from_static(ask.as_bytes())).unwrap();
    client.head().await;
    assert_eq!(client.piece().await.as_deref(), Some(ask));
    // Where to go instead is nothing that the client hears.
    let endpoint = "event: endpoint\ndata: http://evil.example/\n\n";
    events
        .send(Bytes::from_static(endpoint.as_bytes()))
        .unwrap();
    web.until("it is recorded", |web| {
        web.faults() == ["server_endpoint_refused"]
    })
    .await;
    // What a server may not send is refused, and the server hears it.
    let evil = "data: {\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"tools/call\",\"params\":{}}\n\n";
    events.send(Bytes::from_static(evil.as_bytes())).unwrap();
    web.until("the server hears", |web| {
        web.seen()
            .iter()
            .any(|seen| String::from_utf8_lossy(&seen.body).contains("-32601"))
    })
    .await;
    let garbage = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/a\",\"method\":\"notifications/b\"}\n\n";
    events.send(Bytes::from_static(garbage.as_bytes())).unwrap();
    let last = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/c\"}\n\n";
    events.send(Bytes::from_static(last.as_bytes())).unwrap();
    assert_eq!(client.piece().await.as_deref(), Some(last));
    assert!(web.faults().contains(&"server_frame_refused".to_owned()));
    drop(events);
    client.piece().await;
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_without_sessions_passes_and_closing_is_cancelling() {
    let (web, events) = streaming().await;
    let mut client = web.client().await;
    let headers =
        "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: read\r\n";
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    client.start("POST", headers, body).await;
    events.send(Bytes::from_static(b": hello\n\n")).unwrap();
    client.head().await;
    // The tools were asked for with headers that fit the question.
    let list = web
        .seen()
        .into_iter()
        .find(|seen| seen.method().as_deref() == Some("tools/list"));
    let list = list.unwrap();
    assert_eq!(list.header("mcp-method").as_deref(), Some("tools/list"));
    assert_eq!(list.header("mcp-name"), None);
    assert_eq!(
        list.header("mcp-protocol-version").as_deref(),
        Some("2026-07-28")
    );
    drop(client);
    web.until("the server hears that the client is gone", |web| {
        *web.left.lock().unwrap() == 1
    })
    .await;
    web.until("the call is settled", |web| web.settled() == 1)
        .await;
    // The same id on the same connection is a call of its own.
    let mut client = web.client().await;
    for _ in 0..2 {
        let got = client.ask("POST", headers, body).await;
        assert!(got.body.contains("done"), "{got:?}");
    }
    drop(client);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_outside_the_protocol_pass_as_they_are() {
    let page = |seen: &Seen| match seen.method().as_deref() {
        Some("server/discover") => {
            let body =
                br#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"no session"},"id":null}"#;
            Some(Answer::Body(
                400,
                "content-type: application/json\r\nx-why: because\r\n",
                body.to_vec(),
            ))
        }
        Some("tools/call" | "resources/read") => Some(Answer::Body(
            503,
            "content-type: text/html\r\n",
            b"<p>later</p>".to_vec(),
        )),
        _ => None,
    };
    let web = Web::with(page, |_| {}).await;
    let mut client = web.client().await;
    let got = client
        .post(r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#)
        .await;
    assert_eq!(got.status, 400);
    assert_eq!(
        got.body,
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"no session"},"id":null}"#
    );
    assert_eq!(header(&got.head, "x-why").as_deref(), Some("because"));
    let got = client.post(&call("2", "read", "{}")).await;
    // What nobody has judged does not stand in the place of a result.
    assert_eq!(error(&got.body).1, "SERVER_ERROR");
    assert!(!got.body.contains("later"), "{got:?}");
    let got = client
        .post(r#"{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"a:b"}}"#)
        .await;
    assert_eq!(error(&got.body).1, "SERVER_ERROR");
    drop(client);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_kept_apart_and_end() {
    let web = Web::new().await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        let mut client = web.client().await;
        client.initialize().await;
        clients.push(client);
    }
    let tasks = clients.into_iter().map(|mut client| {
        tokio::spawn(async move {
            for id in 0..20 {
                let got = client.post(&call(&id.to_string(), "read", "{}")).await;
                assert!(got.body.contains("done"), "{got:?}");
            }
            client
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut clients = Vec::new();
    for task in tasks {
        clients.push(task.await.unwrap());
    }
    assert_eq!(web.effects(), 160);
    let client = &mut clients[0];
    assert_eq!(client.ask("DELETE", "", "").await.status, 200);
    let got = client.post(&call("99", "read", "{}")).await;
    assert_eq!(
        (got.status, error(&got.body).1.as_str()),
        (404, "SESSION_UNKNOWN")
    );
    assert_eq!(web.effects(), 160);
    drop(clients);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_session_run_side_by_side() {
    let web = Web::new().await;
    let mut first = web.client().await;
    first.initialize().await;
    let mut tasks = Vec::new();
    for connection in 0..8 {
        let (door, session) = (web.door, first.session.clone());
        tasks.push(tokio::spawn(async move {
            let mut client = Client::to(door).await;
            client.session = session;
            for id in 0..10 {
                let id = format!("\"{connection}-{id}\"");
                let got = client.post(&call(&id, "write", "{}")).await;
                assert!(
                    got.body.contains(&id) && got.body.contains("done"),
                    "{got:?}"
                );
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(web.effects(), 80);
    assert_eq!(first.post(PING).await.status, 200);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_is_not_known_is_not_found_by_its_status_where_the_revision_says_so() {
    let web = Web::new().await;
    let mut client = web.client().await;
    let modern = r#"{"jsonrpc":"2.0","id":1,"method":"no/such","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let got = client.post(modern).await;
    assert_eq!((got.status, error(&got.body).0), (404, -32601));
    let mut client = web.client().await;
    client.initialize().await;
    let got = client
        .post(r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#)
        .await;
    assert_eq!((got.status, error(&got.body).0), (200, -32601));
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_tokens_come_from_is_told_under_the_address_that_the_client_calls() {
    let metadata = |seen: &Seen| {
        let json = "content-type: application/json\r\n";
        let path = seen.head.split(' ').nth(1)?.to_owned();
        if path == "/.well-known/oauth-protected-resource/upstream" {
            let body = br#"{"resource":"https://up.example/upstream","authorization_servers":["https://as.example"]}"#;
            return Some(Answer::Body(200, json, body.to_vec()));
        }
        let challenge = "www-authenticate: Bearer resource_metadata=\"https://up.example/.well-known/oauth-protected-resource/upstream\"\r\n";
        seen.header("authorization")
            .is_none()
            .then(|| Answer::Body(401, challenge, b"who are you?".to_vec()))
    };
    let web = Web::with(metadata, |_| {}).await;
    let mut client = web.client().await;
    let got = client.post(PING).await;
    assert_eq!((got.status, got.body.as_str()), (401, "who are you?"));
    let said = header(&got.head, "www-authenticate").unwrap();
    let ours = format!("http://{}", web.door);
    let expect =
        format!(r#"Bearer resource_metadata="{ours}/.well-known/oauth-protected-resource/mcp""#);
    assert_eq!(said, expect);
    let mut client = web.client().await;
    client
        .send_raw(format!(
            "GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\nhost: {}\r\n\r\n",
            web.door
        ))
        .await;
    let got = client.finish().await;
    let expect =
        format!(r#"{{"resource":"{ours}/mcp","authorization_servers":["https://as.example"]}}"#);
    assert_eq!((got.status, got.body), (200, expect));
    // With a token the request passes, and the server sees the token.
    let mut client = web.client().await;
    let got = client
        .ask("POST", "authorization: Bearer t\r\n", PING)
        .await;
    assert_eq!(got.status, 200);
    assert_eq!(
        web.seen()
            .last()
            .unwrap()
            .header("authorization")
            .as_deref(),
        Some("Bearer t")
    );
    web.close().await;
}
