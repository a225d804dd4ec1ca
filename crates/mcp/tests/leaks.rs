//! Peers that do not behave leave nothing behind: no file, no thread, no session.
//!
//! A process of its own: other tests open files too.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;
mod web;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use scene::call;
use web::{Answer, Client, Seen, Web, usual};

/// How many threads there are.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// What is open, but for the log: its readers are kept, and how many there are depends on how many were needed at
/// once.
fn files() -> Vec<PathBuf> {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let open = open.filter_map(|one| std::fs::read_link(one.unwrap().path()).ok());
    open.filter(|path| !path.to_string_lossy().contains("/log.db"))
        .collect()
}

/// A server that does each time something else that it should not.
fn unruly(seen: &Seen) -> Option<Answer> {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    if !seen.is_call() {
        return Some(usual(seen));
    }
    let json = "content-type: application/json\r\n";
    Some(match TURN.fetch_add(1, Ordering::Relaxed) % 6 {
        0 => Answer::Raw(b"garbage".to_vec()),
        1 => Answer::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{".to_vec()),
        2 => Answer::Body(200, json, vec![0xff; 100]),
        3 => Answer::Body(200, json, [&b"["[..]; 5000].concat()),
        4 => Answer::Body(500, "", b"broken".to_vec()),
        _ => Answer::Hang,
    })
}

/// Clients come, call, and leave at various moments.
async fn round(web: &Web) {
    let mut clients: Vec<Client> = Vec::new();
    for number in 0..12 {
        let mut client = web.client().await;
        client.initialize().await;
        client.start("POST", "", &call("1", "read", "{}")).await;
        if number % 2 == 0 {
            client.finish().await;
        }
        clients.push(client);
    }
    let hung = clients.len();
    drop(clients);
    assert_eq!(hung, 12);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unruly_peers_leave_nothing_behind() {
    let web = Web::with(unruly, |limits| {
        limits.response_time = std::time::Duration::from_secs(2);
        limits.idle_time = std::time::Duration::from_secs(0);
        limits.threads = 4;
    })
    .await;
    // The first rounds open what stays open: connections of the log, threads that wait for work.
    for _ in 0..2 {
        round(&web).await;
    }
    web.until("all calls have ended", |web| web.settled() == web.effects())
        .await;
    let ended = |web: &Web| {
        *web.opened.lock().unwrap() == web.count(countersign_event::EventType::Termination)
    };
    web.until("all sessions have ended", ended).await;
    let (open, running) = (files(), threads());
    for _ in 0..3 {
        round(&web).await;
    }
    web.until("all sessions have ended", ended).await;
    // Idle connections and threads end a little later than sessions.
    let are_gone = web.comes(|_| files().len() <= open.len()).await;
    assert!(are_gone, "{open:?} were open before, {:?} are", files());
    web.until("threads are let go", |_| threads() <= running + 4)
        .await;
    web.close().await;
}
