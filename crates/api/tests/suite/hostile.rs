//! What strangers and broken clients get.

use std::io::Write as _;
use std::time::Duration;

use countersign_api::{Rate, Role, Settings};

use crate::scene::{Answer, Scene};

#[test]
fn other_names_and_foreign_pages_are_turned_away() {
    let scene = Scene::new(None);
    let token = scene.token(Role::Operator);
    let ask = |head: &str| {
        let mut stream = scene.connect();
        let text = format!(
            "GET /v1/me HTTP/1.1\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n{head}\r\n"
        );
        stream.write_all(text.as_bytes()).unwrap();
        Answer::read(stream, false)
    };
    assert_eq!(ask("Host: localhost\r\n").status, 200);
    for head in [
        "Host: evil.example\r\n",
        "Host: 127.0.0.1.nip.io\r\n",
        "",
        "Host: localhost\r\nOrigin: https://evil.example\r\n",
        "Host: localhost\r\nOrigin: null\r\n",
    ] {
        let answer = ask(head);
        assert!(
            [400, 403].contains(&answer.status),
            "{head}: {}",
            answer.status
        );
    }
    // Health does not answer to strangers either.
    let mut stream = scene.connect();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        .unwrap();
    assert_eq!(Answer::read(stream, false).status, 403);
}

#[test]
fn bodies_that_cannot_be_read_are_refused_with_their_place() {
    let scene = Scene::new(None);
    let token = scene.token(Role::Operator);
    let post = |body: &str| scene.post("/v1/events", &token, body);
    let check = |body: &str, status: u16, code: &str, pointer: &str| {
        let answer = post(body);
        assert_eq!(
            (answer.status, answer.text("code").as_str()),
            (status, code),
            "{body}"
        );
        assert_eq!(answer.text("pointer"), pointer, "{body}");
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(
            answer.header("x-request-id"),
            Some(answer.text("request_id").as_str())
        );
    };
    check("", 400, "C0101", "");
    check("{", 400, "C0101", "");
    check(r#"{"a":1,"a":1}"#, 400, "C0101", "");
    check("[]", 400, "C0102", "");
    check(
        r#"{"event_type":"MEMORY_WRITE"}"#,
        400,
        "C0102",
        "/session_id",
    );
    check(
        r#"{"session_id":"s","event_type":"NOTHING"}"#,
        400,
        "C0102",
        "/event_type",
    );
    check(
        r#"{"session_id":"s","event_type":"MEMORY_WRITE","seq":-1}"#,
        400,
        "C0102",
        "/seq",
    );
    check(
        r#"{"session_id":"s","event_type":"MEMORY_WRITE","extra":1}"#,
        400,
        "C0102",
        "/extra",
    );
    check(
        r#"{"session_id":"s","event_type":"MEMORY_WRITE","seq":1,"prev_hash":"zz"}"#,
        400,
        "C0102",
        "/prev_hash",
    );
    check(
        r#"{"session_id":"","event_type":"MEMORY_WRITE"}"#,
        400,
        "C0105",
        "",
    );
    check(
        r#"{"session_id":"s","event_type":"MEMORY_WRITE","payload":{"memory_key":1}}"#,
        400,
        "C0102",
        "/payload/memory_key",
    );
    assert_eq!(
        scene.get("/v1/events?limit=0", &token).text("code"),
        "C0907"
    );
    assert_eq!(
        scene.get("/v1/events?colour=red", &token).text("code"),
        "C0907"
    );
    assert_eq!(
        scene.get("/v1/events?limit=1&limit=2", &token).text("code"),
        "C0907"
    );
    assert_eq!(
        scene.get("/v1/events?cursor=zz", &token).text("code"),
        "C0107"
    );
}

#[test]
fn bodies_that_are_too_large_are_cut_off() {
    let scene = Scene::new(None);
    let token = scene.token(Role::Operator);
    // Said at once, before anything was sent.
    let mut stream = scene.connect();
    let head = format!(
        "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n",
        64 << 20
    );
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(Answer::read(stream, false).status, 413);
    // Found out on the way.
    let mut stream = scene.connect();
    let head = format!(
        "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let piece = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
    for _ in 0..100 {
        if stream.write_all(&piece).is_err() {
            break;
        }
    }
    assert_eq!(Answer::read(stream, false).status, 413);
    // A place that takes no body gets none.
    let answer = scene.ask("GET", "/v1/me", Some(&token), Some("{}"));
    assert_eq!(answer.status, 413);
}

#[test]
fn slow_clients_are_cut_off() {
    let settings = Settings {
        body_time: Duration::from_millis(200),
        ..Settings::default()
    };
    let scene = Scene::opened(None, settings, |mut door| {
        door.limits.head_time = Duration::from_millis(300);
        door
    });
    let token = scene.token(Role::Operator);
    let mut stream = scene.connect();
    let head = format!(
        "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: 10\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let answer = Answer::read(stream, false);
    assert_eq!(
        (answer.status, answer.text("code").as_str()),
        (408, "C0914")
    );
    // A head that never ends, and a connection that says nothing.
    for beginning in ["GET /healthz HTTP/1.1\r\nX: ", ""] {
        let mut stream = scene.connect();
        stream.write_all(beginning.as_bytes()).unwrap();
        let mut rest = Vec::new();
        let ended = std::io::Read::read_to_end(&mut stream, &mut rest);
        assert!(ended.is_ok(), "{beginning:?}: the connection stayed open");
    }
}

#[test]
fn floods_of_headers_are_cut_off() {
    let scene = Scene::new(None);
    let token = scene.token(Role::Operator);
    let many: String = (0..200)
        .map(|number| format!("X-{number}: 1\r\n"))
        .collect();
    assert_eq!(scene.say("GET", "/healthz", &many, None).status, 431);
    let long = format!("X: {}\r\n", "x".repeat(128 << 10));
    let answer = scene.say("GET", "/healthz", &long, None);
    assert_eq!(answer.status, 431);
    assert_eq!(scene.get("/v1/me", &token).status, 200);
}

#[test]
fn connections_have_an_end() {
    let scene = Scene::opened(None, Settings::default(), |mut door| {
        door.limits.max_connections = 4;
        door.limits.head_time = Duration::from_millis(300);
        door
    });
    let idle: Vec<_> = (0..20).map(|_| scene.connect()).collect();
    // Half of the machine's sockets are open and say nothing; others still get their turn.
    assert_eq!(scene.ask("GET", "/healthz", None, None).status, 200);
    drop(idle);
}

#[test]
fn who_asks_too_often_waits() {
    let rate = |burst| {
        Some(Rate {
            per_second: 0.001,
            burst,
        })
    };
    let scene = Scene::with(
        Some(r#"{"permissions":{"tools":["a","b"]}}"#),
        Settings {
            token_rate: rate(5.0),
            tenant_rate: rate(8.0),
            tool_rate: rate(1.0),
            ..Settings::default()
        },
    );
    let first = scene.token_for(Role::Agent, "a", Some("acme"), None);
    let second = scene.token_for(Role::Agent, "b", Some("acme"), None);
    let propose = |token: &str, tool: &str| {
        let body = format!(
            r#"{{"session_id":"{tool}","event_type":"TOOL_CALL_PROPOSED","payload":{{"tool_name":"{tool}","args":{{}}}}}}"#
        );
        scene.post("/v1/events", token, &body).status
    };
    assert_eq!(
        (
            propose(&first, "a"),
            propose(&first, "a"),
            propose(&first, "b")
        ),
        (201, 429, 201)
    );
    assert_eq!(scene.get("/v1/me", &first).status, 200);
    assert_eq!(scene.get("/v1/me", &first).status, 200);
    let answer = scene.get("/v1/me", &first);
    assert_eq!(
        (answer.status, answer.text("code").as_str()),
        (429, "C0905")
    );
    assert!(
        answer
            .header("retry-after")
            .unwrap()
            .parse::<u64>()
            .unwrap()
            >= 1
    );
    // The other token of the tenant has what the tenant has left.
    let statuses: Vec<u16> = (0..4)
        .map(|_| scene.get("/v1/me", &second).status)
        .collect();
    assert_eq!(statuses, [200, 200, 200, 429]);
    // Health is for everybody.
    assert_eq!(scene.ask("GET", "/healthz", None, None).status, 200);
}

#[test]
fn who_guesses_is_slowed_down() {
    let scene = Scene::new(None);
    let guess = format!("cst_0123456789abcdef_{}", "0".repeat(64));
    let statuses: Vec<u16> = (0..40)
        .map(|_| scene.get("/v1/me", &guess).status)
        .collect();
    assert_eq!(statuses.first(), Some(&401));
    assert_eq!(statuses.last(), Some(&429));
    // Who has a token comes in, also from the same address.
    let token = scene.token(Role::Auditor);
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while scene.get("/v1/me", &token).status != 200 {
        assert!(
            std::time::Instant::now() < until,
            "a guesser locks others out"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}
