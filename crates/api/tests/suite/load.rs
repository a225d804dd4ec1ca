//! Many connections at once: no error, no lost event, and the log verifies.
//!
//! `COUNTERSIGN_FULL=1` has 10 000 turns on each of 64 connections, and an end to what memory may grow by.
//! `--nocapture` shows the figures.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use countersign_api::Role;
use countersign_canon::Json;
use countersign_verify::database::verify_database;
use countersign_verify::{Expectation, Selection};

use crate::scene::{Scene, json};

const CONNECTIONS: usize = 64;
const MANIFEST: &str = r#"{"schema":"countersign/manifest/v1","permissions":{"tools":{"read_file":{"side_effect":"read"}},"budgets":{"max_steps":1000000000,"max_tool_calls":1000000000,"max_wall_time_ms":1000000000}},"loops":{"identical_calls":0,"no_progress_steps":0,"sequence_min":0,"sequence_max":0}}"#;

struct Client {
    stream: BufReader<TcpStream>,
    token: String,
    requests: u64,
}

impl Client {
    fn ask(&mut self, method: &str, path: &str, body: &str) -> (u16, Json) {
        self.requests += 1;
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        (status, json(&String::from_utf8(body).unwrap()))
    }

    /// One of each kind in turn; says how many events came of it.
    fn turn(&mut self, number: usize, session: &str) -> u64 {
        let text =
            |json: &Json, name: &str| json.get(name).and_then(Json::as_str).unwrap().to_owned();
        match number % 4 {
            0 => {
                let body = format!(
                    r#"{{"session_id":"{session}","event_type":"MEMORY_WRITE","payload":{{"memory_key":"k{number}"}}}}"#
                );
                assert_eq!(self.ask("POST", "/v1/events", &body).0, 201);
                1
            }
            1 => {
                let body = r#"{"event":{"event_type":"TOOL_CALL_PROPOSED","payload":{"tool_name":"read_file","args":{}}},"snapshot":{}}"#;
                let (status, answer) = self.ask("POST", "/v1/policy/decide", body);
                assert_eq!((status, text(&answer, "outcome").as_str()), (200, "allow"));
                0
            }
            2 => {
                let body = format!(
                    r#"{{"session_id":"{session}","tool_name":"read_file","args":{{"page":{number}}}}}"#
                );
                let (status, action) = self.ask("POST", "/v1/actions", &body);
                assert_eq!((status, text(&action, "state").as_str()), (201, "running"));
                let path = format!("/v1/actions/{}/result", text(&action, "action_id"));
                let body = format!(
                    r#"{{"permit":"{}","content":"x"}}"#,
                    text(&action, "permit")
                );
                assert_eq!(self.ask("POST", &path, &body).0, 201);
                5
            }
            _ => {
                let (status, _) = self.ask("GET", &format!("/v1/sessions/{session}"), "");
                assert_eq!(status, 200);
                0
            }
        }
    }
}

#[test]
fn under_load_nothing_fails_and_nothing_is_lost() {
    let is_full = std::env::var_os("COUNTERSIGN_FULL").is_some();
    let turns = if is_full { 10_000 } else { 24 };
    let before = peak_memory();
    let began = std::time::Instant::now();
    let scene = Scene::new(Some(MANIFEST));
    let token = scene.token(Role::Agent);
    let (requests, expected) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS)
            .map(|connection| {
                let mut client = Client {
                    stream: BufReader::new(scene.connect()),
                    token: token.clone(),
                    requests: 0,
                };
                scope.spawn(move || {
                    // Two connections to a session, so that they get in each other's way.
                    let session = format!("s{}", connection / 2);
                    let turns = (0..turns).map(|number| client.turn(number, &session));
                    let events: u64 = turns.sum();
                    (client.requests, events)
                })
            })
            .collect();
        let ends = threads.into_iter().map(|thread| thread.join().unwrap());
        ends.fold((0, 0), |sum, end| (sum.0 + end.0, sum.1 + end.1))
    });
    let took = began.elapsed();
    let grown = peak_memory().saturating_sub(before);
    let stored = scene.engine.store().reader().last_id().unwrap();
    // Whatever is answered in another way than it has to be ends the test, so here nothing was.
    println!(
        "{CONNECTIONS} connections: {requests} requests in {took:.1?}, 0 errors; {stored} events stored, \
         {} lost; memory grew by {} MiB at the most",
        expected.saturating_sub(stored),
        grown >> 20,
    );
    assert_eq!(stored, expected);
    assert!(
        !is_full || grown < MOST_MEMORY,
        "memory grew by {grown} bytes"
    );
    let database = countersign_store::Folder::new(scene.folder.path()).database();
    let report = verify_database(
        &database,
        &Selection::default(),
        &Expectation::default(),
        None,
        &mut |_| {},
    );
    assert!(report.is_good(), "{:?}", report.failure);
    assert_eq!(report.events, expected);
    println!("verified: {} events", report.events);
}

/// The most memory that this process ever had, where the system tells.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = peak.and_then(|peak| peak.trim().split(' ').next()?.parse().ok());
    kibibytes.unwrap_or(0_u64) << 10
}

/// Less than what the events alone hold.
const MOST_MEMORY: u64 = 512 << 20;
