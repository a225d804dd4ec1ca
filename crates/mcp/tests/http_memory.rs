//! Servers that do not read, at the HTTP door: what waits for them is bounded.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;
mod web;

use std::process::Command;
use std::sync::Arc;

use countersign_mcp::http::{Program, Upstream};
use scene::error;
use tokio::net::TcpListener;
use web::Web;

fn ping(id: &str, bytes: usize) -> String {
    let filling = "x".repeat(bytes);
    format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"ping","params":{{"x":"{filling}"}}}}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_does_not_read_takes_its_share_of_the_room() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/mcp", listener.local_addr().unwrap());
    let web = Web::before(&address, Arc::default(), Arc::default(), |limits| {
        limits.max_frame_bytes = 32 << 20;
        limits.max_held_bytes = 40 << 20;
    })
    .await;
    // More than the buffers of a connection take.
    let large = ping("1", 24 << 20);
    let mut first = web.client().await;
    first.start("POST", "", &large).await;
    let (_unread, _) = listener.accept().await.unwrap();
    let mut second = web.client().await;
    let refused = second.post(&large).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    // It comes back with the connection.
    drop((first, _unread));
    for _ in 0..1000 {
        let mut third = web.client().await;
        third.start("POST", "", &large).await;
        tokio::select! {
            accepted = listener.accept() => {
                accepted.unwrap();
                return;
            }
            busy = third.finish() => assert_eq!(busy.status, 503),
        }
    }
    panic!("the room stays full");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_read_is_sent_nothing_more() {
    let deaf = program(&["sleep", "60"]);
    let web = Web::of(deaf, Arc::default(), Arc::default(), |_| {}).await;
    let mut client = web.client().await;
    let told = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"x":"{}"}}}}"#,
        "x".repeat(900 << 10)
    );
    let mut statuses = Vec::new();
    for _ in 0..20 {
        statuses.push(client.post(&told).await.status);
    }
    // Eight MiB may wait, and one message beyond.
    assert_eq!(statuses[0], 202);
    assert_eq!(statuses[19], 503, "{statuses:?}");
    let taken = statuses.iter().filter(|status| **status == 202).count();
    assert!(taken <= 11, "{statuses:?}");
    let refused = client.post(&ping("1", 1)).await;
    assert_eq!(error(&refused.body).1, "SERVER_BUSY");
}

/// Each connection without a session starts a program, which ends when nothing is to come from it any more. Who
/// leaves calls open that never end does not fill the machine.
#[tokio::test(flavor = "multi_thread")]
async fn so_many_programs_run_and_no_more() {
    let silent = program(&["sleep", "60"]);
    let web = Web::of(silent, Arc::default(), Arc::default(), |limits| {
        limits.max_programs = 3;
    })
    .await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = web.client().await;
        client.start("POST", "", &ping("1", 1)).await;
        clients.push(client);
    }
    web.until("three are let in", |web| *web.opened.lock().unwrap() == 3)
        .await;
    let mut late = web.client().await;
    let got = late.post(&ping("1", 1)).await;
    assert_eq!(
        (got.status, error(&got.body).1.as_str()),
        (503, "TOO_MANY_SESSIONS")
    );
    // Nothing is in the log about who was not let in.
    assert_eq!(*web.opened.lock().unwrap(), 3);
    // Another one has room when one has ended.
    clients.pop();
    for _ in 0..300 {
        let mut next = web.client().await;
        next.start("POST", "", &ping("1", 1)).await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        if *web.opened.lock().unwrap() == 4 {
            return;
        }
    }
    panic!("no program has ended");
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"c"}}}"#;

/// What has ended takes no place, however long its session is remembered.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_has_ended_makes_room_for_another_one() {
    let answer = r#"{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25"}}"#;
    let brief = program(&["sh", "-c", &format!("read -r line; echo '{answer}'")]);
    let web = Web::of(brief, Arc::default(), Arc::default(), |limits| {
        limits.max_programs = 2;
    })
    .await;
    let mut clients = Vec::new();
    for _ in 0..6 {
        let mut client = web.client().await;
        for _ in 0..100 {
            let got = client.post(INITIALIZE).await;
            if got.status == 200 {
                break;
            }
            assert_eq!(got.status, 503, "{got:?}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        clients.push(client);
    }
    assert_eq!(*web.opened.lock().unwrap(), 6);
}

/// A server that is started for each session by these words.
fn program(words: &[&str]) -> Upstream {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    Upstream::Command(Program {
        shown: words[0].clone(),
        command: Arc::new(move || {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            command
        }),
        guard: Arc::new(|| None),
    })
}
