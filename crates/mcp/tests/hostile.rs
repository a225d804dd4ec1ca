//! Clients and servers that mean harm, or do not know better.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod scene;

use std::time::Duration;

use countersign_event::EventType;
use countersign_mcp::{FrameLimits, Unknown};
use scene::{Scene, call, error, json};

/// Ways to reach `secret`, which no policy allows, or `read` without asking.
fn attempts() -> Vec<Vec<u8>> {
    let params = r#""params":{"name":"secret","arguments":{}}"#;
    let mut frames: Vec<Vec<u8>> = [
        // Aliases of the method.
        "Tools/Call",
        "TOOLS/CALL",
        "tools/call ",
        " tools/call",
        "tools/call\\u0000",
        "tools//call",
        "/tools/call",
        "tools/call/",
        "tools.call",
        "./tools/call",
        "x/../tools/call",
        "tools\\\\call",
        "tools/call?x",
        "tools/call#",
        "tools%2Fcall",
        "tools/c\\u0430ll",
        "notifications/../tools/call",
    ]
    .iter()
    .flat_map(|method| {
        ["\"id\":1,", ""].map(|id| {
            format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}",{params}}}"#).into_bytes()
        })
    })
    .collect();
    let texts = [
        // The real name, and another reading of the frame.
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools\/call",{params}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools\u002fcall",{params}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call",{params}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping",{params}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"tools/call",{params}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call",{params}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":["tools/call"],{params}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"METHOD":"tools/call",{params}}}"#),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","name":"secret"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret","n\u0061me":"read"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","Name":"secret"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","NAME":"secret"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","na_me":"secret"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","task-id":"secret"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","input_responses":{}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"a":1,"a":2}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"a":{"b":1,"\u0062":2}}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"n":9007199254740993}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"s":"\ud800"}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":[]}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":"{}"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["read"]}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":""}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["read",{}]}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#.to_owned(),
        // Names of tools.
        call("1", "Read", "{}"),
        call("1", "read ", "{}"),
        call("1", "re\u{430}d", "{}"),
        call("1", "read\\u0000", "{}"),
        call("1", "secret", "{}"),
        call("1", "not-there", "{}"),
        // Frames without an id, with a bad one, of another kind.
        format!(r#"{{"jsonrpc":"2.0","method":"tools/call",{params}}}"#),
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"read"}}"#.to_owned(),
        call("null", "read", "{}"),
        call("1.0", "read", "{}"),
        call("1e0", "read", "{}"),
        call("-0", "read", "{}"),
        call("[1]", "read", "{}"),
        call("{}", "read", "{}"),
        call("true", "read", "{}"),
        format!("[{}]", call("1", "read", "{}")),
        format!("[{},{}]", r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#, call("1", "read", "{}")),
        "[]".to_owned(),
        call("1", "read", "{}").replace("\"2.0\"", "\"1.0\""),
        call("1", "read", "{}").replace(r#""jsonrpc":"2.0","#, ""),
        call("1", "read", "{}").replacen('{', r#"{"result":{},"#, 1),
        call("1", "read", "{}").replacen('{', r#"{"error":{},"#, 1),
        // An answer that nobody asked for, with a call inside.
        r#"{"jsonrpc":"2.0","id":1,"result":{"method":"tools/call"}}"#.to_owned(),
        // Garbage.
        String::new(),
        "garbage".to_owned(),
        "{".to_owned(),
        call("1", "read", "{}") + "x",
        call("1", "read", "{}") + " " + &call("2", "read", "{}"),
        call("1", "read", "{}").replace(':', ": /* */"),
        format!("\u{feff}{}", call("1", "read", "{}")),
        call("1", "read", &format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000))),
        call("1", "read", "{}").replace("\"id\":1", &format!("\"id\":\"{}\"", "x".repeat(5000))),
    ];
    frames.extend(texts.map(String::into_bytes));
    frames.push(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"read\",\"arguments\":{\"a\":\"\xff\"}}}".to_vec());
    frames.push(b"\x00\x01\x02\xff\xfe".to_vec());
    frames
}

#[test]
fn no_call_reaches_the_server_without_a_permit() {
    let mut scene = Scene::new();
    for listed in [true, false] {
        for attempt in attempts() {
            scene.reconnect();
            if listed {
                scene.list();
            }
            let shown = String::from_utf8_lossy(&attempt[..attempt.len().min(200)]).into_owned();
            scene.send(&attempt);
            assert_eq!(scene.effects, 0, "{shown}");
            for frame in &scene.client {
                assert!(!frame.contains("\"done\""), "{shown}: {frame}");
            }
            // The connection survives.
            let got = scene.call("77", "read", "{}");
            assert!(got.last().unwrap().contains("\"done\""), "{shown}: {got:?}");
            assert_eq!(scene.effects, 1);
        }
    }
    scene.verify();
}

#[test]
fn all_attempts_on_one_connection_leave_a_log_that_verifies() {
    let mut scene = Scene::with(|settings| settings.unknown = Unknown::Refuse, None);
    scene.list();
    for attempt in attempts() {
        scene.send(&attempt);
    }
    assert_eq!(scene.effects, 0);
    assert!(scene.faults().len() > 30);
    scene.verify();
}

#[test]
fn an_id_is_used_once() {
    let mut scene = Scene::new();
    scene.list();
    assert!(scene.call("1", "read", "{}")[0].contains("done"));
    let again = scene.call("1", "read", r#"{"x":2}"#);
    assert_eq!(error(&again[0]), (-32000, "ID_REUSED".to_owned()));
    assert_eq!(scene.effects, 1);
    // Another kind of id is another id; another spelling is not.
    assert!(scene.call("\"1\"", "read", r#"{"x":3}"#)[0].contains("done"));
    let again = scene.call("\"\\u0031\"", "read", r#"{"x":4}"#);
    assert_eq!(error(&again[0]).1, "ID_REUSED");
    // While a request waits, its id is taken, and the answer that waits is not ours to give.
    scene.answers = false;
    scene.call("5", "read", r#"{"x":5}"#);
    let taken = scene.call("5", "read", r#"{"x":6}"#);
    assert_eq!(
        json(&taken[0]).get("id"),
        Some(&countersign_canon::Json::Null)
    );
    assert_eq!(error(&taken[0]), (-32600, "ID_IN_USE".to_owned()));
    assert_eq!(scene.effects, 3);
    assert_eq!(
        scene.faults(),
        [
            "runtime_error:order",
            "runtime_error:order",
            "client_id_reused"
        ]
    );
    scene.verify();
}

#[test]
fn too_many_requests_are_refused_and_the_rest_goes_on() {
    let mut scene = Scene::with(|settings| settings.max_waiting = 3, None);
    scene.list();
    scene.answers = false;
    for id in 0..3 {
        scene.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
    }
    let got = scene.call("9", "read", "{}");
    assert_eq!(error(&got[0]).1, "TOO_MANY_REQUESTS");
    scene.serve(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    scene.call("10", "read", "{}");
    assert_eq!(scene.effects, 1);
    scene.verify();
}

#[test]
fn a_server_that_guesses_floods_or_talks_garbage_changes_nothing() {
    let mut scene = Scene::with(
        |settings| {
            settings.limits = FrameLimits {
                max_bytes: 10_000,
                max_depth: 16,
            }
        },
        None,
    );
    scene.list();
    scene.hold_jobs = true;
    scene.call("1", "read", "{}");
    // It answers before it was asked.
    assert!(
        scene
            .serve(r#"{"jsonrpc":"2.0","id":1,"result":{"forged":true}}"#)
            .is_empty()
    );
    scene.answers = false;
    scene.run_jobs();
    assert_eq!(scene.effects, 1);
    for frame in [
        &b"garbage"[..],
        b"\xff\xfe",
        b"[]",
        b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\"}",
    ] {
        assert!(scene.serve(frame).is_empty());
    }
    for _ in 0..500 {
        scene.serve(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
    }
    assert!(scene.faults().len() <= 100, "a flood does not fill the log");
    // The answer at last, but one that two readers understand differently.
    let got = scene.serve(r#"{"jsonrpc":"2.0","result":{"a":1,"a":2},"id":1}"#);
    assert_eq!(error(&got[0]).1, "SERVER_FRAME_REFUSED");
    assert_eq!(json(&got[0]).get("id").unwrap().as_i64(), Some(1));
    // An answer that is too long still names whom it fails.
    let named: [(&str, &[u8], &[u8]); 2] = [
        ("3", br#"{"jsonrpc":"2.0","id":3,"result":{"x":"aaaa"#, b""),
        (
            "4",
            br#"{"result":{"x":"aaaa"#,
            br#"aa"},"jsonrpc":"2.0", "id" : 4 }"#,
        ),
    ];
    for (id, beginning, end) in named {
        scene.call(id, "read", &format!(r#"{{"x":{id}}}"#));
        let effects = scene.session.too_long_from_server(beginning, end);
        let before = scene.client.len();
        scene.apply(effects);
        assert_eq!(error(&scene.client[before]).1, "SERVER_FRAME_REFUSED");
    }
    // What stands further in is not the id.
    scene.call("5", "read", r#"{"x":5}"#);
    for end in [&br#"aa","id":5}}"#[..], br#"aa,"id":5"#, br#""id":5}"#] {
        let effects = scene
            .session
            .too_long_from_server(br#"{"result":{"x":"a"#, end);
        let before = scene.client.len();
        scene.apply(effects);
        assert_eq!(scene.client.len(), before);
    }
    scene.serve(r#"{"jsonrpc":"2.0","result":{},"id":5}"#);
    let settled = scene.events().into_iter().filter(|(event, payload)| {
        *event == EventType::ErrorRaised && payload.get("call_id").is_some()
    });
    assert_eq!(settled.count(), 3);
    scene.verify();
}

#[test]
fn a_log_that_cannot_be_written_lets_nothing_pass() {
    let mut scene = Scene::new();
    scene.list();
    scene.terminate();
    let got = scene.call("1", "read", "{}");
    assert!(error(&got[0]).1.starts_with("runtime_error:"));
    let read =
        scene.send(r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"x:y"}}"#);
    assert!(!read[0].contains("ignore previous"), "{read:?}");
    // What we say ourselves is said all the same: nobody waits for ever.
    assert_eq!(error(&scene.send("garbage")[0]).1, "FRAME_REFUSED");
    assert_eq!(scene.effects, 0);
    scene.verify();
}

#[test]
fn a_line_that_some_readers_take_for_several_is_no_message() {
    let mut scene = Scene::new();
    scene.list();
    let inner = call("77", "write", "{}");
    for hidden in [
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{{\"x\":\r{inner}\r}}}}"
        ),
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\r\"params\":{{\"x\":{inner}}}}}"
        ),
        format!("\r{inner}"),
    ] {
        let before = scene.server.len();
        scene.send(&hidden);
        assert_eq!(scene.server.len(), before, "{hidden:?} passed");
    }
    // The one before the line feed is the end of a line for everybody.
    let got = scene.send(format!("{}\r", call("78", "write", "{}")));
    assert!(got[0].contains("result"), "{got:?}");
    // What a server says that way is not passed on either.
    let got = scene.serve("{\"jsonrpc\":\"2.0\",\r\"method\":\"notifications/x\"}");
    assert!(got.is_empty(), "{got:?}");
    assert_eq!(scene.effects, 1);
    scene.verify();
}

/// Requests that nobody decides about, each with its method.
fn others() -> Vec<(&'static str, String)> {
    let methods = [
        ("initialize", "{}"),
        ("ping", "{}"),
        ("tools/list", "{}"),
        ("resources/templates/list", "{}"),
        ("resources/list", "{}"),
        ("prompts/list", "{}"),
        ("completion/complete", "{}"),
        ("tasks/get", r#"{"taskId":"theirs"}"#),
        ("tasks/cancel", r#"{"taskId":"theirs"}"#),
    ];
    let methods = methods.into_iter().enumerate();
    methods
        .map(|(id, (method, params))| {
            let frame =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
            (method, frame)
        })
        .collect()
}

#[test]
fn a_server_that_never_answers_keeps_nobody_waiting() {
    let mut scene = Scene::with(
        |settings| settings.answer_wait = Duration::from_secs(60),
        None,
    );
    scene.answers = false;
    for (_, frame) in others() {
        assert!(scene.send(frame).is_empty());
    }
    assert!(scene.pass(Duration::from_secs(59)).is_empty());
    assert!(scene.session.deadline().is_some());
    let got = scene.pass(Duration::from_secs(2));
    assert_eq!(got.len(), others().len(), "{got:?}");
    for (id, frame) in got.iter().enumerate() {
        assert_eq!(json(frame).get("id").unwrap().as_u64(), Some(id as u64));
        assert_eq!(error(frame), (-32000, "TIMEOUT".to_owned()));
    }
    let faults = scene.faults();
    assert_eq!(faults.len(), others().len());
    assert!(faults.iter().all(|code| code == "timeout"), "{faults:?}");
    // The server hears of each but the handshake, and nothing is kept of any.
    let told = |frame: &&String| frame.contains("notifications/cancelled");
    assert_eq!(scene.server.iter().filter(told).count(), others().len() - 1);
    assert_eq!(scene.session.deadline(), None);
    let late = scene.serve(r#"{"jsonrpc":"2.0","id":3,"result":{"resourceTemplates":[]}}"#);
    assert!(late.is_empty(), "{late:?}");
    assert_eq!(scene.faults().last().unwrap(), "server_answer_late");
    // Under the same ids the session goes on.
    scene.answers = true;
    let again = scene.send(&others()[3].1);
    assert!(again[0].contains("result"), "{again:?}");
    scene.verify();
}

#[test]
fn what_the_protocol_keeps_open_stays_open() {
    let mut scene = Scene::with(
        |settings| settings.answer_wait = Duration::from_secs(60),
        None,
    );
    scene.answers = false;
    scene.send(r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}"#);
    scene.send(r#"{"jsonrpc":"2.0","id":2,"method":"tasks/result","params":{"taskId":"t"}}"#);
    assert_eq!(scene.session.deadline(), None);
    assert!(scene.pass(Duration::from_secs(100_000)).is_empty());
    let done = scene.serve(r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#);
    assert_eq!(done.len(), 1);
    // Progress under another token is nobody's, and progress without an end is not waited for.
    let list = |id: u32, token: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/list","params":{{"_meta":{{"progressToken":"{token}"}}}}}}"#
        )
    };
    scene.send(list(3, "a"));
    scene.send(list(4, "b"));
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"a","progress":1}}"#;
    for round in 1..=6 {
        assert_eq!(scene.serve(progress).len(), 1);
        let got = scene.pass(Duration::from_secs(61));
        assert_eq!(got.len(), usize::from(matches!(round, 1 | 6)), "{round}");
    }
    assert_eq!(scene.faults(), ["timeout", "timeout"]);
    // A server that waits for the client's human is not slow.
    scene.send(list(5, "c"));
    scene.serve(
        r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}"#,
    );
    assert!(scene.pass(Duration::from_secs(61)).is_empty());
    scene.send(r#"{"jsonrpc":"2.0","id":"q","result":{"action":"accept","content":{}}}"#);
    assert_eq!(scene.pass(Duration::from_secs(61)).len(), 1);
    scene.verify();
}

/// The number of a long id is the usual one that a double does not hold.
#[test]
fn who_sends_a_number_that_others_would_round_hears_how_to_send_it() {
    let mut scene = Scene::new();
    let got = scene.call("1", "read", r#"{"n":9007199254740993}"#);
    assert!(got[0].contains("send it as text"), "{got:?}");
}
