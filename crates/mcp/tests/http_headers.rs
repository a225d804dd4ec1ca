//! What stands in the headers of a request at the HTTP door.
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
use scene::{call, error};
use web::{Answer, Seen, Web};

#[tokio::test(flavor = "multi_thread")]
async fn names_that_some_servers_take_for_others_stay_at_the_door() {
    let web = Web::new().await;
    let mut client = web.client().await;
    client.initialize().await;
    let more = "mcp_session_id: another\r\nMcp_Param_X: y\r\nx-kept: z\r\n";
    let got = client.ask("POST", more, &call("1", "read", "{}")).await;
    assert!(got.body.contains("done"), "{got:?}");
    let seen = web.seen();
    let seen = seen.iter().find(|seen| seen.is_call()).unwrap();
    assert_eq!(seen.header("mcp_session_id"), None);
    assert_eq!(seen.header("mcp_param_x"), None);
    assert_eq!(seen.header("x-kept").as_deref(), Some("z"));
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_about_a_call_whose_headers_say_something_else() {
    let tools = |seen: &Seen| {
        let is_list = seen.method().as_deref() == Some("tools/list");
        let tools = r#"{"tools":[{"name":"deploy","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}"#;
        let json = "content-type: application/json\r\n";
        is_list.then(|| Answer::Body(200, json, seen.result(tools)))
    };
    let web = Web::with(tools, |_| {}).await;
    web.register_approver();
    let mut client = web.client().await;
    client.initialize().await;
    let list = r#"{"jsonrpc":"2.0","id":"l","method":"tools/list"}"#;
    assert!(client.post(list).await.body.contains("deploy"));
    let deploy = call("1", "deploy", r#"{"region":"eu"}"#);
    let got = client
        .ask("POST", "mcp-param-region: us\r\n", &deploy)
        .await;
    assert_eq!(got.status, 400, "{got:?}");
    assert_eq!(error(&got.body), (-32020, "HEADER_MISMATCH".to_owned()));
    assert!(web.approvals().is_empty());
    assert_eq!(web.count(EventType::ToolCallProposed), 0);
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_to_a_path_that_leads_nowhere_hears_which_do() {
    let web = Web::new().await;
    let mut client = web.client().await;
    client.initialize().await;
    for path in ["/", "/mcp/nope"] {
        for verb in ["GET", "POST"] {
            let head =
                format!("{verb} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n");
            client.send_raw(head).await;
            let got = client.finish().await;
            assert_eq!(got.status, 404, "{got:?}");
            assert!(got.body.contains("servers are at /mcp"), "{got:?}");
        }
    }
    web.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_names_a_session_is_judged_in_it_whatever_its_messages_speak() {
    let web = Web::new().await;
    let mut client = web.client().await;
    client.initialize().await;
    let opened = |web: &Web| {
        let events = web.events().into_iter();
        let keys = events.filter_map(|(_, payload)| payload.get("memory_key").cloned());
        keys.filter(|key| key.as_str() == Some("mcp/session"))
            .count()
    };
    let before = opened(&web);
    let modern = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let got = client.post(modern).await;
    assert!(got.body.contains("done"), "{got:?}");
    assert_eq!(opened(&web), before);
    // A session that is not known, or no longer, does not stop who needs none.
    client.session = Some("over".to_owned());
    let got = client.post(&modern.replace(r#""id":1"#, r#""id":2"#)).await;
    assert!(got.body.contains("done"), "{got:?}");
    web.close().await;
}
