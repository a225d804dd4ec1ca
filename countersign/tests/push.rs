//! Events on their way to an endpoint that fails, hangs up and goes away: none is lost, and none comes
//! twice with another content.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

#[path = "../../tests/replayed.rs"]
mod replayed;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use countersign_canon::{Json, Limits};

/// What an endpoint does with a request.
#[derive(Clone, Copy)]
enum Mood {
    /// Takes it and says so.
    Takes,
    /// Takes it, and nobody hears of it.
    HangsUp,
    /// Does not take it.
    Fails,
}

#[derive(Default)]
struct Seen {
    bodies: BTreeMap<String, Vec<Vec<u8>>>,
    requests: usize,
}

/// Answers so many requests, then closes its door.
fn endpoint(moods: Vec<Mood>, seen: &Arc<Mutex<Seen>>, port: u16) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::clone(seen);
    std::thread::spawn(move || {
        for mood in moods {
            let (stream, _) = listener.accept().unwrap();
            answer(stream, mood, &seen);
        }
    });
    port
}

fn answer(mut stream: TcpStream, mood: Mood, seen: &Mutex<Seen>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut seen = seen.lock().unwrap();
    seen.requests += 1;
    if !matches!(mood, Mood::Fails) {
        let body = Json::admit(&body, &Limits::event()).unwrap();
        // A batch is a list of events.
        let events = match body {
            Json::Array(events) => events,
            event => vec![event],
        };
        for event in events {
            let id = event.get("id").and_then(Json::as_str).unwrap().to_owned();
            seen.bodies
                .entry(id)
                .or_default()
                .push(event.to_jcs().unwrap());
        }
    }
    let status = match mood {
        Mood::Takes => "202 Accepted",
        Mood::Fails => "503 Service Unavailable",
        Mood::HangsUp => return,
    };
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
}

fn countersign(data: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(arguments)
        .env("COUNTERSIGN_DATA", data)
        .output()
        .unwrap()
}

fn push(data: &Path, port: u16) -> Output {
    push_with(data, port, &[])
}

fn push_with(data: &Path, port: u16, more: &[&str]) -> Output {
    let to = format!("http://127.0.0.1:{port}/events");
    let arguments = [
        "evidence",
        "push",
        "--session",
        "s1",
        "--attempts",
        "2",
        "--to",
        &to,
    ];
    countersign(data, &[&arguments[..], more].concat())
}

fn fill(data: &Path) {
    for key in 0..6 {
        let payload = format!(r#"{{"memory_key":"k{key}"}}"#);
        let arguments = ["log", "append", "--session", "s1", "--type", "MEMORY_WRITE"];
        let arguments = [&arguments[..], &["--payload", &payload]].concat();
        assert!(countersign(data, &arguments).status.success());
    }
}

#[test]
fn batches_that_are_repeated_hold_the_same_events_with_the_same_content() {
    let data = replayed::folder();
    fill(data.path());
    let seen = Arc::new(Mutex::new(Seen::default()));
    use Mood::{Fails, HangsUp, Takes};
    // Seven events in batches of three: one arrives, the next arrives without a word and is not taken again.
    let port = endpoint(vec![Takes, HangsUp, Fails], &seen, 0);
    let stopped = push_with(data.path(), port, &["--batch", "3"]);
    assert_eq!(stopped.status.code(), Some(1), "{stopped:?}");
    let port = endpoint(vec![Takes, Takes], &seen, port);
    // Whatever the next run wants, what is on its way goes first, as it was.
    let done = push_with(data.path(), port, &["--batch", "2"]);
    assert!(done.status.success(), "{done:?}");
    let seen = seen.lock().unwrap();
    assert_eq!(seen.requests, 5);
    assert_eq!(seen.bodies.len(), 7);
    for (id, bodies) in &seen.bodies {
        let times = if ["s1:3", "s1:4", "s1:5"].contains(&id.as_str()) {
            2
        } else {
            1
        };
        assert_eq!(bodies.len(), times, "{id}");
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{id}");
    }
}

#[test]
fn nothing_is_lost_and_nothing_comes_twice_with_another_content() {
    let data = replayed::folder();
    fill(data.path());
    let seen = Arc::new(Mutex::new(Seen::default()));
    use Mood::{Fails, HangsUp, Takes};
    // It fails once, takes two events, takes a third without a word, and goes away.
    let port = endpoint(vec![Fails, Takes, Takes, HangsUp], &seen, 0);
    let stopped = push(data.path(), port);
    assert_eq!(stopped.status.code(), Some(1), "{stopped:?}");
    assert!(String::from_utf8_lossy(&stopped.stderr).contains("C0516"));
    // It comes back, and everything that is left arrives.
    let port = endpoint(vec![Takes; 5], &seen, port);
    let done = push(data.path(), port);
    assert!(done.status.success(), "{done:?}");
    let before = {
        let seen = seen.lock().unwrap();
        assert_eq!(seen.bodies.len(), 7);
        for (id, bodies) in &seen.bodies {
            assert!(bodies.iter().all(|body| *body == bodies[0]), "{id}");
        }
        assert_eq!(seen.bodies["s1:2"].len(), 2);
        assert_eq!(seen.bodies.values().map(Vec::len).sum::<usize>(), 8);
        seen.requests
    };
    // There is nothing more to say.
    let again = push(data.path(), port);
    assert!(again.status.success());
    assert_eq!(seen.lock().unwrap().requests, before);
}

#[test]
fn events_leave_in_clear_only_to_this_machine() {
    let data = replayed::folder();
    for to in ["http://192.0.2.1/", "ftp://127.0.0.1/", "nowhere"] {
        let arguments = ["evidence", "push", "--session", "s1", "--to", to];
        let refused = countersign(data.path(), &arguments);
        assert_eq!(refused.status.code(), Some(3), "{to}");
    }
}
