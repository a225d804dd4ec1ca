//! The live stream.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use countersign_api::Role;
use countersign_canon::Json;

use crate::scene::{Scene, json};

struct Stream(BufReader<TcpStream>);

#[derive(Debug, PartialEq)]
struct Heard {
    id: u64,
    kind: String,
    data: Json,
}

impl Stream {
    fn open(scene: &Scene, token: &str, query: &str, headers: &str) -> Self {
        let mut stream = scene.connect();
        let head = format!(
            "GET /v1/stream{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{headers}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut stream = Self(BufReader::new(stream));
        // The first comment says that whatever is recorded from now on is heard.
        while stream.line() != ": countersign" {}
        stream
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(
            self.0.read_line(&mut line).unwrap() > 0,
            "the stream has ended"
        );
        line.trim_end().to_owned()
    }

    fn next(&mut self) -> Heard {
        let mut heard = Heard {
            id: 0,
            kind: String::new(),
            data: Json::Null,
        };
        loop {
            let line = self.line();
            if let Some(id) = line.strip_prefix("id: ") {
                heard.id = id.parse().unwrap();
            } else if let Some(kind) = line.strip_prefix("event: ") {
                heard.kind = kind.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                heard.data = json(data);
                return heard;
            }
        }
    }
}

fn write(scene: &Scene, token: &str, session: &str, key: &str) {
    let body = format!(
        r#"{{"session_id":"{session}","event_type":"MEMORY_WRITE","payload":{{"memory_key":"{key}"}}}}"#
    );
    assert_eq!(scene.post("/v1/events", token, &body).status, 201);
}

#[test]
fn who_listens_hears_what_is_recorded_and_goes_on_where_they_left() {
    let scene = Scene::new(None);
    let agent = scene.token(Role::Agent);
    let auditor = scene.token(Role::Auditor);
    write(&scene, &agent, "s1", "before");
    let mut stream = Stream::open(&scene, &auditor, "", "");
    write(&scene, &agent, "s1", "one");
    let one = stream.next();
    assert_eq!((one.id, one.kind.as_str()), (2, "event"));
    assert_eq!(
        one.data
            .get("payload")
            .unwrap()
            .get("memory_key")
            .and_then(Json::as_str),
        Some("one")
    );
    drop(stream);
    write(&scene, &agent, "s1", "two");
    write(&scene, &agent, "s1", "three");
    let mut stream = Stream::open(&scene, &auditor, "", "Last-Event-ID: 2\r\n");
    assert_eq!((stream.next().id, stream.next().id), (3, 4));
    let mut stream = Stream::open(&scene, &auditor, "?after=0", "");
    assert_eq!(
        (1..=4).map(|_| stream.next().id).collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
    // A client that knows more than the log is told.
    let mut stream = Stream::open(&scene, &auditor, "?after=900", "");
    let gap = stream.next();
    assert_eq!((gap.id, gap.kind.as_str()), (4, "gap"));
    write(&scene, &agent, "s1", "four");
    assert_eq!(stream.next().id, 5);
}

#[test]
fn a_query_chooses() {
    let scene = Scene::new(Some(r#"{"permissions":{"tools":["read_file"]}}"#));
    let token = scene.token(Role::Operator);
    let mut stream = Stream::open(&scene, &token, "?q=type:POLICY_*+decision:deny", "");
    for tool in ["read_file", "exec"] {
        let body = format!(
            r#"{{"session_id":"s1","event_type":"TOOL_CALL_PROPOSED","payload":{{"tool_name":"{tool}","args":{{}}}}}}"#
        );
        assert_eq!(scene.post("/v1/events", &token, &body).status, 201);
    }
    let heard = stream.next();
    assert_eq!(
        heard
            .data
            .get("payload")
            .unwrap()
            .get("outcome")
            .and_then(Json::as_str),
        Some("deny")
    );
    let wrong = scene.get("/v1/stream?q=colour:red", &token);
    assert_eq!((wrong.status, wrong.text("code").as_str()), (400, "C0110"));
}

#[test]
fn agents_hear_their_own_sessions_only() {
    let scene = Scene::new(None);
    let mine = scene.token_for(Role::Agent, "a", Some("acme"), None);
    let other = scene.token_for(Role::Agent, "b", Some("acme"), None);
    write(&scene, &mine, "s1", "x");
    assert_eq!(scene.get("/v1/stream", &mine).status, 400);
    assert_eq!(scene.get("/v1/stream?session_id=s1", &other).status, 404);
    let mut stream = Stream::open(&scene, &mine, "?session_id=s1", "");
    write(&scene, &other, "s2", "hidden");
    write(&scene, &mine, "s1", "seen");
    let heard = stream.next();
    assert_eq!(
        (
            heard.id,
            heard.data.get("session_id").and_then(Json::as_str)
        ),
        (3, Some("s1"))
    );
}

#[test]
fn a_listener_that_falls_behind_loses_nothing() {
    let scene = Scene::new(None);
    let token = scene.token(Role::Operator);
    let mut stream = Stream::open(&scene, &token, "", "");
    let scope = countersign_event::Scope::new("default", "s1").unwrap();
    let payload = |number: u64| {
        let text = format!(
            r#"{{"memory_key":"k{number}","memory_store":"{}"}}"#,
            "x".repeat(2000)
        );
        countersign_event::Payload::admit(countersign_event::EventType::MemoryWrite, json(&text))
            .unwrap()
    };
    // More than any buffer on the way holds, while nobody reads.
    for number in 0..4000 {
        let recorded = scene.engine.record(
            &scope,
            countersign_event::EventType::MemoryWrite,
            payload(number),
        );
        assert!(recorded.is_ok());
    }
    for number in 1..=4000 {
        assert_eq!(stream.next().id, number);
    }
}
