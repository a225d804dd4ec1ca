//! Web pages at the HTTP door: who is given leave to use it, and who sees its answers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;
mod web;

use web::{PAGE, Web, header};

const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn only_a_page_that_was_named_is_given_leave_and_sees_answers() {
    let web = Web::new().await;
    let mut client = web.client().await;
    let wanted = "access-control-request-method: POST\r\naccess-control-request-headers: content-type,mcp-session-id\r\n";
    let seen = "access-control-allow-origin";
    let leave = format!("origin: {PAGE}\r\n{wanted}");
    let got = client.ask("OPTIONS", &leave, "").await;
    assert_eq!(
        (got.status, header(&got.head, seen).as_deref()),
        (204, Some(PAGE))
    );
    let headers = header(&got.head, "access-control-allow-headers");
    assert_eq!(headers.as_deref(), Some("content-type,mcp-session-id"));
    // What is sent then is answered so that the page sees it, and so is what is refused.
    for (more, status) in [("", 200), ("content-type: text/plain\r\n", 415)] {
        let got = client
            .ask("POST", &format!("origin: {PAGE}\r\n{more}"), PING)
            .await;
        assert_eq!(
            (got.status, header(&got.head, seen).as_deref()),
            (status, Some(PAGE))
        );
        assert_eq!(header(&got.head, "vary").as_deref(), Some("origin"));
    }
    // Without the question there is nothing to give leave for.
    let got = client
        .ask("OPTIONS", &format!("origin: {PAGE}\r\n"), "")
        .await;
    assert_eq!(got.status, 405);
    let named_elsewhere = format!("host: evil.example\r\n{leave}");
    assert_eq!(
        client.ask("OPTIONS", &named_elsewhere, "").await.status,
        403
    );
    // Nobody has named these.
    for (page, status) in [
        ("http://127.0.0.1:6274", 405),
        ("https://evil.example", 403),
    ] {
        let got = client
            .ask("OPTIONS", &format!("origin: {page}\r\n{wanted}"), "")
            .await;
        assert_eq!(
            (got.status, header(&got.head, seen)),
            (status, None),
            "{page}"
        );
    }
    let got = client
        .ask("POST", "origin: http://127.0.0.1:6274\r\n", PING)
        .await;
    assert_eq!((got.status, header(&got.head, seen)), (200, None));
    drop(client);
    web.close().await;
}
