//! What a server says over HTTP beside messages of the protocol.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;
mod web;

use web::{Answer, Seen, Web};

const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;

/// A client may look for messages also in what comes with an error: nothing takes that way past the session.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_with_an_http_error_is_no_message_that_nobody_has_looked_at() {
    let words = [
        (
            r#"{"error":"invalid_token","error_description":"expired"}"#,
            true,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"unsupported"}}"#,
            true,
        ),
        // Some make up an id.
        (
            r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"which one?"}}"#,
            true,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"","error":{"code":-32600,"message":"which one?"}}"#,
            true,
        ),
        ("<p>no</p>", true),
        ("no", true),
        (
            r#"{"jsonrpc":"2.0","id":9,"result":{"content":[{"type":"text","text":"evil"}]}}"#,
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","id":9,"error":{"code":1,"message":"evil","data":{"elicitations":["x"]}}}"#,
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x","method":"elicitation/create","params":{"message":"evil"}}"#,
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"evil"}}"#,
            false,
        ),
        (
            r#"[{"jsonrpc":"2.0","id":1,"result":{"text":"evil"}}]"#,
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"evil","data":{"elicitations":[]}}}"#,
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":1,"result":{"text":"evil"}}"#,
            false,
        ),
        (r#"{"JsonRpc":"2.0","text":"evil"}"#, false),
        ("{\u{0}\"evil\u{0}\"", false),
        ("\u{feff} {\"result\":\"evil\"}", false),
        (
            "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"evil\"}\n\n",
            false,
        ),
    ];
    for (body, passes) in words {
        let says = move |seen: &Seen| {
            let is_asked = seen.verb != "POST" || seen.method().as_deref() != Some("initialize");
            is_asked.then(|| Answer::Body(400, "content-type: application/json\r\n", body.into()))
        };
        let web = Web::with(says, |_| {}).await;
        let mut client = web.client().await;
        client.initialize().await;
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
        for (verb, message) in [
            ("POST", PING),
            ("POST", notification),
            ("GET", ""),
            ("DELETE", ""),
        ] {
            let got = client.ask(verb, "", message).await;
            assert!(!got.body.contains("evil"), "{verb} {message} {got:?}");
            if passes {
                assert_eq!((got.status, got.body.as_str()), (400, body), "{verb}");
            } else {
                // Clients tell by the status which revision a server speaks.
                assert_eq!(got.status, 400, "{verb} {message} {got:?}");
            }
        }
        web.close().await;
    }
}
