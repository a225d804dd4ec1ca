//! Clients and servers that do not behave, at the HTTP door. A server counts what reaches it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;
mod web;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use countersign_event::EventType;
use tokio::sync::mpsc;

use scene::{call, error};
use web::{Answer, Seen, Web, usual};

const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn no_trick_makes_a_call_without_a_permit() {
    let web = Web::new().await;
    let mut client = web.client().await;
    client.initialize().await;
    let secret = call("1", "secret", "{}");
    let read = call("2", "read", "{}");
    let tricks: Vec<(&str, String, u16)> = vec![
        // The header says what is allowed, the body what is done, and the other way round.
        ("mcp-name: read\r\n", secret.clone(), 400),
        ("mcp-name: secret\r\n", read.clone(), 400),
        ("mcp-method: tools/list\r\n", read.clone(), 400),
        ("mcp-name: read\r\nmcp-name: read\r\n", read.clone(), 400),
        // Several messages in one body.
        ("", format!("[{secret}]"), 400),
        ("", format!("[{read},{secret}]"), 400),
        ("", format!("{read}{secret}"), 400),
        ("", format!("{read}\n{secret}"), 400),
        // Two readings of one body.
        ("", r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"secret"}}"#.to_owned(), 400),
        ("", r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","name":"secret"}}"#.to_owned(), 400),
        ("", r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","Method":"ping","params":{"name":"secret"}}"#.to_owned(), 400),
        // Keys that some readers end at a NUL, or trim.
        ("", r#"{"jsonrpc":"2.0","id":1,"method\u0000":"tools/call","method":"ping","params":{"name":"secret"}}"#.to_owned(), 400),
        ("", r#"{"jsonrpc":"2.0","id":1,"method ":"tools/call","method":"ping","params":{"name":"secret"}}"#.to_owned(), 400),
        ("", r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name\u0000x":"secret","name":"read"}}"#.to_owned(), 400),
        // No id, so that nobody would hear of it.
        ("", r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"write"}}"#.to_owned(), 202),
        // Names that some reader might take for the method.
        ("", r#"{"jsonrpc":"2.0","id":3,"method":"Tools/Call","params":{"name":"secret"}}"#.to_owned(), 200),
        ("", r#"{"jsonrpc":"2.0","id":4,"method":"tools/call ","params":{"name":"secret"}}"#.to_owned(), 200),
        // Types that a page may send.
        ("content-type: text/plain\r\n", read.clone(), 415),
        ("content-type: application/json\r\ncontent-type: text/plain\r\n", read.clone(), 415),
        // Names and pages from elsewhere.
        ("host: evil.example\r\n", read.clone(), 403),
        ("origin: http://evil.example\r\n", read.clone(), 403),
        ("origin: null\r\n", read.clone(), 403),
        ("sec-fetch-site: cross-site\r\n", read.clone(), 403),
        ("origin: http://localhost\r\norigin: http://evil.example\r\n", read.clone(), 403),
        // Somebody else's session, or two.
        ("mcp-session-id: guessed\r\n", read.clone(), 404),
    ];
    for (headers, body, status) in &tricks {
        let got = client.ask("POST", headers, body).await;
        assert_eq!(got.status, *status, "{headers:?} {body} {got:?}");
    }
    assert_eq!(web.effects(), 0);
    for verb in ["PUT", "PATCH", "OPTIONS"] {
        assert_eq!(client.ask(verb, "", &read).await.status, 405, "{verb}");
    }
    let got = client.ask("POST", "mcp-name: secret\r\n", &read).await;
    assert_eq!(error(&got.body), (-32020, "HEADER_MISMATCH".to_owned()));
    assert!(!got.body.contains(r#""event":null"#), "{got:?}");
    assert_eq!(web.effects(), 0);
    // The connection goes on.
    assert!(client.post(&read).await.body.contains("done"));
    assert_eq!(web.effects(), 1);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_not_kept_are_answered_under_the_id_at_their_end() {
    let (events, receiver) = mpsc::unbounded_channel();
    let streams = Arc::new(Mutex::new(vec![receiver]));
    let waiting = Arc::clone(&streams);
    let behave = move |seen: &Seen| {
        let stream = seen.is_call().then(|| waiting.lock().unwrap().pop())?;
        stream.map(Answer::Events)
    };
    let web = Web::with(behave, |limits| {
        limits.max_frame_bytes = 100_000;
        limits.max_held_bytes = 100_000;
    })
    .await;
    let mut one = web.client().await;
    one.initialize().await;
    let begin = |length: usize| {
        let text = "x".repeat(length);
        Bytes::from(format!(
            r#"data: {{"result":{{"content":[{{"type":"text","text":"{text}"#
        ))
    };
    let end = |id: u32| Bytes::from(format!("\"}}]}},\"jsonrpc\":\"2.0\",\"id\":{id}}}\n\n"));
    one.start("POST", "", &call("1", "read", "{}")).await;
    events.send(begin(60_000)).unwrap();
    one.head().await;
    // Beside the first there is no room for another one as large; for a small one there is. How soon the first has
    // come as a whole, nobody can see.
    let mut refused = String::new();
    for id in 2..100 {
        let (more, others) = mpsc::unbounded_channel();
        streams.lock().unwrap().push(others);
        let mut other = web.client().await;
        other.initialize().await;
        other
            .start("POST", "", &call(&id.to_string(), "read", "{}"))
            .await;
        more.send(begin(60_000)).unwrap();
        other.head().await;
        more.send(end(id)).unwrap();
        refused = other.piece().await.unwrap();
        assert!(refused.contains(&format!("\"id\":{id}")), "{refused}");
        if !refused.contains("OUTPUT_TOO_LARGE") {
            break;
        }
    }
    assert!(refused.contains("room"), "{refused}");
    // The first was kept: it is read, and is more than the manifest allows.
    events.send(end(1)).unwrap();
    let mut got = String::new();
    while !got.contains("\"id\":1") {
        got.push_str(&one.piece().await.unwrap());
    }
    assert!(got.contains("OUTPUT_TOO_LARGE"), "{got}");
    let mut faults = web.faults();
    faults.sort_unstable();
    // The refused frame and the call that it has cost.
    let refused = faults
        .iter()
        .filter(|fault| *fault == "server_frame_refused");
    assert_eq!(refused.count(), 2);
    faults.dedup();
    assert_eq!(faults, ["output_too_large", "server_frame_refused"]);
    drop((events, one));
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_and_slow_bodies_are_let_go() {
    let web = Web::with(
        |_| None,
        |limits| {
            limits.max_frame_bytes = 10_000;
            limits.max_held_bytes = 100_000;
            limits.body_time = Duration::from_millis(300);
            limits.head_time = Duration::from_millis(600);
        },
    )
    .await;
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    // Refused by its head alone: nothing of it is read.
    let mut client = web.client().await;
    client
        .send_raw(format!("{head}content-length: 99999999999\r\n\r\n{{"))
        .await;
    assert_eq!(client.head().await.0, 413);
    // Of unknown length.
    let mut client = web.client().await;
    client
        .send_raw(format!("{head}transfer-encoding: chunked\r\n\r\n"))
        .await;
    for _ in 0..20 {
        client
            .send_raw(format!("400\r\n{}\r\n", "x".repeat(0x400)))
            .await;
    }
    assert_eq!(client.head().await.0, 413);
    // A body that never ends.
    let mut client = web.client().await;
    client
        .send_raw(format!("{head}content-length: 100\r\n\r\n{{\"js"))
        .await;
    assert_eq!(client.head().await.0, 408);
    // A head that never ends, and a connection that says nothing.
    let mut half = web.client().await;
    half.send_raw("POST /mcp HTTP/1.1\r\nhost: loc").await;
    let mut mute = web.client().await;
    assert!(half.is_closed().await && mute.is_closed().await);
    // Two lengths, or a length and chunks: two readers would cut them differently.
    let mut client = web.client().await;
    client
        .send_raw(format!(
            "{head}content-length: 5\r\ncontent-length: 50\r\n\r\n{PING}"
        ))
        .await;
    assert_eq!(client.head().await.0, 400);
    // Others have not noticed.
    let mut client = web.client().await;
    assert_eq!(client.post(PING).await.status, 200);
    assert_eq!(web.effects(), 0);
    drop(client);
    web.close().await;
}

/// What the client hears when the server behaves like this on a call.
async fn failing(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> String {
    let behave = move |seen: &Seen| seen.is_call().then(|| answer(seen));
    let web = Web::with(behave, |limits| limits.max_frame_bytes = 10_000).await;
    let mut client = web.client().await;
    client.initialize().await;
    let got = client.post(&call("7", "read", "{}")).await;
    assert_eq!(got.status, 200, "{got:?}");
    // Others, and the same client, go on.
    assert!(client.post(PING).await.body.contains("result"));
    let mut other = web.client().await;
    other.initialize().await;
    assert!(other.post(PING).await.body.contains("result"));
    drop((client, other));
    web.close().await;
    let body = got.body.trim();
    let mut data = body.lines().rev();
    let data = data.find_map(|line| line.strip_prefix("data: "));
    let message = data.unwrap_or(body);
    assert!(message.contains("\"id\":7"), "{message}");
    error(message).1
}

fn json_body(body: impl Into<Vec<u8>>) -> Answer {
    Answer::Body(200, "content-type: application/json\r\n", body.into())
}

fn events(events: &[&'static str]) -> Answer {
    let (sender, receiver) = mpsc::unbounded_channel();
    for event in events {
        sender.send(Bytes::from_static(event.as_bytes())).unwrap();
    }
    Answer::Events(receiver)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_leaves_an_error_with_the_id() {
    let refused = "SERVER_FRAME_REFUSED";
    let gone = "SERVER_GONE";
    // It dies: before the head, in the head, in the body, in a stream.
    assert_eq!(failing(|_| Answer::Raw(Vec::new())).await, gone);
    assert_eq!(
        failing(|_| Answer::Raw(b"HTTP/1.1 200".to_vec())).await,
        gone
    );
    let half =
        b"HTTP/1.1 200 x\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{\"json";
    assert_eq!(failing(|_| Answer::Raw(half.to_vec())).await, gone);
    assert_eq!(failing(|_| events(&[": hello\n\n"])).await, gone);
    // It talks garbage.
    assert_eq!(
        failing(|_| Answer::Raw(b"\x16\x03\x01 garbage\r\n\r\n".to_vec())).await,
        gone
    );
    assert_eq!(failing(|_| json_body("<p>hello</p>")).await, refused);
    assert_eq!(failing(|_| json_body("")).await, refused);
    assert_eq!(
        failing(|_| json_body(
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"\xff\"}}".to_vec()
        ))
        .await,
        refused
    );
    assert_eq!(
        failing(|seen| json_body([seen.result("{}"), seen.result("{}")].concat())).await,
        refused
    );
    assert_eq!(
        failing(|_| json_body(r#"{"jsonrpc":"2.0","id":7,"result":{},"result":1}"#)).await,
        refused
    );
    assert_eq!(
        failing(|_| json_body(r#"{"jsonrpc":"2.0","id":8,"result":{}}"#)).await,
        refused
    );
    assert_eq!(
        failing(|seen| json_body(seen.result(&format!("{}{}", "[".repeat(500), "]".repeat(500)))))
            .await,
        refused
    );
    assert_eq!(
        failing(|_| events(&["data: {\"id\":7,\"result\":\n\n"])).await,
        refused
    );
    // It floods.
    let long = "x".repeat(100_000);
    assert_eq!(
        failing(move |seen| json_body(seen.result(&format!("\"{long}\"")))).await,
        refused
    );
    let long: &'static str = format!(
        "data: {{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"{}\"}}\n\n",
        "x".repeat(100_000)
    )
    .leak();
    assert_eq!(failing(move |_| events(&[long])).await, refused);
    // It answers in a form that nobody here can read.
    let zipped = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
    assert_eq!(
        failing(|_| Answer::Body(200, zipped, b"\x1f\x8b".to_vec())).await,
        refused
    );
    // It calls what it says an error outside the protocol.
    let long = "x".repeat(3000);
    let error =
        move |_: &Seen| Answer::Body(500, "content-type: text/plain\r\n", long.clone().into());
    assert_eq!(failing(error).await, "SERVER_ERROR");
    // It sends clients elsewhere: who followed would leave by another door.
    let elsewhere = "location: http://127.0.0.1:1/mcp\r\n";
    for status in [301, 302, 303, 307, 308] {
        let redirect = move |_: &Seen| Answer::Body(status, elsewhere, Vec::new());
        assert_eq!(failing(redirect).await, "SERVER_REDIRECTS");
    }
    // It hangs; the manifest gives a call a second.
    assert_eq!(failing(|_| Answer::Hang).await, "TIMEOUT");
    // It never stops speaking, and never answers.
    assert_eq!(failing(|_| endless()).await, "TIMEOUT");
}

/// Events without a pause, until nobody reads them.
fn endless() -> Answer {
    let (sender, receiver) = mpsc::unbounded_channel();
    let event = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n";
    let events = Bytes::from(event.repeat(20_000));
    tokio::spawn(async move {
        for _ in 0..2000 {
            if sender.send(events.clone()).is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    });
    Answer::Events(receiver)
}

/// What its revision says has no sessions is judged in none, so it must not run in one.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_judged_outside_a_session_does_not_run_in_it() {
    let web = Web::new().await;
    let mut client = web.client().await;
    client.initialize().await;
    assert!(
        client
            .post(&call("1", "read", "{}"))
            .await
            .body
            .contains("done")
    );
    let apart = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mut other = web.client().await;
    for session in [client.session.clone(), Some("made-up".to_owned())] {
        other.session = session;
        let got = other.post(&apart.replace("\"id\":2", "\"id\":3")).await;
        let calls = web.seen().into_iter().filter(Seen::is_call);
        let calls: Vec<_> = calls.map(|seen| seen.header("mcp-session-id")).collect();
        assert!(calls[1..].iter().all(Option::is_none), "{calls:?} {got:?}");
    }
    assert!(web.effects() > 1);
    drop((client, other));
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_an_error_with_the_id() {
    let web = Web::before(
        "http://127.0.0.1:1/mcp",
        Arc::default(),
        Arc::default(),
        |_| {},
    )
    .await;
    let mut client = web.client().await;
    let got = client
        .post(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#)
        .await;
    assert!(got.body.contains("\"id\":5"), "{got:?}");
    assert_eq!(error(&got.body).1, "SERVER_GONE");
    // Without its tools no call goes anywhere.
    let got = client.post(&call("6", "read", "{}")).await;
    assert_eq!(error(&got.body).1, "TOOL_UNLISTED");
    drop(client);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_events_does_not_hold_up_others() {
    let flood = |seen: &Seen| {
        let (sender, receiver) = mpsc::unbounded_channel();
        let event = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n";
        for _ in 0..20_000 {
            sender.send(Bytes::from_static(event.as_bytes())).unwrap();
        }
        // Who does not read keeps the stream; it ends with the client.
        (seen.verb == "GET").then_some(Answer::Events(receiver))
    };
    let web = Web::with(flood, |_| {}).await;
    let mut deaf = web.client().await;
    deaf.initialize().await;
    deaf.start("GET", "", "").await;
    let mut client = web.client().await;
    client.initialize().await;
    for id in 0..20 {
        assert!(
            client
                .post(&call(&id.to_string(), "read", "{}"))
                .await
                .body
                .contains("done")
        );
    }
    drop((deaf, client));
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_disappears_leaves_nothing_behind() {
    let slow: Arc<Mutex<Vec<mpsc::UnboundedSender<Bytes>>>> = Arc::default();
    let kept = Arc::clone(&slow);
    let behave = move |seen: &Seen| {
        seen.is_call().then(|| {
            let (sender, receiver) = mpsc::unbounded_channel();
            kept.lock().unwrap().push(sender);
            Answer::Events(receiver)
        })
    };
    let web = Web::with(behave, |_| {}).await;
    let mut client = web.client().await;
    client.initialize().await;
    let session = client.session.clone();
    drop(client);
    // Before 2026-07-28 the server is heard out, and the log knows how the call ended.
    let fetch = r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x:y"}}"#;
    for (results, asked) in [(1, fetch), (2, &call("2", "read", "{}"))] {
        let mut client = web.client().await;
        client.session.clone_from(&session);
        client.start("POST", "", asked).await;
        web.until("the call runs", |web| web.effects() == results)
            .await;
        drop(client);
        tokio::time::sleep(Duration::from_millis(200)).await;
        let answer = format!(
            "data: {{\"jsonrpc\":\"2.0\",\"id\":{results},\"result\":{{\"content\":[]}}}}\n\n"
        );
        let sender = slow.lock().unwrap().pop().unwrap();
        sender.send(Bytes::from(answer)).unwrap();
        web.until("the result is recorded", |web| {
            web.count(EventType::ToolResult) == results
        })
        .await;
    }
    // The session is still there for whoever knows its name.
    let mut client = web.client().await;
    client.session = session;
    assert_eq!(client.post(PING).await.status, 200);
    // A call that takes too long is cancelled, also when nobody waits.
    client.start("POST", "", &call("3", "read", "{}")).await;
    web.until("the call runs", |web| web.effects() == 3).await;
    drop(client);
    web.until("the call is settled", |web| web.settled() == 3)
        .await;
    web.until("the server hears", |web| {
        web.seen()
            .iter()
            .any(|seen| String::from_utf8_lossy(&seen.body).contains("notifications/cancelled"))
    })
    .await;
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_cannot_give_two_clients_one_session() {
    let same = |seen: &Seen| match usual(seen) {
        Answer::Body(200, _, body) if seen.method().as_deref() == Some("initialize") => {
            let head = "content-type: application/json\r\nmcp-session-id: same\r\n";
            Some(Answer::Body(200, head, body))
        }
        _ => None,
    };
    let web = Web::with(same, |_| {}).await;
    let mut first = web.client().await;
    first.initialize().await;
    let mut second = web.client().await;
    let got = second
        .post(r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}"#)
        .await;
    assert_eq!(error(&got.body).1, "SERVER_FRAME_REFUSED");
    assert_eq!(web::header(&got.head, "mcp-session-id"), None);
    assert_eq!(first.post(PING).await.status, 200);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_is_not_begun() {
    // The tools are listed late, so the call waits for them.
    let (release, list) = mpsc::unbounded_channel::<Bytes>();
    let list = Mutex::new(Some(list));
    let behave = move |seen: &Seen| {
        (seen.method().as_deref() == Some("tools/list"))
            .then(|| Answer::Events(list.lock().unwrap().take().unwrap()))
    };
    let web = Web::with(behave, |_| {}).await;
    let mut client = web.client().await;
    client.initialize().await;
    client.start("POST", "", &call("1", "read", "{}")).await;
    web.until("the list is asked for", |web| {
        web.seen()
            .iter()
            .any(|seen| seen.method().as_deref() == Some("tools/list"))
    })
    .await;
    let mut other = web.client().await;
    other.session.clone_from(&client.session);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(other.post(cancel).await.status, 202);
    drop(release);
    drop(client);
    assert_eq!(other.post(PING).await.status, 200);
    assert_eq!(web.effects(), 0);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_say_something_else_in_another_alphabet_are_no_message() {
    let web = Web::new().await;
    let mut client = web.client().await;
    client.initialize().await;
    let before = web.seen().len();
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping","x":"+ACI-"}"#;
    for kind in [
        "content-type: application/json; charset=utf-7\r\n",
        "content-type: application/json;CHARSET=\"UTF-16\"\r\n",
        "content-type: application/json; charset*=utf-8''utf-7\r\n",
        "content-type: application/json\r\ncontent-encoding: gzip\r\n",
    ] {
        let mut client = web.client().await;
        let got = client.ask("POST", kind, ping).await;
        assert_eq!(got.status, 415, "{kind}");
    }
    assert_eq!(web.seen().len(), before);
    let plain = "content-type: application/json; charset=UTF-8\r\n";
    assert_eq!(client.ask("POST", plain, ping).await.status, 200);
    let sent = web.seen().pop().unwrap();
    assert_eq!(
        sent.header("content-type").as_deref(),
        Some("application/json")
    );
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_server_never_answers_has_an_end_when_the_door_closes() {
    // Of this revision a call is heard out although its client is gone.
    let (never, silence) = mpsc::unbounded_channel::<Bytes>();
    let silence = Mutex::new(Some(silence));
    let behave = move |seen: &Seen| {
        (seen.method().as_deref() == Some("tools/call"))
            .then(|| Answer::Events(silence.lock().unwrap().take().unwrap()))
    };
    let web = Web::with(behave, |_| {}).await;
    web.be_patient();
    let mut client = web.client().await;
    client.initialize().await;
    client.start("POST", "", &call("1", "read", "{}")).await;
    web.until("the server has the call", |web| web.effects() == 1)
        .await;
    drop(client);
    // Every session has ended then, and how the call went is recorded as unknown.
    web.close().await;
    drop(never);
}
