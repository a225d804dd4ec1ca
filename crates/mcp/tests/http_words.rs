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

use countersign_approval::{Decision, State};
use scene::call;
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

/// Only some statuses prove that nothing was run: of the others the log does not claim it.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_may_have_run_is_not_said_to_have_failed() {
    for (status, expect) in [
        (400, State::Failed),
        (404, State::Failed),
        (408, State::Unknown),
        (409, State::Unknown),
        (429, State::Unknown),
        (499, State::Unknown),
        (503, State::Unknown),
    ] {
        let refuses = move |seen: &Seen| {
            let refused = || Answer::Body(status, "content-type: text/plain\r\n", b"no".to_vec());
            seen.is_call().then(refused)
        };
        let web = Web::with(refuses, |_| {}).await;
        web.register_approver();
        let mut client = web.client().await;
        client.initialize().await;
        client.start("POST", "", &call("1", "deploy", "{}")).await;
        web.until("people are asked", |web| {
            web.approvals() == [State::Pending]
        })
        .await;
        web.decide(Decision::Approved);
        let got = client.finish().await;
        assert!(got.body.contains("SERVER_ERROR"), "{status} {got:?}");
        assert_eq!(web.approvals(), [expect], "{status}");
        web.close().await;
    }
}
