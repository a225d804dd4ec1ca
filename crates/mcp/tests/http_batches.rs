//! Several messages in one body, at the HTTP door. A server counts what reaches it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;
mod web;

use std::collections::BTreeMap;
use std::sync::Mutex;

use bytes::Bytes;
use countersign_approval::Decision;
use countersign_canon::Json;
use tokio::sync::mpsc;

use scene::{call, error, json, text};
use web::client::Got;
use web::{Answer, Client, Seen, Web, header, usual};

const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
const WORD: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A server of the one revision that has batches.
async fn web(behaviour: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static) -> (Web, Client) {
    let old = move |seen: &Seen| {
        let answer = behaviour(seen).unwrap_or_else(|| usual(seen));
        let is_hello = seen.verb == "POST" && seen.method().as_deref() == Some("initialize");
        Some(match answer {
            Answer::Body(status, head, body) if is_hello => {
                let body = text(body).replace("2025-11-25", "2025-03-26");
                Answer::Body(status, head, body.into_bytes())
            }
            other => other,
        })
    };
    let web = Web::with(old, |_| {}).await;
    let mut client = web.client().await;
    client.initialize().await;
    let list = r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#;
    assert_eq!(client.post(list).await.status, 200);
    (web, client)
}

/// The answers of a batch, by their ids.
fn answers(got: &Got) -> BTreeMap<String, String> {
    assert_eq!(got.status, 200, "{got:?}");
    let all = json(&got.body).as_array().unwrap().to_vec();
    by_id(all.iter())
}

fn by_id<'a>(all: impl Iterator<Item = &'a Json>) -> BTreeMap<String, String> {
    let shown =
        |json: Option<&Json>| json.map_or("none".into(), |json| text(json.to_jcs().unwrap()));
    all.map(|one| (shown(one.get("id")), shown(Some(one))))
        .collect()
}

/// The messages of a stream.
fn events(stream: &str) -> Vec<Json> {
    let lines = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    lines.map(json).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_of_a_batch_is_decided_by_itself() {
    let (web, mut client) = web(|_| None).await;
    let sneaks = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"write"}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":"x","result":{}}"#;
    let body = format!(
        "[{}, {WORD},{},{PING},{sneaks},{answer}\n]",
        call("1", "read", "{}"),
        call("2", "secret", "{}"),
    );
    let got = client.post(&body).await;
    assert_eq!(
        header(&got.head, "content-type").as_deref(),
        Some("application/json")
    );
    let all = answers(&got);
    assert_eq!(all.keys().collect::<Vec<_>>(), ["\"p\"", "1", "2"]);
    assert!(all["1"].contains("done"), "{all:?}");
    assert_eq!(error(&all["2"]).1, "PERMISSION_UNDECLARED");
    assert_eq!(web.effects(), 1);
    // The server gets each message as it came, and never a batch.
    let seen = web.seen();
    let read = call("1", "read", "{}");
    assert!(seen.iter().any(|one| one.body == read.as_bytes()));
    assert!(seen.iter().all(|one| !one.body.starts_with(b"[")));
    assert!(seen.iter().any(|one| one.body == WORD.as_bytes()));
    // Nobody waits for notifications and answers.
    let got = client.post(&format!("[{WORD},{answer}]")).await;
    assert_eq!((got.status, got.body.as_str()), (202, ""));
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_batch_makes_a_call_without_a_permit() {
    let (web, mut client) = web(|_| None).await;
    let secret = call("1", "secret", "{}");
    let read = call("2", "read", "{}");
    let hello = r#"{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    let modern = r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"read","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let many = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    // Refused as a whole: nothing in them is done.
    for (headers, body) in [
        ("", "[]".to_owned()),
        ("", " [ ] ".to_owned()),
        ("", format!("[{read}")),
        ("", format!("[{read},]")),
        ("", format!("[{read}][{secret}]")),
        ("", format!("[{read}]{secret}")),
        (
            "",
            format!(
                r#"[{read},{{"jsonrpc":"2.0","id":5,"method":"ping","method":"tools/call","params":{{"name":"secret"}}}}]"#
            ),
        ),
        ("", many(129)),
        ("", many(100_000)),
        ("", format!("{}{}", "[".repeat(100), "]".repeat(100))),
        ("mcp-method: tools/list\r\n", format!("[{read}]")),
        ("mcp-method: tools/call\r\n", format!("[{read},{PING}]")),
        ("mcp-name: read\r\n", format!("[{read},{secret}]")),
        ("mcp-protocol-version: 2025-06-18\r\n", format!("[{read}]")),
        ("mcp-protocol-version: 2026-07-28\r\n", format!("[{read}]")),
    ] {
        let got = client.ask("POST", headers, &body).await;
        assert_eq!(got.status, 400, "{headers}{body} {got:?}");
        assert!(json(&got.body).get("error").is_some(), "{got:?}");
    }
    assert_eq!(web.effects(), 0);
    // Refused one by one.
    for body in [
        format!("[[{read}]]"),
        format!("[[],[[{secret}]]]"),
        "[1,null,true,\"tools/call\"]".to_owned(),
        format!("[{hello}]"),
        format!("[{modern}]"),
        many(128),
    ] {
        let got = client.post(&body).await;
        let all = json(&got.body).as_array().unwrap().to_vec();
        let refused = |one: &Json| error(&text(one.to_jcs().unwrap())).1 == "FRAME_REFUSED";
        assert!(!all.is_empty() && all.iter().all(refused), "{body} {got:?}");
    }
    assert_eq!(web.effects(), 0);
    // One id, several calls: one of them at most.
    let read = call("7", "read", "{}");
    let got = client.post(&format!("[{read},{read},{PING},{read}]")).await;
    assert!(answers(&got)["7"].contains("done"), "{got:?}");
    assert!(got.body.contains("ID_IN_USE"), "{got:?}");
    assert_eq!(web.effects(), 1);
    assert!(
        !client
            .post(&format!("[{read}]"))
            .await
            .body
            .contains("done")
    );
    assert_eq!(web.effects(), 1);
    // What is taken back in the same batch is not done.
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}"#;
    let got = client
        .post(&format!("[{},{cancel}]", call("8", "read", "{}")))
        .await;
    assert_eq!(error(&answers(&got)["8"]).1, "CANCELLED");
    assert_eq!(web.effects(), 1);
    // The session goes on, and speaks what it spoke.
    let got = client
        .post(&format!("[{},{PING}]", call("9", "read", "{}")))
        .await;
    assert_eq!(answers(&got).len(), 2);
    assert_eq!(web.effects(), 2);
    // It may have begun when it was taken back.
    web.close_but(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_share_one_stream_where_one_of_them_is_a_stream() {
    let (to_server, stream) = mpsc::unbounded_channel::<Bytes>();
    let stream = Mutex::new(Some(stream));
    let (web, mut client) = web(move |seen: &Seen| {
        let is_slow = seen.is_call() && text(seen.body.clone()).contains(r#""id":1,"#);
        is_slow.then(|| Answer::Events(stream.lock().unwrap().take().unwrap()))
    })
    .await;
    let body = format!(
        "[{},{},{PING}]",
        call("1", "read", "{}"),
        call("2", "read", r#"{"x":1}"#)
    );
    client.start("POST", "", &body).await;
    let event = |id: u32, data: &str| Bytes::from(format!("id: {id}\ndata: {data}\n\n"));
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;
    to_server.send(event(1, progress)).unwrap();
    let (status, head) = client.head().await;
    assert_eq!(status, 200);
    assert!(head.contains("text/event-stream"), "{head}");
    let mut heard = String::new();
    while events(&heard).len() < 3 {
        heard.push_str(&client.piece().await.expect("the stream has not ended"));
    }
    // What is answered is there before the other one ends.
    let answered = by_id(events(&heard).iter());
    assert!(
        answered["2"].contains("done") && answered.contains_key("\"p\""),
        "{heard}"
    );
    // The server may put messages together too.
    let late = r#"[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}},{"jsonrpc":"2.0","id":1,"result":{"content":[]}}]"#;
    to_server.send(event(2, late)).unwrap();
    drop(to_server);
    while let Some(piece) = client.piece().await {
        heard.push_str(&piece);
    }
    assert_eq!(events(&heard).len(), 5, "{heard}");
    assert!(by_id(events(&heard).iter())["1"].contains("content"));
    // Nobody can take up a stream of several where one of them was.
    assert!(!heard.contains("id: "), "{heard}");
    assert_eq!(web.effects(), 2);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_the_server_is_read_message_by_message() {
    let (web, mut client) = web(|seen: &Seen| {
        let head = "content-type: application/json\r\n";
        let word = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
        let answer = text(seen.result(r#"{"content":[]}"#));
        let sneaks = r#"{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"write"}}"#;
        seen.is_call()
            .then(|| Answer::Body(200, head, format!("[{word},{answer},{sneaks}]").into_bytes()))
    })
    .await;
    let alone = client.post(&call("1", "read", "{}")).await;
    assert_eq!(answers(&alone).keys().collect::<Vec<_>>(), ["1", "none"]);
    let together = client
        .post(&format!("[{},{PING}]", call("2", "read", "{}")))
        .await;
    assert_eq!(answers(&together).len(), 3, "{together:?}");
    assert_eq!(web.effects(), 2);
    assert!(web.faults().contains(&"server_method_refused".to_owned()));
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_keeps_nobody_else_waiting() {
    let (web, mut client) = web(|_| None).await;
    web.register_approver();
    let deploy = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy","arguments":{},"_meta":{"progressToken":5}}}"#;
    let body = format!("[{deploy},{}]", call("2", "read", "{}"));
    client.start("POST", "", &body).await;
    let mut heard = String::new();
    client.head().await;
    while !heard.contains("done") {
        heard.push_str(&client.piece().await.expect("the stream has not ended"));
    }
    assert_eq!(web.effects(), 1);
    web.decide(Decision::Approved);
    while let Some(piece) = client.piece().await {
        heard.push_str(&piece);
    }
    assert!(
        by_id(events(&heard).iter())["1"].contains("done"),
        "{heard}"
    );
    assert_eq!(web.effects(), 2);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_outside_the_protocol_are_the_response_where_nothing_else_is() {
    let head = "content-type: text/plain\r\nwww-authenticate: Bearer\r\n";
    let (web, mut client) = web(move |seen: &Seen| {
        seen.is_call()
            .then(|| Answer::Body(401, head, b"who are you?".to_vec()))
    })
    .await;
    let both = format!(
        "[{},{}]",
        call("1", "read", "{}"),
        call("2", "read", "{\"x\":1}")
    );
    let got = client.post(&both).await;
    assert_eq!(got.status, 401);
    assert_eq!(error(&got.body).1, "SERVER_ERROR");
    assert!(header(&got.head, "www-authenticate").is_some(), "{got:?}");
    let got = client
        .post(&format!("[{},{PING}]", call("3", "read", "{}")))
        .await;
    let all = answers(&got);
    assert_eq!(error(&all["3"]).1, "SERVER_ERROR");
    assert!(all.contains_key("\"p\""));
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_beside_answers_takes_none_of_them_away() {
    let head = "content-type: application/json\r\nwww-authenticate: Bearer\r\n";
    let (web, mut client) = web(move |seen: &Seen| {
        let answer = || Answer::Body(200, head, seen.result(r#"{"content":[]}"#));
        seen.is_call().then(answer)
    })
    .await;
    let both = [call("1", "read", "{}"), call("2", "read", "{\"x\":1}")];
    let got = client.post(&format!("[{}]", both.join(","))).await;
    let all = answers(&got);
    assert!(all.contains_key("1") && all.contains_key("2"), "{got:?}");
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_a_batch_leaves_no_call_without_an_end() {
    let (web, mut client) = web(|seen: &Seen| seen.is_call().then_some(Answer::Hang)).await;
    let body = format!(
        "[{},{}]",
        call("1", "read", "{}"),
        call("2", "read", "{\"x\":1}")
    );
    client.start("POST", "", &body).await;
    web.until("both run", |web| web.effects() == 2).await;
    drop(client);
    // Before 2026-07-28 leaving cancels nothing: they end when their time is up.
    web.until("both have an end", |web| web.settled() == 2)
        .await;
    web.close().await;
}
