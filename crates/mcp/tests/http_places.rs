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

use countersign_event::EventType;
use web::{Answer, Seen, Web};

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
